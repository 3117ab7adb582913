//! The end of a claim: its nodes first, then its instance, then its name (sheet 04 §4.2).

use std::sync::Arc;

use jiff::SignedDuration;
use kerf_model::cluster::{NodeClaim, condition_kind as kind};
use kerf_model::effect::{Effect, Target};
use kerf_model::label::{TERMINATION_FINALIZER, annotation};
use kerf_model::time::later;

use super::ClaimDraft;
use crate::events;
use crate::memory::{ANSWER_WITHIN, LAUNCH_WITHIN, Launch, Termination};
use crate::steps::Steps;
use crate::view::View;

/// How far an instance is on its way out.
pub(crate) enum Ending {
    Waiting(Steps),
    /// There is none, or none any more.
    Over,
}

pub(super) fn next(claim: &NodeClaim, view: View<'_>) -> Steps {
    if !claim.meta.has_finalizer(TERMINATION_FINALIZER) {
        return Steps::default();
    }
    let mut draft = ClaimDraft::new(claim, view.now);
    let mut steps = announce_deadline(&mut draft);
    // An unregistered node is deleted too; the reference leaves it behind.
    let nodes: Vec<_> = view.snapshot.nodes_of(claim).collect();
    let leaving = nodes.iter().filter(|node| !node.meta.is_deleting());
    steps.act(leaving.map(|node| Effect::DeleteNode(Target::from(&node.meta))));
    // Nodes with our finalizer drain now, and end the instance themselves. Others vanish by themselves, unless their
    // kubelet puts them back: for those nothing is waited, only the end of the instance helps.
    let drains = nodes.iter().any(|node| node.meta.has_finalizer(TERMINATION_FINALIZER));
    let lingers = claim.status.conditions.is_true(kind::REGISTERED) && !nodes.is_empty();
    if !drains && !lingers {
        match end_instance(&mut draft, view) {
            Ending::Waiting(more) => steps.merge(more),
            Ending::Over => draft.remove_finalizer(TERMINATION_FINALIZER),
        }
    }
    steps.act(draft.finish());
    steps
}

/// Asks for the end of the claim's instance until the cloud says it is gone.
pub(crate) fn end_instance(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Ending {
    let claim = draft.claim;
    let provider_id = match (&claim.status.provider_id, view.memory.launch(claim)) {
        (Some(id), _) => id.clone(),
        (None, Some(Launch::Answered(launched))) => launched.provider_id.clone(),
        // Its instance must not be left behind: the answer says which it is.
        (None, Some(Launch::UnderWay { since, .. })) if view.now < later(*since, LAUNCH_WITHIN) => {
            return Ending::Waiting(Steps::waiting_until(later(*since, LAUNCH_WITHIN)));
        }
        (None, Some(Launch::UnderWay { .. } | Launch::Failed { .. }) | None) => return Ending::Over,
    };
    let known = view.memory.termination(claim);
    if let Some(Termination::Accepted { .. }) = known {
        draft.conditions.set_true(kind::INSTANCE_TERMINATING);
    }
    match known.map(Termination::ask_at) {
        Some(None) => Ending::Over,
        Some(Some(at)) if view.now < at => Ending::Waiting(Steps::waiting_until(at)),
        Some(Some(_)) | None => {
            let terminate = Effect::Terminate { claim: Target::from(&claim.meta), provider_id };
            Ending::Waiting(Steps::asking(terminate, later(view.now, ANSWER_WITHIN)))
        }
    }
}

/// Writes down when the drain is forced. What is there already stays: it may be an earlier time.
fn announce_deadline(draft: &mut ClaimDraft<'_>) -> Steps {
    let claim = draft.claim;
    let known = claim.meta.annotation(annotation::TERMINATION_TIMESTAMP);
    let (Some(since), Some(grace), None) = (claim.meta.deleting, claim.node.termination_grace_period, known) else {
        return Steps::default();
    };
    let deadline = later(since, SignedDuration::from(grace));
    draft.set_annotation(annotation::TERMINATION_TIMESTAMP, &Arc::from(deadline.to_string()));
    Steps::of(events::claim_deadline(claim, deadline))
}
