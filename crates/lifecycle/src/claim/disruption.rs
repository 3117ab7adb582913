//! The marks of a disruption on a claim and its node: put on for a command that is under way, taken off what one left
//! behind (sheet 03 §2, §11).

use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::{Node, NodeClaim, condition_kind as kind};
use kerf_model::effect::{Effect, MetaPatch, NodePatch, Target};
use kerf_model::label::annotation;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::taint::Taint;
use kerf_model::time::whole_seconds;

use super::{ClaimDraft, reboot};
use crate::marks::{Mark, Order};
use crate::steps::Steps;
use crate::view::View;

pub(super) fn step(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Steps {
    let claim = draft.claim;
    match view.marks.of(&claim.meta) {
        Some(Mark { reason, order: Order::Leave { record, deadline }, .. }) => {
            draft.conditions.set_true_because(kind::DISRUPTION_REASON, reason.label(), reason.label());
            draft.set_annotation(annotation::COMMAND, record);
            if let Some(deadline) = deadline {
                tighten_deadline(draft, *deadline);
            }
            taint_nodes(claim, view, true)
        }
        Some(Mark { reason, order: Order::Reboot { condition, condition_reason, grace }, .. }) => {
            draft.conditions.set_true_because(kind::DISRUPTION_REASON, reason.label(), reason.label());
            reboot::request(draft, condition, condition_reason, *grace, view.now);
            Steps::default()
        }
        // A reboot has its own marks, and takes them off itself.
        None if reboot::is_rebooting(claim) => Steps::default(),
        None => {
            draft.conditions.remove(kind::DISRUPTION_REASON);
            draft.remove_annotation(annotation::COMMAND);
            taint_nodes(claim, view, false)
        }
    }
}

/// Whether a command that removes it is under way. One that is to boot again has another mark, and stays.
pub(crate) fn makes_way(claim: &NodeClaim) -> bool {
    claim.meta.annotation(annotation::COMMAND).is_some() && claim.status.conditions.is_true(kind::DISRUPTION_REASON)
}

/// Whether the marks of a command are all there to see: from then on nothing new comes to the node.
pub fn is_marked(claim: &NodeClaim, record: &str, snapshot: &ClusterSnapshot) -> bool {
    let disrupted = Taint::disrupted();
    claim.meta.annotation(annotation::COMMAND) == Some(record)
        && claim.status.conditions.is_true(kind::DISRUPTION_REASON)
        && snapshot.nodes_of(claim).all(|node| node.has_taint(&disrupted))
}

/// A deadline only ever comes closer (sheet 08 D8, L4).
pub(crate) fn tighten_deadline(draft: &mut ClaimDraft<'_>, deadline: Timestamp) {
    let deadline = whole_seconds(deadline);
    let known = written_deadline(draft.claim);
    if known.is_none_or(|known| deadline < known) {
        draft.set_annotation(annotation::TERMINATION_TIMESTAMP, &Arc::from(deadline.to_string()));
    }
}

/// The deadline that stands on the claim, if it can be read.
pub fn written_deadline(claim: &NodeClaim) -> Option<Timestamp> {
    claim.meta.annotation(annotation::TERMINATION_TIMESTAMP).and_then(|text| text.parse().ok())
}

/// Nodes on their way out keep what they have.
fn taint_nodes(claim: &NodeClaim, view: View<'_>, wanted: bool) -> Steps {
    let disrupted = Taint::disrupted();
    let nodes = view.snapshot.nodes_of(claim).filter(|node| !node.meta.is_deleting());
    let others = nodes.filter(|node| node.has_taint(&disrupted) != wanted);
    Steps { effects: others.map(|node| with_taint(node, &disrupted, wanted)).collect(), ..Steps::default() }
}

/// The node with the taint, or without it; the other taints stay as they are.
pub(crate) fn with_taint(node: &Node, taint: &Taint, wanted: bool) -> Effect {
    let others = node.taints.iter().filter(|known| !known.is_same(taint)).cloned();
    let taints = others.chain(wanted.then(|| taint.clone())).collect();
    let meta = MetaPatch { resource_version: Some(node.meta.resource_version.clone()), ..MetaPatch::default() };
    Effect::PatchNode(Target::from(&node.meta), Box::new(NodePatch { meta, taints: Some(taints) }))
}
