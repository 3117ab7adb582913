//! What the nodes of each pool add up to (sheet 04 §6.1).

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::cluster::{NodeClaim, condition_kind as kind};
use kerf_model::quantity::{Notation, Quantity};
use kerf_model::resources::{ResourceList, ResourceName};
use kerf_model::snapshot::ClusterSnapshot;

use super::PoolDraft;
use crate::claim::disruption::makes_way;

/// By pool. Made in one pass over the claims.
#[derive(Debug, Clone, Default)]
pub struct Totals(BTreeMap<Arc<str>, Usage>);

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    pub resources: ResourceList,
    pub nodes: i64,
}

/// Always shown, be they zero.
const SHOWN: [ResourceName; 4] =
    [ResourceName::CPU, ResourceName::MEMORY, ResourceName::PODS, ResourceName::EPHEMERAL_STORAGE];

impl Totals {
    /// Claims with an instance count, until they or their node are deleted, or a command removes them: what replaces them
    /// counts already, and a pool whose nodes are replaced one by one has no more of them than before. Limits are kept by
    /// the same count.
    pub fn of(snapshot: &ClusterSnapshot) -> Self {
        let mut totals = Self::default();
        for claim in snapshot.claims() {
            let Some(pool) = claim.pool() else { continue };
            if claim.status.provider_id.is_none() || claim.meta.is_deleting() || makes_way(claim) {
                continue;
            }
            if let Some(capacity) = capacity(claim, snapshot) {
                let usage = totals.0.entry(Arc::from(pool)).or_default();
                // A sum that no quantity can hold stays as it was: limits are long exceeded by then.
                usage.resources = usage.resources.clone().plus(&capacity).unwrap_or_else(|_| usage.resources.clone());
                usage.nodes += 1;
            }
        }
        totals
    }

    pub fn of_pool(&self, pool: &str) -> Usage {
        self.0.get(pool).cloned().unwrap_or_default()
    }
}

/// `None` if the node is on its way out. A starting node does not report everything yet: until it is initialised, what
/// was promised counts where it says zero.
fn capacity(claim: &NodeClaim, snapshot: &ClusterSnapshot) -> Option<ResourceList> {
    let promised = &claim.status.capacity;
    match snapshot.nodes_of(claim).next() {
        None => Some(promised.clone()),
        Some(node) if node.meta.is_deleting() => None,
        Some(node) if claim.status.conditions.is_true(kind::INITIALIZED) => Some(node.capacity.clone()),
        Some(node) => {
            let reported = node.capacity.iter().filter(|(_, amount)| !amount.is_zero());
            let both = promised.iter().chain(reported);
            Some(both.map(|(name, amount)| (name.clone(), amount)).collect())
        }
    }
}

pub(super) fn step(draft: &mut PoolDraft<'_>, totals: &Totals) {
    let usage = totals.of_pool(&draft.pool.meta.name.name);
    let zeroes = SHOWN.into_iter().map(|name| (name, Quantity::ZERO));
    let sums = usage.resources.iter().map(|(name, amount)| (name.clone(), amount));
    let nodes = [(ResourceName::NODES, Quantity::from_value(usage.nodes, Notation::DecimalSi))];
    let resources: ResourceList = zeroes.chain(sums).chain(nodes).collect();
    if draft.pool.status.resources != resources || draft.pool.status.nodes != usage.nodes {
        draft.patch.resources = Some(resources);
        draft.patch.nodes = Some(usage.nodes);
    }
}
