//! What nodes and claims of older versions lack, or still carry (sheet 04 §3, sheet 03 §15.3).

use std::collections::BTreeMap;

use kerf_model::cluster::{Node, NodeClaim};
use kerf_model::effect::{Effect, MetaPatch, NodePatch, Target};
use kerf_model::label::{self, taint_key};

use super::ClaimDraft;
use crate::steps::Steps;
use crate::view::View;

/// Puts back the label of the node class, by which nodes are recognised as ours, and takes off the taint that v1beta1
/// left on nodes it was about to disrupt.
pub fn step(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Steps {
    let claim = draft.claim;
    let key = claim.node.class.label_key();
    if !claim.meta.labels.contains_key(&key) {
        draft.set_label(&key, &claim.node.class.name);
    }
    // Before registration the copying of labels takes care of it.
    let registered = view.snapshot.nodes_of(claim).filter(|node| node.meta.label(label::REGISTERED) == Some("true"));
    Steps { effects: registered.filter_map(|node| hydrate(node, claim)).collect(), ..Steps::default() }
}

fn hydrate(node: &Node, claim: &NodeClaim) -> Option<Effect> {
    let (key, value) = (claim.node.class.label_key(), claim.node.class.name.clone());
    let labels =
        if node.meta.labels.contains_key(&key) { BTreeMap::new() } else { BTreeMap::from([(key, Some(value))]) };
    let others = node.taints.iter().filter(|taint| &*taint.key != taint_key::LEGACY_DISRUPTION);
    let kept: Vec<_> = others.cloned().collect();
    let taints = (kept.len() < node.taints.len()).then_some(kept);
    if labels.is_empty() && taints.is_none() {
        return None;
    }
    let meta = MetaPatch { resource_version: Some(node.meta.resource_version.clone()), labels, ..MetaPatch::default() };
    Some(Effect::PatchNode(Target::from(&node.meta), Box::new(NodePatch { meta, taints })))
}
