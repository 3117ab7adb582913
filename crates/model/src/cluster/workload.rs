//! What stands around pods.

use std::sync::Arc;

use super::{ObjectMeta, PodConstraints, Texts};
use crate::resources::ResourceList;
use crate::selector::Selector;

/// A pod that every fitting node will get.
#[derive(Debug, Clone, PartialEq)]
pub struct DaemonSet {
    pub meta: ObjectMeta,
    pub pod_labels: Texts,
    pub requests: ResourceList,
    pub constraints: Arc<PodConstraints>,
}

/// A PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq)]
pub struct DisruptionBudget {
    pub meta: ObjectMeta,
    /// `None` selects nothing.
    pub selector: Option<Selector>,
    pub disruptions_allowed: u32,
    /// Pods that are not ready may go whatever the budget says.
    pub always_allows_unhealthy: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Namespace {
    pub meta: ObjectMeta,
}
