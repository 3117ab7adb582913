//! What pods alike ask for, compiled once for all of them.

use std::sync::Arc;

use kerf_model::cluster::{HostPort, PodConstraints};
use kerf_model::label::LabelRules;
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::taint::Toleration;

use crate::daemons::tolerates_preferences;
use crate::sets::{SetId, Sets};
use crate::topology::{GroupId, Membership, OwnGroups};

/// What pods ask for besides resources. Pods of one kind are the same to every rule; a shape is a kind with a request.
pub(crate) struct Kind {
    pub(crate) ports: Vec<HostPort>,
    pub(crate) membership: Membership,
    pub(crate) announces: Vec<GroupId>,
    /// From all preferences to none.
    pub(crate) levels: Vec<Level>,
}

/// A kind with a request: pods of one shape are the same to every decision, but for the volumes they attach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    pub(crate) kind: usize,
    pub(crate) request: usize,
}

/// A kind with some of its preferences taken for constraints.
pub(crate) struct Level {
    /// Alternatives: one of them must hold.
    pub(crate) terms: Vec<Term>,
    pub(crate) tolerations: Vec<Toleration>,
    /// Groups that must be satisfied: the pod's own, and those of pods that do not want it near.
    pub(crate) rules: Vec<Rule>,
}

/// A group as one kind meets it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) group: GroupId,
    /// Whether the group counts pods of the kind itself.
    pub(crate) counts_itself: bool,
}

pub(crate) struct Term {
    pub(crate) all: SetId,
    /// Without preferences and volumes: what spreading looks at.
    pub(crate) strict: SetId,
}

/// What relaxing depends on, besides the pod.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Relaxing {
    pub(crate) with_preferences: bool,
    /// Whether any pool or host has a taint that only asks to be avoided.
    pub(crate) with_soft_taints: bool,
}

/// What a kind is made from.
pub(crate) struct KindSource<'s> {
    pub(crate) constraints: &'s PodConstraints,
    pub(crate) membership: &'s Membership,
    pub(crate) own: &'s OwnGroups,
    /// Where the pod's volumes can be: one of them must hold; none means anywhere.
    pub(crate) places: &'s [Requirements],
}

impl Kind {
    pub(crate) fn compile(
        source: &KindSource<'_>,
        relaxing: Relaxing,
        sets: &mut Sets<'_>,
        rules: &LabelRules,
    ) -> Self {
        let levels = Ladder::new(source, relaxing, rules).levels(sets);
        let ports = source.constraints.host_ports.iter().copied().collect();
        Self { ports, membership: source.membership.clone(), announces: source.own.announces.clone(), levels }
    }

    /// Whether placing other pods can make room for this one.
    pub(crate) fn may_wait_for_others(&self) -> bool {
        self.levels.iter().any(|level| !level.rules.is_empty())
    }
}

/// Everything a pod can do without, in the order in which it does (upstream's `Preferences.Relax`).
///
/// Alternatives are tried on every step. Upstream drops them first and for good, so that a pod whose last alternative
/// cannot be had loses its place to a preference.
struct Ladder<'a> {
    source: &'a KindSource<'a>,
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
    fn new(source: &'a KindSource<'a>, relaxing: Relaxing, rules: &LabelRules) -> Self {
        let (constraints, own) = (source.constraints, source.own);
        let mut preferred: Vec<_> = constraints.preferred_node_terms.iter().collect();
        preferred.sort_by_key(|term| std::cmp::Reverse(term.weight));
        // A preference that means nothing is no preference.
        let parsed = preferred.into_iter().filter_map(|term| Requirements::parse(&term.expressions, rules).ok());
        Self {
            source,
            strict: node_terms(constraints, rules),
            hard: &own.hard,
            soft_affinity: &own.soft_affinity,
            soft_anti_affinity: &own.soft_anti_affinity,
            preferred: if relaxing.with_preferences { parsed.collect() } else { Vec::new() },
            soft_spread: &own.soft_spread,
            relaxing,
        }
    }

    fn levels(mut self, sets: &mut Sets<'_>) -> Vec<Level> {
        let mut levels = vec![self.level(false, sets)];
        while self.drop_one() {
            levels.push(self.level(false, sets));
        }
        if self.relaxing.with_soft_taints {
            levels.push(self.level(true, sets));
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

    fn level(&self, soft_taints: bool, sets: &mut Sets<'_>) -> Level {
        let mut terms = Vec::new();
        for strict in &self.strict {
            let mut all = strict.clone();
            if let Some(heaviest) = self.preferred.first() {
                all.merge(heaviest);
            }
            let strict = sets.intern(strict.clone());
            if self.source.places.is_empty() {
                terms.push(Term { all: sets.intern(all), strict });
                continue;
            }
            for place in self.source.places {
                let mut there = all.clone();
                there.merge(place);
                terms.push(Term { all: sets.intern(there), strict });
            }
        }
        let mut tolerations = self.source.constraints.tolerations.clone();
        tolerations.extend(soft_taints.then(tolerates_preferences));
        let membership = self.source.membership;
        let soft = [self.soft_affinity, self.soft_anti_affinity, self.soft_spread];
        let groups = self.hard.iter().chain(soft.into_iter().flatten()).chain(&membership.repelled_by);
        let rule = |group: &GroupId| Rule { group: *group, counts_itself: membership.counted_in.contains(group) };
        Level { terms, tolerations, rules: groups.map(rule).collect() }
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
