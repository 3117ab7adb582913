//! One look at the cluster, and the order of the methods.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::budget::Allowance;

use crate::context::Context;
use crate::events;
use crate::methods::consolidation::Totals;
use crate::methods::{consolidation, drift, emptiness, rebalance, repair, static_drift};
use crate::plan::Plan;
use crate::{Method, Policy, Reason, Round, Verdict, View};

/// A verdict for every claim of ours, and proposals for those that should go.
pub fn decide(view: &View<'_>) -> Round {
    let context = Context::new(view);
    let mut plan = Plan::new(&context);
    match view.settings.policy {
        Policy::Best => best(&mut plan),
        Policy::Compatible => compatible(&mut plan),
    }
    let wanted_gone = plan.take_wanted_gone();
    let refused_together = std::mem::take(&mut plan.refused_together);
    let mut round = plan.finish();
    count_held(&mut round, view);
    let totals = Totals::of(&context);
    round.events = events::all(&context, &totals, &round, &wanted_gone);
    round.scored = consolidation::scored(&context, &totals, &round, refused_together);
    round
}

/// Nodes of proposals that wait for their second look could still be chosen: they are.
fn count_held(round: &mut Round, view: &View<'_>) {
    for held in &view.memory.held {
        let waits = |claim: &&Arc<str>| matches!(round.verdicts.get(*claim), Some(Verdict::Go { .. }));
        let nodes = u32::try_from(held.proposal.claims().filter(waits).count()).unwrap_or(u32::MAX);
        let methods: &[Method] = match held.proposal.method {
            // The same nodes are candidates of both.
            Method::MultiNode | Method::SingleNode => &[Method::MultiNode, Method::SingleNode],
            Method::Emptiness => &[Method::Emptiness],
            // Nothing is held of these.
            Method::Repair | Method::StaticDrift | Method::Drift | Method::Rebalance => &[],
        };
        for method in methods {
            *round.eligible.entry(*method).or_default() += nodes;
        }
    }
}

/// Every method is asked in every round. What is broken goes first, then what costs nothing to remove. Drift and
/// consolidation share what the budgets leave: neither waits for the other to be done, and what drift cannot use is not
/// lost.
fn best(plan: &mut Plan<'_, '_>) {
    repair::run(plan);
    emptiness::run(plan);
    static_drift::run(plan);
    let reserve = for_drift(plan);
    let deferred = consolidation::best(plan, &reserve);
    drift::run(plan);
    rebalance::run(plan);
    consolidation::rest(plan, &reserve, &deferred);
}

/// The first method that finds work ends the round.
fn compatible(plan: &mut Plan<'_, '_>) {
    let found = |plan: &Plan<'_, '_>| !plan.proposals.is_empty();
    if repair::run(plan) {
        return;
    }
    emptiness::run(plan);
    if found(plan) || static_drift::run(plan) || drift::run(plan) {
        return;
    }
    rebalance::run(plan);
    if found(plan) || consolidation::multi(plan) {
        return;
    }
    consolidation::single(plan);
}

/// How many nodes of each pool consolidation leaves to drift: half of what the budget leaves, and of a single node
/// whoever did not get the last one; no more than drift may take.
fn for_drift(plan: &mut Plan<'_, '_>) -> BTreeMap<Arc<str>, u32> {
    let drifted = drift::candidates(plan);
    let mut counts: BTreeMap<Arc<str>, u32> = BTreeMap::new();
    for pool in drifted.iter().filter_map(|(_, subject)| subject.pool_name.clone()) {
        *counts.entry(pool).or_default() += 1;
    }
    let mut reserve = BTreeMap::new();
    for (pool, drifted) in counts {
        let most = match plan.budgets.left(&pool, Reason::Drifted) {
            Allowance::Unlimited => drifted,
            Allowance::AtMost(nodes) => nodes.min(drifted),
        };
        let nodes = match plan.budgets.left(&pool, Reason::Underutilized) {
            Allowance::Unlimited => 0,
            Allowance::AtMost(1) => {
                u32::from(plan.context.view.memory.last_reason.get(&pool) != Some(&Reason::Drifted))
            }
            Allowance::AtMost(nodes) => nodes.div_ceil(2),
        };
        reserve.insert(pool, nodes.min(most));
    }
    reserve
}
