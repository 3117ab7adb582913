//! Sick nodes are replaced or rebooted, within the budgets (sheet 08 D1 to D8).

mod policy;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::budget::BudgetNodes;
use kerf_model::cloud::{Repair, RepairAction};
use kerf_model::cluster::condition_kind as kind;
use kerf_model::label::{self, annotation};
use kerf_model::maintenance::Action as WindowAction;
use kerf_model::node_pool::PoolSize;

use super::terminate_first;
use crate::gates::{self, Class};
use crate::plan::{Chosen, Plan, Tally};
use crate::proposal::OfProposal;
use crate::statics::{StaticPool, template_claim};
use crate::subject::Subject;
use crate::what_if::{Destinations, Outcome};
use crate::{Action, KeepReason, Method, Policy, Reason};

use policy::{Diagnosis, Finding};
pub use policy::{InvalidPolicies, Policies};

/// More than this share of a pool's nodes sick at once is not the nodes' fault.
const BREAKER: BudgetNodes = BudgetNodes::Percent(20);
/// A node that needs more than two reboots in a day needs to be replaced.
const REBOOTS: usize = 2;
const REBOOTS_WITHIN: SignedDuration = SignedDuration::from_hours(24);

/// As many as the budgets allow. With [`Policy::Compatible`] one, and whether there was one.
pub(crate) fn run(plan: &mut Plan<'_, '_>) -> bool {
    let view = &plan.context.view;
    let gates = view.settings.gates;
    if !gates.node_repair || gates.legacy_node_repair {
        return false;
    }
    let Ok(policies) = Policies::new(&view.settings.repair_policies) else { return false };
    let breaker = Breaker::of(plan, &policies);
    let mut eligible = Vec::new();
    for (at, subject) in plan.open().collect::<Vec<_>>() {
        match diagnose(plan, subject, &policies, &breaker) {
            Ok(Some(diagnosis)) => eligible.push((at, subject, diagnosis)),
            Ok(None) => {}
            Err(reason) => plan.keep_rather(at, reason),
        }
    }
    plan.count_eligible(Method::Repair, eligible.len());
    eligible.sort_by(|(_, a, left), (_, b, right)| {
        let by_score = right.score.total_cmp(&left.score);
        let by_cost = || a.disruption_cost(view).total_cmp(&b.disruption_cost(view));
        by_score.then_with(by_cost).then_with(|| a.name().cmp(b.name()))
    });
    let mut found = false;
    for (at, subject, diagnosis) in eligible {
        match consider(plan, subject, &diagnosis) {
            Ok(()) => found = true,
            Err(reason) => plan.keep_rather(at, reason),
        }
        if found && plan.policy() == Policy::Compatible {
            break;
        }
    }
    found
}

/// Whether the node is sick enough to be repaired now. `Ok(None)` if it is not sick at all.
fn diagnose(
    plan: &Plan<'_, '_>,
    subject: &Subject<'_>,
    policies: &Policies,
    breaker: &Breaker,
) -> Result<Option<Diagnosis>, KeepReason> {
    let Some(node) = subject.node else { return Ok(None) };
    // It is being cured: whether that helps is seen when it is over.
    if subject.is_rebooting() {
        return Ok(None);
    }
    let rebooted = subject.claim.status.conditions.get(kind::REBOOTING).map(|condition| condition.since);
    let diagnosis = match policies.diagnose(node, rebooted, plan.now()) {
        Finding::Healthy => return Ok(None),
        Finding::Tolerated { condition, until } => return Err(KeepReason::Tolerated { condition, until }),
        Finding::Sick(diagnosis) => diagnosis,
    };
    gates::first(subject, Class::Repair, &plan.context.view)?;
    if subject.annotation(annotation::DO_NOT_REPAIR) == Some("true") {
        return Err(KeepReason::DoNotRepair);
    }
    plan.check_window(subject, WindowAction::Repair)?;
    breaker.check(subject)?;
    let has_deadline = diagnosis.grace.is_some() || subject.claim.node.termination_grace_period.is_some();
    match &subject.blocker {
        Some(blocker) if !has_deadline => Err(KeepReason::RepairNeedsDeadline { blocker: Box::new(blocker.clone()) }),
        Some(_) | None => Ok(Some(diagnosis)),
    }
}

fn consider<'a>(plan: &mut Plan<'_, 'a>, subject: &Subject<'a>, diagnosis: &Diagnosis) -> Result<(), KeepReason> {
    // A node that does not count has nothing to spend.
    if subject.is_initialized() {
        plan.check_budget(&Tally::default(), subject, Reason::Unhealthy)?;
    }
    if diagnosis.action == RepairAction::RebootNode && may_reboot(plan, subject) {
        let action = Action::Reboot {
            condition: Arc::clone(&diagnosis.condition),
            condition_reason: Arc::clone(&diagnosis.reason),
            // A drain before a reboot has no deletion from which the claim's own time would count.
            grace: bound(subject, diagnosis).or_else(|| own_grace(subject)),
        };
        plan.propose_reboot(subject, of_repair(subject, diagnosis, action));
        return Ok(());
    }
    let Some(pool) = subject.pool() else { return Err(KeepReason::NoPool) };
    plan.check_back_off(subject, Reason::Unhealthy)?;
    match pool.size {
        PoolSize::Dynamic => replace(plan, subject, diagnosis),
        PoolSize::Static { .. } => replace_static(plan, subject, diagnosis),
    }
}

fn may_reboot(plan: &Plan<'_, '_>, subject: &Subject<'_>) -> bool {
    let known = plan.context.view.memory.reboots.get(&subject.claim.meta.uid);
    let recent = |at: &&Timestamp| plan.now().duration_since(**at) < REBOOTS_WITHIN;
    known.into_iter().flatten().filter(recent).count() < REBOOTS
}

/// Every pod that must run elsewhere gets its place, blocked ones too: the deadline moves them.
fn replace<'a>(plan: &mut Plan<'_, 'a>, subject: &Subject<'a>, diagnosis: &Diagnosis) -> Result<(), KeepReason> {
    let moving: Vec<_> = subject.reschedulable().cloned().collect();
    let outcome = match moving.is_empty() && plan.simulator.buffered(subject) == 0 {
        true => Ok(Outcome::default()),
        false => plan.simulator.ask(&[subject], &moving, Destinations::All),
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(reason) => {
            let why = terminate_first::dynamic(plan, subject, &moving, Method::Repair, reason)?;
            terminate_first::propose(plan, subject, of_repair(subject, diagnosis, Action::TerminateFirst(why)));
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
    plan.propose(chosen, of_repair(subject, diagnosis, action));
    Ok(())
}

fn replace_static<'a>(plan: &mut Plan<'_, 'a>, subject: &Subject<'a>, diagnosis: &Diagnosis) -> Result<(), KeepReason> {
    let (Some(stored), Some(pool)) = (subject.stored, subject.pool()) else { return Err(KeepReason::NoPool) };
    // Drift does not get as far; here its successor could come from nowhere.
    if pool.disabled {
        return Err(KeepReason::PoolDisabled { pool: pool.name.clone() });
    }
    let state = StaticPool::of(plan, stored, pool);
    state.check_size()?;
    if let Some(why) = terminate_first::of_static(plan, subject, &state, Method::Repair)? {
        terminate_first::propose(plan, subject, of_repair(subject, diagnosis, Action::TerminateFirst(why)));
        return Ok(());
    }
    let Some(replacement) = template_claim(plan.context, stored, pool) else {
        return Err(KeepReason::NoInstanceTypes { pool: pool.name.clone() });
    };
    let moving: Vec<_> = subject.reschedulable().cloned().collect();
    let outcome = Outcome { lands_on: Vec::new(), new_claims: vec![replacement] };
    let action = Action::Replace(outcome.new_claims.clone());
    let chosen = Chosen { subjects: vec![subject], moving: vec![moving], outcome };
    plan.propose(chosen, of_repair(subject, diagnosis, action));
    Ok(())
}

fn of_repair(subject: &Subject<'_>, diagnosis: &Diagnosis, action: Action) -> OfProposal {
    let repair = Repair { condition: Arc::clone(&diagnosis.condition), bound: bound(subject, diagnosis) };
    OfProposal { repair: Some(repair), ..OfProposal::new(Method::Repair, action) }
}

/// Without a deadline in the policy the claim's own counts from its deletion anyway.
fn bound(subject: &Subject<'_>, diagnosis: &Diagnosis) -> Option<SignedDuration> {
    diagnosis.grace.map(|grace| own_grace(subject).map_or(grace, |own| own.min(grace)))
}

fn own_grace(subject: &Subject<'_>) -> Option<SignedDuration> {
    subject.claim.node.termination_grace_period.map(SignedDuration::from)
}

/// How many nodes of each pool are sick, however long.
struct Breaker(BTreeMap<Arc<str>, (u32, u32)>);

impl Breaker {
    fn of(plan: &Plan<'_, '_>, policies: &Policies) -> Self {
        let mut pools: BTreeMap<Arc<str>, (u32, u32)> = BTreeMap::new();
        for node in plan.context.view.snapshot.nodes() {
            let Some(pool) = node.meta.labels.get(label::NODEPOOL) else { continue };
            let (sick, all) = pools.entry(Arc::clone(pool)).or_default();
            *all += 1;
            *sick += u32::from(policies.is_sick(node));
        }
        Self(pools)
    }

    fn check(&self, subject: &Subject<'_>) -> Result<(), KeepReason> {
        let Some(pool) = &subject.pool_name else { return Err(KeepReason::NoPool) };
        let (unhealthy, nodes) = self.0.get(pool).copied().unwrap_or_default();
        let allowed = BREAKER.of(nodes);
        match unhealthy > allowed {
            true => Err(KeepReason::TooManyUnhealthy { pool: Arc::clone(pool), unhealthy, nodes, allowed }),
            false => Ok(()),
        }
    }
}
