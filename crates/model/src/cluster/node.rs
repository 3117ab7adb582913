//! Nodes.

use std::sync::Arc;

use jiff::Timestamp;

use super::{ConditionStatus, ObjectMeta};
use crate::resources::ResourceList;
use crate::taint::Taint;

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub meta: ObjectMeta,
    /// Ties the node to its claim and its instance. `None` before the cloud has spoken.
    pub provider_id: Option<Arc<str>>,
    pub taints: Vec<Taint>,
    pub unschedulable: bool,
    pub capacity: ResourceList,
    pub allocatable: ResourceList,
    pub conditions: Vec<NodeCondition>,
    /// Changes with every boot.
    pub boot_id: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCondition {
    pub kind: Arc<str>,
    pub status: ConditionStatus,
    pub reason: Arc<str>,
    pub since: Timestamp,
}

impl Node {
    pub fn name(&self) -> &Arc<str> {
        &self.meta.name.name
    }

    pub fn condition(&self, kind: &str) -> Option<&NodeCondition> {
        self.conditions.iter().find(|condition| &*condition.kind == kind)
    }

    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    pub fn has_taint(&self, taint: &Taint) -> bool {
        self.taints.iter().any(|own| own.is_same(taint))
    }
}
