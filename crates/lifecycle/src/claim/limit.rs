//! The limits of a claim's pool, at the last moment before its instance is asked for.
//!
//! Whoever made the claim kept them by what was to be seen then. A create that was late, or that was taken for lost and
//! planned again under another name, comes on top of that.

use kerf_model::cluster::{InstanceType, NodeClaim};
use kerf_model::label;
use kerf_model::node_pool::NodePool;
use kerf_model::quantity::{Notation, Quantity};
use kerf_model::resources::{ResourceList, ResourceName};

use super::disruption::makes_way;
use crate::view::View;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Enough,
    None,
    /// What there is to launch is not known yet, and so not how large the claim may become.
    Unknown,
}

/// Whether the pool can take the claim beside what it has. Of several claims that are not launched the older come first.
///
/// A claim that a command removes does not count: a replacement comes first, and a pool at its limit could never be
/// renewed otherwise (upstream: nodes that are marked for deletion are left out).
pub(super) fn room(claim: &NodeClaim, view: View<'_>) -> Room {
    let Some(pool) = pool_of(claim, view).filter(|pool| !pool.limits.is_empty()) else { return Room::Enough };
    if view.types.is_empty() {
        return Room::Unknown;
    }
    let is_first = |other: &NodeClaim| {
        other.status.provider_id.is_some() || (other.meta.created, other.name()) < (claim.meta.created, claim.name())
    };
    let counts = |other: &&NodeClaim| {
        other.meta.uid != claim.meta.uid
            && other.pool() == Some(&*pool.name)
            && !other.meta.is_deleting()
            && !makes_way(other)
            && is_first(other)
    };
    let others = view.snapshot.claims().map(AsRef::as_ref).filter(counts);
    let lists: Vec<ResourceList> = others.chain([claim]).map(|claim| capacity(claim, pool, view)).collect();
    let is_within = |(name, limit): (&ResourceName, Quantity)| {
        let used = lists.iter().map(|list| list.amount(name.as_str()).nanos()).fold(0_i128, i128::saturating_add);
        used <= limit.nanos()
    };
    if pool.limits.iter().all(is_within) { Room::Enough } else { Room::None }
}

fn pool_of<'a>(claim: &NodeClaim, view: View<'a>) -> Option<&'a NodePool> {
    view.snapshot.pool(claim.pool()?)?.spec.as_ref().ok()
}

/// Of a claim that is not launched, the most that any of its types has.
fn capacity(claim: &NodeClaim, pool: &NodePool, view: View<'_>) -> ResourceList {
    let mut capacity = match claim.status.provider_id {
        Some(_) => claim.status.capacity.clone(),
        None => {
            let named = claim.node.requirements.get(label::INSTANCE_TYPE);
            let types = view.types.get(&pool.name).into_iter().flat_map(|types| types.iter());
            let options = types.filter(|kind| named.is_some_and(|named| named.has(&kind.name)));
            let most = options.map(InstanceType::most_capacity).reduce(|most, one| most.max(&one));
            most.unwrap_or_else(|| claim.requests.clone())
        }
    };
    capacity.insert(ResourceName::NODES, Quantity::from_value(1, Notation::DecimalSi));
    capacity
}
