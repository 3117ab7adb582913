//! Limits of pools, over all proposals of a round. Each what-if keeps them for itself; together they must keep them too.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::cluster::InstanceType;
use kerf_model::label;
use kerf_model::quantity::{Notation, Quantity};
use kerf_model::resources::{ResourceList, ResourceName};
use kerf_scheduling::PlannedClaim;

use crate::context::Context;
use crate::subject::Subject;

/// What the pools with limits have left, once everything that was proposed is launched and nothing has gone yet.
pub(crate) struct Limits {
    left: BTreeMap<Arc<str>, BTreeMap<ResourceName, i128>>,
}

impl Limits {
    pub(crate) fn of(context: &Context<'_>) -> Self {
        let mut left = BTreeMap::new();
        for pool in context.view.snapshot.pools().filter_map(|stored| stored.spec.as_ref().ok()) {
            if pool.limits.iter().next().is_none() {
                continue;
            }
            let mut own: BTreeMap<ResourceName, i128> =
                pool.limits.iter().map(|(name, amount)| (name.clone(), amount.nanos())).collect();
            for subject in context.subjects.iter().filter(|subject| subject.pool_name.as_ref() == Some(&pool.name)) {
                add(&mut own, &capacity_of(subject, context), -1);
            }
            left.insert(Arc::clone(&pool.name), own);
        }
        let mut limits = Self { left };
        for held in &context.view.memory.held {
            let subjects: Vec<_> = held.proposal.claims().filter_map(|claim| context.subject(claim)).collect();
            limits.commit(&subjects, held.proposal.replacements());
        }
        limits
    }

    /// Whether the pools can take these on top, once these nodes are gone.
    pub(crate) fn allow(&self, going: &[&Subject<'_>], planned: &[PlannedClaim]) -> bool {
        if self.left.is_empty() || planned.is_empty() {
            return true;
        }
        let mut after = Self { left: self.left.clone() };
        after.commit(going, planned);
        let pools = planned.iter().filter_map(|claim| after.left.get(&claim.pool));
        pools.flat_map(BTreeMap::values).all(|left| *left >= 0)
    }

    /// The nodes go, and the claims come.
    pub(crate) fn commit(&mut self, going: &[&Subject<'_>], planned: &[PlannedClaim]) {
        for subject in going {
            if let Some(own) = subject.pool_name.as_ref().and_then(|pool| self.left.get_mut(pool)) {
                add(own, &launched_capacity(subject), 1);
            }
        }
        for claim in planned {
            if let Some(own) = self.left.get_mut(&claim.pool) {
                // The most that any option may turn out to be: a limit is never overshot, whatever is launched.
                let kinds = claim.options.iter().map(|option| option.kind());
                let most = kinds.map(as_counted).reduce(|most, one| most.max(&one));
                add(own, &most.unwrap_or_default(), -1);
            }
        }
    }
}

fn add(own: &mut BTreeMap<ResourceName, i128>, list: &ResourceList, sign: i128) {
    for (name, left) in own {
        *left = left.saturating_add(list.amount(name.as_str()).nanos().saturating_mul(sign));
    }
}

/// Of a claim that is not launched yet, the most that any of its types has: nobody knows which it will be.
fn capacity_of(subject: &Subject<'_>, context: &Context<'_>) -> ResourceList {
    let claim = subject.claim;
    if claim.status.provider_id.is_some() {
        return launched_capacity(subject);
    }
    let types = subject.pool_name.as_ref().and_then(|pool| context.view.types.get(pool));
    let named = claim.node.requirements.get(label::INSTANCE_TYPE);
    let options = types.into_iter().flat_map(|types| types.iter());
    let options = options.filter(|kind| named.is_none_or(|named| named.has(&kind.name)));
    let most = options.map(as_counted).reduce(|most, one| most.max(&one));
    most.unwrap_or_else(|| with_one_node(claim.requests.clone()))
}

fn launched_capacity(subject: &Subject<'_>) -> ResourceList {
    let own = match subject.node {
        Some(node) if subject.is_initialized() => &node.capacity,
        Some(_) | None => &subject.claim.status.capacity,
    };
    with_one_node(own.clone())
}

fn as_counted(kind: &InstanceType) -> ResourceList {
    with_one_node(kind.most_capacity())
}

fn with_one_node(mut capacity: ResourceList) -> ResourceList {
    capacity.insert(ResourceName::NODES, Quantity::from_value(1, Notation::DecimalSi));
    capacity
}
