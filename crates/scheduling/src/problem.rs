//! What a solve is asked, besides the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_model::cluster::{InstanceType, Pod};
use kerf_model::label::LabelRules;

/// More types than this are not written into one claim (upstream's `MaxInstanceTypes`).
const MAX_TYPES: usize = 600;

/// The pods to place, and with what.
#[derive(Debug, Clone)]
pub struct Problem<'a> {
    /// In any order; a pod that is still bound somewhere is to leave it.
    pub pods: Vec<Arc<Pod>>,
    /// Nodes, and claims without a node, that are no destination and whose capacity counts against no limit: those that
    /// the caller means to remove. What the snapshot shows to be leaving is left out anyway.
    pub excluded: BTreeSet<Arc<str>>,
    /// The pools that may launch, each with what it may launch. Pools that cannot be used now are passed over.
    pub types: BTreeMap<Arc<str>, Arc<[InstanceType]>>,
    pub rules: &'a LabelRules,
    pub options: Options,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub preferences: PreferencePolicy,
    pub min_values: MinValuesPolicy,
    pub reserved: ReservedMode,
    /// How many instance types a planned claim may name at most, the cheapest first.
    pub max_types: usize,
}

/// What preferences of pods mean (`--preference-policy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreferencePolicy {
    /// They are constraints, dropped one after the other if the pod finds no place.
    Respect,
    Ignore,
}

/// What becomes of a claim with fewer different values to choose from than its pool wants (`--min-values-policy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinValuesPolicy {
    Strict,
    /// It is made nevertheless, and says how few there are.
    BestEffort,
}

/// What it means that a pool could launch a pod's node only from reservations that are full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReservedMode {
    /// The pod waits for them. For provisioning.
    Strict,
    /// Other pools are tried. For what-ifs.
    Fallback,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            preferences: PreferencePolicy::Respect,
            min_values: MinValuesPolicy::Strict,
            reserved: ReservedMode::Strict,
            max_types: MAX_TYPES,
        }
    }
}
