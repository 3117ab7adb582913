//! Launch: from a claim to an instance (sheet 04 §2.1, sheet 08 L5).

use kerf_model::cloud::{LaunchError, Launched};
use kerf_model::cluster::{NodeClaim, condition_kind as kind};
use kerf_model::effect::{Effect, Target, shortened};
use kerf_model::time::later;

use super::ClaimDraft;
use super::limit::{self, Room};
use crate::memory::{LAUNCH_WITHIN, Launch};
use crate::steps::{Cause, Steps};
use crate::view::View;

/// What makes waiting useless: the claim's pods are better off with another claim.
pub fn refusal(claim: &NodeClaim, view: View<'_>) -> Option<Cause> {
    if !claim.status.conditions.is_open(kind::LAUNCHED) {
        return None;
    }
    let Some(launch) = view.memory.launch(claim) else {
        return (limit::room(claim, view) == Room::None).then_some(Cause::OverLimit);
    };
    match launch {
        Launch::Failed { error: LaunchError::InsufficientCapacity { message }, .. } => {
            Some(Cause::InsufficientCapacity { message: shortened(message).into() })
        }
        Launch::Failed { error: LaunchError::ClassNotReady { message }, .. } => {
            Some(Cause::ClassNotReady { message: shortened(message).into() })
        }
        Launch::Failed { error: LaunchError::Failed { .. }, .. } | Launch::UnderWay { .. } | Launch::Answered(_) => {
            None
        }
    }
}

pub fn step(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Steps {
    let claim = draft.claim;
    if !claim.status.conditions.is_open(kind::LAUNCHED) {
        draft.conditions.refresh(kind::LAUNCHED);
        return Steps::default();
    }
    let launch = || Steps::asking(Effect::Launch { claim: Target::from(&claim.meta) }, later(view.now, LAUNCH_WITHIN));
    match view.memory.launch(claim) {
        // Looked at again when the provider has answered.
        None if limit::room(claim, view) == Room::Unknown => Steps::default(),
        None => launch(),
        Some(Launch::UnderWay { since, .. }) => {
            let lost_at = later(*since, LAUNCH_WITHIN);
            if view.now < lost_at { Steps::waiting_until(lost_at) } else { launch() }
        }
        Some(Launch::Answered(launched)) => {
            adopt(draft, launched);
            Steps::default()
        }
        Some(Launch::Failed { error, retry_at, .. }) => {
            let (reason, message) = explain(error);
            draft.conditions.set_unknown(kind::LAUNCHED, &reason, &shortened(&message));
            if view.now < *retry_at { Steps::waiting_until(*retry_at) } else { launch() }
        }
    }
}

fn adopt(draft: &mut ClaimDraft<'_>, launched: &Launched) {
    let claim = draft.claim;
    for (key, value) in &launched.labels {
        // The claim's own labels are what it was scheduled by.
        if !claim.meta.labels.contains_key(key) {
            draft.set_label(key, value);
        }
    }
    for (key, value) in &launched.annotations {
        draft.set_annotation(key, value);
    }
    draft.status.provider_id = Some(launched.provider_id.clone());
    draft.status.image_id = launched.image_id.clone();
    draft.status.capacity = Some(launched.capacity.clone());
    draft.status.allocatable = Some(launched.allocatable.clone());
    draft.conditions.set_true(kind::LAUNCHED);
}

fn explain(error: &LaunchError) -> (String, String) {
    match error {
        LaunchError::Failed { reason, message } if !reason.is_empty() => (reason.to_string(), message.to_string()),
        LaunchError::Failed { .. } | LaunchError::InsufficientCapacity { .. } | LaunchError::ClassNotReady { .. } => {
            ("LaunchFailed".to_owned(), error.to_string())
        }
    }
}
