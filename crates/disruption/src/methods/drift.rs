//! Nodes that are not what their pool asks for any more are replaced, replacement first (sheet 03 §8.3).

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::{Pod, condition_kind as kind};
use kerf_model::maintenance::Action as WindowAction;
use kerf_model::node_pool::PoolSize;

use super::terminate_first;
use crate::gates::{self, Class};
use crate::plan::{Chosen, Plan, Tally};
use crate::proposal::OfProposal;
use crate::rollout;
use crate::subject::Subject;
use crate::what_if::{Destinations, Outcome};
use crate::{Action, KeepReason, Method, Policy, Reason};

/// As many as budgets, waves and evictions allow. With [`Policy::Compatible`] one, and whether there was one.
pub(crate) fn run(plan: &mut Plan<'_, '_>) -> bool {
    let mut eligible = candidates(plan);
    plan.count_eligible(Method::Drift, eligible.len());
    // Those that disturb nobody first, then those that wait longest.
    eligible.sort_by_key(|(_, subject)| {
        (subject.reschedulable().next().is_some(), drifted_since(subject), Arc::clone(subject.name()))
    });
    let mut found = false;
    for (at, subject) in eligible {
        match consider(plan, subject) {
            Ok(()) => found = true,
            Err(reason) => plan.keep_rather(at, reason),
        }
        if found && plan.policy() == Policy::Compatible {
            break;
        }
    }
    found
}

/// Drifted nodes of dynamic pools that may be chosen; budgets are asked later.
pub(crate) fn candidates<'c, 'a>(plan: &mut Plan<'c, 'a>) -> Vec<(usize, &'c Subject<'a>)> {
    let mut eligible = Vec::new();
    for (at, subject) in plan.open().collect::<Vec<_>>() {
        let is_dynamic = subject.pool().is_some_and(|pool| pool.size == PoolSize::Dynamic);
        if !is_dynamic || !subject.is(kind::DRIFTED) {
            continue;
        }
        match filter(plan, subject) {
            Ok(()) => eligible.push((at, subject)),
            Err(reason) => plan.keep_rather(at, reason),
        }
    }
    eligible
}

/// What dynamic and static drift ask in common.
pub(crate) fn filter(plan: &Plan<'_, '_>, subject: &Subject<'_>) -> Result<(), KeepReason> {
    gates::first(subject, Class::Eventual, &plan.context.view)?;
    let Some(pool) = subject.pool() else { return Err(KeepReason::NoPool) };
    if !pool.disruption.drift_enabled || !plan.context.view.settings.gates.drift {
        return Err(KeepReason::DriftDisabled { pool: pool.name.clone() });
    }
    plan.check_window(subject, WindowAction::Drift)?;
    plan.check_back_off(subject, Reason::Drifted)
}

/// Those of the candidates that waves, budgets and evictions leave to drift as things stand, by subject.
pub(crate) fn choosable(plan: &mut Plan<'_, '_>) -> BTreeSet<usize> {
    let candidates = candidates(plan).into_iter();
    candidates.filter(|(_, subject)| may_choose(plan, subject).is_ok()).map(|(at, _)| at).collect()
}

fn may_choose<'a>(plan: &Plan<'_, 'a>, subject: &Subject<'a>) -> Result<(), KeepReason> {
    rollout::check(plan, subject)?;
    match gates::may_insist(subject) {
        false => plan.check_one(subject, Reason::Drifted),
        true => {
            plan.check_budget(&Tally::default(), subject, Reason::Drifted)?;
            plan.check_not_destination(subject)
        }
    }
}

fn consider<'a>(plan: &mut Plan<'_, 'a>, subject: &Subject<'a>) -> Result<(), KeepReason> {
    may_choose(plan, subject)?;
    let moving = plan.context.moving(subject);
    let outcome = match simulate(plan, subject, &moving) {
        Ok(outcome) => outcome,
        Err(reason) => {
            let why = terminate_first::dynamic(plan, subject, &moving, Method::Drift, reason)?;
            terminate_first::propose(plan, subject, OfProposal::new(Method::Drift, Action::TerminateFirst(why)));
            return Ok(());
        }
    };
    if !plan.limits.allow(&[subject], &outcome.new_claims) {
        return Err(KeepReason::NextRound);
    }
    let action = match outcome.new_claims.is_empty() {
        true => Action::Delete,
        false => Action::Replace(outcome.new_claims.clone()),
    };
    let chosen = Chosen { subjects: vec![subject], moving: vec![moving], outcome };
    plan.propose(chosen, OfProposal::new(Method::Drift, action));
    Ok(())
}

/// Pods are not moved onto nodes that drift takes next, unless nothing else has room for them: they would move twice. Room
/// that a buffer has on the node alone is made anew like that of a pod.
fn simulate<'a>(plan: &Plan<'_, 'a>, subject: &Subject<'a>, moving: &[Arc<Pod>]) -> Result<Outcome, KeepReason> {
    if moving.is_empty() && plan.simulator.buffered(subject) == 0 {
        return Ok(Outcome::default());
    }
    match plan.policy() {
        Policy::Compatible => plan.simulator.ask(&[subject], moving, Destinations::All),
        Policy::Best => plan
            .simulator
            .ask(&[subject], moving, Destinations::NotDrifted)
            .or_else(|_| plan.simulator.ask(&[subject], moving, Destinations::All)),
    }
}

fn drifted_since(subject: &Subject<'_>) -> Timestamp {
    let condition = subject.claim.status.conditions.get(kind::DRIFTED);
    condition.map_or(Timestamp::MAX, |condition| condition.since)
}
