//! Where pods are, and every node that a place may turn out to be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_model::cluster::{InstanceType, Offering, Pod, Texts};
use kerf_model::label;
use kerf_model::resources::ResourceList;
use kerf_model::selector::Labels;
use kerf_model::taint::Taint;
use kerf_scheduling::{PlannedClaim, Schedule};

use crate::file::Problem;

/// A node, or one to be launched, with its pods.
pub(super) struct Place<'a> {
    pub name: String,
    pub is_new: bool,
    pub placed: &'a [Arc<Pod>],
    pub running: Vec<&'a Arc<Pod>>,
    pub taints: Vec<Taint>,
    pub nodes: Vec<PossibleNode<'a>>,
}

/// One of the nodes that a place may be.
pub(super) struct PossibleNode<'a> {
    pub labels: NodeLabels<'a>,
    pub room: &'a ResourceList,
}

/// The labels of a node that is there, or of one as it would come up.
pub(super) struct NodeLabels<'a> {
    own: &'a Texts,
    launched: Option<(&'a InstanceType, &'a Offering)>,
}

impl Labels for NodeLabels<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        if let Some(value) = self.own.get(key) {
            return Some(value);
        }
        let (kind, offering) = self.launched?;
        let only = |requirements: &'_ kerf_model::requirement::Requirements| match requirements.get(key)?.values() {
            [_] => Some(()),
            _ => None,
        };
        let from = [&offering.requirements, &kind.requirements].into_iter().find(|from| only(from).is_some())?;
        from.get(key)?.values().first().map(AsRef::as_ref)
    }
}

impl Place<'_> {
    /// The values of a label that the place may have. A host is its own; `at` tells it from all others.
    pub fn domains(&self, key: &str, at: usize) -> BTreeSet<String> {
        match key == label::HOSTNAME {
            true => BTreeSet::from([at.to_string()]),
            false => self.nodes.iter().filter_map(|node| node.labels.label(key)).map(str::to_owned).collect(),
        }
    }
}

/// What each instance type gives its pods, worked out once.
pub(super) struct Outcomes<'a> {
    kinds: BTreeMap<&'a str, (&'a InstanceType, ResourceList)>,
}

impl<'a> Outcomes<'a> {
    pub fn new(problem: &'a Problem) -> Self {
        Self { kinds: problem.types.iter().map(|kind| (&*kind.name, (kind, kind.allocatable()))).collect() }
    }
}

/// All nodes, also those that get nothing: what runs there counts.
pub(super) fn all<'a>(problem: &'a Problem, schedule: &'a Schedule, outcomes: &'a Outcomes<'a>) -> Vec<Place<'a>> {
    let placed: BTreeMap<_, _> = schedule.on_existing.iter().map(|on| (on.host.name(), on.pods.as_slice())).collect();
    let existing = problem.cluster.nodes().map(|node| Place {
        name: format!("node {}", node.name()),
        is_new: false,
        placed: placed.get(node.name()).copied().unwrap_or_default(),
        running: problem.cluster.pods_on(node.name()).filter(|pod| pod.is_active()).collect(),
        taints: node.taints.clone(),
        nodes: vec![PossibleNode {
            labels: NodeLabels { own: &node.meta.labels, launched: None },
            room: &node.allocatable,
        }],
    });
    let planned = schedule.new_claims.iter().enumerate().map(|(at, claim)| Place {
        name: format!("claim {at} of {}", claim.pool),
        is_new: true,
        placed: &claim.pods,
        running: Vec::new(),
        taints: claim.node.taints.clone(),
        nodes: launches(claim, outcomes),
    });
    existing.chain(planned).collect()
}

/// Everything that a cloud may launch for the claim as it is written.
fn launches<'a>(claim: &'a PlannedClaim, outcomes: &'a Outcomes<'a>) -> Vec<PossibleNode<'a>> {
    let kinds = claim.options.iter().filter_map(|option| outcomes.kinds.get(&*option.instance_type));
    let each = kinds.flat_map(|(kind, room)| kind.offerings.iter().map(move |offering| (*kind, offering, room)));
    let allowed = each.filter(|(_, offering, _)| {
        let allows = |asked: &kerf_model::requirement::Requirement| {
            let own = claim.requirements().get(asked.key());
            own.is_none_or(|own| asked.values().iter().any(|value| own.has(value)))
        };
        offering.is_launchable() && offering.requirements.iter().all(allows)
    });
    allowed
        .map(|(kind, offering, room)| PossibleNode {
            labels: NodeLabels { own: &claim.labels, launched: Some((kind, offering)) },
            room,
        })
        .collect()
}
