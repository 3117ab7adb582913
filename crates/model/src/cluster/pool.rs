//! Pools and node classes, as they are stored.

use std::sync::Arc;

use super::{Conditions, ObjectMeta};
use crate::node_pool::{NodeClassRef, NodePool};
use crate::resources::ResourceList;

/// A pool with its identity and status. One that does not parse keeps both, so that its nodes still count and the
/// reason can be written into its status.
#[derive(Debug)]
pub struct StoredPool {
    pub meta: ObjectMeta,
    /// The text says why it cannot be used.
    pub spec: Result<NodePool, Arc<str>>,
    pub class: NodeClassRef,
    /// Of its template as it is now; `None` if it has none that can be computed.
    pub hash: Option<PoolHash>,
    pub status: PoolStatus,
}

/// What claims are compared with to see drift, as it is written into annotations. Computed at the border.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolHash {
    pub hash: Arc<str>,
    pub version: Arc<str>,
    /// One hash per field, so that an edit can be told from a rewrite.
    pub fields: Option<Arc<str>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct PoolStatus {
    pub resources: ResourceList,
    pub nodes: i64,
    pub class_observed_generation: Option<i64>,
    pub conditions: Conditions,
}

/// What every provider's node class has in common.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeClass {
    pub meta: ObjectMeta,
    pub class: NodeClassRef,
    pub readiness: ClassReadiness,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClassReadiness {
    Ready,
    NotReady { reason: Arc<str>, message: Arc<str> },
    Unknown,
}
