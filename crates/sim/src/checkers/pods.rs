//! Which pods the autoscaler takes, and whether it may.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::ObjectName;
use kerf_model::duration::GoDuration;
use kerf_model::effect::Effect;
use kerf_model::label::annotation;

use super::Broken;
use crate::autoscaler::Act;
use crate::store::query::selector;
use crate::store::{ChangeKind, Event, Kind, Object, Store};

const DEFAULT_GRACE_SECS: i64 = 30;

#[derive(Default)]
pub(super) struct PodWatch {
    seen: u64,
    going: BTreeSet<String>,
    /// The version since which each pod is protected, by uid.
    protected_since: BTreeMap<String, u64>,
    /// Pods whose deletion cost is somebody else's, by uid.
    foreign_costs: BTreeSet<String>,
    budgets: Vec<Object>,
    budgets_seen: u64,
}

impl PodWatch {
    /// What others did, and what the budgets allow now.
    pub fn before(&mut self, store: &Store) {
        for event in self.news(store) {
            self.note(&event);
        }
        let budget_news = store.events_after(Kind::PodDisruptionBudget, self.budgets_seen);
        if budget_news.map_or(true, |events| !events.is_empty()) {
            self.budgets_seen = store.version();
            self.budgets = store.all(Kind::PodDisruptionBudget).cloned().collect();
        }
    }

    /// What the autoscaler did.
    pub fn after(&mut self, store: &Store, acts: &[Act]) -> Vec<Broken> {
        let mut taken = Vec::new();
        let mut broken = Vec::new();
        for event in self.news(store) {
            let pod = &event.object;
            let is_going = event.change == ChangeKind::Deleted || pod.is_deleting();
            if is_going && !self.going.contains(pod.uid()) && !is_over(pod) {
                let act = acts.iter().find(|act| is_about(act, pod.uid()));
                if !act.is_some_and(|act| is_at_deadline(pod, store, act.decided)) {
                    // A protection that nobody had heard of when the pod was chosen protects from the next choice.
                    let since =
                        self.protected_since.get(pod.uid()).filter(|_| is_protected(pod, act.map(|act| act.decided)));
                    if since.is_some_and(|since| act.is_none_or(|act| *since <= act.heard(Kind::Pod))) {
                        broken.push(Broken::ProtectedPodTaken { pod: pod.name.to_string() });
                    }
                    taken.push(pod.clone());
                }
            }
            let is_written =
                |act: &Act| matches!(&act.effect, Effect::PatchPod(target, _) if *target.uid == *pod.uid());
            if self.foreign_costs.contains(pod.uid()) && !has_foreign_cost(pod) && acts.iter().any(is_written) {
                broken.push(Broken::ForeignCostOverwritten { pod: pod.name.to_string() });
            }
            self.note(&event);
        }
        for budget in &self.budgets {
            let Some(covers) = selector(budget.at(&["spec", "selector"])) else { continue };
            let of_budget = |pod: &&Object| {
                pod.name.namespace == budget.name.namespace
                    && covers.matches(&pod.labels())
                    // A pod that does not serve takes nothing away.
                    && pod.is_condition_true("Ready")
            };
            let taken = taken.iter().filter(of_budget).count();
            let allowed = budget.number(&["status", "disruptionsAllowed"]).unwrap_or(0);
            if i64::try_from(taken).unwrap_or(i64::MAX) > allowed {
                broken.push(Broken::BudgetExceeded { budget: budget.name.to_string(), taken, allowed });
            }
        }
        broken
    }

    fn news(&mut self, store: &Store) -> Vec<Event> {
        let events = store.events_after(Kind::Pod, self.seen).map(<[Event]>::to_vec).unwrap_or_default();
        self.seen = store.version();
        events
    }

    fn note(&mut self, event: &Event) {
        let uid = event.object.uid().to_owned();
        match has_foreign_cost(&event.object) && event.change != ChangeKind::Deleted {
            true => self.foreign_costs.insert(uid.clone()),
            false => self.foreign_costs.remove(&uid),
        };
        if event.change == ChangeKind::Deleted || event.object.is_deleting() {
            self.protected_since.remove(&uid);
            self.going.insert(uid);
        } else if is_protected(&event.object, None) {
            self.protected_since.entry(uid).or_insert(event.version);
        } else {
            self.protected_since.remove(&uid);
        }
    }
}

fn is_about(act: &Act, pod_uid: &str) -> bool {
    let (Effect::EvictPod(pod, _) | Effect::DeletePod(pod, ..)) = &act.effect else { return false };
    *pod.uid == *pod_uid
}

/// For ever, or for a while from its start; without a time, whether it ever is.
fn is_protected(pod: &Object, at: Option<Timestamp>) -> bool {
    let text = pod.text(&["metadata", "annotations", annotation::DO_NOT_DISRUPT]);
    let Some(text) = text.filter(|text| *text != "true") else { return text.is_some() };
    let duration = text.parse::<GoDuration>().ok().filter(|duration| *duration > GoDuration::ZERO);
    let end = pod.time(&["status", "startTime"]).zip(duration);
    let end = end.map(|(start, duration)| start + SignedDuration::from(duration));
    duration.is_some() && end.zip(at).is_none_or(|(end, at)| at < end)
}

/// A deletion cost that is not a copy of what we wrote.
fn has_foreign_cost(pod: &Object) -> bool {
    let text = |key: &str| pod.text(&["metadata", "annotations", key]);
    let cost = text(annotation::POD_DELETION_COST);
    cost.is_some() && cost != text(annotation::OUR_COST)
}

fn is_over(pod: &Object) -> bool {
    matches!(pod.text(&["status", "phase"]), Some("Succeeded" | "Failed"))
}

/// Whether the pod's node must be gone before the pod could end by itself.
fn is_at_deadline(pod: &Object, store: &Store, now: Timestamp) -> bool {
    let Some(node) = pod.text(&["spec", "nodeName"]) else { return false };
    let id =
        store.get(Kind::Node, &ObjectName::of_cluster(node)).ok().and_then(|node| node.text(&["spec", "providerID"]));
    let grace = pod.number(&["spec", "terminationGracePeriodSeconds"]).unwrap_or(DEFAULT_GRACE_SECS);
    let claims = store.all(Kind::NodeClaim).filter(|claim| {
        claim.text(&["status", "nodeName"]) == Some(node)
            || (id.is_some() && claim.text(&["status", "providerID"]) == id)
    });
    let mut deadlines = claims.filter_map(deadline);
    deadlines.any(|deadline| now + SignedDuration::from_secs(grace) >= deadline)
}

/// By when a claim is to be gone. What its owner gave it counts from its deletion, written on it or not.
fn deadline(claim: &Object) -> Option<Timestamp> {
    let written = claim.time(&["metadata", "annotations", annotation::TERMINATION_TIMESTAMP]);
    let period = claim.text(&["spec", "terminationGracePeriod"]).and_then(|text| text.parse::<GoDuration>().ok());
    let given = claim.time(&["metadata", "deletionTimestamp"]).zip(period);
    written.or_else(|| given.map(|(deleted, period)| deleted + SignedDuration::from(period)))
}
