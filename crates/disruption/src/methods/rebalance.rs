//! Spot nodes that the cloud advises to leave are replaced while there is time, if an operator wants that (sheet 03
//! §15.7).

use kerf_model::maintenance::Action as WindowAction;
use kerf_model::node_pool::PoolSize;

use crate::gates::{self, Class};
use crate::plan::{Chosen, Plan};
use crate::proposal::OfProposal;
use crate::subject::Subject;
use crate::what_if::Destinations;
use crate::{Action, KeepReason, Method, Reason, RebalanceAction};

pub(crate) fn run(plan: &mut Plan<'_, '_>) {
    if plan.context.view.settings.rebalance != RebalanceAction::Replace {
        return;
    }
    let advised = |subject: &Subject<'_>| plan.context.view.memory.rebalance.contains(subject.name());
    let candidates: Vec<_> = plan.open().filter(|(_, subject)| advised(subject)).collect();
    plan.count_eligible(Method::Rebalance, candidates.len());
    for (at, subject) in candidates {
        if let Err(reason) = consider(plan, subject) {
            plan.keep_rather(at, reason);
        }
    }
}

fn consider<'a>(plan: &mut Plan<'_, 'a>, subject: &Subject<'a>) -> Result<(), KeepReason> {
    gates::first(subject, Class::Graceful, &plan.context.view)?;
    let Some(pool) = subject.pool() else { return Err(KeepReason::NoPool) };
    if pool.size != PoolSize::Dynamic {
        return Err(KeepReason::StaticPool { pool: pool.name.clone() });
    }
    plan.check_window(subject, WindowAction::Rebalance)?;
    plan.check_back_off(subject, Reason::Drifted)?;
    plan.check_one(subject, Reason::Drifted)?;
    let moving = plan.context.moving(subject);
    let outcome = plan.simulator.ask(&[subject], &moving, Destinations::All)?;
    if !plan.limits.allow(&[subject], &outcome.new_claims) {
        return Err(KeepReason::NextRound);
    }
    let action = match outcome.new_claims.is_empty() {
        true => Action::Delete,
        false => Action::Replace(outcome.new_claims.clone()),
    };
    let chosen = Chosen { subjects: vec![subject], moving: vec![moving], outcome };
    plan.propose(chosen, OfProposal::new(Method::Rebalance, action));
    Ok(())
}
