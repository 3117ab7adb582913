//! The deadline of a drain, and when it comes for a pod (sheet 04 §4.7).

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::{NodeClaim, Pod};
use kerf_model::time::later;

use crate::claim::disruption::written_deadline;

/// What the API server gives a pod that does not say.
const DEFAULT_GRACE: SignedDuration = SignedDuration::from_secs(30);
/// Never zero: that would free the name of a stateful pod while it still runs.
const LEAST_GRACE: SignedDuration = SignedDuration::from_secs(1);

/// When the drain of a claim's node is forced; `None` is never.
///
/// An annotation that cannot be read counts as absent, where the reference stands still for ever.
pub fn of(claim: &NodeClaim) -> Option<Timestamp> {
    let granted = || Some(later(claim.meta.deleting?, SignedDuration::from(claim.node.termination_grace_period?)));
    written_deadline(claim).or_else(granted)
}

/// When a pod must be told to go, so that it has its full grace before the deadline.
pub(super) fn comes_for(pod: &Pod, deadline: Timestamp) -> Timestamp {
    deadline.checked_sub(pod.termination_grace.unwrap_or(DEFAULT_GRACE)).unwrap_or(Timestamp::MIN)
}

/// A pod on its way out is shortened if it would outlive the deadline. Once it ends as soon as it can there is nothing to
/// shorten: it is deleted once, and not with every look.
pub(super) fn has_come_for(pod: &Pod, deadline: Timestamp, now: Timestamp) -> bool {
    match pod.meta.deleting {
        Some(end) => end > deadline.max(later(now, LEAST_GRACE)),
        None => now >= comes_for(pod, deadline),
    }
}

/// Whole seconds, as the API wants them.
pub(super) fn grace(deadline: Timestamp, now: Timestamp) -> SignedDuration {
    let left = deadline.duration_since(now).as_secs();
    SignedDuration::from_secs(left).max(LEAST_GRACE)
}
