//! Claims.

use std::sync::Arc;

use jiff::Timestamp;

use super::{ConditionStatus, Conditions, ObjectMeta, condition_kind};
use crate::label::{self, annotation};
use crate::node_pool::NodeSpec;
use crate::resources::ResourceList;

/// One node that is wanted, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeClaim {
    pub meta: ObjectMeta,
    pub node: NodeSpec,
    /// What the node must offer at least: its pods and daemons.
    pub requests: ResourceList,
    pub status: ClaimStatus,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClaimStatus {
    pub provider_id: Option<Arc<str>>,
    pub node_name: Option<Arc<str>>,
    pub image_id: Option<Arc<str>>,
    pub capacity: ResourceList,
    pub allocatable: ResourceList,
    pub last_pod_event: Option<Timestamp>,
    pub conditions: Conditions,
}

impl NodeClaim {
    pub fn name(&self) -> &Arc<str> {
        &self.meta.name.name
    }

    /// The pool that made it, or that it was moved to. A label says where somebody wants it: until it is moved there, it
    /// is a node of its owner. `None` for a standalone claim.
    pub fn pool(&self) -> Option<&str> {
        let owner = self.meta.owners.iter().find(|owner| &*owner.kind == "NodePool");
        owner.map(|owner| &*owner.name).or_else(|| self.meta.label(label::NODEPOOL))
    }

    /// Whether it is emptied to be rebooted, for as long as that may take. Its pods may be waiting for those of them that
    /// have left to run elsewhere, so that it is no room for them before it boots.
    pub fn drains_without_limit(&self) -> bool {
        let rebooting = self.status.conditions.get(condition_kind::REBOOTING);
        let is_requested = rebooting.is_some_and(|condition| {
            condition.status == ConditionStatus::True && *condition.reason == *condition_kind::REBOOT_REQUESTED
        });
        is_requested && self.meta.annotation(annotation::REBOOT_TERMINATION_GRACE_PERIOD).is_none()
    }
}
