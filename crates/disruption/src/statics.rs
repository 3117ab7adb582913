//! Static pools: how many nodes they have and may have, and what a new one is made of.

use std::collections::BTreeSet;
use std::sync::Arc;

use kerf_model::cluster::{InstanceType, Offering, Owner, StoredPool};
use kerf_model::label::{self, LabelRules};
use kerf_model::node_pool::{NodePool, PoolSize};
use kerf_model::quantity::Quantity;
use kerf_model::requirement::{Requirement, Requirements, UndefinedKeys};
use kerf_model::resources::{ResourceList, ResourceName};
use kerf_scheduling::{OptionOffering, PlannedClaim, TypeOption};

use crate::context::Context;
use crate::plan::Plan;
use crate::{KeepReason, Proposal};

pub(crate) struct StaticPool<'a> {
    pool: &'a NodePool,
    /// Without those whose replacement is there already.
    running: u64,
    /// Every claim, also those that go and those that are about to be made.
    all: u64,
    /// On nodes; `None` is any number.
    limit: Option<u64>,
}

impl<'a> StaticPool<'a> {
    pub(crate) fn of(plan: &Plan<'_, 'a>, stored: &StoredPool, pool: &'a NodePool) -> Self {
        let view = &plan.context.view;
        let name = &stored.meta.name.name;
        let claims = || view.snapshot.claims().filter(|claim| claim.pool() == Some(name));
        let replacements: BTreeSet<&Arc<str>> =
            view.memory.running.iter().flat_map(|command| &command.replacements).collect();
        let (present, coming): (Vec<&Arc<str>>, Vec<&Arc<str>>) =
            replacements.into_iter().partition(|claim| view.snapshot.claim(claim).is_some());
        let present = present.iter().filter(|claim| {
            view.snapshot.claim(claim).is_some_and(|claim| claim.pool() == Some(name) && !claim.meta.is_deleting())
        });
        let staying = claims().filter(|claim| !claim.meta.is_deleting()).count();
        let held = view.memory.held.iter().map(|held| &held.proposal);
        let planned = plan.proposals.iter().chain(held).flat_map(Proposal::replacements);
        let planned = planned.filter(|claim| claim.pool == *name).count();
        let limit = pool.limits.get(ResourceName::NODES.as_str()).and_then(Quantity::value);
        Self {
            pool,
            running: count(staying).saturating_sub(count(present.count())),
            all: count(claims().count() + planned + coming.len()),
            limit: limit.map(|limit| u64::try_from(limit).unwrap_or(0)),
        }
    }

    /// A pool that is too large shrinks before it replaces.
    pub(crate) fn check_size(&self) -> Result<(), KeepReason> {
        let PoolSize::Static { replicas } = self.pool.size else { return Ok(()) };
        match self.running > replicas {
            true => Err(KeepReason::StaticScalesDown { pool: self.pool.name.clone(), running: self.running, replicas }),
            false => Ok(()),
        }
    }

    /// A replacement comes before the node goes, so that there must be room for one more.
    pub(crate) fn check_limit(&self) -> Result<(), KeepReason> {
        match self.limit {
            Some(limit) if limit <= self.all => Err(KeepReason::StaticAtLimit { pool: self.pool.name.clone(), limit }),
            Some(_) | None => Ok(()),
        }
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// A node as the template says, whatever pods there are. `None` if nothing that fits the template can be launched.
pub(crate) fn template_claim(context: &Context<'_>, stored: &StoredPool, pool: &NodePool) -> Option<PlannedClaim> {
    let rules = context.view.labels;
    let requirements = pool_requirements(pool, rules);
    let catalogue = context.view.types.get(&pool.name)?;
    let option = |(at, kind): (u32, &InstanceType)| {
        kind.requirements.intersects(&requirements).ok()?;
        let launchable = kind.offerings.iter().filter(|offering| offering.is_launchable());
        let fits = |offering: &&Offering| {
            requirements.compatible(&offering.requirements, UndefinedKeys::OpenIfWellKnown(rules)).is_ok()
        };
        let offerings = launchable.filter(fits).map(|offering| option_offering(offering, rules));
        TypeOption::new(catalogue, at, offerings.collect()).map(Arc::new)
    };
    let mut options: Vec<Arc<TypeOption>> = (0..).zip(catalogue.iter()).filter_map(option).collect();
    options.sort_by(|a, b| (a.price, &a.instance_type).cmp(&(b.price, &b.instance_type)));
    if options.is_empty() {
        return None;
    }
    Some(PlannedClaim {
        pool: Arc::clone(&pool.name),
        owner: Owner {
            api_version: Arc::from("karpenter.sh/v1"),
            kind: Arc::from("NodePool"),
            name: Arc::clone(&pool.name),
            uid: Arc::clone(&stored.meta.uid),
            controller: false,
            blocks_deletion: true,
        },
        labels: pool.claim_labels(&pool.node.requirements, rules),
        annotations: pool.annotations.clone(),
        node: pool.node.clone(),
        options: options.into(),
        requests: ResourceList::new(),
        pods: Vec::new(),
        min_values_relaxed: false,
    })
}

fn option_offering(offering: &Offering, rules: &LabelRules) -> OptionOffering {
    let only = |key: &str| match offering.requirements.get(key).map(Requirement::values) {
        Some([value]) => Some(Arc::clone(value)),
        Some(_) | None => None,
    };
    OptionOffering {
        capacity_type: only(label::CAPACITY_TYPE),
        zone: only(label::ZONE),
        price: offering.price,
        reservation: offering.reservation_capacity.and_then(|_| only(rules.reservation_id())),
    }
}

/// What every node of the pool has, as far as offerings are concerned.
pub(crate) fn pool_requirements(pool: &NodePool, rules: &LabelRules) -> Requirements {
    let mut requirements = pool.node.requirements.clone();
    let labels = pool.labels.iter().map(|(key, value)| (&**key, &**value));
    requirements.merge(&Requirements::from_labels(labels, rules));
    requirements
}
