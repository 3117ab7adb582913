//! A second look at a proposal, after its hold.

use std::collections::BTreeSet;
use std::sync::Arc;

use kerf_model::cluster::Pod;
use kerf_model::maintenance::Action as WindowAction;
use kerf_model::price::Price;
use kerf_scheduling::PlannedClaim;

use crate::context::Context;
use crate::gates::{self, Class};
use crate::methods::consolidation::{self, Totals};
use crate::methods::{drift, emptiness};
use crate::plan::{Chosen, Plan, Tally};
use crate::subject::Subject;
use crate::what_if::{Destinations, Outcome};
use crate::{Action, Candidate, KeepReason, Method, Proposal, ProposalId, View};

/// A proposal that may be executed. Only [`validate`] makes one.
#[derive(Debug, Clone)]
pub struct Approved {
    proposal: Proposal,
    dropped: Vec<Objection>,
}

/// A proposal that may not be executed any more, and why.
#[derive(Debug, Clone)]
pub struct Withdrawn {
    pub proposal: Proposal,
    pub objection: Objection,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Objection {
    pub kind: ObjectionKind,
    /// The claim that it is about, and its reason to stay; `None` if the proposal as a whole is no good any more.
    pub claim: Option<(Arc<str>, KeepReason)>,
}

/// What went wrong, as metrics name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectionKind {
    /// A budget is spent.
    Budget,
    /// The pods have no place any more, or another one.
    Scheduling,
    /// The nodes are not what they were: pods came, something asks for them to stay.
    Churn,
    /// A maintenance window has opened.
    Window,
}

impl Approved {
    pub fn proposal(&self) -> &Proposal {
        &self.proposal
    }

    pub fn into_proposal(self) -> Proposal {
        self.proposal
    }

    /// Why nodes that were part of it stay, one for each.
    pub fn dropped(&self) -> &[Objection] {
        &self.dropped
    }
}

impl ObjectionKind {
    pub const ALL: [Self; 4] = [Self::Budget, Self::Scheduling, Self::Churn, Self::Window];

    /// For the reference page.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Budget => "A disruption budget is spent, or evictions that a PodDisruptionBudget allowed are taken.",
            Self::Scheduling => "The pods have no place any more, another one, or one that is not cheaper.",
            Self::Churn => "A node is not what it was: pods came, it goes already, or something asks for it to stay.",
            Self::Window => "A maintenance window has opened.",
        }
    }

    pub const fn label(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Scheduling => "scheduling",
            Self::Churn => "churn",
            Self::Window => "window",
        }
    }
}

/// Looks again. See [`validate_all`], which is the same for many and looks at the cluster once.
///
/// # Errors
/// What is in the way, with the proposal.
pub fn validate(proposal: Proposal, view: &View<'_>) -> Result<Approved, Box<Withdrawn>> {
    let one = validate_all(vec![proposal], view).pop();
    one.expect("there is an answer for each proposal")
}

/// Looks again at proposals, in their order: each on top of those before it that are approved. They may still stand in
/// [`Memory::held`](crate::Memory::held): they do not stand in their own way.
///
/// Of a proposal that launches nothing the nodes that are no candidates any more are dropped, and the rest goes on:
/// keeping more nodes than planned leaves more room. A replacement stands or falls as a whole; if the same nodes can go
/// with less, it falls, and the next round says how. What stands is carried out as it would be decided now, so that a type
/// that has become the cheapest meanwhile is launched. Moves that would take other nodes along are no objection: a
/// better one may always be about to appear, and nodes whose turn it is would wait for ever. Drift and repair are not
/// simulated again; what would keep their node from being chosen is asked once more.
pub fn validate_all(proposals: Vec<Proposal>, view: &View<'_>) -> Vec<Result<Approved, Box<Withdrawn>>> {
    let ids: BTreeSet<ProposalId> = proposals.iter().map(|proposal| proposal.id.clone()).collect();
    let mut memory = view.memory.clone();
    memory.held.retain(|held| !ids.contains(&held.proposal.id));
    let context = Context::new(&View { memory: &memory, ..*view });
    let mut plan = Plan::new(&context);
    let mut again = |proposal: Proposal| match look_again(&plan, &proposal) {
        Ok(Standing { chosen, candidates, dropped, renewed }) => {
            let lands_on = chosen.outcome.lands_on.clone();
            let (action, savings) = renewed.unwrap_or((proposal.action, proposal.savings));
            let proposal = Proposal { candidates, lands_on, action, savings, ..proposal };
            plan.take(chosen, proposal.clone());
            Ok(Approved { proposal, dropped })
        }
        Err(objection) => Err(Box::new(Withdrawn { proposal, objection })),
    };
    proposals.into_iter().map(&mut again).collect()
}

/// What is left of a proposal.
struct Standing<'c, 'a> {
    chosen: Chosen<'c, 'a>,
    /// The candidates that those nodes were.
    candidates: Vec<Candidate>,
    dropped: Vec<Objection>,
    /// What a consolidation comes to now.
    renewed: Option<(Action, Option<Price>)>,
}

fn look_again<'c, 'a>(plan: &Plan<'c, 'a>, proposal: &Proposal) -> Result<Standing<'c, 'a>, Objection> {
    let mut tally = Tally::default();
    let mut subjects: Vec<&'c Subject<'a>> = Vec::new();
    let mut candidates = Vec::new();
    let mut dropped = Vec::new();
    let drops = proposal.method.is_consolidation() && matches!(proposal.action, Action::Delete);
    for candidate in &proposal.candidates {
        match still_stands(plan, &tally, proposal, candidate) {
            Ok(subject) => {
                tally.add(plan, subject);
                subjects.push(subject);
                candidates.push(candidate.clone());
            }
            Err(objection) if drops => dropped.push(objection),
            Err(objection) => return Err(objection),
        }
    }
    if subjects.is_empty() && !dropped.is_empty() {
        return Err(dropped.swap_remove(0));
    }
    let moving: Vec<Vec<Arc<Pod>>> = subjects.iter().map(|subject| plan.context.moving(subject)).collect();
    let mut renewed = None;
    let outcome = match proposal.method {
        Method::Repair | Method::StaticDrift | Method::Drift | Method::Rebalance => {
            Outcome { lands_on: proposal.lands_on.clone(), new_claims: Vec::new() }
        }
        Method::Emptiness => {
            let all: Vec<_> = moving.iter().flatten().cloned().collect();
            let outcome = match all.is_empty() {
                true => Ok(Outcome::default()),
                false => plan.simulator.ask(&subjects, &all, Destinations::Settled),
            };
            let outcome = outcome.map_err(|reason| about(&subjects, reason))?;
            match outcome.new_claims.len() {
                0 => outcome,
                nodes => return Err(about(&subjects, KeepReason::TooManyReplacements { nodes })),
            }
        }
        Method::MultiNode | Method::SingleNode => {
            let moved = consolidation::find(plan, &Totals::of(plan.context), &subjects);
            let moved = moved.map_err(|reason| about(&subjects, reason))?;
            if !is_covered(proposal.replacements(), &moved.outcome.new_claims) {
                return Err(Objection { kind: ObjectionKind::Scheduling, claim: None });
            }
            renewed = Some((moved.action, moved.savings));
            moved.outcome
        }
    };
    Ok(Standing { chosen: Chosen { subjects, moving, outcome }, candidates, dropped, renewed })
}

/// Whether the node would still be chosen, on top of those before it.
fn still_stands<'c, 'a>(
    plan: &Plan<'c, 'a>,
    tally: &Tally<'a>,
    proposal: &Proposal,
    candidate: &Candidate,
) -> Result<&'c Subject<'a>, Objection> {
    let name = &candidate.claim.name.name;
    let gone = || Objection { kind: ObjectionKind::Churn, claim: None };
    let at = plan.context.index_of(name).ok_or_else(gone)?;
    let subject = &plan.context.subjects[at];
    if subject.claim.meta.uid != candidate.claim.uid || !plan.is_open(at) {
        return Err(gone());
    }
    let view = &plan.context.view;
    let chosen = match proposal.method {
        Method::Repair => {
            gates::first(subject, Class::Repair, view).and_then(|()| plan.check_window(subject, WindowAction::Repair))
        }
        Method::Drift | Method::StaticDrift => drift::filter(plan, subject),
        Method::Rebalance => gates::first(subject, Class::Graceful, view)
            .and_then(|()| plan.check_window(subject, WindowAction::Rebalance)),
        Method::Emptiness => gates::first(subject, Class::Graceful, view)
            .and_then(|()| emptiness::filter(plan, subject))
            .and_then(|()| if subject.is_empty() { Ok(()) } else { Err(KeepReason::NotSettled { until: None }) }),
        Method::MultiNode | Method::SingleNode => {
            gates::first(subject, Class::Graceful, view).and_then(|()| consolidation::filter(plan, subject))
        }
    };
    let object = |kind, reason| Objection { kind, claim: Some((Arc::clone(name), reason)) };
    chosen.map_err(|reason| match reason {
        KeepReason::Window { .. } => object(ObjectionKind::Window, reason),
        reason => object(ObjectionKind::Churn, reason),
    })?;
    let within = match proposal.method {
        Method::Repair if !subject.is_initialized() => Ok(()),
        // Others of the same round may be on their way already: they have what evictions they need.
        Method::Repair | Method::Drift | Method::StaticDrift | Method::Rebalance => {
            plan.check_budget(tally, subject, proposal.reason)
        }
        Method::Emptiness | Method::MultiNode | Method::SingleNode => plan.admits(tally, subject, proposal.reason),
    };
    within.map_err(|reason| object(ObjectionKind::Budget, reason))?;
    Ok(subject)
}

/// Whether all that was to be launched would be launched again: as many nodes, and no type that is out of the question
/// by now.
fn is_covered(planned: &[PlannedClaim], again: &[PlannedClaim]) -> bool {
    let types = |claim: &PlannedClaim| -> BTreeSet<Arc<str>> {
        claim.options.iter().map(|option| Arc::clone(&option.instance_type)).collect()
    };
    planned.len() == again.len()
        && planned.iter().zip(again).all(|(old, new)| old.pool == new.pool && types(old).is_subset(&types(new)))
}

fn about(subjects: &[&Subject<'_>], reason: KeepReason) -> Objection {
    let claim = subjects.first().map(|subject| (Arc::clone(subject.name()), reason));
    Objection { kind: ObjectionKind::Scheduling, claim }
}
