//! The limits of a claim's pool, at the last moment before its instance is asked for.
//!
//! Whoever made the claim kept them by what was to be seen then. A create that was late, or that was taken for lost and
//! planned again under another name, comes on top of that.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use kerf_model::cluster::{InstanceType, NodeClaim};
use kerf_model::label;
use kerf_model::node_pool::NodePool;
use kerf_model::quantity::{Notation, Quantity};
use kerf_model::requirement::Requirement;
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

/// What the claims of each pool with limits take of them. Made once per look, when the first asks.
#[derive(Debug, Default)]
pub struct PoolRoom {
    /// By pool.
    used: OnceLock<BTreeMap<Arc<str>, Used>>,
    /// Of the looks before, by pool: catalogues change less often than claims.
    largest: BTreeMap<Arc<str>, Largest>,
    /// See [`cost`](Self::cost), of the looks before.
    cost: usize,
}

/// All amounts are in nanos and in the order of the limits.
#[derive(Debug)]
struct Used {
    limits: Vec<(ResourceName, i128)>,
    /// Of the claims that have an instance.
    launched: Vec<i128>,
    /// The claims that wait for one, oldest first.
    waiting: Vec<Waiting>,
    largest: Largest,
    cost: usize,
}

#[derive(Debug)]
struct Waiting {
    created: Timestamp,
    name: Arc<str>,
    /// Of this claim; once all are known, of it and of all that come before it.
    amounts: Vec<i128>,
}

/// The most that any type of a list has, by what claims say of their type. Claims of one pool often name the same types.
#[derive(Debug, Clone, Default)]
struct Largest {
    /// The catalogue that this is of.
    types: Option<Arc<[InstanceType]>>,
    /// `None` if no type is named.
    of: BTreeMap<Requirement, Option<ResourceList>>,
}

/// Whether the pool can take the claim beside what it has. Of several claims that are not launched the older come first.
///
/// A claim that a command removes does not count: a replacement comes first, and a pool at its limit could never be
/// renewed otherwise (upstream: nodes that are marked for deletion are left out).
///
/// The first question of a look takes O(c log c) for c claims, and O(t) for each list of types that no look before has
/// seen, of t types in the catalogue. Each further question is a binary search: pods that come by the thousand make claims
/// by the thousand, and each of them asks twice.
pub(super) fn room(claim: &NodeClaim, view: View<'_>) -> Room {
    let Some(pool) = pool_of(claim, view).filter(|pool| !pool.limits.is_empty()) else { return Room::Enough };
    if view.types.is_empty() {
        return Room::Unknown;
    }
    let used = view.room.used.get_or_init(|| view.room.add_up(view));
    match used.get(&pool.name).is_none_or(|used| used.has_room(claim)) {
        true => Room::Enough,
        false => Room::None,
    }
}

fn pool_of<'a>(claim: &NodeClaim, view: View<'a>) -> Option<&'a NodePool> {
    view.snapshot.pool(claim.pool()?)?.spec.as_ref().ok()
}

impl PoolRoom {
    /// The cluster is looked at anew.
    pub fn renew(&mut self) {
        self.cost = self.cost();
        if let Some(used) = self.used.take() {
            self.largest = used.into_iter().map(|(pool, used)| (pool, used.largest)).collect();
        }
    }

    /// How many claims and types were looked at so far, over all looks: nobody may wait for this.
    pub fn cost(&self) -> usize {
        let used = self.used.get().into_iter().flat_map(BTreeMap::values);
        self.cost + used.map(|used| used.cost).sum::<usize>()
    }

    fn add_up(&self, view: View<'_>) -> BTreeMap<Arc<str>, Used> {
        let pools = view.snapshot.pools().filter_map(|pool| pool.spec.as_ref().ok());
        let limited = pools.filter(|pool| !pool.limits.is_empty());
        let mut all: BTreeMap<Arc<str>, Used> =
            limited.map(|pool| (Arc::clone(&pool.name), Used::nothing(pool))).collect();
        for claim in view.snapshot.claims() {
            let Some(pool) = claim.pool() else { continue };
            let Some(used) = all.get_mut(pool) else { continue };
            used.cost += 1;
            if used.largest.types.is_none() {
                used.largest = Largest { types: view.types.get(pool).cloned(), of: BTreeMap::new() };
            }
            used.add(claim, self.largest.get(pool));
        }
        all.values_mut().for_each(Used::accumulate);
        all
    }
}

impl Used {
    fn nothing(pool: &NodePool) -> Self {
        let limits: Vec<_> = pool.limits.iter().map(|(name, limit)| (name.clone(), limit.nanos())).collect();
        let launched = vec![0; limits.len()];
        Self { limits, launched, waiting: Vec::new(), largest: Largest::default(), cost: 0 }
    }

    fn add(&mut self, claim: &NodeClaim, before: Option<&Largest>) {
        if claim.status.provider_id.is_none() {
            self.cost += self.largest.learn(claim, before);
        }
        if !counts(claim) {
            return;
        }
        let amounts = self.amounts(claim);
        match claim.status.provider_id {
            Some(_) => add_to(&mut self.launched, &amounts),
            None => self.waiting.push(Waiting { created: claim.meta.created, name: Arc::clone(claim.name()), amounts }),
        }
    }

    fn accumulate(&mut self) {
        self.waiting.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
        let mut sum = self.launched.clone();
        for waiting in &mut self.waiting {
            add_to(&mut sum, &waiting.amounts);
            waiting.amounts.clone_from(&sum);
        }
    }

    fn has_room(&self, claim: &NodeClaim) -> bool {
        let older = |other: &Waiting| (other.created, &other.name) < (claim.meta.created, claim.name());
        let before = self.waiting.partition_point(older).checked_sub(1).map(|last| &self.waiting[last].amounts);
        let mut used = before.unwrap_or(&self.launched).clone();
        // One that has an instance is among them already.
        if claim.status.provider_id.is_none() || !counts(claim) {
            add_to(&mut used, &self.amounts(claim));
        }
        self.limits.iter().zip(used).all(|((_, limit), used)| used <= *limit)
    }

    fn amounts(&self, claim: &NodeClaim) -> Vec<i128> {
        let capacity = match claim.status.provider_id {
            Some(_) => &claim.status.capacity,
            None => self.largest.of(claim).unwrap_or(&claim.requests),
        };
        let one = Quantity::from_value(1, Notation::DecimalSi);
        let amount = |name: &ResourceName| match *name == ResourceName::NODES {
            true => one,
            false => capacity.amount(name.as_str()),
        };
        self.limits.iter().map(|(name, _)| amount(name).nanos()).collect()
    }
}

/// Whether the claim takes room from others.
fn counts(claim: &NodeClaim) -> bool {
    !claim.meta.is_deleting() && !makes_way(claim)
}

fn add_to(sums: &mut [i128], amounts: &[i128]) {
    for (sum, amount) in sums.iter_mut().zip(amounts) {
        *sum = sum.saturating_add(*amount);
    }
}

impl Largest {
    /// Of a claim that is not launched.
    fn of(&self, claim: &NodeClaim) -> Option<&ResourceList> {
        self.of.get(claim.node.requirements.get(label::INSTANCE_TYPE)?)?.as_ref()
    }

    /// Makes the claim's answer known. How many types had to be looked at for it.
    fn learn(&mut self, claim: &NodeClaim, before: Option<&Self>) -> usize {
        let Some(named) = claim.node.requirements.get(label::INSTANCE_TYPE) else { return 0 };
        let Some(types) = self.types.as_ref().filter(|_| !self.of.contains_key(named)) else { return 0 };
        let is_same = |before: &&Self| before.types.as_ref().is_some_and(|known| Arc::ptr_eq(known, types));
        let known = before.filter(is_same).and_then(|before| before.of.get(named));
        let (most, cost) = match known {
            Some(most) => (most.clone(), 0),
            None => {
                let options = types.iter().filter(|kind| named.has(&kind.name));
                (options.map(InstanceType::most_capacity).reduce(|most, one| most.max(&one)), types.len())
            }
        };
        self.of.insert(named.clone(), most);
        cost
    }
}
