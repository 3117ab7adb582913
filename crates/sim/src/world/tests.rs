//! The world as a whole, one behaviour at a time.

use std::sync::{Arc, LazyLock};

use jiff::{SignedDuration, Timestamp};
use kerf_api::admission::Admission;
use kerf_model::cluster::ObjectName;
use serde_json::{Value, json};

use super::{Pace, World};
use crate::store::{DeleteOptions, Kind, Object, Part, Patch};

mod budgets;
mod determinism;
mod nodes;
mod scheduling;
mod storage;
mod workloads;

static ADMISSION: LazyLock<Arc<Admission>> = LazyLock::new(|| Arc::new(Admission::new(&kerf_api::crds(None)).unwrap()));

/// A world at its first moment, and short ways to write and read it.
struct Bench(World);

impl Bench {
    fn new() -> Self {
        Self::seeded(1)
    }

    fn seeded(seed: u64) -> Self {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        Self(World::new(Arc::clone(&ADMISSION), seed, Pace::default(), now))
    }

    fn create(&mut self, kind: Kind, base: Value, more: Value) -> Object {
        let body = Patch::Merge(more).apply(kind, &base).unwrap();
        let now = self.0.now();
        self.0.store_mut().create(kind, body, now).unwrap()
    }

    /// A node with 4 cpu, 8Gi and room for 110 pods.
    fn node(&mut self, name: &str, more: Value) {
        let resources = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
        let base = json!({"metadata": {"name": name}, "status": {"allocatable": resources, "capacity": resources}});
        self.create(Kind::Node, base, more);
    }

    /// A pod that asks for 1 cpu and 1Gi.
    fn pod(&mut self, name: &str, more: Value) {
        self.create(Kind::Pod, json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": pod_spec()}), more);
    }

    fn workload(&mut self, kind: Kind, name: &str, more: Value) {
        let template = json!({"metadata": {"labels": {"app": name}}, "spec": pod_spec()});
        let spec = json!({"selector": {"matchLabels": {"app": name}}, "template": template});
        self.create(kind, json!({"metadata": {"name": name}, "spec": spec}), more);
    }

    fn patch(&mut self, kind: Kind, name: &str, patch: Value) {
        self.0.store_mut().patch(kind, &object_name(kind, name), Part::Main, &Patch::Merge(patch)).unwrap();
    }

    fn delete(&mut self, kind: Kind, name: &str) {
        let now = self.0.now();
        self.0.store_mut().delete(kind, &object_name(kind, name), &DeleteOptions::default(), now).unwrap();
    }

    fn run(&mut self, seconds: i64) {
        let end = self.0.now() + SignedDuration::from_secs(seconds);
        self.0.run_until(end).unwrap();
    }

    fn get(&self, kind: Kind, name: &str) -> Option<&Object> {
        self.0.store().get(kind, &object_name(kind, name)).ok()
    }

    /// The pods by name, each with its node and phase.
    fn pods(&self) -> Vec<String> {
        let pods = self.0.store().all(Kind::Pod);
        pods.map(|pod| {
            let node = pod.text(&["spec", "nodeName"]).unwrap_or("-");
            format!("{} {node} {}", pod.name.name, pod.text(&["status", "phase"]).unwrap_or("?"))
        })
        .collect()
    }

    fn nodes_of_pods(&self) -> Vec<&str> {
        let pods = self.0.store().all(Kind::Pod);
        let mut nodes: Vec<_> = pods.map(|pod| pod.text(&["spec", "nodeName"]).unwrap_or("-")).collect();
        nodes.sort_unstable();
        nodes
    }

    /// Why a pod has no node.
    fn why(&self, pod: &str) -> &str {
        let pod = self.get(Kind::Pod, pod).unwrap();
        let conditions = pod.list(&["status", "conditions"]);
        let scheduled = conditions.iter().find(|condition| condition["type"] == "PodScheduled").unwrap();
        assert_eq!((&scheduled["status"], &scheduled["reason"]), (&json!("False"), &json!("Unschedulable")));
        scheduled["message"].as_str().unwrap()
    }
}

fn pod_spec() -> Value {
    json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]})
}

fn object_name(kind: Kind, name: &str) -> ObjectName {
    if kind.is_namespaced() { ObjectName::new("default", name) } else { ObjectName::of_cluster(name) }
}

fn zone(zone: &str) -> Value {
    json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}})
}
