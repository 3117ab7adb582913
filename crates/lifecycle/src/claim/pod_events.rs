//! When something last happened to the pods of a node (sheet 01 §2.2, sheet 04 §3): consolidation waits from there.

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::Pod;
use kerf_model::time::whole_seconds;

use super::ClaimDraft;
use crate::steps::Steps;
use crate::view::View;

/// One write per this time is enough.
const GRAIN: SignedDuration = SignedDuration::from_secs(10);

/// Writes the time of the event and not of the writing. So a restart, which sees every pod for the first time, finds the
/// same times again and writes nothing; the reference restarts every node's clock then.
pub fn step(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Steps {
    let claim = draft.claim;
    let mut nodes = view.snapshot.nodes_of(claim);
    let (Some(node), None) = (nodes.next(), nodes.next()) else { return Steps::default() };
    let told_by_pods =
        view.snapshot.pods_on(node.name()).filter(|pod| !pod.is_of_daemon_set()).filter_map(|pod| last_event(pod));
    let last = told_by_pods.chain(view.memory.pod_event(node.name())).filter(|at| *at <= view.now).max();
    if let Some(last) = last
        && claim.status.last_pod_event.is_none_or(|known| last.duration_since(known) >= GRAIN)
    {
        draft.status.last_pod_event = Some(whole_seconds(last));
    }
    Steps::default()
}

/// The latest that the pod itself tells: when it started, or began to go.
fn last_event(pod: &Pod) -> Option<Timestamp> {
    let grace = pod.termination_grace.unwrap_or_default();
    let going = pod.meta.deleting.and_then(|end| end.checked_sub(grace).ok());
    pod.started.max(going)
}
