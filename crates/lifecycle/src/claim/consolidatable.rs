//! Whether a node has come to rest, so that it may be consolidated (sheet 03 §12).

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::condition_kind as kind;
use kerf_model::node_pool::PoolSize;
use kerf_model::time::later;

use super::ClaimDraft;
use crate::steps::Steps;
use crate::view::View;

/// The condition is there and true, or not there at all: it is never false.
pub(super) fn step(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Steps {
    // A pool that is gone or does not parse says nothing, and the condition stays as it is.
    let Some(pool) = draft.claim.pool().and_then(|name| view.snapshot.pool(name)) else { return Steps::default() };
    let Ok(spec) = &pool.spec else { return Steps::default() };
    let rest = match spec.size {
        PoolSize::Static { .. } => None,
        PoolSize::Dynamic if !spec.disruption.consolidation_enabled => None,
        PoolSize::Dynamic => spec.disruption.consolidate_after.duration(),
    };
    let settled = rest.zip(quiet_since(draft)).map(|(rest, since)| later(since, SignedDuration::from(rest)));
    match settled {
        None => draft.conditions.remove(kind::CONSOLIDATABLE),
        Some(at) if view.now < at => {
            draft.conditions.remove(kind::CONSOLIDATABLE);
            return Steps::waiting_until(at);
        }
        Some(_) => draft.conditions.set_true(kind::CONSOLIDATABLE),
    }
    Steps::default()
}

/// The last time that a pod came or went, or the node was made ready; `None` before it is.
fn quiet_since(draft: &ClaimDraft<'_>) -> Option<Timestamp> {
    let status = &draft.claim.status;
    let initialized =
        status.conditions.get(kind::INITIALIZED).filter(|_| status.conditions.is_true(kind::INITIALIZED))?;
    // What this look has found goes before what the object still shows.
    Some(draft.status.last_pod_event.or(status.last_pod_event).unwrap_or(initialized.since))
}
