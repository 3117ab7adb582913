//! What a provider's repair policies say about a node (sheet 08 D4).

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::cloud::{RepairAction, RepairPolicy};
use kerf_model::cluster::{ConditionStatus, Node, NodeCondition};
use regex::Regex;
use thiserror::Error;

/// A set of policies that was checked.
#[derive(Debug)]
pub struct Policies {
    /// One of them has no pattern: it stands in for every condition of the set whose reason no other knows.
    compiled: Vec<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    policy: RepairPolicy,
    /// `None` for the fallback.
    pattern: Option<Regex>,
    rank: u32,
}

/// Why a set of policies cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidPolicies {
    #[error("a repair policy names no condition")]
    NoCondition,
    #[error("the repair policy for {condition} has a negative duration")]
    Negative { condition: Arc<str> },
    #[error("the priority of the repair policy for {condition} is {priority}, more than 100")]
    Priority { condition: Arc<str>, priority: u8 },
    #[error("the reason pattern {pattern:?} of the repair policy for {condition} means nothing")]
    Pattern { condition: Arc<str>, pattern: Arc<str> },
    #[error("{count} repair policies have no reason pattern, there must be exactly one")]
    Fallbacks { count: usize },
    #[error("the repair policy without reason pattern must replace nodes")]
    FallbackReboots,
}

/// What is wrong with a node, and what to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Diagnosis {
    pub(crate) action: RepairAction,
    /// The condition that names the cause.
    pub(crate) condition: Arc<str>,
    pub(crate) reason: Arc<str>,
    pub(crate) grace: Option<SignedDuration>,
    /// The more urgent, the higher.
    pub(crate) score: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Finding {
    Healthy,
    Tolerated { condition: Arc<str>, until: Timestamp },
    Sick(Diagnosis),
}

/// Waiting half an hour longer weighs as much as one rank of priority.
const MINUTES_PER_RANK: f64 = 30.0;

impl Policies {
    /// # Errors
    /// The first thing that is wrong with them. With the gate `NodeRepair` nothing may start then.
    pub fn new(policies: &[RepairPolicy]) -> Result<Self, InvalidPolicies> {
        for policy in policies {
            let condition = Arc::clone(&policy.condition);
            if condition.is_empty() {
                return Err(InvalidPolicies::NoCondition);
            }
            if policy.toleration.is_negative()
                || policy.termination_grace_period.is_some_and(|grace| grace.is_negative())
            {
                return Err(InvalidPolicies::Negative { condition });
            }
            if policy.priority > 100 {
                return Err(InvalidPolicies::Priority { condition, priority: policy.priority });
            }
        }
        let fallbacks: Vec<_> = policies.iter().filter(|policy| policy.reason.is_none()).collect();
        let [fallback] = fallbacks[..] else { return Err(InvalidPolicies::Fallbacks { count: fallbacks.len() }) };
        if fallback.action != RepairAction::ReplaceNode {
            return Err(InvalidPolicies::FallbackReboots);
        }
        let priorities: BTreeSet<u8> = policies.iter().map(|policy| policy.priority).collect();
        let rank = |priority: u8| u32::try_from(priorities.range(..priority).count()).unwrap_or(u32::MAX);
        let mut compiled = Vec::new();
        for policy in policies {
            let pattern = policy.reason.as_ref().map(|pattern| {
                let (condition, pattern) = (Arc::clone(&policy.condition), Arc::clone(pattern));
                Regex::new(&pattern).map_err(|_| InvalidPolicies::Pattern { condition, pattern })
            });
            compiled.push(Compiled {
                policy: policy.clone(),
                pattern: pattern.transpose()?,
                rank: rank(policy.priority),
            });
        }
        Ok(Self { compiled })
    }

    /// Whether any condition of the node is one that a policy is about, however long.
    pub(crate) fn is_sick(&self, node: &Node) -> bool {
        node.conditions.iter().any(|condition| self.is_about(condition))
    }

    fn is_about(&self, condition: &NodeCondition) -> bool {
        self.compiled.iter().any(|own| is_of(&own.policy, &condition.kind, condition.status))
    }

    /// `rebooted` is when the last reboot ended: the toleration starts anew.
    pub(crate) fn diagnose(&self, node: &Node, rebooted: Option<Timestamp>, now: Timestamp) -> Finding {
        let mut verdict: Option<Merged> = None;
        let mut waiting: Option<(Timestamp, Arc<str>)> = None;
        for condition in node.conditions.iter().filter(|condition| self.is_about(condition)) {
            for own in self.matching(condition) {
                let start = condition.since.max(node.meta.created).max(rebooted.unwrap_or(Timestamp::MIN));
                let eligible = start.checked_add(own.policy.toleration).unwrap_or(Timestamp::MAX);
                if now < eligible {
                    let next = (eligible, Arc::clone(&condition.kind));
                    waiting = Some(waiting.map_or(next.clone(), |known| known.min(next)));
                    continue;
                }
                let finding = Merged::of(own, condition, eligible, now);
                verdict = Some(match verdict {
                    Some(known) => known.merge(finding),
                    None => finding,
                });
            }
        }
        match (verdict, waiting) {
            (Some(found), _) => Finding::Sick(found.diagnosis),
            (None, Some((until, condition))) => Finding::Tolerated { condition, until },
            (None, None) => Finding::Healthy,
        }
    }

    /// All policies whose pattern is found in the reason; if there is none, the fallback.
    fn matching(&self, condition: &NodeCondition) -> Vec<&Compiled> {
        let named = self.compiled.iter().filter(|own| {
            let is_found = own.pattern.as_ref().is_some_and(|pattern| pattern.is_match(&condition.reason));
            is_found && is_of(&own.policy, &condition.kind, condition.status)
        });
        let named: Vec<_> = named.collect();
        match named.is_empty() {
            true => self.compiled.iter().filter(|own| own.pattern.is_none()).collect(),
            false => named,
        }
    }
}

struct Merged {
    diagnosis: Diagnosis,
    source: (u8, Timestamp),
}

impl Merged {
    fn of(own: &Compiled, condition: &NodeCondition, eligible: Timestamp, now: Timestamp) -> Self {
        let minutes = now.duration_since(eligible).as_secs_f64() / 60.0;
        let diagnosis = Diagnosis {
            action: own.policy.action,
            condition: Arc::clone(&condition.kind),
            reason: Arc::clone(&condition.reason),
            grace: own.policy.termination_grace_period,
            score: f64::from(own.rank) + minutes / MINUTES_PER_RANK,
        };
        Self { diagnosis, source: (own.policy.priority, eligible) }
    }

    /// Replacing wins over rebooting and then names the cause; among equals the higher priority, the earlier, the name.
    fn merge(self, other: Self) -> Self {
        let key = |one: &Self| {
            let replaces = one.diagnosis.action == RepairAction::ReplaceNode;
            (!replaces, std::cmp::Reverse(one.source.0), one.source.1, Arc::clone(&one.diagnosis.condition))
        };
        let (mut first, second) = if key(&self) <= key(&other) { (self, other) } else { (other, self) };
        let graces = [first.diagnosis.grace, second.diagnosis.grace];
        first.diagnosis.grace = graces.into_iter().flatten().min();
        first.diagnosis.score = first.diagnosis.score.max(second.diagnosis.score);
        first
    }
}

fn is_of(policy: &RepairPolicy, kind: &str, status: ConditionStatus) -> bool {
    &*policy.condition == kind && policy.status == status
}
