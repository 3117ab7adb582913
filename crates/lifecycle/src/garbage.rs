//! Instances without a claim, and claims without an instance (sheet 04 §3).

use std::collections::BTreeSet;

use jiff::Timestamp;
use kerf_model::cloud::Instance;
use kerf_model::cluster::{Node, NodeClaim, condition_kind as kind};
use kerf_model::effect::{Effect, Target};
use kerf_model::label;
use kerf_model::time::later;

use crate::claim::give_up;
use crate::memory::ANSWER_WITHIN;
use crate::steps::{Cause, Steps};
use crate::view::View;

/// When to compare next: asks the cloud for its list, whose answer [`collect`] looks at.
pub fn next(view: View<'_>) -> Steps {
    let listing = view.memory.listing();
    let list = || Steps::asking(Effect::ListInstances, later(view.now, ANSWER_WITHIN));
    let due = match (listing.unanswered(), listing.heard) {
        (Some(asked), _) => later(asked, ANSWER_WITHIN),
        (None, Some(heard)) => later(heard, view.settings.collect_every),
        (None, None) => return list(),
    };
    if view.now < due { Steps::waiting_until(due) } else { list() }
}

/// Compares the cloud's list with the cluster, once per list. What is lost is found again with the next one.
pub fn collect(instances: &[Instance], view: View<'_>) -> Steps {
    let mut steps = Steps::default();
    for claim in claims_without_instance(instances, view) {
        steps.merge(give_up(claim, Cause::InstanceGone));
    }
    for instance in instances_without_claim(instances, view) {
        steps.act([Effect::TerminateOrphan { provider_id: instance.provider_id.clone() }]);
        let nodes = view.snapshot.nodes_with_id(&instance.provider_id).filter(|node| !node.meta.is_deleting());
        steps.act(nodes.map(|node| Effect::DeleteNode(Target::from(&node.meta))));
    }
    let nodes = nodes_without_instance(instances, view);
    steps.act(nodes.map(|node| Effect::DeleteNode(Target::from(&node.meta))));
    steps
}

/// Nodes of ours with neither a claim nor a machine. They are left when the orphan was ended and the delete of its node
/// was lost: the next list does not have the instance any more.
fn nodes_without_instance<'a>(instances: &[Instance], view: View<'a>) -> impl Iterator<Item = &'a Node> {
    let alive: BTreeSet<_> =
        instances.iter().filter(|it| !it.is_terminating).map(|it| it.provider_id.clone()).collect();
    let asked = view.memory.listing().shows();
    view.snapshot.nodes().map(AsRef::as_ref).filter(move |node| {
        let is_ours = node.meta.labels.contains_key(label::NODEPOOL);
        is_ours
            && !node.meta.is_deleting()
            // What joined after the question cannot be in the answer.
            && asked.is_none_or(|asked| node.meta.created < asked)
            && !node.is_ready()
            && node.provider_id.as_ref().is_some_and(|id| !alive.contains(id))
            && view.snapshot.claims_of(node).next().is_none()
    })
}

fn claims_without_instance<'a>(instances: &[Instance], view: View<'a>) -> impl Iterator<Item = &'a NodeClaim> {
    let alive: BTreeSet<_> =
        instances.iter().filter(|it| !it.is_terminating).map(|it| it.provider_id.clone()).collect();
    // What was launched after the question cannot be in the answer.
    let asked = view.memory.listing().shows();
    let is_settled = move |claim: &NodeClaim| {
        let launched =
            claim.status.conditions.get(kind::LAUNCHED).map_or(claim.meta.created, |launched| launched.since);
        asked.is_none_or(|asked| launched < asked)
    };
    view.snapshot.claims().map(AsRef::as_ref).filter(move |claim| {
        view.settings.manages(&claim.node.class)
            && !claim.meta.is_deleting()
            // Others have their own timeout.
            && claim.status.conditions.is_true(kind::REGISTERED)
            && is_settled(claim)
            && claim.status.provider_id.as_ref().is_some_and(|id| !alive.contains(id))
            // A node that reports as ready has a machine, whatever the list says.
            && !view.snapshot.nodes_of(claim).any(|node| node.is_ready())
    })
}

fn instances_without_claim<'a>(instances: &'a [Instance], view: View<'a>) -> impl Iterator<Item = &'a Instance> {
    // A claim whose launch is not written yet may own any instance made after it. It has a provider id, or is given up,
    // within the launch timeout: an orphan is kept no longer than that.
    let ours = view.snapshot.claims().filter(|claim| view.settings.manages(&claim.node.class));
    let unwritten = ours.filter(|claim| claim.status.provider_id.is_none());
    let oldest_unwritten = unwritten.map(|claim| claim.meta.created).min().unwrap_or(Timestamp::MAX);
    instances.iter().filter(move |instance| {
        !instance.is_terminating
            && view.now > later(instance.launched, view.settings.collect_older_than)
            && instance.launched < oldest_unwritten
            && view.snapshot.claims_with_id(&instance.provider_id).next().is_none()
    })
}
