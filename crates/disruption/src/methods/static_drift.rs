//! Drifted nodes of static pools: one new node for one old node, built from the template without a what-if (sheet 03
//! §8.2, sheet 08 D9).

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::cluster::condition_kind as kind;
use kerf_model::node_pool::PoolSize;

use super::{drift, terminate_first};
use crate::gates::{self, Class};
use crate::plan::{Chosen, Plan, Tally};
use crate::proposal::OfProposal;
use crate::rollout;
use crate::statics::{StaticPool, template_claim};
use crate::subject::Subject;
use crate::what_if::Outcome;
use crate::{Action, KeepReason, Method, Reason};

pub(crate) fn run(plan: &mut Plan<'_, '_>) -> bool {
    let mut by_pool: BTreeMap<Arc<str>, Vec<(usize, &Subject<'_>)>> = BTreeMap::new();
    let mut count = 0;
    for (at, subject) in plan.open().collect::<Vec<_>>() {
        let Some(pool) = subject.pool().filter(|pool| matches!(pool.size, PoolSize::Static { .. })) else { continue };
        if !subject.is(kind::DRIFTED) {
            let free = gates::first(subject, Class::Eventual, &plan.context.view);
            plan.keep(at, free.err().unwrap_or_else(|| KeepReason::StaticPool { pool: pool.name.clone() }));
            continue;
        }
        match drift::filter(plan, subject) {
            Ok(()) => {
                count += 1;
                by_pool.entry(pool.name.clone()).or_default().push((at, subject));
            }
            Err(reason) => plan.keep_rather(at, reason),
        }
    }
    plan.count_eligible(Method::StaticDrift, count);
    let before = plan.proposals.len();
    for subjects in by_pool.values() {
        for (at, subject) in subjects {
            if let Err(reason) = consider(plan, subject) {
                plan.keep_rather(*at, reason);
            }
        }
    }
    plan.proposals.len() > before
}

fn consider<'a>(plan: &mut Plan<'_, 'a>, subject: &Subject<'a>) -> Result<(), KeepReason> {
    plan.check_budget(&Tally::default(), subject, Reason::Drifted)?;
    rollout::check(plan, subject)?;
    let (Some(stored), Some(pool)) = (subject.stored, subject.pool()) else { return Err(KeepReason::NoPool) };
    let state = StaticPool::of(plan, stored, pool);
    state.check_size()?;
    if let Some(why) = terminate_first::of_static(plan, subject, &state, Method::StaticDrift)? {
        terminate_first::propose(plan, subject, OfProposal::new(Method::StaticDrift, Action::TerminateFirst(why)));
        return Ok(());
    }
    let replacement = template_claim(plan.context, stored, pool);
    let Some(replacement) = replacement else {
        return Err(KeepReason::NoInstanceTypes { pool: pool.name.clone() });
    };
    let outcome = Outcome { lands_on: Vec::new(), new_claims: vec![replacement] };
    let action = Action::Replace(outcome.new_claims.clone());
    let chosen = Chosen { subjects: vec![subject], moving: vec![plan.context.moving(subject)], outcome };
    plan.propose(chosen, OfProposal::new(Method::StaticDrift, action));
    Ok(())
}
