//! Which pods a ReplicaSet that shrinks should give up first: those of nodes that go anyway (gate
//! `PodDeletionCostManagement`, sheet 08 D11).
//!
//! The node decides; its pods get its number. What a person has written is never touched: the reference overwrites and
//! removes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::budget::Allowance;
use kerf_model::cluster::{Pod, condition_kind as kind};
use kerf_model::duration::NillableDuration;
use kerf_model::taint::Taint;

use crate::budgets::Budgets;
use crate::context::Context;
use crate::gates::{self, Class};
use crate::methods::consolidation::rank;
use crate::subject::Subject;
use crate::{Reason, View};

/// What the pods of one node should cost to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCost {
    pub node: Arc<str>,
    pub pool: Option<Arc<str>>,
    pub cost: Cost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// The node is going: these first.
    Leaving,
    /// It has drifted, and may go next.
    Drifted(i32),
    /// It may go when it is worth it.
    Normal(i32),
    /// It stays: no value.
    None,
}

impl Cost {
    pub const fn value(self) -> Option<i32> {
        match self {
            Self::Leaving => Some(i32::MIN),
            Self::Drifted(value) | Self::Normal(value) => Some(value),
            Self::None => None,
        }
    }
}

/// One answer for every node of ours, in the order in which they should be written.
pub fn deletion_costs(view: &View<'_>) -> Vec<NodeCost> {
    let context = Context::new(view);
    let budgets = Budgets::of(view, &context.subjects);
    let (mut leaving, mut drifted, mut normal, mut staying) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for subject in context.subjects.iter().filter(|subject| subject.node.is_some()) {
        if is_leaving(subject, view) {
            leaving.push(subject);
        } else if !may_go(subject, view) {
            staying.push(subject);
        } else if subject.is(kind::DRIFTED) {
            drifted.push(subject);
        } else {
            normal.push(subject);
        }
    }
    let drifted = within(drifted, Reason::Drifted, &budgets, &mut staying);
    let normal = within(normal, Reason::Underutilized, &budgets, &mut staying);
    staying.sort_by_key(|subject| subject.name().clone());
    let all = i32::try_from(drifted.len() + normal.len()).unwrap_or(i32::MAX);
    let numbers = (1..=all).rev().map(|place| -place);
    let first_normal = drifted.len();
    let ranked = drifted.into_iter().chain(normal).zip(numbers).enumerate().map(|(at, (subject, value))| {
        let cost = if at < first_normal { Cost::Drifted(value) } else { Cost::Normal(value) };
        of(subject, cost)
    });
    let leaving = leaving.into_iter().map(|subject| of(subject, Cost::Leaving));
    leaving.chain(ranked).chain(staying.into_iter().map(|subject| of(subject, Cost::None))).collect()
}

/// Whether its ReplicaSet chooses among its pods by what they cost.
pub fn is_of_replica_set(pod: &Pod) -> bool {
    is_controlled_by(pod, &["ReplicaSet"])
}

fn of(subject: &Subject<'_>, cost: Cost) -> NodeCost {
    let node = subject.node.map_or_else(|| subject.name().clone(), |node| node.name().clone());
    NodeCost { node, pool: subject.pool_name.clone(), cost }
}

fn is_leaving(subject: &Subject<'_>, view: &View<'_>) -> bool {
    let is_fenced = subject.node.is_some_and(|node| node.has_taint(&Taint::disrupted()));
    is_fenced || gates::settled(subject, view).is_some()
}

fn may_go(subject: &Subject<'_>, view: &View<'_>) -> bool {
    let never = subject.pool().is_none_or(|pool| {
        pool.disruption.consolidate_after == NillableDuration::Never || !pool.disruption.consolidation_enabled
    });
    let is_plain = |pod: &&Arc<Pod>| {
        &*pod.meta.name.namespace == "kube-system" || is_controlled_by(pod, &["ReplicaSet", "Job", "DaemonSet"])
    };
    let all_plain = subject.pods.iter().filter(|pod| pod.is_active() && !pod.is_mirror()).all(is_plain);
    !never && all_plain && subject.kind.is_some() && gates::first(subject, Class::Graceful, view).is_ok()
}

fn is_controlled_by(pod: &Pod, kinds: &[&str]) -> bool {
    pod.meta.owners.iter().any(|owner| owner.controller && kinds.contains(&&*owner.kind))
}

/// As many of each pool as its budget would let go, the best first; the rest stays.
fn within<'s, 'a>(
    mut subjects: Vec<&'s Subject<'a>>,
    reason: Reason,
    budgets: &Budgets,
    staying: &mut Vec<&'s Subject<'a>>,
) -> Vec<&'s Subject<'a>> {
    subjects.sort_by(|a, b| rank(a, b));
    let mut taken: BTreeMap<&Arc<str>, u32> = BTreeMap::new();
    let mut chosen = Vec::new();
    for subject in subjects {
        let Some(pool) = &subject.pool_name else { continue };
        let count = taken.entry(pool).or_default();
        let has_room = match budgets.left(pool, reason) {
            Allowance::Unlimited => true,
            Allowance::AtMost(most) => *count < most,
        };
        match has_room {
            true => {
                *count += 1;
                chosen.push(subject);
            }
            false => staying.push(subject),
        }
    }
    chosen
}
