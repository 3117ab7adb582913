//! What a round looks at.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::{InstanceType, Pod};
use kerf_model::label::LabelRules;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_scheduling::DefaultSpread;

use crate::{Memory, Settings};

/// Everything is a fact; nothing is looked up elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub snapshot: &'a ClusterSnapshot,
    /// What each pool can launch, by the pool's name. A pool without an entry could not be listed: its nodes stay.
    pub types: &'a BTreeMap<Arc<str>, Arc<[InstanceType]>>,
    pub labels: &'a LabelRules,
    /// What-ifs are asked with these, except that they always fall back from full reservations.
    pub scheduling: kerf_scheduling::Options,
    /// What pods without spread constraints get, as in scheduling.
    pub default_spread: &'a DefaultSpread,
    /// Pods of capacity buffers: they are nowhere, and want room like those that wait.
    pub virtual_pods: &'a [Arc<Pod>],
    pub settings: &'a Settings,
    pub memory: &'a Memory,
    pub now: Timestamp,
}
