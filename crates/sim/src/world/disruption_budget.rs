//! The controller that says how many pods of a PodDisruptionBudget may go.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::ObjectName;
use serde_json::{Map, Value, json};

use super::condition::{Condition, Truth, change_status, set_condition};
use super::workload::scaled;
use super::{Actor, Alarms, Watch};
use crate::store::object::field;
use crate::store::query::selector;
use crate::store::{ApiError, Kind, Object, Store};

/// How long an eviction that did not delete its pod counts against the budget (`DeletionTimeout`).
const EVICTION_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);

pub struct DisruptionBudgets {
    budgets: Watch,
    pods: Watch,
    owners: [Watch; 3],
    timeouts: Alarms<ObjectName>,
}

impl DisruptionBudgets {
    pub fn new() -> Self {
        Self {
            budgets: Watch::new(Kind::PodDisruptionBudget),
            pods: Watch::new(Kind::Pod),
            owners: [Kind::Deployment, Kind::ReplicaSet, Kind::StatefulSet].map(Watch::new),
            timeouts: Alarms::new(),
        }
    }

    fn compute(&mut self, store: &mut Store, name: &ObjectName, now: Timestamp) -> Result<(), ApiError> {
        let Ok(budget) = store.get(Kind::PodDisruptionBudget, name).cloned() else { return Ok(()) };
        let Some(selector) = selector(budget.at(&["spec", "selector"])) else { return Ok(()) };
        let is_over = |pod: &Object| matches!(pod.text(&["status", "phase"]), Some("Succeeded" | "Failed"));
        let pods: Vec<_> = store
            .in_namespace(Kind::Pod, &name.namespace)
            .filter(|pod| selector.matches(&pod.labels()) && !is_over(pod))
            .cloned()
            .collect();
        let evicted = self.still_leaving(&budget, &pods, now);
        let (expected, needed) = expectations(store, &budget, &pods);
        let counts = |pod: &&Object| {
            pod.is_condition_true("Ready") && !pod.is_deleting() && !evicted.contains_key(&*pod.name.name)
        };
        let healthy = i64::try_from(pods.iter().filter(counts).count()).unwrap_or(i64::MAX);
        let allowed = if expected > 0 { (healthy - needed).max(0) } else { 0 };
        change_status(store, Kind::PodDisruptionBudget, name, |status| {
            for (name, number) in [
                ("currentHealthy", healthy),
                ("desiredHealthy", needed),
                ("expectedPods", expected),
                ("disruptionsAllowed", allowed),
                ("observedGeneration", budget.generation()),
            ] {
                *field(status, name) = json!(number);
            }
            *field(status, "disruptedPods") = if evicted.is_empty() { Value::Null } else { Value::Object(evicted) };
            let (is_true, reason) = match allowed > 0 {
                true => (Truth::True, "SufficientPods"),
                false => (Truth::False, "InsufficientPods"),
            };
            set_condition(status, &Condition { type_: "DisruptionAllowed", is_true, reason, message: "" }, now);
        })
    }

    /// The evictions that are under way, without those that the pods show by now or that came to nothing.
    fn still_leaving(&mut self, budget: &Object, pods: &[Object], now: Timestamp) -> Map<String, Value> {
        let mut left = Map::new();
        let mut first: Option<Timestamp> = None;
        for (pod, since) in budget.at(&["status", "disruptedPods"]).and_then(Value::as_object).into_iter().flatten() {
            let is_there = pods.iter().any(|known| *known.name.name == **pod && !known.is_deleting());
            let Some(end) = since.as_str().and_then(|text| text.parse::<Timestamp>().ok()) else { continue };
            let end = end + EVICTION_TIMEOUT;
            if is_there && end > now {
                left.insert(pod.clone(), since.clone());
                first = Some(first.map_or(end, |first| first.min(end)));
            }
        }
        match first {
            Some(first) => self.timeouts.set(budget.name.clone(), first),
            None => self.timeouts.clear(&budget.name),
        }
        left
    }
}

impl Actor for DisruptionBudgets {
    fn name(&self) -> &'static str {
        "disruption budgets"
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        let mut names: BTreeSet<_> = self.budgets.touched(store).into_iter().map(|budget| budget.name).collect();
        let mut namespaces: BTreeSet<_> = self.pods.touched(store).into_iter().map(|pod| pod.name.namespace).collect();
        for owners in &mut self.owners {
            namespaces.extend(owners.touched(store).into_iter().map(|owner| owner.name.namespace));
        }
        for namespace in namespaces {
            names.extend(store.in_namespace(Kind::PodDisruptionBudget, &namespace).map(|budget| budget.name.clone()));
        }
        names.extend(self.timeouts.ring(now));
        for name in names {
            self.compute(store, &name, now)?;
        }
        Ok(())
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.timeouts.next()
    }
}

/// How many pods there should be, and how many of them healthy.
fn expectations(store: &Store, budget: &Object, pods: &[Object]) -> (i64, i64) {
    let present = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    if let Some(most) = budget.at(&["spec", "maxUnavailable"]) {
        let expected = scale_of_owners(store, pods);
        return (expected, (expected - scaled(Some(most), expected, true).unwrap_or(0)).max(0));
    }
    match budget.at(&["spec", "minAvailable"]) {
        Some(Value::Number(least)) => (present, least.as_i64().unwrap_or(0)),
        Some(share) => {
            let expected = scale_of_owners(store, pods);
            (expected, scaled(Some(share), expected, true).unwrap_or(0))
        }
        None => (present, 1),
    }
}

/// The replicas that the pods' owners want, each owner once. Pods without a scale do not count.
fn scale_of_owners(store: &Store, pods: &[Object]) -> i64 {
    let mut owners = BTreeSet::new();
    for pod in pods {
        let Some(owner) = controller(store, pod) else { continue };
        // A Deployment's say counts over that of its ReplicaSets.
        let top = if owner.kind == Kind::ReplicaSet { controller(store, owner).unwrap_or(owner) } else { owner };
        owners.insert((top.kind, top.name.clone()));
    }
    let found = owners.iter().filter_map(|(kind, name)| store.get(*kind, name).ok());
    found.filter_map(|owner| owner.number(&["spec", "replicas"])).sum()
}

fn controller<'s>(store: &'s Store, object: &Object) -> Option<&'s Object> {
    let owner = object.controller()?;
    let kind = Kind::find(owner.api_version, owner.kind)?;
    let found = store.get(kind, &ObjectName::new(object.name.namespace.clone(), owner.name)).ok()?;
    (found.uid() == owner.uid).then_some(found)
}
