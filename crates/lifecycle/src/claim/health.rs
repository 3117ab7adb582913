//! The old repair (`--legacy-node-repair`; sheet 04 §5, sheet 08 L6; upstream: `node.health`): a node that is sick for too
//! long goes at once, whatever runs on it. Budgets, `do-not-disrupt`, `do-not-repair` and grace periods are not asked.
//! The way that asks them is `kerf-disruption`'s.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::budget::BudgetNodes;
use kerf_model::cloud::{RepairAction, RepairPolicy};
use kerf_model::cluster::{Node, NodeClaim, NodeCondition};
use kerf_model::label;
use kerf_model::time::later;
use regex::Regex;

use super::ClaimDraft;
use super::disruption::{tighten_deadline, written_deadline};
use crate::events;
use crate::steps::{Cause, Steps};
use crate::view::View;

/// More than this share of a pool's nodes sick at once is not the nodes' fault.
const BREAKER: BudgetNodes = BudgetNodes::Percent(20);
/// While too many are sick, this often is looked whether they still are.
const BLOCKED_FOR: SignedDuration = SignedDuration::from_mins(5);

/// The provider's policies that replace nodes; those that reboot are not for the old repair.
#[derive(Debug, Clone, Default)]
pub struct LegacyRepair(Vec<(RepairPolicy, Option<Regex>)>);

/// How a claim's node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    Well,
    /// Sick, and not for long enough.
    Tolerated {
        condition: Arc<str>,
        until: Timestamp,
    },
    /// Sick for too long, like too many others.
    Blocked(TooManySick),
    /// Sick for too long: it goes.
    Due {
        condition: Arc<str>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooManySick {
    /// `None` for claims without a pool, where all nodes of the cluster count.
    pub pool: Option<Arc<str>>,
    pub sick: u32,
    pub nodes: u32,
    pub allowed: u32,
}

impl LegacyRepair {
    /// A pattern that means nothing matches nothing: who checks policies says so at the start.
    pub fn new(policies: &[RepairPolicy]) -> Self {
        let replacing = policies.iter().filter(|policy| policy.action == RepairAction::ReplaceNode);
        let compiled = replacing.filter_map(|policy| match &policy.reason {
            None => Some((policy.clone(), None)),
            Some(pattern) => Some((policy.clone(), Some(Regex::new(pattern).ok()?))),
        });
        Self(compiled.collect())
    }

    fn about<'a>(&'a self, condition: &'a NodeCondition) -> impl Iterator<Item = &'a RepairPolicy> {
        let matching = self.0.iter().filter(move |(policy, pattern)| {
            policy.condition == condition.kind
                && policy.status == condition.status
                && pattern.as_ref().is_none_or(|pattern| pattern.is_match(&condition.reason))
        });
        matching.map(|(policy, _)| policy)
    }

    fn is_sick(&self, node: &Node) -> bool {
        node.conditions.iter().any(|condition| self.about(condition).next().is_some())
    }

    /// When the first policy has had enough, and of which condition.
    fn first_due(&self, node: &Node) -> Option<(Timestamp, Arc<str>)> {
        let ends = node.conditions.iter().flat_map(|condition| {
            self.about(condition).map(|policy| (later(condition.since, policy.toleration), condition.kind.clone()))
        });
        ends.min()
    }
}

pub fn judge(claim: &NodeClaim, view: View<'_>) -> Health {
    let Some(policies) = &view.settings.legacy_repair else { return Health::Well };
    let due = view.snapshot.nodes_of(claim).filter_map(|node| policies.first_due(node)).min();
    let Some((until, condition)) = due else { return Health::Well };
    if view.now < until {
        return Health::Tolerated { condition, until };
    }
    let pool = claim.meta.labels.get(label::NODEPOOL);
    let (mut sick, mut nodes) = (0, 0);
    for node in view.snapshot.nodes().filter(|node| pool.is_none() || node.meta.labels.get(label::NODEPOOL) == pool) {
        nodes += 1;
        sick += u32::from(policies.is_sick(node));
    }
    let allowed = BREAKER.of(nodes);
    match sick > allowed {
        true => Health::Blocked(TooManySick { pool: pool.cloned(), sick, nodes, allowed }),
        false => Health::Due { condition },
    }
}

/// Why the claim goes now. Its deadline stands on it before: the drain that begins with the deletion asks nobody.
pub(super) fn cause(claim: &NodeClaim, view: View<'_>) -> Option<Cause> {
    match judge(claim, view) {
        Health::Due { condition } => is_over(claim, view).then_some(Cause::Unhealthy { condition }),
        Health::Well | Health::Tolerated { .. } | Health::Blocked(_) => None,
    }
}

pub(super) fn step(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Steps {
    match judge(draft.claim, view) {
        Health::Well => Steps::default(),
        Health::Tolerated { until, .. } => Steps::waiting_until(until),
        Health::Blocked(why) => Steps {
            effects: events::repair_blocked(draft.claim, &why, view.snapshot),
            wake: Some(later(view.now, BLOCKED_FOR)),
            ..Steps::default()
        },
        Health::Due { .. } => {
            tighten_deadline(draft, view.now);
            Steps::default()
        }
    }
}

fn is_over(claim: &NodeClaim, view: View<'_>) -> bool {
    written_deadline(claim).is_some_and(|deadline| deadline <= view.now)
}

impl fmt::Display for TooManySick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, sick, nodes, allowed } = self;
        let of = pool.as_ref().map_or("the cluster".to_owned(), |pool| format!("pool {pool}"));
        write!(f, "{sick} of {nodes} nodes of {of} are sick, and more than {allowed} are not repaired")
    }
}
