//! Nodes whose replacement needs the very place that they hold: they go first, where an operator allows it (sheet 08
//! D9).

use std::sync::Arc;

use kerf_model::cluster::{Offering, Pod, condition_kind as kind};
use kerf_model::label::{self, capacity_type};
use kerf_model::requirement::UndefinedKeys;

use crate::plan::{Chosen, Plan};
use crate::proposal::OfProposal;
use crate::statics::pool_requirements;
use crate::subject::Subject;
use crate::what_if::Outcome;
use crate::{Action, KeepReason, Method, TerminateFirst};

/// A drifted node whose pods have no place, but would have one in the reservation slot that it holds.
pub(crate) fn drift<'a>(
    plan: &mut Plan<'_, 'a>,
    subject: &Subject<'a>,
    moving: &[Arc<Pod>],
    otherwise: KeepReason,
) -> Result<(), KeepReason> {
    dynamic(plan, subject, moving, Method::Drift, otherwise)
}

pub(crate) fn dynamic<'a>(
    plan: &mut Plan<'_, 'a>,
    subject: &Subject<'a>,
    moving: &[Arc<Pod>],
    method: Method,
    otherwise: KeepReason,
) -> Result<(), KeepReason> {
    if !is_allowed(plan, method) {
        return Err(otherwise);
    }
    let Some(slot) = slot(plan, subject) else { return Err(otherwise) };
    if !plan.simulator.would_fit_with(slot, subject, moving) {
        return Err(otherwise);
    }
    propose(plan, subject, method, TerminateFirst::NoReservedCapacity);
    Ok(())
}

/// A static pool without room for one more node.
pub(crate) fn static_at_limit<'a>(
    plan: &mut Plan<'_, 'a>,
    subject: &Subject<'a>,
    method: Method,
    otherwise: KeepReason,
) -> Result<(), KeepReason> {
    if !is_allowed(plan, method) || !pool_can_refill(subject) {
        return Err(otherwise);
    }
    propose(plan, subject, method, TerminateFirst::StaticAtLimit);
    Ok(())
}

/// A static pool that can only be launched from reservations that are full.
pub(crate) fn static_reserved<'a>(
    plan: &mut Plan<'_, 'a>,
    subject: &Subject<'a>,
    method: Method,
) -> Result<(), KeepReason> {
    let Some(pool) = subject.pool() else { return Err(KeepReason::NoPool) };
    if !is_allowed(plan, method) || !pool_can_refill(subject) {
        return Err(KeepReason::NoInstanceTypes { pool: pool.name.clone() });
    }
    propose(plan, subject, method, TerminateFirst::NoReservedCapacity);
    Ok(())
}

/// Whether everything the pool could launch is reserved and full, and the node holds a slot that is still offered.
pub(crate) fn all_reserved_and_full<'a>(plan: &Plan<'_, 'a>, subject: &Subject<'a>) -> bool {
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

fn propose<'a>(plan: &mut Plan<'_, 'a>, subject: &Subject<'a>, method: Method, why: TerminateFirst) {
    let moving = vec![plan.context.moving(subject)];
    let chosen = Chosen { subjects: vec![subject], moving, outcome: Outcome::default() };
    plan.propose(chosen, OfProposal::new(method, Action::TerminateFirst(why)));
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
