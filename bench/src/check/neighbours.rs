//! Rules about other pods, between all places at once: counts per domain, so that the work grows with the pods and not
//! with their pairs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_model::cluster::{Pod, PodAffinityTerm, PodConstraints, SpreadConstraint, Texts, WhenUnsatisfiable};
use kerf_model::label;
use kerf_model::selector::Selector;

use super::places::Place;
use crate::file::Problem;

pub(super) fn faults(problem: &Problem, places: &[Place<'_>]) -> Vec<String> {
    let crowd = Crowd::new(places);
    let mut faults = Vec::new();
    for constraints in crowd.constraints() {
        for term in &constraints.required_anti_affinity {
            faults.extend(crowd.too_near(&constraints, term));
        }
        for term in &constraints.required_affinity {
            faults.extend(crowd.too_far(&constraints, term));
        }
        let hard = |spread: &&SpreadConstraint| spread.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule;
        for spread in constraints.spread.iter().filter(hard) {
            match &*spread.topology_key == label::HOSTNAME {
                true => faults.extend(crowd.crowded(&constraints, spread)),
                false => faults.extend(crowd.skewed(problem, &constraints, spread)),
            }
        }
    }
    faults
}

/// All pods, by what tells them apart: their labels, their constraints, their place, and whether they are new there.
struct Crowd<'a> {
    places: &'a [Place<'a>],
    groups: BTreeMap<Group<'a>, usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Group<'a> {
    constraints: Shared<'a>,
    labels: &'a Texts,
    place: usize,
    is_new: bool,
}

/// Compared by address first, because pods of one workload share theirs.
#[derive(Debug, Clone)]
struct Shared<'a>(&'a Arc<PodConstraints>);

impl PartialEq for Shared<'_> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.0, other.0) || self.0 == other.0
    }
}

impl Eq for Shared<'_> {}

impl PartialOrd for Shared<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Shared<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        if Arc::ptr_eq(self.0, other.0) { std::cmp::Ordering::Equal } else { self.0.cmp(other.0) }
    }
}

impl<'a> Crowd<'a> {
    fn new(places: &'a [Place<'a>]) -> Self {
        let mut groups = BTreeMap::new();
        for (place, there) in places.iter().enumerate() {
            let new = there.placed.iter().map(|pod| (pod, true));
            for (pod, is_new) in new.chain(there.running.iter().map(|pod| (*pod, false))) {
                let Pod { meta, constraints, .. } = &**pod;
                let group = Group { constraints: Shared(constraints), labels: &meta.labels, place, is_new };
                *groups.entry(group).or_default() += 1;
            }
        }
        Self { places, groups }
    }

    /// Those of pods that were placed now or that run, each once.
    fn constraints(&self) -> Vec<Arc<PodConstraints>> {
        let mut distinct: Vec<Arc<PodConstraints>> = Vec::new();
        for group in self.groups.keys() {
            // Groups are ordered by their constraints.
            if distinct.last().is_none_or(|last| *last != *group.constraints.0) {
                distinct.push(Arc::clone(group.constraints.0));
            }
        }
        distinct
    }

    /// Per domain: how many pods the selector matches, and how many of them are new.
    fn counted(&self, key: &str, selector: &Selector) -> BTreeMap<String, (usize, usize)> {
        let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (group, count) in self.groups.iter().filter(|(group, _)| selector.matches(group.labels)) {
            for domain in self.places[group.place].domains(key, group.place) {
                let entry = counts.entry(domain).or_default();
                entry.0 += count;
                entry.1 += if group.is_new { *count } else { 0 };
            }
        }
        counts
    }

    fn owners(&self, constraints: &PodConstraints) -> impl Iterator<Item = (&Group<'a>, usize)> {
        let own = self.groups.iter().filter(move |(group, _)| **group.constraints.0 == *constraints);
        own.map(|(group, count)| (group, *count))
    }

    fn too_near(&self, constraints: &PodConstraints, term: &PodAffinityTerm) -> Vec<String> {
        let Some(selector) = &term.selector else { return Vec::new() };
        let counts = self.counted(&term.topology_key, selector);
        let mut faults = Vec::new();
        for (group, _) in self.owners(constraints) {
            let itself = usize::from(selector.matches(group.labels));
            for domain in self.places[group.place].domains(&term.topology_key, group.place) {
                let (all, new) = counts.get(&domain).copied().unwrap_or_default();
                // Between two that run already nothing was decided here.
                let others = if group.is_new { all - itself } else { new };
                if others > 0 {
                    faults.push(format!(
                        "{}: near what its pods avoid by {}",
                        self.places[group.place].name, term.topology_key
                    ));
                }
            }
        }
        faults
    }

    fn too_far(&self, constraints: &PodConstraints, term: &PodAffinityTerm) -> Vec<String> {
        let Some(selector) = &term.selector else { return Vec::new() };
        let is_free = constraints.node_selector.is_empty() && constraints.required_node_terms.is_empty();
        let counts = self.counted(&term.topology_key, selector);
        let runs_anywhere = counts.values().any(|(all, new)| all > new);
        let mut homes = BTreeSet::new();
        let mut faults = Vec::new();
        for (group, count) in self.owners(constraints).filter(|(group, _)| group.is_new) {
            let matches_itself = selector.matches(group.labels);
            for domain in self.places[group.place].domains(&term.topology_key, group.place) {
                let (all, new) = counts.get(&domain).copied().unwrap_or_default();
                let company = match (matches_itself, runs_anywhere) {
                    // The first of its kind chooses, all others join it.
                    (true, false) => true,
                    (true, true) => all > new || !is_free,
                    (false, _) => all > 0,
                };
                if !company {
                    let name = &self.places[group.place].name;
                    faults.push(format!("{name}: {count} pods without what they need by {}", term.topology_key));
                }
                if matches_itself {
                    homes.insert(domain);
                }
            }
        }
        if !runs_anywhere && is_free && homes.len() > 1 {
            faults.push(format!("pods that belong together by {} may be in {homes:?}", term.topology_key));
        }
        faults
    }

    /// A new host can always be had, so a host may hold as many as the skew, whatever the others hold.
    fn crowded(&self, constraints: &PodConstraints, spread: &SpreadConstraint) -> Vec<String> {
        let Some(selector) = &spread.selector else { return Vec::new() };
        let mut by_place: BTreeMap<usize, (usize, bool)> = BTreeMap::new();
        for (group, count) in self.owners(constraints).filter(|(group, _)| selector.matches(group.labels)) {
            let entry = by_place.entry(group.place).or_default();
            entry.0 += count;
            entry.1 |= group.is_new;
        }
        let most = usize::try_from(spread.max_skew).unwrap_or_default();
        let crowded = by_place.into_iter().filter(|(_, (count, is_new))| *is_new && *count > most);
        crowded.map(|(place, (count, _))| format!("{}: {count} of {most}", self.places[place].name)).collect()
    }

    fn skewed(&self, problem: &Problem, constraints: &PodConstraints, spread: &SpreadConstraint) -> Vec<String> {
        let Some(selector) = &spread.selector else { return Vec::new() };
        let key = &*spread.topology_key;
        let is_foreign = |(group, _): (&Group<'_>, &usize)| {
            group.is_new && selector.matches(group.labels) && **group.constraints.0 != *constraints
        };
        let pins = constraints.node_selector.iter().any(|(asked, _)| &**asked == key);
        if pins || !constraints.required_node_terms.is_empty() || self.groups.iter().any(is_foreign) {
            return Vec::new();
        }
        let counts = self.counted(key, selector);
        let count = |domain: &str| counts.get(domain).copied().unwrap_or_default();
        let domains = universe(problem, key);
        let least = domains.iter().map(|domain| count(domain).0).min().unwrap_or_default();
        let most = usize::try_from(spread.max_skew).unwrap_or_default();
        let wrong = domains.iter().filter(|domain| count(domain).1 > 0 && count(domain).0 > least + most);
        wrong.map(|domain| format!("{} pods in {domain}, {least} elsewhere", count(domain).0)).collect()
    }
}

/// Every value of the key that nodes have or that is on offer. The workloads' pools launch in all of them.
fn universe(problem: &Problem, key: &str) -> BTreeSet<String> {
    let of_nodes = problem.cluster.nodes().filter_map(|node| node.meta.label(key)).map(str::to_owned);
    let offerings = problem.types.iter().flat_map(|kind| &kind.offerings).filter(|offering| offering.is_launchable());
    let offered = offerings.filter_map(|offering| offering.requirements.get(key)).flat_map(|own| own.values().iter());
    of_nodes.chain(offered.map(ToString::to_string)).collect()
}
