//! Whether the machine is what was ordered (sheet 04 §3).

use kerf_model::cluster::{Node, NodeClaim, condition_kind as kind};

use super::ClaimDraft;
use crate::events;
use crate::steps::Steps;
use crate::view::View;

/// Below this many percent of the promised capacity the node is not what was ordered. Kernels and hypervisors keep some.
const ENOUGH_PERCENT: i128 = 90;

/// Looked at with every change of the claim or its node; the reference looks every ten minutes.
pub fn step(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Steps {
    let claim = draft.claim;
    if !claim.status.conditions.is_true(kind::INITIALIZED) {
        return Steps::default();
    }
    let mut nodes = view.snapshot.nodes_of(claim);
    let (Some(node), None) = (nodes.next(), nodes.next()) else { return Steps::default() };
    match shortfall(claim, node) {
        None => {
            draft.conditions.set_true(kind::CONSISTENT_STATE_FOUND);
            Steps::default()
        }
        Some(message) => {
            draft.conditions.set_false(kind::CONSISTENT_STATE_FOUND, "ConsistencyCheckFailed", &message);
            Steps::of(events::inconsistent(claim, &message))
        }
    }
}

fn shortfall(claim: &NodeClaim, node: &Node) -> Option<String> {
    let requested = claim.requests.iter().map(|(name, _)| name);
    requested.into_iter().find_map(|name| {
        let (promised, found) = (claim.status.capacity.get(name.as_str())?, node.capacity.amount(name.as_str()));
        let enough = promised.nanos().checked_mul(ENOUGH_PERCENT)? <= found.nanos().checked_mul(100)?;
        (!enough).then(|| format!("expected {promised} of {name} on node {}, found {found}", node.name()))
    })
}
