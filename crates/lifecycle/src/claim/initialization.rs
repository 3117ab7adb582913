//! Initialisation: the node can run the pods it was made for (sheet 04 §2.3).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kerf_model::cluster::{Node, NodeClaim, condition_kind as kind};
use kerf_model::effect::{Effect, MetaPatch, NodePatch, Target};
use kerf_model::label;
use kerf_model::resources::ResourceName;
use kerf_model::taint::Taint;

use super::ClaimDraft;
use crate::steps::{Note, Steps};
use crate::view::View;

/// What a registered node still lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Lack {
    Node,
    Readiness,
    StartupTaint(Taint),
    EphemeralTaint(Taint),
    Resource(ResourceName),
}

pub fn step(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Steps {
    let claim = draft.claim;
    let conditions = &claim.status.conditions;
    if !conditions.is_open(kind::INITIALIZED) {
        draft.conditions.refresh(kind::INITIALIZED);
        return Steps::default();
    }
    // A reboot takes the condition away, and gives it back itself.
    if !conditions.is_true(kind::REGISTERED) || conditions.is_true(kind::REBOOTING) {
        return Steps::default();
    }
    let node = match ready_node(claim, view) {
        Ok(node) => node,
        Err(lack) => {
            draft.conditions.set_unknown(kind::INITIALIZED, lack.reason(), &lack.to_string());
            return Steps::default();
        }
    };
    if node.meta.label(label::INITIALIZED) != Some("true") {
        let labels = BTreeMap::from([(Arc::from(label::INITIALIZED), Some(Arc::from("true")))]);
        let meta = MetaPatch { labels, ..MetaPatch::default() };
        return Steps::of(Effect::PatchNode(
            Target::from(&node.meta),
            Box::new(NodePatch { meta, ..NodePatch::default() }),
        ));
    }
    draft.conditions.set_true(kind::INITIALIZED);
    Steps { notes: vec![Note::Initialized { claim: Target::from(&claim.meta) }], ..Steps::default() }
}

/// The claim's one node if it lacks nothing. The order of the checks is the order in which a node comes up.
fn ready_node<'a>(claim: &'a NodeClaim, view: View<'a>) -> Result<&'a Node, Lack> {
    let mut nodes = view.snapshot.nodes_of(claim);
    let (Some(node), None) = (nodes.next(), nodes.next()) else { return Err(Lack::Node) };
    if !node.is_ready() {
        return Err(Lack::Readiness);
    }
    if let Some(taint) = claim.node.startup_taints.iter().find(|taint| node.has_taint(taint)) {
        return Err(Lack::StartupTaint(taint.clone()));
    }
    if let Some(taint) = node.taints.iter().find(|taint| taint.is_known_ephemeral()) {
        return Err(Lack::EphemeralTaint(taint.clone()));
    }
    // Device plugins report late: until then the resource is absent or zero.
    let mut wanted = claim.requests.iter().filter(|(_, amount)| !amount.is_zero());
    if let Some((name, _)) = wanted.find(|(name, _)| node.allocatable.amount(name.as_str()).is_zero()) {
        return Err(Lack::Resource(name.clone()));
    }
    Ok(node)
}

impl Lack {
    fn reason(&self) -> &'static str {
        match self {
            Self::Node => "NodeNotFound",
            Self::Readiness => "NodeNotReady",
            Self::StartupTaint(_) => "StartupTaintsExist",
            Self::EphemeralTaint(_) => "KnownEphemeralTaintsExist",
            Self::Resource(_) => "ResourceNotRegistered",
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node => f.write_str("there is not exactly one node with the claim's provider id"),
            Self::Readiness => f.write_str("the node is not ready"),
            Self::StartupTaint(taint) => write!(f, "the startup taint {taint} is still on the node"),
            Self::EphemeralTaint(taint) => write!(f, "the taint {taint} is still on the node"),
            Self::Resource(name) => write!(f, "the node does not offer {name} yet"),
        }
    }
}
