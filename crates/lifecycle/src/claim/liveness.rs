//! Claims that do not become nodes in time (sheet 04 §2.4).

use jiff::Timestamp;
use kerf_model::cluster::{NodeClaim, condition_kind as kind};
use kerf_model::time::later;

use crate::steps::{Cause, Steps};
use crate::view::View;

pub fn overdue(claim: &NodeClaim, view: View<'_>) -> Option<Cause> {
    deadline(claim, view).filter(|(at, _)| view.now >= *at).map(|(_, cause)| cause)
}

pub fn wake(claim: &NodeClaim, view: View<'_>) -> Steps {
    deadline(claim, view).map(|(at, _)| Steps::waiting_until(at)).unwrap_or_default()
}

/// A registered node has no deadline: nodes that never initialise are left to drift, expiry and repair.
fn deadline(claim: &NodeClaim, view: View<'_>) -> Option<(Timestamp, Cause)> {
    let conditions = &claim.status.conditions;
    if conditions.is_true(kind::REGISTERED) {
        return None;
    }
    // The time of the condition and not of the claim: it is the claim's until the status changes, and can be edited.
    let launched = conditions.get(kind::LAUNCHED).map_or(claim.meta.created, |launched| launched.since);
    Some(if conditions.is_true(kind::LAUNCHED) {
        // The reference counts from the creation, so that a slow launch eats up the time to register.
        (later(launched, view.settings.registration_timeout), Cause::RegistrationTimeout)
    } else {
        (later(launched, view.settings.launch_timeout), Cause::LaunchTimeout)
    })
}
