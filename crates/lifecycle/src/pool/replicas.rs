//! Static pools: as many nodes as the pool says (sheet 04 §7).

use std::sync::Arc;

use kerf_model::cluster::{NodeClaim, StoredPool, condition_kind as kind, disruption_cost};
use kerf_model::effect::Effect;
use kerf_model::node_pool::{NodePool, PoolSize};
use kerf_model::quantity::Quantity;
use kerf_model::resources::ResourceName;
use kerf_model::taint::Taint;

use super::template::claim_from;
use crate::claim::give_up;
use crate::steps::{Cause, Steps};
use crate::view::View;

/// The claims of a pool by what they are good for.
struct Headcount<'a> {
    active: Vec<&'a NodeClaim>,
    /// Being replaced: their replacements are somebody else's business.
    leaving: usize,
    deleting: usize,
}

/// Who goes first when there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Loss {
    NotLaunched,
    /// Empty, and nobody has seen it work: what is left when a replacement came too late, beside the node that it was for.
    NotInitialized,
    Empty,
    MovesPods,
    DisruptsProtectedPods,
}

pub(super) fn step(pool: &StoredPool, view: View<'_>) -> Steps {
    let Ok(spec) = &pool.spec else { return Steps::default() };
    let PoolSize::Static { replicas } = spec.size else { return Steps::default() };
    let is_frozen = spec.disabled || pool.meta.is_deleting() || !view.settings.static_capacity;
    if is_frozen {
        return Steps::default();
    }
    let count = headcount(pool, view);
    let wanted = usize::try_from(replicas).unwrap_or(usize::MAX);
    if count.active.len() > wanted {
        return scale_down(count.active, wanted, view);
    }
    let missing = wanted.saturating_sub(count.active.len() + count.leaving);
    if !pool.status.conditions.is_true(kind::READY) {
        return Steps::default();
    }
    let names = free_names(pool, view).take(missing.min(room(spec, &count)));
    let create = |name: Arc<str>| Effect::CreateClaim(Box::new(claim_from(pool, spec, name, view.rules)));
    Steps { effects: names.map(create).collect(), ..Steps::default() }
}

fn headcount<'a>(pool: &StoredPool, view: View<'a>) -> Headcount<'a> {
    let mut count = Headcount { active: Vec::new(), leaving: 0, deleting: 0 };
    let name = &*pool.meta.name.name;
    for claim in view.snapshot.claims().filter(|claim| claim.pool() == Some(name)) {
        let is_leaving = || {
            claim.status.conditions.is_true(kind::DISRUPTION_REASON)
                || view.snapshot.nodes_of(claim).any(|node| node.has_taint(&Taint::disrupted()))
        };
        if claim.meta.is_deleting() {
            count.deleting += 1;
        } else if is_leaving() {
            count.leaving += 1;
        } else {
            count.active.push(claim);
        }
    }
    count
}

/// How many more nodes the pool's limit allows. Nodes on their way out still count: they still cost.
fn room(spec: &NodePool, count: &Headcount<'_>) -> usize {
    let limit = spec.limits.get(ResourceName::NODES.as_str()).and_then(Quantity::value);
    let present = count.active.len() + count.leaving + count.deleting;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(0).saturating_sub(present))
}

/// The same names until their claims are seen: a decision made twice creates once. A name that has gone does not come back
/// (as long as this process remembers it).
fn free_names(pool: &StoredPool, view: View<'_>) -> impl Iterator<Item = Arc<str>> {
    let (name, uid) = (pool.meta.name.name.clone(), pool.meta.uid.clone());
    let names = (0_u64..).map(move |slot| Arc::from(format!("{name}-{}", suffix(&uid, slot))));
    names.filter(move |name: &Arc<str>| view.snapshot.claim(name).is_none() && !view.memory.is_used_name(name))
}

/// Five letters and digits, like the names that the API server makes up.
fn suffix(uid: &str, slot: u64) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    // FNV-1a.
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let mut hash = uid.bytes().chain(slot.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, mix);
    let mut letters = String::new();
    for _ in 0..5 {
        letters.push(char::from(ALPHABET[usize::try_from(hash % 27).unwrap_or(0)]));
        hash /= 27;
    }
    letters
}

fn scale_down(claims: Vec<&NodeClaim>, wanted: usize, view: View<'_>) -> Steps {
    let mut steps = Steps::default();
    let excess = claims.len().saturating_sub(wanted);
    let mut claims: Vec<_> = claims.into_iter().map(|claim| (loss(claim, view), claim)).collect();
    claims.sort_by(|((a_loss, a_cost), a), ((b_loss, b_cost), b)| {
        a_loss.cmp(b_loss).then(a_cost.total_cmp(b_cost)).then_with(|| a.name().cmp(b.name()))
    });
    for (_, claim) in claims.into_iter().take(excess) {
        steps.merge(give_up(claim, Cause::ScaledDown));
    }
    steps
}

/// What is lost with a claim, and what that costs its pods.
fn loss(claim: &NodeClaim, view: View<'_>) -> (Loss, f64) {
    let pods = || view.snapshot.nodes_of(claim).flat_map(|node| view.snapshot.pods_on(node.name()));
    let loss = if claim.status.provider_id.is_none() {
        Loss::NotLaunched
    } else if pods().any(|pod| pod.is_active() && pod.is_protected(view.now)) {
        Loss::DisruptsProtectedPods
    } else if pods().any(|pod| pod.is_reschedulable()) {
        Loss::MovesPods
    } else if !claim.status.conditions.is_true(kind::INITIALIZED) {
        Loss::NotInitialized
    } else {
        Loss::Empty
    };
    (loss, disruption_cost(claim, pods(), view.settings.manages_deletion_cost, view.now))
}
