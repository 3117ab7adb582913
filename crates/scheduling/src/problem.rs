//! What a solve is asked, besides the cluster.
//!
//! [`Problem`] is one question with everything it needs. Who asks many questions about one cluster compiles the cluster
//! and its [`Supply`] once, as [`Prepared`](crate::Prepared), and asks [`Question`]s.

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

/// What can be launched, and by which rules.
#[derive(Debug, Clone, Copy)]
pub struct Supply<'a> {
    /// The pools that may launch, each with what it may launch. Pools that cannot be used now are passed over.
    pub types: &'a BTreeMap<Arc<str>, Arc<[InstanceType]>>,
    pub rules: &'a LabelRules,
    pub options: Options,
}

/// One what-if. The default asks nothing.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// In any order; a pod that is still bound somewhere is to leave it.
    pub pods: Vec<Arc<Pod>>,
    /// Nodes, and claims without a node, that are no destination and whose capacity counts against no limit.
    pub excluded: BTreeSet<Arc<str>>,
    /// Nodes that take only pods that wait for a place anyway, or that come from a node that leaves anyway. Shared,
    /// because it is the same for every what-if of a round.
    pub closed_to_moves: Arc<BTreeSet<Arc<str>>>,
    /// Uids of pods whose nodes leave anyway. Shared too.
    pub from_leaving: Arc<BTreeSet<Arc<str>>>,
    pub reserved: ReservedMode,
    /// Slots to count in addition, by reservation (sheet 08, S2).
    pub credits: BTreeMap<Arc<str>, u32>,
    pub aim: Aim,
}

/// What a question wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aim {
    /// Where every pod goes, and what to launch.
    #[default]
    Plan,
    /// The same in the place of nodes that go, on as few new ones as need be: none is opened only because two small nodes
    /// are cheaper than one. Who asks weighs what is saved against what has to move, node by node.
    Replace,
    /// Only whether those that move fit on hosts that are there. Nothing is launched for them, and the first without a
    /// place ends the search: then it is among the unplaced, and pods after it are nowhere.
    Fit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub preferences: PreferencePolicy,
    pub min_values: MinValuesPolicy,
    pub policy: Policy,
    /// How many instance types a planned claim may name at most, the cheapest first.
    pub max_types: usize,
}

/// Which of the valid answers is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// The cheapest that is found.
    #[default]
    Best,
    /// What upstream would choose: pods are levelled over open claims, price decides only between a claim's types.
    Compatible,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReservedMode {
    /// The pod waits for them. For provisioning.
    #[default]
    Strict,
    /// Other pools are tried. For what-ifs.
    Fallback,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            preferences: PreferencePolicy::Respect,
            min_values: MinValuesPolicy::Strict,
            policy: Policy::Best,
            max_types: MAX_TYPES,
        }
    }
}
