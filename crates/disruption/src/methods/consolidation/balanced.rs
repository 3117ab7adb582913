//! The Balanced policy: a move must save as large a share of its pool's cost as half of the share that it disrupts
//! (sheet 03 §8.10).

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::node_pool::ConsolidationPolicy;
use kerf_model::price::Price;

use super::pool_names;
use crate::context::Context;
use crate::subject::Subject;
use crate::{KeepReason, Method, Proposal, Round, ScoredMove, Verdict};

/// Half of the share; the reference's `k` is 2 and cannot be set.
pub(crate) const THRESHOLD: f64 = 0.5;

/// What the Balanced pools cost and what disrupting all of each would cost.
pub(crate) struct Totals(BTreeMap<Arc<str>, Total>);

#[derive(Default)]
struct Total {
    price: f64,
    disruption: f64,
}

/// What a move means to a Balanced pool.
pub(crate) struct Score {
    pub(crate) pool: Arc<str>,
    pub(crate) value: f64,
    /// Parts of what the pool costs, and of what disrupting all of it would cost.
    pub(crate) saved: f64,
    pub(crate) disrupted: f64,
}

impl Totals {
    pub(crate) fn of(context: &Context<'_>) -> Self {
        let mut pools: BTreeMap<Arc<str>, Total> = BTreeMap::new();
        for subject in context.subjects.iter().filter(|subject| is_balanced(subject)) {
            let Some(pool) = &subject.pool_name else { continue };
            let total = pools.entry(Arc::clone(pool)).or_default();
            total.price += subject.price.map_or(0.0, dollars);
            total.disruption += subject.reschedule_cost;
        }
        Self(pools)
    }

    /// Whether every Balanced pool that nodes are taken from agrees. Deleting a node surely saves, even if nobody knows
    /// how much: then there is nothing to weigh.
    pub(crate) fn approve(
        &self,
        subjects: &[&Subject<'_>],
        savings: Option<Price>,
        deletes: bool,
    ) -> Result<(), KeepReason> {
        let Some(savings) = savings.map(dollars) else {
            return if deletes { Ok(()) } else { Err(KeepReason::UnknownPrice) };
        };
        match self.of_move(subjects, savings).into_iter().find(|score| score.value < THRESHOLD) {
            Some(Score { pool, value, .. }) => Err(KeepReason::BelowScore { pool, score: value, threshold: THRESHOLD }),
            None => Ok(()),
        }
    }

    /// Of every Balanced pool that the proposal takes nodes from, if it is known what it saves.
    pub(crate) fn scores(&self, proposal: &Proposal, context: &Context<'_>) -> Vec<Score> {
        let Some(savings) = proposal.savings.filter(|_| is_weighed(proposal.method)) else { return Vec::new() };
        let subjects: Vec<_> = proposal.claims().filter_map(|claim| context.subject(claim)).collect();
        self.of_move(&subjects, dollars(savings))
    }

    /// With dollars per hour saved by all of them together.
    fn of_move(&self, subjects: &[&Subject<'_>], savings: f64) -> Vec<Score> {
        let price = |subject: &&&Subject<'_>| subject.price.map_or(0.0, dollars);
        let all: f64 = subjects.iter().map(|subject| price(&subject)).sum();
        let mut scores = Vec::new();
        for pool in pool_names(subjects) {
            let Some(total) = self.0.get(pool) else { continue };
            let own = || subjects.iter().filter(|subject| subject.pool_name.as_ref() == Some(pool));
            let share = own().map(|subject| price(&subject)).sum::<f64>() / all;
            let disruption: f64 = own().map(|subject| subject.reschedule_cost).sum();
            let savings = savings * share;
            scores.push(Score {
                pool: Arc::clone(pool),
                value: score(savings, disruption, total),
                saved: part(savings, total.price),
                disrupted: part(disruption, total.disruption),
            });
        }
        scores
    }
}

/// The moves that the round has weighed: all that it proposes (other policies than Balanced approve them unseen), those
/// that kept a node, and if no move of several was found, the last of those that was refused.
pub(crate) fn scored(
    context: &Context<'_>,
    totals: &Totals,
    round: &Round,
    refused_together: Vec<ScoredMove>,
) -> Vec<ScoredMove> {
    let mut moves = Vec::new();
    for proposal in round.proposals.iter().filter(|proposal| is_weighed(proposal.method)) {
        let scores = totals.scores(proposal, context);
        let subjects: Vec<_> = proposal.claims().filter_map(|claim| context.subject(claim)).collect();
        moves.extend(policies(&subjects).into_iter().map(|(pool, policy)| {
            let score = scores.iter().find(|score| score.pool == *pool).map(|score| score.value);
            ScoredMove { pool: Arc::clone(pool), policy, score, approved: true }
        }));
    }
    for verdict in round.verdicts.values() {
        if let Verdict::Keep(KeepReason::BelowScore { pool, score, .. }) = verdict {
            let policy = ConsolidationPolicy::Balanced;
            moves.push(ScoredMove { pool: Arc::clone(pool), policy, score: Some(*score), approved: false });
        }
    }
    if !round.proposals.iter().any(|proposal| proposal.method == Method::MultiNode) {
        moves.extend(refused_together);
    }
    moves
}

/// What a move of these nodes counts as that was found and not approved; nothing if it was not found.
pub(crate) fn refused(subjects: &[&Subject<'_>], reason: &KeepReason) -> Vec<ScoredMove> {
    let KeepReason::BelowScore { pool: refusing, score, .. } = reason else { return Vec::new() };
    let counted = policies(subjects).into_iter().map(|(pool, policy)| {
        let score = (pool == refusing).then_some(*score);
        ScoredMove { pool: Arc::clone(pool), policy, score, approved: false }
    });
    counted.collect()
}

/// Emptiness asks nobody.
fn is_weighed(method: Method) -> bool {
    matches!(method, Method::MultiNode | Method::SingleNode)
}

/// Of the pools that the nodes come from.
fn policies<'s>(subjects: &[&'s Subject<'_>]) -> BTreeMap<&'s Arc<str>, ConsolidationPolicy> {
    let of = |subject: &&'s Subject<'_>| Some((subject.pool_name.as_ref()?, subject.pool()?.disruption.policy));
    subjects.iter().filter_map(of).collect()
}

fn score(savings: f64, disruption: f64, total: &Total) -> f64 {
    if savings <= 0.0 || savings.is_nan() {
        return 0.0;
    }
    if disruption <= 0.0 {
        return f64::INFINITY;
    }
    if total.price <= 0.0 || total.disruption <= 0.0 {
        return 0.0;
    }
    (savings / total.price) / (disruption / total.disruption)
}

fn part(own: f64, all: f64) -> f64 {
    if all > 0.0 { own / all } else { 0.0 }
}

fn is_balanced(subject: &Subject<'_>) -> bool {
    subject.pool().is_some_and(|pool| pool.disruption.policy == ConsolidationPolicy::Balanced)
}

fn dollars(price: Price) -> f64 {
    price.micros() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(savings: f64, disruption: f64, total: (f64, f64), expected: f64) {
        let found = score(savings, disruption, &Total { price: total.0, disruption: total.1 });
        assert!((found - expected).abs() < 0.005, "{savings}/{disruption} of {total:?}: {found}, not {expected}");
        assert_eq!(found >= THRESHOLD, expected >= THRESHOLD);
    }

    /// Sheet 03 case 77.
    #[test]
    fn case_77_a_move_scores_its_share_of_cost_by_its_share_of_disruption() {
        check(7.26, 4.0, (58.08, 90.0), 2.8125);
        check(4.84, 5.0, (58.08, 90.0), 1.5);
        check(2.42, 9.0, (58.08, 90.0), 0.41667);
        let total = Total { price: 58.08, disruption: 90.0 };
        assert!((1.0 / 3.0..1.0).contains(&score(2.42, 9.0, &total)), "with k = 3 it would do, with k = 1 not");
        check(0.0, 11.0, (58.08, 90.0), 0.0);
        check(2.42, 9.0, (48.40, 90.0), 0.5);
        check(4.84, 5.0, (58.08, 117.0), 1.95);
        check(4.84, 32.0, (58.08, 117.0), 0.3047);
    }

    /// Sheet 03 case 78.
    #[test]
    fn case_78_the_score_does_not_depend_on_scale_and_nothing_known_is_nothing_saved() {
        check(72.6, 40.0, (580.8, 900.0), 2.8125);
        check(58.08, 90.0, (58.08, 90.0), 1.0);
        check(f64::NAN, 4.0, (58.08, 90.0), 0.0);
        check(4.84, 5.0, (0.0, 90.0), 0.0);
        assert_eq!(score(1.0, 0.0, &Total { price: 1.0, disruption: 1.0 }), f64::INFINITY);
    }
}
