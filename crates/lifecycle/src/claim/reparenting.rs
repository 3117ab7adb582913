//! Reparenting: a node relabelled to another pool moves there with its claim (sheet 03 §15.4).
//!
//! The reference follows the node's label for budgets and the claim's for drift, and so leaves the node half moved.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kerf_model::cluster::{Node, NodeClaim, Owner, StoredPool, Texts};
use kerf_model::effect::{Effect, MetaPatch, NodePatch, Target};
use kerf_model::label;
use kerf_model::node_pool::{NodePool, PoolSize};
use kerf_model::taint::Taint;

use super::ClaimDraft;
use crate::events;
use crate::pool::stamp;
use crate::steps::Steps;
use crate::view::View;

/// What pools were called by, by the APIs before v1beta1. Whoever relabels nodes as their guides say means the same; once a
/// node has the label it follows the pool, so that it does not move the node back later.
const PROVISIONER: &str = "karpenter.sh/provisioner-name";

/// Why a claim stays where it is, whatever the label says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    NoSuchPool,
    PoolDeleting,
    PoolInvalid,
    OtherClassKind,
    StaticPool,
}

pub(super) fn step(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Steps {
    let claim = draft.claim;
    // Orphans have no owner, and nobody moved them; standalone claims have no pool to leave.
    let Some(owner) = claim.meta.owners.iter().find(|owner| &*owner.kind == "NodePool") else {
        return Steps::default();
    };
    let Some(wanted) = wanted_pool(claim, owner, view) else { return Steps::default() };
    let target = match admitted(claim, owner, &wanted, view) {
        Ok(target) => target,
        Err(obstacle) => return Steps::of(events::reparent_blocked(claim, &wanted, &obstacle)),
    };
    // The node first, the claim once it is seen: a node left with the old label would look like one moved back.
    let mut behind = view.snapshot.nodes_of(claim).filter(|node| !labels_to_write(node, &wanted).is_empty()).peekable();
    if behind.peek().is_some() {
        return Steps { effects: behind.map(|node| relabel(node, &wanted)).collect(), ..Steps::default() };
    }
    draft.set_label(label::NODEPOOL, &wanted);
    let others = claim.meta.owners.iter().filter(|known| known.uid != owner.uid).cloned();
    draft.meta.owners = Some(others.chain([owner_of(&target.meta.name.name, &target.meta.uid)]).collect());
    // The same node would be made there: it takes the pool's hash, and nothing rolls. Otherwise it keeps the old one, and
    // drift replaces it under the budgets of its new pool.
    if let (Ok(spec), Some(hash)) = (&target.spec, &target.hash)
        && is_as_made_by(claim, spec, source(owner, view))
    {
        stamp(hash).for_each(|(key, value)| draft.set_annotation(key, value));
    }
    Steps::of(events::reparented(claim, &owner.name, &wanted))
}

fn labels_to_write(node: &Node, pool: &Arc<str>) -> Vec<&'static str> {
    let is_other = |key: &str| node.meta.label(key) != Some(pool);
    let legacy = node.meta.label(PROVISIONER).map(|_| PROVISIONER);
    [Some(label::NODEPOOL), legacy].into_iter().flatten().filter(|key| is_other(key)).collect()
}

fn relabel(node: &Node, pool: &Arc<str>) -> Effect {
    let keys = labels_to_write(node, pool);
    let labels: BTreeMap<_, _> = keys.into_iter().map(|key| (Arc::from(key), Some(pool.clone()))).collect();
    let patch = NodePatch { meta: MetaPatch { labels, ..MetaPatch::default() }, ..NodePatch::default() };
    Effect::PatchNode(Target::from(&node.meta), Box::new(patch))
}

/// The pool that a label names and the owner is not. The claim's label goes first: it is the one we wrote last.
fn wanted_pool(claim: &NodeClaim, owner: &Owner, view: View<'_>) -> Option<Arc<str>> {
    let registered = |node: &&Arc<Node>| node.meta.label(label::REGISTERED) == Some("true");
    let on_nodes =
        |key| view.snapshot.nodes_of(claim).filter(registered).filter_map(move |node| node.meta.labels.get(key));
    let named = claim.meta.labels.get(label::NODEPOOL).into_iter().chain(on_nodes(label::NODEPOOL));
    named.chain(on_nodes(PROVISIONER)).find(|name| **name != owner.name).cloned()
}

fn admitted<'a>(claim: &NodeClaim, owner: &Owner, wanted: &str, view: View<'a>) -> Result<&'a StoredPool, Obstacle> {
    let target = view.snapshot.pool(wanted).ok_or(Obstacle::NoSuchPool)?;
    if target.meta.is_deleting() {
        return Err(Obstacle::PoolDeleting);
    }
    let class = &claim.node.class;
    if target.class.group != class.group || target.class.kind != class.kind {
        return Err(Obstacle::OtherClassKind);
    }
    let spec = target.spec.as_ref().map_err(|_| Obstacle::PoolInvalid)?;
    if [Some(spec), source(owner, view)].into_iter().flatten().any(|pool| pool.size != PoolSize::Dynamic) {
        return Err(Obstacle::StaticPool);
    }
    Ok(target)
}

/// The pool that the claim leaves, if it is still there.
fn source<'a>(owner: &Owner, view: View<'a>) -> Option<&'a NodePool> {
    view.snapshot.pool(&owner.name).and_then(|pool| pool.spec.as_ref().ok())
}

/// Whether the pool would make this claim: what is fixed in a claim, and the template's texts, agree. Which texts of the
/// claim are of a template, only the pool that made it knows.
fn is_as_made_by(claim: &NodeClaim, pool: &NodePool, source: Option<&NodePool>) -> bool {
    let (have, want) = (&claim.node, &pool.node);
    let same_set =
        |a: &[Taint], b: &[Taint]| a.iter().all(|taint| b.contains(taint)) && b.iter().all(|taint| a.contains(taint));
    let carries = |texts: &Texts, template: &Texts| template.iter().all(|(key, value)| texts.get(key) == Some(value));
    have.class == want.class
        && same_set(&have.taints, &want.taints)
        && same_set(&have.startup_taints, &want.startup_taints)
        && have.expire_after == want.expire_after
        && have.termination_grace_period == want.termination_grace_period
        && carries(&claim.meta.labels, &pool.labels)
        && carries(&claim.meta.annotations, &pool.annotations)
        && source.is_none_or(|source| {
            !has_surplus(&claim.meta.labels, &source.labels, &pool.labels)
                && !has_surplus(&claim.meta.annotations, &source.annotations, &pool.annotations)
        })
}

/// Whether the claim has something of the template that made it, and the other template does not have it.
fn has_surplus(texts: &Texts, made_by: &Texts, other: &Texts) -> bool {
    made_by.iter().any(|(key, value)| texts.get(key) == Some(value) && !other.contains_key(key))
}

pub(crate) fn owner_of(pool: &Arc<str>, uid: &Arc<str>) -> Owner {
    Owner {
        api_version: Arc::from("karpenter.sh/v1"),
        kind: Arc::from("NodePool"),
        name: pool.clone(),
        uid: uid.clone(),
        controller: false,
        blocks_deletion: true,
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchPool => "there is no such pool",
            Self::PoolDeleting => "the pool is being deleted",
            Self::PoolInvalid => "the pool is not valid",
            Self::OtherClassKind => "the pool uses another kind of node class",
            Self::StaticPool => "one of the pools has a fixed number of nodes",
        })
    }
}
