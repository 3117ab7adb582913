//! What people read in `kubectl describe`: the verdicts again, as events (sheet 03 §14).

use std::sync::Arc;

use jiff::SignedDuration;
use kerf_model::budget::Allowance;
use kerf_model::cluster::{DoNotDisrupt, ObjectMeta, Pod};
use kerf_model::effect::{Event, EventKind, EventSeverity, EventTarget, pod_events};

use crate::context::Context;
use crate::methods::consolidation::{Score, THRESHOLD, Totals};
use crate::subject::Subject;
use crate::{Action, KeepReason, Method, Proposal, Round, Verdict};

const BLOCKED: &str = "DisruptionBlocked";
const UNCONSOLIDATABLE: &str = "Unconsolidatable";
const REPAIR_BLOCKED: &str = "NodeRepairBlocked";
const CANDIDATE: &str = "ConsolidationCandidate";
const APPROVED: &str = "ConsolidationApproved";

/// How a reason is told.
enum Telling {
    /// It passes by itself, or is told elsewhere.
    Not,
    Blocked,
    Unconsolidatable,
    RepairBlocked,
}

/// `wanted_gone` is by subject: whether it was to go for another reason than its cost.
pub(crate) fn all(context: &Context<'_>, totals: &Totals, round: &Round, wanted_gone: &[bool]) -> Vec<Event> {
    let mut events = Vec::new();
    for ((subject, verdict), wanted_gone) in context.subjects.iter().zip(round.verdicts.values()).zip(wanted_gone) {
        match verdict {
            Verdict::Keep(reason) => tell(subject, reason, *wanted_gone, &mut events),
            Verdict::Leaving => events.extend(node_and_claim(subject).map(|(kind, meta)| {
                let event = event(kind, meta, BLOCKED, verdict.to_string());
                Event { dedupe: verdict.label().to_owned(), ..event }
            })),
            Verdict::Go { .. } | Verdict::UnderWay { .. } => {}
        }
        // Pods of a node that goes are told of by its drain.
        if !matches!(verdict, Verdict::UnderWay { .. } | Verdict::Leaving) {
            events.extend(of_pods(context, subject));
        }
    }
    for proposal in round.proposals.iter().filter(|it| matches!(it.method, Method::MultiNode | Method::SingleNode)) {
        announce(context, proposal, &mut events);
        weigh(context, totals, proposal, &mut events);
    }
    let eligible = round.eligible_by_reason();
    for ((pool, reason), using) in &round.budgets {
        // Nobody misses what nothing asks for.
        if eligible.get(reason).is_some_and(|nodes| *nodes > 0)
            && using.nodes > 0
            && using.allowed == Allowance::AtMost(0)
            && let Some(stored) = context.view.snapshot.pool(pool)
        {
            let text = format!("no disruption is allowed for {reason} now, because of a disruption budget");
            let mut event = event(EventKind::NodePool, &stored.meta, BLOCKED, text);
            event.dedupe = reason.label().to_owned();
            event.interval = SignedDuration::from_mins(1);
            events.push(event);
        }
    }
    events
}

/// Pods whose `do-not-disrupt` protects them for a time, or does not. Most pods have none.
fn of_pods<'s>(context: &Context<'_>, subject: &'s Subject<'_>) -> impl Iterator<Item = Event> + use<'s> {
    let now = context.view.now;
    let has_annotation = |pod: &&&Arc<Pod>| match pod.do_not_disrupt {
        DoNotDisrupt::No | DoNotDisrupt::Always => false,
        DoNotDisrupt::For(_) | DoNotDisrupt::Invalid(_) => pod.is_active(),
    };
    subject.pods.iter().filter(has_annotation).filter_map(move |pod| pod_events::of_protection(pod, now))
}

fn tell(subject: &Subject<'_>, reason: &KeepReason, wanted_gone: bool, events: &mut Vec<Event>) {
    let (name, interval, severity) = match telling(reason) {
        Telling::Not => return,
        // A drifted or sick node whose pods have no place is not one that is merely too dear.
        Telling::Unconsolidatable if wanted_gone => (BLOCKED, SignedDuration::from_mins(2), EventSeverity::Normal),
        Telling::Blocked => (BLOCKED, SignedDuration::from_mins(2), EventSeverity::Normal),
        Telling::Unconsolidatable => (UNCONSOLIDATABLE, SignedDuration::from_mins(15), EventSeverity::Normal),
        Telling::RepairBlocked => (REPAIR_BLOCKED, SignedDuration::from_mins(15), EventSeverity::Warning),
    };
    let pool = subject.stored.filter(|_| name == REPAIR_BLOCKED).map(|stored| (EventKind::NodePool, &stored.meta));
    for (kind, meta) in node_and_claim(subject).chain(pool) {
        let mut event = event(kind, meta, name, reason.to_string());
        // By its category: a number that changes makes no new event, another reason does.
        reason.label().clone_into(&mut event.dedupe);
        event.interval = interval;
        event.severity = severity;
        events.push(event);
    }
}

fn announce(context: &Context<'_>, proposal: &Proposal, events: &mut Vec<Event>) {
    if !matches!(proposal.action, Action::Replace(_)) {
        return;
    }
    let count = proposal.candidates.len();
    let part = if count == 1 { String::new() } else { format!(" as part of {count} nodes") };
    let savings = proposal.savings.map_or(String::new(), |savings| format!(", saving {savings} $ per hour"));
    let text = format!("{} {}{part}{savings}", proposal.reason, proposal.action.label());
    let subjects = proposal.claims().filter_map(|claim| context.subject(claim));
    for subject in subjects {
        events.extend(node_and_claim(subject).map(|(kind, meta)| event(kind, meta, CANDIDATE, text.clone())));
    }
}

/// What a Balanced pool has weighed: told on the node that goes alone, and of several on the pool.
fn weigh(context: &Context<'_>, totals: &Totals, proposal: &Proposal, events: &mut Vec<Event>) {
    for Score { pool, value, saved, disrupted } in totals.scores(proposal, context) {
        let shares = [saved, disrupted].map(|share| format!("{:.1} %", 100.0 * share));
        let [saved, disrupted] = shares;
        let text = format!(
            "score {value:.2}, at least {THRESHOLD:.2} is needed: saves {saved} of the pool's cost, disrupts {disrupted} of it"
        );
        let alone = proposal.claims().next().filter(|_| proposal.candidates.len() == 1);
        match alone.and_then(|claim| context.subject(claim)) {
            Some(subject) => {
                events.extend(node_and_claim(subject).map(|(kind, meta)| event(kind, meta, APPROVED, text.clone())));
            }
            None => {
                let stored = context.view.snapshot.pool(&pool);
                events.extend(stored.map(|stored| event(EventKind::NodePool, &stored.meta, APPROVED, text)));
            }
        }
    }
}

fn node_and_claim<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = (EventKind, &'s ObjectMeta)> {
    let node = subject.node.map(|node| (EventKind::Node, &node.meta));
    node.into_iter().chain([(EventKind::NodeClaim, &subject.claim.meta)])
}

fn event(kind: EventKind, about: &ObjectMeta, reason: &'static str, message: String) -> Event {
    Event {
        about: EventTarget { kind, target: about.into() },
        severity: EventSeverity::Normal,
        reason,
        dedupe: message.clone(),
        message,
        interval: SignedDuration::from_mins(2),
    }
}

fn telling(reason: &KeepReason) -> Telling {
    match reason {
        KeepReason::NotLaunched
        | KeepReason::Rebooting
        | KeepReason::NotSettled { .. }
        | KeepReason::StaticPool { .. }
        | KeepReason::Tolerated { .. }
        | KeepReason::Destination { .. }
        | KeepReason::NextRound
        | KeepReason::NotExamined
        | KeepReason::PdbTaken { .. }
        | KeepReason::BudgetSpent { .. } => Telling::Not,
        KeepReason::NoNode
        | KeepReason::NotRegistered
        | KeepReason::NotInitialized
        | KeepReason::Replacement { .. }
        | KeepReason::Nominated { .. }
        | KeepReason::NotMarked { .. }
        | KeepReason::DoNotDisrupt { .. }
        | KeepReason::DoNotRepair
        | KeepReason::ProtectedPod { .. }
        | KeepReason::PdbBlocks { .. }
        | KeepReason::SeveralPdbs { .. }
        | KeepReason::Window { .. }
        | KeepReason::NoPool
        | KeepReason::PoolMissing { .. }
        | KeepReason::PoolInvalid { .. }
        | KeepReason::NoInstanceTypes { .. }
        | KeepReason::PoolDisabled { .. }
        | KeepReason::DisruptionDisabled { .. }
        | KeepReason::DriftDisabled { .. }
        | KeepReason::BackedOff { .. }
        | KeepReason::Baking { .. }
        | KeepReason::RolloutHalted { .. }
        | KeepReason::StaticScalesDown { .. }
        | KeepReason::StaticAtLimit { .. }
        | KeepReason::RepairNeedsDeadline { .. } => Telling::Blocked,
        KeepReason::DoNotConsolidate
        | KeepReason::ConsolidationDisabled { .. }
        | KeepReason::OnlyWhenEmpty { .. }
        | KeepReason::RecentlyMoved { .. }
        | KeepReason::BuffersHere { .. }
        | KeepReason::PodsHaveNoPlace { .. }
        | KeepReason::DestinationNotReady { .. }
        | KeepReason::TooManyReplacements { .. }
        | KeepReason::UnknownType
        | KeepReason::NoCapacityType
        | KeepReason::NoZone
        | KeepReason::UnknownPrice
        | KeepReason::NoCheaper { .. }
        | KeepReason::MinValues { .. }
        | KeepReason::SpotToSpotDisabled
        | KeepReason::TooFewSpotTypes { .. }
        | KeepReason::SameType
        | KeepReason::BelowFloor { .. }
        | KeepReason::BelowScore { .. }
        | KeepReason::WouldBeUndone
        | KeepReason::ExpiresFirst { .. } => Telling::Unconsolidatable,
        KeepReason::TooManyUnhealthy { .. } => Telling::RepairBlocked,
    }
}
