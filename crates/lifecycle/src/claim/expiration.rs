//! Expiration: a claim's time is over, whatever runs on its node (sheet 04 §3; held back as in sheet 03 §15).

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::NodeClaim;
use kerf_model::effect::Target;
use kerf_model::time::later;

use super::Hold;
use crate::events;
use crate::steps::{Cause, Note, Steps};
use crate::view::View;

/// Where a claim stands in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expiry {
    Never,
    At(Timestamp),
    Due,
    /// Overdue, and somebody wants it to wait.
    Held(Hold),
}

pub fn judge(claim: &NodeClaim, view: View<'_>) -> Expiry {
    let Some(lifetime) = claim.node.expire_after.duration() else { return Expiry::Never };
    let end = later(claim.meta.created, SignedDuration::from(lifetime));
    if view.now < end {
        return Expiry::At(end);
    }
    Hold::of_expiration(claim, view).map_or(Expiry::Due, Expiry::Held)
}

pub(super) fn cause(claim: &NodeClaim, view: View<'_>) -> Option<Cause> {
    (judge(claim, view) == Expiry::Due).then_some(Cause::Expired)
}

pub(super) fn wait(claim: &NodeClaim, view: View<'_>) -> Steps {
    match judge(claim, view) {
        Expiry::Never | Expiry::Due => Steps::default(),
        Expiry::At(end) => Steps::waiting_until(end),
        Expiry::Held(hold) => {
            let notes = match &hold {
                Hold::Window { name, .. } => {
                    vec![Note::Postponed { claim: Target::from(&claim.meta), window: name.clone() }]
                }
                Hold::PoolDisabled | Hold::DisruptionOff | Hold::SwitchedOff { .. } => Vec::new(),
            };
            Steps { wake: hold.wait().wake, notes, ..Steps::of(events::expiration_held(claim, &hold)) }
        }
    }
}
