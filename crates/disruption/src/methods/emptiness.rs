//! Nodes without pods that matter are deleted, many at once (sheet 03 §8.1).

use std::sync::Arc;

use kerf_model::cluster::{Pod, condition_kind as kind};
use kerf_model::duration::NillableDuration;
use kerf_model::maintenance::Action as WindowAction;
use kerf_model::node_pool::{NodePool, PoolSize};

use crate::gates;
use crate::methods::consolidation::{rank, saved_by_deleting};
use crate::plan::{Chosen, Plan, Tally};
use crate::proposal::OfProposal;
use crate::subject::Subject;
use crate::what_if::{Destinations, Outcome};
use crate::{Action, KeepReason, Method, Reason};

pub(crate) fn run(plan: &mut Plan<'_, '_>) {
    let mut eligible = Vec::new();
    for (at, subject) in plan.open().collect::<Vec<_>>() {
        if !subject.is_empty() || !plan.is_candidate(at) {
            continue;
        }
        match filter(plan, subject) {
            Ok(()) => eligible.push((at, subject)),
            Err(reason) => plan.keep(at, reason),
        }
    }
    plan.count_eligible(Method::Emptiness, eligible.len());
    eligible.sort_by(|(_, a), (_, b)| rank(a, b));
    let (occupied, vacant): (Vec<_>, Vec<_>) = eligible
        .into_iter()
        .map(|(at, subject)| (at, subject, plan.context.moving(subject)))
        .partition(|(_, _, moving)| !moving.is_empty());
    // What hosts nothing goes first: the pods of the others must not count on its room.
    let mut tally = Tally::default();
    let mut chosen = Chosen { subjects: Vec::new(), moving: Vec::new(), outcome: Outcome::default() };
    for (at, subject, moving) in vacant {
        match plan.admits(&tally, subject, Reason::Empty) {
            Ok(()) => {
                tally.add(plan, subject);
                chosen.subjects.push(subject);
                chosen.moving.push(moving);
            }
            Err(reason) => plan.keep(at, reason),
        }
    }
    if !chosen.subjects.is_empty() {
        propose(plan, chosen);
    }
    for (at, subject, moving) in occupied {
        if let Err(reason) = empty(plan, subject, moving) {
            plan.keep(at, reason);
        }
    }
}

/// Pods that cost nothing to move must still have somewhere to go. The reference does not ask.
fn empty<'a>(plan: &mut Plan<'_, 'a>, subject: &Subject<'a>, moving: Vec<Arc<Pod>>) -> Result<(), KeepReason> {
    plan.check_one(subject, Reason::Empty)?;
    let outcome = plan.simulator.ask(&[subject], &moving, Destinations::Settled)?;
    match outcome.new_claims.len() {
        0 => propose(plan, Chosen { subjects: vec![subject], moving: vec![moving], outcome }),
        nodes => return Err(KeepReason::TooManyReplacements { nodes }),
    }
    Ok(())
}

fn propose<'a>(plan: &mut Plan<'_, 'a>, chosen: Chosen<'_, 'a>) {
    let of = OfProposal {
        savings: saved_by_deleting(&chosen.subjects),
        ..OfProposal::new(Method::Emptiness, Action::Delete)
    };
    plan.propose(chosen, of);
}

pub(crate) fn filter<'a>(plan: &Plan<'_, 'a>, subject: &Subject<'a>) -> Result<(), KeepReason> {
    takes_part(subject)?;
    let buffered = plan.simulator.buffered(subject);
    if buffered > 0 {
        return Err(KeepReason::BuffersHere { pods: buffered });
    }
    is_settled(subject)?;
    plan.check_window(subject, WindowAction::EmptyConsolidation)
}

/// What emptiness and consolidation ask in common.
pub(crate) fn takes_part<'a>(subject: &Subject<'a>) -> Result<&'a NodePool, KeepReason> {
    let Some(pool) = subject.pool() else { return Err(KeepReason::NoPool) };
    if let PoolSize::Static { .. } = pool.size {
        return Err(KeepReason::StaticPool { pool: pool.name.clone() });
    }
    gates::do_not_consolidate(subject)?;
    let disruption = &pool.disruption;
    if disruption.consolidate_after == NillableDuration::Never || !disruption.consolidation_enabled {
        return Err(KeepReason::ConsolidationDisabled { pool: pool.name.clone() });
    }
    Ok(pool)
}

pub(crate) fn is_settled(subject: &Subject<'_>) -> Result<(), KeepReason> {
    match subject.is(kind::CONSOLIDATABLE) {
        true => Ok(()),
        false => Err(KeepReason::NotSettled { until: subject.settles_at() }),
    }
}
