//! Annotations by which a script tells the world how an object behaves.

use jiff::SignedDuration;
use kerf_model::duration::GoDuration;

use crate::store::Object;

/// On a node: its machine is gone. Its kubelet is silent from then on.
pub const LOST: &str = "sim.kerf.dev/lost";
/// On a pod: it ends by itself after this long.
pub const RUNS_FOR: &str = "sim.kerf.dev/runs-for";
/// On a pod: it needs this long to stop. A longer time than its grace means that it is killed.
pub const STOPS_AFTER: &str = "sim.kerf.dev/stops-after";

pub(super) fn is_lost(node: &Object) -> bool {
    node.text(&["metadata", "annotations", LOST]) == Some("true")
}

pub(super) fn duration(object: &Object, annotation: &str) -> Option<SignedDuration> {
    let text = object.text(&["metadata", "annotations", annotation])?;
    text.parse::<GoDuration>().ok().map(SignedDuration::from)
}
