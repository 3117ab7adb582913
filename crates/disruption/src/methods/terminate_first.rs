//! Nodes whose replacement needs the very place that they hold: they go first, where an operator allows it (sheet 08
//! D9).

use std::sync::Arc;

use kerf_model::cluster::{Offering, Pod, condition_kind as kind};
use kerf_model::label::{self, capacity_type};
use kerf_model::requirement::UndefinedKeys;

use crate::plan::{Chosen, Plan};
use crate::proposal::OfProposal;
use crate::statics::{StaticPool, pool_requirements};
use crate::subject::Subject;
use crate::what_if::Outcome;
use crate::{KeepReason, Method, TerminateFirst};

/// A node whose pods have no place, but would have one in the reservation slot that it holds.
pub(crate) fn dynamic<'a>(
    plan: &mut Plan<'_, 'a>,
    subject: &Subject<'a>,
    moving: &[Arc<Pod>],
    method: Method,
    otherwise: KeepReason,
) -> Result<TerminateFirst, KeepReason> {
    if !is_allowed(plan, method) {
        return Err(otherwise);
    }
    let Some(slot) = slot(plan, subject) else { return Err(otherwise) };
    match plan.simulator.would_fit_with(slot, subject, moving) {
        true => Ok(TerminateFirst::NoReservedCapacity),
        false => Err(otherwise),
    }
}

/// Why a node of a static pool must go first: the pool has no room for one more, or can only be launched from
/// reservations that are full. `None` if its replacement can come before it goes.
pub(crate) fn of_static<'a>(
    plan: &Plan<'_, 'a>,
    subject: &Subject<'a>,
    pool: &StaticPool<'_>,
    method: Method,
) -> Result<Option<TerminateFirst>, KeepReason> {
    let (why, otherwise) = match pool.check_limit() {
        Err(reason) => (TerminateFirst::StaticAtLimit, reason),
        Ok(()) if all_reserved_and_full(plan, subject) => {
            let Some(pool) = subject.pool() else { return Err(KeepReason::NoPool) };
            (TerminateFirst::NoReservedCapacity, KeepReason::NoInstanceTypes { pool: pool.name.clone() })
        }
        Ok(()) => return Ok(None),
    };
    match is_allowed(plan, method) && pool_can_refill(subject) {
        true => Ok(Some(why)),
        false => Err(otherwise),
    }
}

/// The node goes as it is.
pub(crate) fn propose<'a>(plan: &mut Plan<'_, 'a>, subject: &Subject<'a>, proposal: OfProposal) {
    let moving = vec![plan.context.moving(subject)];
    plan.propose(Chosen { subjects: vec![subject], moving, outcome: Outcome::default() }, proposal);
}

/// Whether everything the pool could launch is reserved and full, and the node holds a slot that is still offered.
fn all_reserved_and_full<'a>(plan: &Plan<'_, 'a>, subject: &Subject<'a>) -> bool {
    let Some(pool) = subject.pool() else { return false };
    let Some(types) = plan.context.view.types.get(&pool.name) else { return false };
    let rules = plan.context.view.labels;
    let (requirements, undefined) = (pool_requirements(pool, rules), UndefinedKeys::OpenIfWellKnown(rules));
    let mut offerings = types
        .iter()
        .filter(|kind| kind.requirements.intersects(&requirements).is_ok())
        .flat_map(|kind| &kind.offerings)
        .filter(|offering| offering.available && requirements.compatible(&offering.requirements, undefined).is_ok())
        .peekable();
    let is_full = |offering: &Offering| offering.reservation_capacity == Some(0);
    offerings.peek().is_some() && offerings.all(is_full) && slot(plan, subject).is_some()
}

fn is_allowed(plan: &Plan<'_, '_>, method: Method) -> bool {
    let gates = plan.context.view.settings.gates;
    match method {
        Method::Drift | Method::StaticDrift => gates.terminate_first_drift,
        Method::Repair => gates.terminate_first_repair,
        Method::Emptiness | Method::Rebalance | Method::MultiNode | Method::SingleNode => false,
    }
}

fn pool_can_refill(subject: &Subject<'_>) -> bool {
    subject.stored.is_some_and(|stored| !stored.meta.is_deleting() && stored.status.conditions.is_true(kind::READY))
}

/// The reservation that the node holds a slot of, if it is still offered: once the node is gone, it has one more.
fn slot<'a>(plan: &Plan<'_, 'a>, subject: &Subject<'a>) -> Option<&'a Arc<str>> {
    let is_reserved = subject.label(label::CAPACITY_TYPE).is_some_and(|kind| &**kind == capacity_type::RESERVED);
    let key = plan.context.view.labels.reservation_id();
    let id = subject.label(key).filter(|_| is_reserved)?;
    let is_it = |offering: &Offering| {
        offering.available
            && offering.reservation_capacity.is_some()
            && offering.requirements.get(key).is_some_and(|own| own.has(id))
    };
    subject.kind?.offerings.iter().any(is_it).then_some(id)
}
