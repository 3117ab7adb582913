use std::fmt::Write;

use super::*;
use crate::store::{ApiError, Store};
use crate::world::{Actor, Watch};

/// A little of everything, and every change that it led to.
fn trace(seed: u64) -> String {
    let mut bench = Bench::seeded(seed);
    for node in ["a", "b", "c"] {
        bench.node(node, zone(if node == "a" { "x" } else { "y" }));
    }
    bench.workload(Kind::Deployment, "web", json!({"spec": {"replicas": 5}}));
    bench.workload(Kind::StatefulSet, "db", json!({"spec": {"replicas": 2}}));
    bench.workload(Kind::DaemonSet, "agent", json!({}));
    bench.run(60);
    bench.delete(Kind::Node, "b");
    bench.run(600);
    bench.patch(Kind::Deployment, "web", json!({"spec": {"replicas": 2}}));
    bench.run(600);
    let mut trace = String::new();
    for kind in Kind::ALL {
        for event in bench.0.store().events_after(kind, 0).unwrap() {
            writeln!(trace, "{} {}", event.change.label(), event.object.body()).unwrap();
        }
    }
    trace
}

#[test]
fn the_same_seed_and_script_give_the_same_history_byte_for_byte() {
    let history = trace(7);
    let changes = history.lines().count();
    assert!(changes > 50, "{changes} changes");
    assert_eq!(history, trace(7));
    assert_ne!(history, trace(8), "uids come from the seed");
}

#[test]
fn a_quiet_world_has_nothing_due_and_does_nothing() {
    let mut bench = Bench::new();
    bench.node("a", json!({}));
    bench.workload(Kind::Deployment, "web", json!({"spec": {"replicas": 3}}));
    bench.run(60);
    let version = bench.0.store().version();
    assert_eq!(bench.0.next_due(), None);
    bench.run(30 * 24 * 3600);
    assert_eq!(bench.0.store().version(), version);
}

#[test]
fn a_compacted_log_changes_nothing_for_the_actors() {
    let run = |compact: bool| {
        let mut bench = Bench::new();
        bench.node("a", json!({}));
        bench.run(15);
        bench.workload(Kind::Deployment, "web", json!({"spec": {"replicas": 3}}));
        if compact {
            bench.0.store_mut().compact();
        }
        bench.run(1);
        bench.patch(Kind::Deployment, "web", json!({"spec": {"replicas": 2}}));
        if compact {
            bench.0.store_mut().compact();
        }
        bench.run(60);
        bench.pods()
    };
    assert_eq!(run(true), run(false));
}

/// The shape of what provisions: a waiting pod is answered with a node.
struct Provisioner(Watch);

impl Actor for Provisioner {
    fn name(&self) -> &'static str {
        "provisioner"
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        for pod in self.0.touched(store) {
            let node = object_name(Kind::Node, &format!("for-{}", pod.name.name));
            if pod.condition("PodScheduled") == Some("False") && store.get(Kind::Node, &node).is_err() {
                let status = json!({"allocatable": {"cpu": "1", "memory": "2Gi", "pods": "10"}});
                store.create(Kind::Node, json!({"metadata": {"name": &*node.name}, "status": status}), now)?;
            }
        }
        Ok(())
    }

    fn next_due(&self) -> Option<Timestamp> {
        None
    }
}

#[test]
fn whoever_lives_in_the_world_may_answer_a_waiting_pod_with_a_node() {
    let mut bench = Bench::new();
    bench.0.add(Provisioner(Watch::new(Kind::Pod)));
    bench.pod("p", json!({}));
    bench.run(30);
    assert_eq!(bench.pods(), ["p for-p Running"]);
}

struct Restless;

impl Actor for Restless {
    fn name(&self) -> &'static str {
        "restless"
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        store.create(Kind::ConfigMap, json!({"metadata": {"generateName": "more-"}}), now).map(|_| ())
    }

    fn next_due(&self) -> Option<Timestamp> {
        None
    }
}

#[test]
fn a_world_that_does_not_come_to_rest_says_who_is_to_blame() {
    let mut bench = Bench::new();
    bench.0.add(Restless);
    let error = bench.0.step(bench.0.now()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the world does not come to rest at 2026-01-01T00:00:00Z: [\"restless\"] go on for ever"
    );
}
