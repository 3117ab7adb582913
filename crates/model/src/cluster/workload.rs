//! What stands around pods.

use std::sync::Arc;

use super::{ObjectMeta, Pod, PodConstraints, Texts};
use crate::requirement::Expression;
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
    /// Whatever its pods do, none may be evicted: `maxUnavailable` of 0, or `minAvailable` of all.
    pub never_allows: bool,
    /// Pods that are not ready may go whatever the budget says.
    pub always_allows_unhealthy: bool,
}

impl DisruptionBudget {
    /// Whether the pod goes whatever the budget counts.
    pub fn lets_go(&self, pod: &Pod) -> bool {
        self.always_allows_unhealthy && pod.is_unready
    }

    pub fn selects(&self, pod: &Pod) -> bool {
        self.meta.name.namespace == pod.meta.name.namespace
            && self.selector.as_ref().is_some_and(|selector| selector.matches(&pod.meta.labels))
    }

    /// Whether no eviction of this pod will ever be allowed by the budgets that select it. Several on one pod block, as the
    /// eviction API refuses then.
    pub fn block_for_ever(matching: &[&Self], pod: &Pod) -> bool {
        match matching {
            [] => false,
            [budget] => budget.never_allows && !budget.lets_go(pod),
            _ => true,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Namespace {
    pub meta: ObjectMeta,
}

/// The pods that a template makes.
#[derive(Debug, Clone, PartialEq)]
pub struct PodShape {
    pub labels: Texts,
    pub requests: ResourceList,
    pub constraints: Arc<PodConstraints>,
    pub uses_resource_claims: bool,
}

/// Something that keeps a number of pods. Known only where a feature needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    pub meta: ObjectMeta,
    pub kind: WorkloadKind,
    pub replicas: u32,
    /// Equalities of its selector.
    pub match_labels: Texts,
    pub match_expressions: Vec<Expression>,
    pub pod: PodShape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadKind {
    Deployment,
    StatefulSet,
    ReplicaSet,
    ReplicationController,
}

/// Known only where default spread needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    pub meta: ObjectMeta,
    /// `None` selects nothing.
    pub selector: Option<Texts>,
}

impl WorkloadKind {
    pub const ALL: [Self; 4] = [Self::Deployment, Self::StatefulSet, Self::ReplicaSet, Self::ReplicationController];

    /// As owner references name it.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Deployment | Self::StatefulSet | Self::ReplicaSet => "apps/v1",
            Self::ReplicationController => "v1",
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::ReplicaSet => "ReplicaSet",
            Self::ReplicationController => "ReplicationController",
        }
    }

    /// `None` for kinds that are none of these.
    pub fn find(api_version: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.api_version() == api_version && known.as_str() == kind)
    }
}
