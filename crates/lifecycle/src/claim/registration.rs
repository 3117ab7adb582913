//! Registration: the node has joined, and gets what its claim promises (sheet 04 §2.2).

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::cluster::{Node, NodeClaim, Owner, Texts, condition_kind as kind};
use kerf_model::effect::{Effect, MetaPatch, NodePatch, Target};
use kerf_model::label::{self, TERMINATION_FINALIZER};
use kerf_model::taint::{Taint, merge};

use super::{ClaimDraft, hooks};
use crate::events;
use crate::steps::{Note, Steps};
use crate::view::View;

/// The claim says `Registered` only once the node is seen with everything on it: there is no moment at which a crash
/// could leave a registered claim with a bare node.
pub fn step(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Steps {
    let claim = draft.claim;
    if claim.status.conditions.is_true(kind::REGISTERED) {
        draft.conditions.refresh(kind::REGISTERED);
        return Steps::default();
    }
    if claim.status.provider_id.is_none() {
        return Steps::default();
    }
    // A node on its way out takes no finalizer any more.
    let nodes: Vec<_> = view.snapshot.nodes_of(claim).filter(|node| !node.meta.is_deleting()).collect();
    let node = match nodes[..] {
        [] => {
            draft.conditions.set_unknown(kind::REGISTERED, "NodeNotFound", "no node with the claim's provider id");
            return Steps::default();
        }
        [node] => node,
        [..] => {
            // Looked at again each time: in the reference this is final even if the other node goes away.
            let names: Vec<_> = nodes.iter().map(|node| &**node.name()).collect();
            let message = format!("several nodes with the claim's provider id: {}", names.join(", "));
            draft.conditions.set_false(kind::REGISTERED, "MultipleNodesFound", &message);
            return Steps::default();
        }
    };
    // A node that is marked has passed its hooks, maybe before a crash.
    let waits = if is_marked(node) { None } else { hooks::step(draft, view) };
    if let Some(patch) = missing(claim, node, waits.is_none()) {
        if waits.is_none() {
            let message = "labels and taints are being put on the node";
            draft.conditions.set_unknown(kind::REGISTERED, "NodeNotSynced", message);
        }
        let mut steps = waits.unwrap_or_default();
        if !is_marked(node) && !node.has_taint(&Taint::unregistered()) {
            steps.act([events::unregistered_taint_missing(claim, node)]);
        }
        steps.act([Effect::PatchNode(Target::from(&node.meta), Box::new(patch))]);
        return steps;
    }
    if let Some(steps) = waits {
        return steps;
    }
    draft.conditions.set_true(kind::REGISTERED);
    draft.status.node_name = Some(node.name().clone());
    Steps { notes: vec![Note::Registered { claim: Target::from(&claim.meta) }], ..Steps::default() }
}

/// What the node lacks; `None` if nothing. One that may not register yet keeps its taint.
///
/// Once the label is on the node, the copying is done: what others changed since (a startup taint removed by its owner,
/// above all) stays as they left it. The reference copies until the claim's condition is stored, and so puts back
/// startup taints after a crash between the two.
fn missing(claim: &NodeClaim, node: &Node, may_register: bool) -> Option<NodePatch> {
    let mut meta = MetaPatch { resource_version: Some(node.meta.resource_version.clone()), ..MetaPatch::default() };
    let mut taints = node.taints.clone();
    if !is_marked(node) {
        meta.labels = differing(&claim.meta.labels, &node.meta.labels);
        meta.annotations = differing(&claim.meta.annotations, &node.meta.annotations);
        if may_register {
            meta.labels.insert(Arc::from(label::REGISTERED), Some(Arc::from("true")));
        }
        // Set by providers whose machines bring their own taints.
        if node.meta.label(label::DO_NOT_SYNC_TAINTS) != Some("true") {
            taints = merge(&merge(&taints, &claim.node.taints), &claim.node.startup_taints);
        }
    }
    taints.retain(|taint| !may_register || !taint.is_same(&Taint::unregistered()));
    if !node.meta.has_finalizer(TERMINATION_FINALIZER) {
        let ours = [Arc::from(TERMINATION_FINALIZER)];
        meta.finalizers = Some(node.meta.finalizers.iter().cloned().chain(ours).collect());
    }
    let owner = owner(claim);
    if !node.meta.owners.iter().any(|known| known.uid == owner.uid && known.kind == owner.kind) {
        meta.owners = Some(node.meta.owners.iter().cloned().chain([owner]).collect());
    }
    let taints = (taints != node.taints).then_some(taints);
    (!meta.is_empty() || taints.is_some()).then_some(NodePatch { meta, taints })
}

fn is_marked(node: &Node) -> bool {
    node.meta.label(label::REGISTERED) == Some("true")
}

/// The claim's texts that the node has not, or has otherwise.
fn differing(wanted: &Texts, present: &Texts) -> BTreeMap<Arc<str>, Option<Arc<str>>> {
    let differs = |(key, value): &(&Arc<str>, &Arc<str>)| present.get(*key) != Some(*value);
    wanted.iter().filter(differs).map(|(key, value)| (key.clone(), Some(value.clone()))).collect()
}

fn owner(claim: &NodeClaim) -> Owner {
    Owner {
        api_version: Arc::from("karpenter.sh/v1"),
        kind: Arc::from("NodeClaim"),
        name: claim.name().clone(),
        uid: claim.meta.uid.clone(),
        controller: false,
        blocks_deletion: true,
    }
}
