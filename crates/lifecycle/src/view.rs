//! What a step looks at.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::InstanceType;
use kerf_model::label::LabelRules;
use kerf_model::snapshot::ClusterSnapshot;

use crate::claim::PoolRoom;
use crate::claim::drift::in_place::PodKeys;
use crate::{Marks, Memory, Settings};

#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub snapshot: &'a ClusterSnapshot,
    pub memory: &'a Memory,
    pub settings: &'a Settings,
    /// What each pool may launch; none for a pool that the provider has not answered for.
    pub types: &'a BTreeMap<Arc<str>, Arc<[InstanceType]>>,
    pub rules: &'a LabelRules,
    /// Disruptions under way.
    pub marks: &'a Marks,
    /// The labels by which pods choose their nodes, in this snapshot.
    pub pod_keys: &'a PodKeys,
    /// What pools with limits have left, in this snapshot.
    pub room: &'a PoolRoom,
    pub now: Timestamp,
}
