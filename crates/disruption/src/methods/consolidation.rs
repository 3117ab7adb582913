//! Nodes whose pods fit elsewhere, or on something cheaper (sheet 03 §8.4 to §8.10).
//!
//! [`best`] examines every candidate and finds several moves that do not stand in each other's way; [`compatible`]
//! makes the reference's choices. What one move is, and whether it is worth it, is the same for both: `option.rs`.

mod balanced;
mod best;
mod compatible;
mod option;

use std::cmp::Ordering;
use std::sync::Arc;

use kerf_model::maintenance::Action as WindowAction;
use kerf_model::node_pool::ConsolidationPolicy;
use kerf_model::price::Price;

pub(crate) use balanced::{Score, THRESHOLD, Totals, refused, scored};
pub(crate) use best::{rest, run as best};
pub(crate) use compatible::{multi, single};
pub(crate) use option::{Moved, Simulated, find, simulate, weigh};

use super::emptiness::{is_settled, takes_part};
use crate::plan::{Chosen, Plan};
use crate::proposal::OfProposal;
use crate::subject::Subject;
use crate::{KeepReason, Method};

/// A command does not remove more nodes than this (the reference's number, where it is 101 by mistake).
const MAX_NODES: usize = 100;

/// Nodes that may be consolidated, the best first; budgets are asked later.
pub(crate) fn candidates<'c, 'a>(plan: &mut Plan<'c, 'a>) -> Vec<(usize, &'c Subject<'a>)> {
    let mut eligible = Vec::new();
    for (at, subject) in plan.open().collect::<Vec<_>>() {
        if !plan.is_candidate(at) {
            continue;
        }
        match filter(plan, subject) {
            Ok(()) => eligible.push((at, subject)),
            Err(reason) => plan.keep(at, reason),
        }
    }
    eligible.sort_by(|(_, a), (_, b)| rank(a, b));
    eligible
}

pub(crate) fn filter<'a>(plan: &Plan<'_, 'a>, subject: &Subject<'a>) -> Result<(), KeepReason> {
    let pool = takes_part(subject)?;
    subject.check_known()?;
    if subject.is_empty() {
        // Emptiness has said why it stays; this is for nodes that it could not take.
        return Err(KeepReason::NextRound);
    }
    if pool.disruption.policy == ConsolidationPolicy::WhenEmpty {
        return Err(KeepReason::OnlyWhenEmpty { pool: pool.name.clone() });
    }
    is_settled(subject)?;
    plan.check_window(subject, WindowAction::NonEmptyConsolidation)
}

/// What saves most for what it disrupts comes first; of equals that with fewer pods, then less life left, then the name.
pub(crate) fn rank(a: &Subject<'_>, b: &Subject<'_>) -> Ordering {
    let by_ratio = b.savings_ratio.total_cmp(&a.savings_ratio);
    by_ratio
        .then_with(|| a.pods.len().cmp(&b.pods.len()))
        .then_with(|| a.lifetime_left.total_cmp(&b.lifetime_left))
        .then_with(|| a.name().cmp(b.name()))
}

/// `None` if one of them has no known price.
pub(crate) fn price_of(subjects: &[&Subject<'_>]) -> Option<Price> {
    subjects.iter().try_fold(Price::ZERO, |sum, subject| sum.checked_add(subject.price?))
}

/// Whatever is known of it: what a deletion saves at least.
pub(crate) fn saved_by_deleting(subjects: &[&Subject<'_>]) -> Option<Price> {
    subjects.iter().filter_map(|subject| subject.price).try_fold(Price::ZERO, Price::checked_add)
}

/// Takes the move into the plan.
pub(crate) fn propose<'a>(plan: &mut Plan<'_, 'a>, subjects: Vec<&Subject<'a>>, moved: Moved) {
    let Moved { action, outcome, savings, moving } = moved;
    let method = if subjects.len() == 1 { Method::SingleNode } else { Method::MultiNode };
    let of = OfProposal { savings, ..OfProposal::new(method, action) };
    plan.propose(Chosen { subjects, moving, outcome }, of);
}

fn pool_names<'s>(subjects: &[&'s Subject<'_>]) -> Vec<&'s Arc<str>> {
    let mut names: Vec<_> = subjects.iter().filter_map(|subject| subject.pool_name.as_ref()).collect();
    names.sort_unstable();
    names.dedup();
    names
}
