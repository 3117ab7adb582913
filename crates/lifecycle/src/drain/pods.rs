//! Which pods matter to a drain (sheet 04 §4.4).

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::Pod;
use kerf_model::time::later;

/// How long after its time a pod may still be there before nobody waits for it.
pub(super) const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// Not those that want to stay, belong to the kubelet, or will never go.
pub(crate) fn is_drainable(pod: &Pod, now: Timestamp) -> bool {
    let is_stuck = pod.meta.deleting.is_some_and(|end| now >= later(end, STUCK_AFTER));
    !pod.tolerates_disruption() && !is_stuck && !pod.is_mirror()
}

pub(super) fn is_waited_for(pod: &Pod, now: Timestamp) -> bool {
    is_drainable(pod, now) && !pod.is_terminal()
}
