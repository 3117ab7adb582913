//! Claims.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Conditions, ObjectMeta};
use crate::label;
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
}
