//! The end of a node (sheet 04 §4.3): tainted, drained, its volumes detached, its instance gone, and then its name.

use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::{Node, NodeClaim, condition_kind as kind};
use kerf_model::effect::{Effect, MetaPatch, NodePatch, Target};
use kerf_model::label::{EXCLUDE_FROM_BALANCERS, TERMINATION_FINALIZER, taint_key};
use kerf_model::taint::Taint;
use kerf_model::time::later;

use crate::claim::{ClaimDraft, Ending, end_instance, give_up};
use crate::memory::{LOOKUP_VALID, Lookup};
use crate::steps::{Cause, Steps};
use crate::view::View;
use crate::{drain, events, volumes};

/// How many attachments an event names.
const NAMED_ATTACHMENTS: usize = 5;

/// Whether a stage of the end is behind us.
enum Stage {
    Done,
    Waiting(Steps),
}

/// What a deleted node wants next (upstream: `node.termination`). Nodes that nobody deletes want nothing.
pub fn next(node: &Node, view: View<'_>) -> Steps {
    let is_ending = node.meta.is_deleting() && node.meta.has_finalizer(TERMINATION_FINALIZER);
    if !is_ending || !view.settings.manages_node(node) {
        return Steps::default();
    }
    let claim = only_claim(node, view);
    let mut steps = Steps::default();
    if let Some(claim) = claim.filter(|claim| !claim.meta.is_deleting()) {
        steps.merge(give_up(claim, Cause::NodeDeleted));
    }
    // Nothing runs on a machine that is gone, and nobody would answer an eviction.
    let (gone, asking) = instance_is_gone(node, view);
    steps.merge(asking);
    match gone {
        Some(true) => {
            steps.act([drop_finalizer(node)]);
            return steps;
        }
        Some(false) => {}
        None => return steps,
    }
    if let Some(fence) = fence(node) {
        // Nothing is evicted before it is seen: an evicted pod could come back to this node.
        steps.act([fence]);
        return steps;
    }
    match claim {
        None => steps.merge(end_without_claim(node, view)),
        // Its own deletion comes first: from it the deadline counts.
        Some(claim) if !claim.meta.is_deleting() => {}
        Some(claim) => steps.merge(end_with_claim(node, claim, view)),
    }
    steps
}

/// With several claims nobody knows whose node it is, which counts as none.
fn only_claim<'a>(node: &'a Node, view: View<'a>) -> Option<&'a NodeClaim> {
    let mut claims = view.snapshot.claims_of(node);
    claims.next().filter(|_| claims.next().is_none()).map(AsRef::as_ref)
}

/// A ready node has an instance, whatever the cloud says. `None` while the first answer is awaited.
fn instance_is_gone(node: &Node, view: View<'_>) -> (Option<bool>, Steps) {
    let Some(provider_id) = node.provider_id.clone().filter(|_| !node.is_ready()) else {
        return (Some(false), Steps::default());
    };
    let lookup = view.memory.lookup(&provider_id);
    let known = match lookup {
        None => None,
        // Long overdue: the drain goes on while it is asked again.
        Some(Lookup::Asked { .. }) => lookup.filter(|lookup| view.now >= lookup.ask_at()).map(|_| false),
        Some(Lookup::Answered { exists, .. }) => Some(!exists),
    };
    let steps = match lookup.map(Lookup::ask_at) {
        Some(at) if view.now < at => Steps::waiting_until(at),
        Some(_) | None => Steps::asking(Effect::FindInstance { provider_id }, later(view.now, LOOKUP_VALID)),
    };
    (known, steps)
}

/// The taint and the label that keep pods and traffic away, unless both are there.
fn fence(node: &Node) -> Option<Effect> {
    let disrupted = Taint::disrupted();
    if node.has_taint(&disrupted) && node.meta.labels.contains_key(EXCLUDE_FROM_BALANCERS) {
        return None;
    }
    let others = node.taints.iter().filter(|taint| &*taint.key != taint_key::DISRUPTED);
    let mut meta = locked(node);
    meta.labels.insert(Arc::from(EXCLUDE_FROM_BALANCERS), Some(Arc::from("karpenter")));
    let taints = Some(others.cloned().chain([disrupted]).collect());
    Some(Effect::PatchNode(Target::from(&node.meta), Box::new(NodePatch { meta, taints })))
}

/// Nobody knows its instance or its deadline: it is drained for as long as that takes.
fn end_without_claim(node: &Node, view: View<'_>) -> Steps {
    let plan = drain::plan(node, None, began(node, view), view);
    let attachments = volumes::attached(node, view);
    if !plan.waiting.is_empty() {
        return Steps { effects: plan.effects(node, "", view.now), wake: plan.wake, ..Steps::default() };
    }
    if !attachments.is_empty() {
        return Steps::of(volumes_event(node, &attachments));
    }
    Steps::of(drop_finalizer(node))
}

fn end_with_claim(node: &Node, claim: &NodeClaim, view: View<'_>) -> Steps {
    let deadline = drain::deadline::of(claim);
    let mut draft = ClaimDraft::new(claim, view.now);
    let mut steps = Steps::default();
    steps.act(deadline.map(|deadline| events::node_deadline(node, deadline)));
    let stage = match drained(node, &mut draft, deadline, view) {
        Stage::Done => detached(node, &mut draft, deadline, view),
        waiting @ Stage::Waiting(_) => waiting,
    };
    let stage = match stage {
        Stage::Done => instance_ended(&mut draft, view),
        waiting @ Stage::Waiting(_) => waiting,
    };
    match stage {
        Stage::Waiting(more) => steps.merge(more),
        Stage::Done => steps.act([drop_finalizer(node)]),
    }
    steps.act(draft.finish());
    steps
}

fn drained(node: &Node, draft: &mut ClaimDraft<'_>, deadline: Option<Timestamp>, view: View<'_>) -> Stage {
    let plan = drain::plan(node, deadline, began(node, view), view);
    let before = draft.claim.status.conditions.get(kind::DRAINED);
    if plan.waiting.is_empty() && draft.claim.status.conditions.is_true(kind::DRAINED) {
        return Stage::Done;
    }
    let began =
        before.filter(|_| draft.claim.status.conditions.is_open(kind::DRAINED)).map_or(view.now, |known| known.since);
    let settled = later(began, view.settings.minimum_drain);
    if plan.waiting.is_empty() && view.now >= settled {
        draft.conditions.set_true(kind::DRAINED);
        return Stage::Done;
    }
    draft.conditions.set_unknown(kind::DRAINED, "Draining", &drain::message(&plan.blockers, deadline));
    let conditions = &draft.claim.status.conditions;
    let reason = conditions.get(kind::DISRUPTION_REASON).filter(|_| conditions.is_true(kind::DISRUPTION_REASON));
    let why = reason.map_or(FORCEFUL, |reason| &reason.reason);
    let mut steps = Steps { effects: plan.effects(node, why, view.now), wake: plan.wake, ..Steps::default() };
    if plan.waiting.is_empty() {
        steps.look_again(settled);
    }
    Stage::Waiting(steps)
}

fn began(node: &Node, view: View<'_>) -> Timestamp {
    node.meta.deleting.unwrap_or(view.now)
}

/// What is said of a drain that nobody gave a reason for.
const FORCEFUL: &str = "Forceful Termination";

fn detached(node: &Node, draft: &mut ClaimDraft<'_>, deadline: Option<Timestamp>, view: View<'_>) -> Stage {
    let attachments = volumes::attached(node, view);
    if attachments.is_empty() {
        draft.conditions.set_true(kind::VOLUMES_DETACHED);
        return Stage::Done;
    }
    let names = attachments.join(", ");
    if deadline.is_some_and(|deadline| view.now >= deadline) {
        let message = format!("the instance goes with volumes attached: {names}");
        draft.conditions.set_false(kind::VOLUMES_DETACHED, "TerminationGracePeriodElapsed", &message);
        return Stage::Done;
    }
    draft.conditions.set_unknown(kind::VOLUMES_DETACHED, "AwaitingVolumeDetachment", &names);
    Stage::Waiting(Steps { wake: deadline, ..Steps::of(volumes_event(node, &attachments)) })
}

fn instance_ended(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Stage {
    match end_instance(draft, view) {
        Ending::Waiting(steps) => Stage::Waiting(steps),
        Ending::Over => {
            draft.conditions.set_true(kind::INSTANCE_TERMINATING);
            Stage::Done
        }
    }
}

fn volumes_event(node: &Node, attachments: &[Arc<str>]) -> Effect {
    let named = attachments.iter().take(NAMED_ATTACHMENTS).map(|name| &**name);
    let names: Vec<_> = named.chain((attachments.len() > NAMED_ATTACHMENTS).then_some("...")).collect();
    events::awaiting_volumes(node, &names.join(", "))
}

fn drop_finalizer(node: &Node) -> Effect {
    let others = node.meta.finalizers.iter().filter(|name| &***name != TERMINATION_FINALIZER);
    let meta = MetaPatch { finalizers: Some(others.cloned().collect()), ..locked(node) };
    Effect::PatchNode(Target::from(&node.meta), Box::new(NodePatch { meta, taints: None }))
}

fn locked(node: &Node) -> MetaPatch {
    MetaPatch { resource_version: Some(node.meta.resource_version.clone()), ..MetaPatch::default() }
}
