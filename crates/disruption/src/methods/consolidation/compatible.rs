//! The reference's search: a prefix of the ranked nodes, then one node after the other (sheet 03 §8.6, §8.7).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{MAX_NODES, Totals, candidates, find, propose, refused};
use crate::plan::{Plan, Tally};
use crate::subject::Subject;
use crate::{Method, Reason};

/// The longest prefix that can go together, by bisection. Whether there was one.
pub(crate) fn multi(plan: &mut Plan<'_, '_>) -> bool {
    let eligible = candidates(plan);
    plan.count_eligible(Method::MultiNode, eligible.len());
    let mut tally = Tally::default();
    let mut within = Vec::new();
    for (at, subject) in eligible {
        match plan.admits(&tally, subject, Reason::Underutilized) {
            Ok(()) => {
                tally.add(plan, subject);
                within.push(subject);
            }
            Err(reason) => plan.keep(at, reason),
        }
    }
    let totals = Totals::of(plan.context);
    let (mut low, mut high) = (2, within.len().min(MAX_NODES));
    let (mut best, mut refusal) = (None, Vec::new());
    while low <= high {
        let middle = low + (high - low) / 2;
        match find(plan, &totals, &within[..middle]) {
            Ok(moved) => {
                best = Some((middle, moved));
                low = middle + 1;
            }
            Err(reason) => {
                let refused = refused(&within[..middle], &reason);
                refusal = if refused.is_empty() { refusal } else { refused };
                high = middle - 1;
            }
        }
    }
    let Some((length, moved)) = best else {
        plan.refuse_together(refusal);
        return false;
    };
    within.truncate(length);
    propose(plan, within, moved);
    true
}

/// The first node that can go alone, pools taking turns. Whether there was one.
pub(crate) fn single(plan: &mut Plan<'_, '_>) -> bool {
    let eligible = candidates(plan);
    plan.count_eligible(Method::SingleNode, eligible.len());
    let totals = Totals::of(plan.context);
    for (at, subject) in interleaved(eligible) {
        let found = plan.check_one(subject, Reason::Underutilized).and_then(|()| find(plan, &totals, &[subject]));
        match found {
            Ok(moved) => {
                propose(plan, vec![subject], moved);
                return true;
            }
            Err(reason) => plan.keep(at, reason),
        }
    }
    false
}

/// One node of each pool, then the next of each.
fn interleaved<'s, 'a>(ranked: Vec<(usize, &'s Subject<'a>)>) -> Vec<(usize, &'s Subject<'a>)> {
    let mut pools: BTreeMap<Option<&Arc<str>>, VecDeque<(usize, &'s Subject<'a>)>> = BTreeMap::new();
    for (at, subject) in ranked {
        pools.entry(subject.pool_name.as_ref()).or_default().push_back((at, subject));
    }
    let mut turns = Vec::new();
    while !pools.is_empty() {
        turns.extend(pools.values_mut().filter_map(VecDeque::pop_front));
        pools.retain(|_, left| !left.is_empty());
    }
    turns
}
