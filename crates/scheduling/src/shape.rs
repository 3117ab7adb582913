//! What pods alike ask for, compiled once for all of them.

use std::sync::Arc;

use kerf_model::cluster::{HostPort, PodConstraints};
use kerf_model::label::LabelRules;
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::resources::ResourceList;
use kerf_model::taint::Toleration;

use crate::amounts::Amounts;
use crate::daemons::tolerates_preferences;
use crate::topology::{GroupId, Membership, OwnGroups};
use crate::volumes::VolumeNeeds;

/// Pods with the same key are the same to every decision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShapeKey {
    pub(crate) requests: Amounts,
    pub(crate) constraints: Arc<PodConstraints>,
    /// Only where groups of pods make a difference.
    pub(crate) namespace: Option<Arc<str>>,
    pub(crate) membership: Membership,
    pub(crate) volumes: VolumeNeeds,
}

pub(crate) struct Shape {
    pub(crate) key: ShapeKey,
    pub(crate) request_list: ResourceList,
    pub(crate) ports: Vec<HostPort>,
    pub(crate) announces: Vec<GroupId>,
    /// From all preferences to none.
    pub(crate) levels: Vec<Level>,
}

/// A pod with some of its preferences taken for constraints.
pub(crate) struct Level {
    /// Alternatives: one of them must hold.
    pub(crate) terms: Vec<Term>,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) groups: Vec<GroupId>,
}

pub(crate) struct Term {
    pub(crate) all: Requirements,
    /// Without preferences and volumes: what spreading looks at.
    pub(crate) strict: Requirements,
}

/// What relaxing depends on, besides the pod.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Relaxing {
    pub(crate) with_preferences: bool,
    /// Whether any pool or host has a taint that only asks to be avoided.
    pub(crate) with_soft_taints: bool,
}

impl Shape {
    pub(crate) fn compile(
        key: ShapeKey,
        request_list: ResourceList,
        own: &OwnGroups,
        relaxing: Relaxing,
        rules: &LabelRules,
    ) -> Self {
        let levels = Ladder::new(&key, own, relaxing, rules).levels();
        let ports = key.constraints.host_ports.iter().copied().collect();
        Self { request_list, ports, announces: own.announces.clone(), levels, key }
    }

    /// Whether placing other pods can make room for this one.
    pub(crate) fn may_wait_for_others(&self) -> bool {
        self.levels.iter().any(|level| !level.groups.is_empty())
    }
}

/// Everything a pod can do without, in the order in which it does (upstream's `Preferences.Relax`).
///
/// Alternatives are tried on every step. Upstream drops them first and for good, so that a pod whose last alternative
/// cannot be had loses its place to a preference.
struct Ladder<'a> {
    key: &'a ShapeKey,
    strict: Vec<Requirements>,
    hard: &'a [GroupId],
    soft_affinity: &'a [GroupId],
    soft_anti_affinity: &'a [GroupId],
    /// The heaviest first. Only one counts at a time.
    preferred: Vec<Requirements>,
    soft_spread: &'a [GroupId],
    relaxing: Relaxing,
}

impl<'a> Ladder<'a> {
    fn new(key: &'a ShapeKey, own: &'a OwnGroups, relaxing: Relaxing, rules: &LabelRules) -> Self {
        let constraints = &key.constraints;
        let mut preferred: Vec<_> = constraints.preferred_node_terms.iter().collect();
        preferred.sort_by_key(|term| std::cmp::Reverse(term.weight));
        // A preference that means nothing is no preference.
        let parsed = preferred.into_iter().filter_map(|term| Requirements::parse(&term.expressions, rules).ok());
        Self {
            key,
            strict: node_terms(constraints, rules),
            hard: &own.hard,
            soft_affinity: &own.soft_affinity,
            soft_anti_affinity: &own.soft_anti_affinity,
            preferred: if relaxing.with_preferences { parsed.collect() } else { Vec::new() },
            soft_spread: &own.soft_spread,
            relaxing,
        }
    }

    fn levels(mut self) -> Vec<Level> {
        let mut levels = vec![self.level(false)];
        while self.drop_one() {
            levels.push(self.level(false));
        }
        if self.relaxing.with_soft_taints {
            levels.push(self.level(true));
        }
        levels
    }

    fn drop_one(&mut self) -> bool {
        if let [_, rest @ ..] = self.soft_affinity {
            self.soft_affinity = rest;
        } else if let [_, rest @ ..] = self.soft_anti_affinity {
            self.soft_anti_affinity = rest;
        } else if !self.preferred.is_empty() {
            self.preferred.remove(0);
        } else if let [_, rest @ ..] = self.soft_spread {
            self.soft_spread = rest;
        } else {
            return false;
        }
        true
    }

    fn level(&self, soft_taints: bool) -> Level {
        let constraints = &self.key.constraints;
        let places = &self.key.volumes.places;
        let mut terms = Vec::new();
        for strict in &self.strict {
            let mut all = strict.clone();
            if let Some(heaviest) = self.preferred.first() {
                all.merge(heaviest);
            }
            if places.is_empty() {
                terms.push(Term { all, strict: strict.clone() });
                continue;
            }
            for place in places {
                let mut there = all.clone();
                there.merge(place);
                terms.push(Term { all: there, strict: strict.clone() });
            }
        }
        let mut tolerations = constraints.tolerations.clone();
        tolerations.extend(soft_taints.then(tolerates_preferences));
        let soft = [self.soft_affinity, self.soft_anti_affinity, self.soft_spread];
        let groups = self.hard.iter().chain(soft.into_iter().flatten()).copied().collect();
        Level { terms, tolerations, groups }
    }
}

/// What a pod must have of a node: its selector with each of the required terms. A term that asks nothing selects
/// nothing, as in kube-scheduler; one that means nothing is refused before.
pub(crate) fn node_terms(constraints: &PodConstraints, rules: &LabelRules) -> Vec<Requirements> {
    let mut selector = Requirements::new();
    for (key, value) in &constraints.node_selector {
        selector.add(Requirement::one_of(Arc::clone(key), [value]), rules);
    }
    if constraints.required_node_terms.is_empty() {
        return vec![selector];
    }
    let terms = constraints.required_node_terms.iter().filter(|term| !term.is_empty());
    let parsed = terms.filter_map(|term| Requirements::parse(term, rules).ok());
    parsed
        .map(|term| {
            let mut both = selector.clone();
            both.merge(&term);
            both
        })
        .collect()
}
