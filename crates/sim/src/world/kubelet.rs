//! The kubelets of all nodes: nodes become ready, pods start, end and stop.

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::ObjectName;
use serde_json::{Value, json};

use super::annotation::{self, RUNS_FOR, STOPS_AFTER};
use super::condition::{Condition, Truth, change_status, set_condition};
use super::{Actor, Alarms, Pace, Watch};
use crate::store::object::{field, time_text};
use crate::store::{ApiError, DeleteOptions, Kind, Object, Store};

pub struct Kubelets {
    pace: Pace,
    nodes: Watch,
    pods: Watch,
    node_alarms: Alarms<ObjectName>,
    pod_alarms: Alarms<ObjectName>,
}

/// What a kubelet does to a pod next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Start,
    /// The pod ends by itself, well.
    Succeed,
    /// The pod was asked to stop, and has.
    Remove,
}

impl Kubelets {
    pub fn new(pace: Pace) -> Self {
        Self {
            pace,
            nodes: Watch::new(Kind::Node),
            pods: Watch::new(Kind::Pod),
            node_alarms: Alarms::new(),
            pod_alarms: Alarms::new(),
        }
    }

    fn plan_node(&mut self, store: &Store, node: &Object, now: Timestamp) {
        let Ok(node) = store.get(Kind::Node, &node.name) else {
            self.node_alarms.clear(&node.name);
            return;
        };
        match node.is_condition_true("Ready") || annotation::is_lost(node) {
            true => self.node_alarms.clear(&node.name),
            false => self.node_alarms.set_if_absent(&node.name, now + self.pace.node_ready),
        }
        // Pods may have been bound before their node was there.
        let pods: Vec<_> = store.pods_on(&node.name.name).cloned().collect();
        for pod in pods {
            self.plan_pod(store, &pod.name, now);
        }
    }

    fn plan_pod(&mut self, store: &Store, name: &ObjectName, now: Timestamp) {
        match store.get(Kind::Pod, name).ok().and_then(|pod| self.next(store, pod, now)) {
            Some((at, _)) => self.pod_alarms.set(name.clone(), at),
            None => self.pod_alarms.clear(name),
        }
    }

    /// What happens to the pod next, and when.
    fn next(&self, store: &Store, pod: &Object, now: Timestamp) -> Option<(Timestamp, Next)> {
        let node = pod.text(&["spec", "nodeName"])?;
        let node = store.get(Kind::Node, &ObjectName::of_cluster(node)).ok()?;
        if annotation::is_lost(node) {
            return None;
        }
        let phase = pod.text(&["status", "phase"]).unwrap_or_default();
        if let Some(end) = pod.time(&["metadata", "deletionTimestamp"]) {
            // With no grace left only finalizers hold it: nothing to do for a kubelet.
            let grace = pod.number(&["metadata", "deletionGracePeriodSeconds"]).filter(|grace| *grace > 0)?;
            let asked = end - SignedDuration::from_secs(grace);
            let stops_after = annotation::duration(pod, STOPS_AFTER).unwrap_or(self.pace.pod_stop);
            let stopped = if phase == "Pending" { asked } else { asked + stops_after };
            return Some((stopped.min(end).max(now), Next::Remove));
        }
        match phase {
            "Pending" => {
                let bound = scheduled_at(pod).unwrap_or(now);
                Some(((bound + self.pace.pod_start).max(now), Next::Start))
            }
            "Running" => {
                let ends = pod.text(&["spec", "restartPolicy"]) != Some("Always");
                let runs_for = annotation::duration(pod, RUNS_FOR).or(ends.then_some(self.pace.pod_run))?;
                let started = pod.time(&["status", "startTime"])?;
                Some(((started + runs_for).max(now), Next::Succeed))
            }
            _ => None,
        }
    }

    fn act(&mut self, store: &mut Store, name: &ObjectName, now: Timestamp) -> Result<(), ApiError> {
        let Ok(pod) = store.get(Kind::Pod, name) else { return Ok(()) };
        let Some((at, next)) = self.next(store, pod, now) else { return Ok(()) };
        if at > now {
            self.pod_alarms.set(name.clone(), at);
            return Ok(());
        }
        let uid = pod.uid().to_owned();
        match next {
            Next::Start => change_status(store, Kind::Pod, name, |status| start(status, now)),
            Next::Succeed => change_status(store, Kind::Pod, name, |status| {
                *field(status, "phase") = json!("Succeeded");
                let ready = Condition { type_: "Ready", is_true: Truth::False, reason: "PodCompleted", message: "" };
                set_condition(status, &ready, now);
            }),
            Next::Remove => {
                let options = DeleteOptions { uid: Some(uid), ..DeleteOptions::with_grace(0) };
                store.delete(Kind::Pod, name, &options, now).map(|_| ())
            }
        }
    }

    fn make_ready(&mut self, store: &mut Store, name: &ObjectName, now: Timestamp) -> Result<(), ApiError> {
        let is_there = store.get(Kind::Node, name).is_ok_and(|node| !annotation::is_lost(node));
        if !is_there {
            return Ok(());
        }
        let ready = Condition {
            type_: "Ready",
            is_true: Truth::True,
            reason: "KubeletReady",
            message: "kubelet is posting ready status",
        };
        change_status(store, Kind::Node, name, |status| set_condition(status, &ready, now))
    }
}

impl Actor for Kubelets {
    fn name(&self) -> &'static str {
        "kubelets"
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        for node in self.nodes.touched(store) {
            self.plan_node(store, &node, now);
        }
        for pod in self.pods.touched(store) {
            self.plan_pod(store, &pod.name, now);
        }
        for node in self.node_alarms.ring(now) {
            self.make_ready(store, &node, now)?;
        }
        for pod in self.pod_alarms.ring(now) {
            self.act(store, &pod, now)?;
        }
        Ok(())
    }

    fn next_due(&self) -> Option<Timestamp> {
        [self.node_alarms.next(), self.pod_alarms.next()].into_iter().flatten().min()
    }
}

fn start(status: &mut Value, now: Timestamp) {
    *field(status, "phase") = json!("Running");
    *field(status, "startTime") = json!(time_text(now));
    for type_ in ["Initialized", "ContainersReady", "Ready"] {
        set_condition(status, &Condition { type_, is_true: Truth::True, reason: "", message: "" }, now);
    }
}

fn scheduled_at(pod: &Object) -> Option<Timestamp> {
    let conditions = pod.list(&["status", "conditions"]);
    let scheduled = conditions.iter().find(|condition| condition["type"] == "PodScheduled")?;
    scheduled["lastTransitionTime"].as_str()?.parse().ok()
}
