//! Nodes without pods that matter are deleted, many at once (sheet 03 §8.1).

use kerf_model::cluster::condition_kind as kind;
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
    let mut tally = Tally::default();
    let mut chosen = Chosen { subjects: Vec::new(), moving: Vec::new(), outcome: Outcome::default() };
    for (at, subject) in eligible {
        if let Err(reason) = plan.admits(&tally, subject, Reason::Empty) {
            plan.keep(at, reason);
            continue;
        }
        let moving = plan.context.moving(subject);
        if moving.is_empty() {
            tally.add(plan, subject);
            chosen.subjects.push(subject);
            chosen.moving.push(moving);
            continue;
        }
        // Pods that cost nothing to move must still have somewhere to go. The reference does not ask.
        match plan.simulator.ask(&[subject], &moving, Destinations::Settled) {
            Ok(outcome) if outcome.new_claims.is_empty() => {
                tally.add(plan, subject);
                propose(plan, Chosen { subjects: vec![subject], moving: vec![moving], outcome });
            }
            Ok(outcome) => plan.keep(at, KeepReason::TooManyReplacements { nodes: outcome.new_claims.len() }),
            Err(reason) => plan.keep(at, reason),
        }
    }
    if !chosen.subjects.is_empty() {
        propose(plan, chosen);
    }
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
