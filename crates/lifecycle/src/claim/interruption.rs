//! What the cloud announces about a claim's instance (sheet 03 §13). No budget and no window stands in its way: the
//! instance goes whatever we want, and its pods should leave before.

use kerf_model::cloud::InterruptionCause;
use kerf_model::cluster::NodeClaim;
use kerf_model::taint::Taint;

use super::ClaimDraft;
use super::disruption::with_taint;
use crate::events;
use crate::steps::{Cause, Steps};
use crate::view::View;

/// Why the claim goes now. A recommendation is no reason: what it means is for disruption to decide.
pub(super) fn cause(claim: &NodeClaim, view: View<'_>) -> Option<Cause> {
    let announced = view.memory.interruption(claim)?;
    (announced != InterruptionCause::RebalanceRecommended).then_some(Cause::Interrupted { cause: announced })
}

pub(super) fn step(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Steps {
    let Some(cause) = view.memory.interruption(draft.claim) else { return Steps::default() };
    let mut effects = events::interrupted(draft.claim, cause, view.snapshot);
    if cause == InterruptionCause::RebalanceRecommended && view.settings.rebalance_cordons {
        let fence = Taint::rebalance_recommended();
        let nodes = view.snapshot.nodes_of(draft.claim).filter(|node| !node.meta.is_deleting());
        effects.extend(nodes.filter(|node| !node.has_taint(&fence)).map(|node| with_taint(node, &fence, true)));
    }
    Steps { effects, ..Steps::default() }
}
