//! What the cloud announces about a claim's instance (sheet 03 §13). No budget and no window stands in its way: the
//! instance goes whatever we want, and its pods should leave before.

use kerf_model::cloud::InterruptionCause;
use kerf_model::cluster::NodeClaim;

use super::ClaimDraft;
use crate::events;
use crate::steps::{Cause, Steps};
use crate::view::View;

/// Why the claim goes now. A recommendation is no reason: what it means is for disruption to decide.
pub(super) fn cause(claim: &NodeClaim, view: View<'_>) -> Option<Cause> {
    let announced = view.memory.interruption(claim)?;
    (announced != InterruptionCause::RebalanceRecommended).then_some(Cause::Interrupted { cause: announced })
}

pub(super) fn step(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Steps {
    match view.memory.interruption(draft.claim) {
        Some(cause) => Steps { effects: events::interrupted(draft.claim, cause, view.snapshot), ..Steps::default() },
        None => Steps::default(),
    }
}
