//! What a look at the cluster came to.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::budget::Allowance;
use kerf_model::effect::Event;
use kerf_model::node_pool::ConsolidationPolicy;

use crate::{Method, Proposal, Reason, Verdict};

#[derive(Debug, Clone, Default)]
pub struct Round {
    /// By claim name: exactly one for every claim of ours.
    pub verdicts: BTreeMap<Arc<str>, Verdict>,
    /// Disjoint: no two remove the same node, and together they break no budget and count on no room twice. In the order
    /// in which they should be started.
    pub proposals: Vec<Proposal>,
    /// What people should be told on the objects; equal ones are sent once per their interval.
    pub events: Vec<Event>,
    /// By pool and reason, for gauges.
    pub budgets: BTreeMap<(Arc<str>, Reason), BudgetUse>,
    /// How many nodes each method could have chosen, before budgets and what-ifs.
    pub eligible: BTreeMap<Method, u32>,
    /// When something that was held back by time becomes possible.
    pub wake: Option<Timestamp>,
    pub work: Work,
    /// Consolidations of one or several nodes that were weighed, by pool and in order.
    pub scored: Vec<ScoredMove>,
}

/// What a pool that nodes are taken from says to the move.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredMove {
    pub pool: Arc<str>,
    pub policy: ConsolidationPolicy,
    /// If the policy is Balanced, and it is known what the move saves.
    pub score: Option<f64>,
    pub approved: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetUse {
    /// Nodes that count.
    pub nodes: u32,
    pub allowed: Allowance,
    /// Nodes that are disrupted or broken already.
    pub consuming: u32,
}

/// How much was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    pub candidates: u32,
    /// What-ifs that were simulated.
    pub what_ifs: u32,
    /// What-ifs that were settled without simulating.
    pub pruned: u32,
    /// Moves that Balanced scoring approved and refused.
    pub approved: u32,
    pub rejected: u32,
}

impl Round {
    /// Whether sick nodes are looked for.
    pub fn repairs(&self) -> bool {
        self.eligible.contains_key(&Method::Repair)
    }

    /// How many nodes could have been chosen for each reason, before budgets and what-ifs.
    pub fn eligible_by_reason(&self) -> BTreeMap<Reason, u32> {
        let mut reasons: BTreeMap<Reason, u32> = Reason::ALL.into_iter().map(|reason| (reason, 0)).collect();
        for (method, count) in &self.eligible {
            let known = reasons.entry(method.reason()).or_default();
            *known = match method {
                // The same nodes, alone and with others.
                Method::MultiNode | Method::SingleNode => (*known).max(*count),
                Method::Repair | Method::Emptiness | Method::StaticDrift | Method::Drift | Method::Rebalance => {
                    *known + count
                }
            };
        }
        reasons
    }
}

impl BudgetUse {
    /// What is left.
    pub fn remaining(&self) -> Allowance {
        self.allowed.minus(self.consuming)
    }
}
