//! The plan is the one that a slow and simple reading of the rules makes (sheet 02, case 95).
//!
//! The oracle places pods one by one as the compatible policy says: the largest first, each on the planned node with the
//! fewest pods that can take it, else on a new one. It remembers nothing but which pods are where: which types have room,
//! and how many pods a rule counts in which zone, it finds out anew for every attempt, with Kubernetes' own selectors on
//! the labels of all pods placed so far. Nothing of the solver is used. It knows the rules of the mix and no others, and
//! says so if it meets one.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use kerf_bench::file::Problem;
use kerf_bench::scheduling::measure;
use kerf_bench::workload::Workload;
use kerf_model::cluster::{InstanceType, Pod, PodConstraints};
use kerf_model::label::{HOSTNAME, ZONE};
use kerf_model::resources::ResourceList;
use kerf_model::selector::Selector;
use kerf_scheduling::{PlannedClaim, Policy};

/// A planned node, as text: its zone if it has one, the types that it may become, its pods in the order of placement.
type Shown = (Option<Arc<str>>, Vec<Arc<str>>, Vec<Arc<str>>);

#[test]
fn the_plan_is_that_of_a_slow_oracle() {
    for pods in [1, 2, 7, 50, 123, 250, 500] {
        let mut text = Vec::new();
        Workload::Diverse { pods }.write(&mut text).unwrap();
        let problem = Problem::from_lines(text.as_slice()).unwrap();
        let (_, schedule) = measure(&problem, Policy::Compatible, 1);
        let expected = Oracle::plan(&problem);
        let found: Vec<_> = schedule.new_claims.iter().map(shown).collect();
        for (nth, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "the node {nth} for {pods} pods");
        }
        assert_eq!(found.len(), expected.len(), "nodes for {pods} pods");
        assert_eq!(schedule.unplaced.len(), 0);
    }
}

fn shown(claim: &PlannedClaim) -> Shown {
    let zone = claim.requirements().get(ZONE).map(|zone| {
        assert_eq!(zone.count(), Some(1));
        Arc::clone(&zone.values()[0])
    });
    let types = claim.options.iter().map(|option| Arc::clone(&option.instance_type)).collect();
    (zone, types, claim.pods.iter().map(|pod| Arc::clone(&pod.meta.name.name)).collect())
}

struct Oracle<'p> {
    types: &'p [InstanceType],
    nodes: Vec<Node<'p>>,
}

struct Node<'p> {
    /// Where it may come up.
    zones: BTreeSet<Arc<str>>,
    pods: Vec<&'p Pod>,
}

impl<'p> Oracle<'p> {
    fn plan(problem: &'p Problem) -> Vec<Shown> {
        let mut oracle = Self { types: &problem.types, nodes: Vec::new() };
        let mut pods: Vec<&Pod> = problem.cluster.pods().map(AsRef::as_ref).collect();
        pods.iter().for_each(|pod| assert_knows(&pod.constraints));
        pods.sort_by_key(|pod| {
            let amount = |name| Reverse(pod.requests.amount(name));
            (amount("cpu"), amount("memory"), pod.meta.created, &pod.meta.uid)
        });
        // Who has no place yet is tried again as long as somebody else gets one.
        let (mut queue, mut in_vain) = (VecDeque::from(pods), 0);
        while let Some(pod) = queue.pop_front() {
            in_vain = if oracle.place(pod) { 0 } else { in_vain + 1 };
            if in_vain > 0 {
                queue.push_back(pod);
            }
            assert!(in_vain <= queue.len(), "{} has no place", pod.meta.name);
        }
        oracle.nodes.iter().map(|node| oracle.shown(node)).collect()
    }

    fn place(&mut self, pod: &'p Pod) -> bool {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|at| (self.nodes[*at].pods.len(), *at));
        let found = order.into_iter().find_map(|at| Some((at, self.zones_with(&self.nodes[at], pod)?)));
        if let Some((at, zones)) = found {
            self.nodes[at].zones = zones;
            self.nodes[at].pods.push(pod);
            return true;
        }
        let new = Node { zones: self.zones(), pods: Vec::new() };
        let Some(zones) = self.zones_with(&new, pod) else { return false };
        self.nodes.push(Node { zones, pods: vec![pod] });
        true
    }

    /// Where the node may come up once the pod is there; `None` if the pod may not be there.
    fn zones_with(&self, node: &Node<'p>, pod: &Pod) -> Option<BTreeSet<Arc<str>>> {
        if !respects_hosts(node, pod) || self.types_for(node, Some(pod), &node.zones).is_empty() {
            return None;
        }
        let mut zones = node.zones.clone();
        for spread in pod.constraints.spread.iter().filter(|spread| &*spread.topology_key == ZONE) {
            let selector = spread.selector.as_ref().unwrap();
            let least = self.zones().iter().map(|zone| self.count(selector, zone)).min().unwrap_or_default();
            // What is on a node that may come up in several zones counts nowhere yet; once it is in one zone, it counts there.
            let uncounted = if node.zones.len() > 1 { matching(node, selector) } else { 0 };
            let more = uncounted + usize::from(selector.matches(&pod.meta.labels));
            zones.retain(|zone| self.count(selector, zone) + more <= least + spread.max_skew as usize);
            zones = self.first(zones, selector, node, pod)?;
        }
        for term in pod.constraints.required_affinity.iter().filter(|term| &*term.topology_key == ZONE) {
            let selector = term.selector.as_ref().unwrap();
            let is_first = self.nodes.iter().all(|node| matching(node, selector) == 0);
            if matching(node, selector) == 0 && !(is_first && selector.matches(&pod.meta.labels)) {
                zones.retain(|zone| self.count(selector, zone) > 0);
            }
            zones = self.first(zones, selector, node, pod)?;
        }
        Some(zones)
    }

    /// Of the zones in which something has room, the one with the fewest pods; of equals the first by name.
    fn first(
        &self,
        zones: BTreeSet<Arc<str>>,
        selector: &Selector,
        node: &Node<'p>,
        pod: &Pod,
    ) -> Option<BTreeSet<Arc<str>>> {
        let has_room = |zone: &Arc<str>| !self.types_for(node, Some(pod), &BTreeSet::from([zone.clone()])).is_empty();
        let roomy = zones.into_iter().filter(has_room);
        roomy.min_by_key(|zone| self.count(selector, zone)).map(|zone| BTreeSet::from([zone]))
    }

    /// How many of the pods are in the zone for certain.
    fn count(&self, selector: &Selector, zone: &Arc<str>) -> usize {
        let there = self.nodes.iter().filter(|node| node.zones.len() == 1 && node.zones.contains(zone));
        there.map(|node| matching(node, selector)).sum()
    }

    /// Where anything can be launched.
    fn zones(&self) -> BTreeSet<Arc<str>> {
        self.types.iter().flat_map(zones_of).collect()
    }

    /// Types with room for all pods of the node and one more, in one of the zones; the cheapest first.
    fn types_for(&self, node: &Node<'p>, more: Option<&Pod>, zones: &BTreeSet<Arc<str>>) -> Vec<&'p InstanceType> {
        let pods = node.pods.iter().copied().chain(more);
        let asked = pods.fold(ResourceList::new(), |sum, pod| sum.plus(&pod.requests).unwrap());
        let does = |kind: &&InstanceType| {
            asked.fits(&kind.allocatable()) && zones_of(kind).iter().any(|zone| zones.contains(zone))
        };
        let mut types: Vec<_> = self.types.iter().filter(does).collect();
        let price = |kind: &InstanceType| kind.offerings.iter().map(|offering| offering.price).min();
        types.sort_by_key(|kind| (price(kind), &kind.name));
        types
    }

    fn shown(&self, node: &Node<'p>) -> Shown {
        let types = self.types_for(node, None, &node.zones).into_iter().map(|kind| Arc::clone(&kind.name)).collect();
        let zone = node.zones.first().filter(|_| node.zones.len() == 1).cloned();
        (zone, types, node.pods.iter().map(|pod| Arc::clone(&pod.meta.name.name)).collect())
    }
}

/// Rules about what else is on the node.
fn respects_hosts(node: &Node<'_>, pod: &Pod) -> bool {
    let by_host = pod.constraints.spread.iter().filter(|spread| &*spread.topology_key == HOSTNAME);
    let is_even = by_host.into_iter().all(|spread| {
        let selector = spread.selector.as_ref().unwrap();
        let after = matching(node, selector) + usize::from(selector.matches(&pod.meta.labels));
        after <= spread.max_skew as usize
    });
    let avoids = |one: &Pod, other: &Pod| {
        let mut terms = one.constraints.required_anti_affinity.iter();
        terms.any(|term| term.selector.as_ref().unwrap().matches(&other.meta.labels))
    };
    is_even && !node.pods.iter().any(|other| avoids(pod, other) || avoids(other, pod))
}

fn matching(node: &Node<'_>, selector: &Selector) -> usize {
    node.pods.iter().filter(|pod| selector.matches(&pod.meta.labels)).count()
}

fn zones_of(kind: &InstanceType) -> BTreeSet<Arc<str>> {
    let available = kind.offerings.iter().filter(|offering| offering.available);
    available.flat_map(|offering| offering.requirements.get(ZONE).unwrap().values().to_vec()).collect()
}

/// Spread by zone or host, affinity by zone, anti-affinity by host, and nothing else.
fn assert_knows(constraints: &PodConstraints) {
    let PodConstraints { spread, required_affinity, required_anti_affinity, .. } = constraints.clone();
    assert!(spread.iter().all(|own| [ZONE, HOSTNAME].contains(&&*own.topology_key) && own.min_domains.is_none()));
    assert!(required_affinity.iter().all(|term| &*term.topology_key == ZONE));
    assert!(required_anti_affinity.iter().all(|term| &*term.topology_key == HOSTNAME));
    let known = PodConstraints { spread, required_affinity, required_anti_affinity, ..PodConstraints::default() };
    assert_eq!(known, *constraints);
}
