//! kube-controller-manager's care for nodes: taints by condition, evictions by `NoExecute` taints, pods of nodes that are gone.

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::ObjectName;
use kerf_model::taint::Effect;
use serde_json::{Value, json};

use super::condition::{Condition, Truth, change_status, set_condition};
use super::{Actor, Alarms, Watch, annotation, pod_reading};
use crate::store::object::field;
use crate::store::{ApiError, DeleteOptions, Kind, Object, Part, Store};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// How long a node may be silent (`--node-monitor-grace-period`).
const MONITOR_GRACE: SignedDuration = SignedDuration::from_secs(50);
/// How long pods of a missing node are left alone, in case it comes back (podgc's quarantine).
const QUARANTINE: SignedDuration = SignedDuration::from_secs(40);

pub struct NodeLifecycle {
    nodes: Watch,
    pods: Watch,
    silent: Alarms<ObjectName>,
    /// Nodes that are gone, with pods left on them.
    missing: Alarms<ObjectName>,
    /// Pods that do not tolerate a taint of their node, or not for long.
    unwelcome: Alarms<ObjectName>,
}

impl NodeLifecycle {
    pub fn new() -> Self {
        Self {
            nodes: Watch::new(Kind::Node),
            pods: Watch::new(Kind::Pod),
            silent: Alarms::new(),
            missing: Alarms::new(),
            unwelcome: Alarms::new(),
        }
    }

    fn see_node(&mut self, store: &mut Store, name: &ObjectName, now: Timestamp) -> Result<(), ApiError> {
        let pods: Vec<_> = store.pods_on(&name.name).map(|pod| pod.name.clone()).collect();
        let Ok(node) = store.get(Kind::Node, name).cloned() else {
            self.silent.clear(name);
            if !pods.is_empty() {
                self.missing.set_if_absent(name, now + QUARANTINE);
            }
            return Ok(());
        };
        self.missing.clear(name);
        if annotation::is_lost(&node) && node.condition("Ready") != Some("Unknown") {
            self.silent.set_if_absent(name, now + MONITOR_GRACE);
        }
        write_taints(store, &node)?;
        for pod in pods {
            self.see_pod(store, &pod, now);
        }
        Ok(())
    }

    /// Finds out how long the taints of its node let the pod stay.
    fn see_pod(&mut self, store: &Store, name: &ObjectName, now: Timestamp) {
        let patience = store.get(Kind::Pod, name).ok().filter(|pod| !pod.is_deleting()).and_then(|pod| {
            let node = pod.text(&["spec", "nodeName"]).filter(|node| !node.is_empty())?;
            let Ok(node) = store.get(Kind::Node, &ObjectName::of_cluster(node)) else {
                self.missing.set_if_absent(&ObjectName::of_cluster(node), now + QUARANTINE);
                return None;
            };
            patience(node, pod)
        });
        match patience {
            Some(patience) => self.unwelcome.set_if_absent(name, now + patience),
            None => self.unwelcome.clear(name),
        }
    }

    fn call_lost(store: &mut Store, name: &ObjectName, now: Timestamp) -> Result<(), ApiError> {
        if store.get(Kind::Node, name).is_err() {
            return Ok(());
        }
        let unknown = Condition {
            type_: "Ready",
            is_true: Truth::Unknown,
            reason: "NodeStatusUnknown",
            message: "Kubelet stopped posting node status.",
        };
        change_status(store, Kind::Node, name, |status| set_condition(status, &unknown, now))
    }

    fn collect_pods_of(store: &mut Store, node: &ObjectName, now: Timestamp) -> Result<(), ApiError> {
        let pods: Vec<_> = store.pods_on(&node.name).map(|pod| pod.name.clone()).collect();
        for pod in pods {
            store.delete(Kind::Pod, &pod, &DeleteOptions::with_grace(0), now)?;
        }
        Ok(())
    }
}

impl Actor for NodeLifecycle {
    fn name(&self) -> &'static str {
        "node lifecycle"
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        for node in self.nodes.touched(store) {
            self.see_node(store, &node.name, now)?;
        }
        for pod in self.pods.touched(store) {
            self.see_pod(store, &pod.name, now);
        }
        for node in self.silent.ring(now) {
            Self::call_lost(store, &node, now)?;
        }
        for node in self.missing.ring(now) {
            Self::collect_pods_of(store, &node, now)?;
        }
        for pod in self.unwelcome.ring(now) {
            if store.get(Kind::Pod, &pod).is_ok() {
                store.delete(Kind::Pod, &pod, &DeleteOptions::default(), now)?;
            }
        }
        Ok(())
    }

    fn next_due(&self) -> Option<Timestamp> {
        [self.silent.next(), self.missing.next(), self.unwelcome.next()].into_iter().flatten().min()
    }
}

/// Brings the taints that this controller owns in line with the node's conditions.
fn write_taints(store: &mut Store, node: &Object) -> Result<(), ApiError> {
    let is_cordoned = node.at(&["spec", "unschedulable"]) == Some(&Value::Bool(true));
    let (is_silent, is_ready) = match node.condition("Ready") {
        Some("True") => (false, true),
        Some("Unknown") => (true, false),
        // A node that has not said anything yet keeps the taint that it was created with, and nothing more.
        _ => (false, false),
    };
    let has_said_no = node.condition("Ready") == Some("False");
    let wanted = [
        (NOT_READY, "NoSchedule", !is_ready && !is_silent),
        (NOT_READY, "NoExecute", has_said_no),
        (UNREACHABLE, "NoSchedule", is_silent),
        (UNREACHABLE, "NoExecute", is_silent),
        (UNSCHEDULABLE, "NoSchedule", is_cordoned),
    ];
    let mut taints = node.list(&["spec", "taints"]).to_vec();
    let before = taints.clone();
    for (key, effect, is_wanted) in wanted {
        let position = taints.iter().position(|taint| taint["key"] == key && taint["effect"] == effect);
        match (position, is_wanted) {
            (None, true) => taints.push(json!({"key": key, "effect": effect})),
            (Some(position), false) => {
                taints.remove(position);
            }
            (None, false) | (Some(_), true) => {}
        }
    }
    if taints == before {
        return Ok(());
    }
    let mut body = node.body().clone();
    *field(field(&mut body, "spec"), "taints") = if taints.is_empty() { Value::Null } else { json!(taints) };
    store.update(Kind::Node, &node.name, Part::Main, body)?;
    Ok(())
}

/// How long a pod may stay on its node; `None` for ever.
fn patience(node: &Object, pod: &Object) -> Option<SignedDuration> {
    let taints = pod_reading::taints(node.body());
    let mut shortest: Option<SignedDuration> = None;
    for taint in taints.iter().filter(|taint| taint.effect == Effect::NoExecute) {
        let covering = pod.list(&["spec", "tolerations"]).iter();
        let mut seconds = covering
            .filter(|toleration| pod_reading::toleration(toleration).is_some_and(|it| it.covers(taint)))
            .map(|toleration| toleration["tolerationSeconds"].as_i64())
            .peekable();
        if seconds.peek().is_none() {
            return Some(SignedDuration::ZERO);
        }
        if let Some(least) = seconds.flatten().min() {
            let least = SignedDuration::from_secs(least.max(0));
            shortest = Some(shortest.map_or(least, |shortest| shortest.min(least)));
        }
    }
    shortest
}
