//! Capacity buffers: room that is kept free for pods to come.

use std::sync::Arc;

use super::{Conditions, ObjectMeta, PodShape, WorkloadKind};
use crate::resources::ResourceList;

#[derive(Debug, Clone, PartialEq)]
pub struct CapacityBuffer {
    pub meta: ObjectMeta,
    pub spec: BufferSpec,
    pub status: BufferStatus,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BufferSpec {
    pub strategy: Arc<str>,
    pub shape: BufferShape,
    /// How many pods.
    pub replicas: Option<u32>,
    /// How many pods, as a percentage of the workload's.
    pub percentage: Option<u32>,
    /// Bounds on what its pods ask for together.
    pub limits: ResourceList,
}

/// Where the shape of its pods comes from; always in its own namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BufferShape {
    /// A PodTemplate of this name.
    Template(Arc<str>),
    Workload {
        kind: WorkloadKind,
        name: Arc<str>,
    },
    /// Something that has no pods we could read.
    Unsupported {
        group: Arc<str>,
        kind: Arc<str>,
    },
    /// It does not say.
    Missing,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BufferStatus {
    pub replicas: Option<u32>,
    pub template: Option<Arc<str>>,
    pub template_generation: Option<i64>,
    pub strategy: Option<Arc<str>>,
    pub conditions: Conditions,
}

/// A PodTemplate.
#[derive(Debug, Clone, PartialEq)]
pub struct PodTemplate {
    pub meta: ObjectMeta,
    pub pod: PodShape,
}
