use super::*;
use crate::world::{LOST, RUNS_FOR, STOPS_AFTER};

fn ready_node_with_pod(more: Value) -> Bench {
    let mut bench = Bench::new();
    bench.node("a", json!({}));
    bench.run(15);
    bench.pod("p", more);
    bench.run(5);
    assert_eq!(bench.pods(), ["p a Running"]);
    bench
}

#[test]
fn a_node_becomes_ready_and_loses_its_taint() {
    let mut bench = Bench::new();
    bench.node("a", json!({}));
    bench.run(9);
    let taints = |bench: &Bench| bench.get(Kind::Node, "a").unwrap().list(&["spec", "taints"]).to_vec();
    assert_eq!(taints(&bench), [json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})]);
    bench.run(1);
    assert!(bench.get(Kind::Node, "a").unwrap().is_condition_true("Ready"));
    assert!(taints(&bench).is_empty());
}

#[test]
fn a_pod_runs_a_moment_after_it_is_bound() {
    let mut bench = Bench::new();
    bench.node("a", json!({}));
    bench.run(15);
    bench.pod("p", json!({}));
    bench.run(1);
    assert_eq!(bench.pods(), ["p a Pending"]);
    bench.run(1);
    assert_eq!(bench.pods(), ["p a Running"]);
    assert!(bench.get(Kind::Pod, "p").unwrap().is_condition_true("Ready"));
}

#[test]
fn a_deleted_pod_stops_in_its_own_time_within_its_grace() {
    let mut bench = ready_node_with_pod(json!({}));
    bench.delete(Kind::Pod, "p");
    bench.run(1);
    assert!(bench.get(Kind::Pod, "p").unwrap().is_deleting());
    bench.run(1);
    assert!(bench.get(Kind::Pod, "p").is_none());

    let slow = json!({"metadata": {"annotations": {STOPS_AFTER: "1h"}}, "spec": {"terminationGracePeriodSeconds": 60}});
    let mut bench = ready_node_with_pod(slow);
    bench.delete(Kind::Pod, "p");
    bench.run(59);
    assert!(bench.get(Kind::Pod, "p").is_some());
    bench.run(1);
    assert!(bench.get(Kind::Pod, "p").is_none(), "killed when its grace is over");
}

#[test]
fn a_pod_that_ends_by_itself_has_succeeded() {
    let mut bench =
        ready_node_with_pod(json!({"metadata": {"annotations": {RUNS_FOR: "1m"}}, "spec": {"restartPolicy": "Never"}}));
    bench.run(60);
    assert_eq!(bench.pods(), ["p a Succeeded"]);
}

#[test]
fn a_node_whose_machine_is_gone_is_noticed_and_loses_its_pods_after_their_patience() {
    let mut bench = ready_node_with_pod(json!({}));
    bench.patch(Kind::Node, "a", json!({"metadata": {"annotations": {LOST: "true"}}}));
    bench.run(50);
    let node = bench.get(Kind::Node, "a").unwrap();
    assert_eq!(node.condition("Ready"), Some("Unknown"));
    let taints: Vec<_> = node.list(&["spec", "taints"]).iter().map(|taint| (&taint["key"], &taint["effect"])).collect();
    let key = json!("node.kubernetes.io/unreachable");
    assert_eq!(taints, [(&key, &json!("NoSchedule")), (&key, &json!("NoExecute"))]);
    bench.run(299);
    assert!(!bench.get(Kind::Pod, "p").unwrap().is_deleting());
    bench.run(1);
    assert!(bench.get(Kind::Pod, "p").unwrap().is_deleting(), "evicted after its five minutes");
    bench.run(600);
    assert!(bench.get(Kind::Pod, "p").is_some(), "no kubelet is there to confirm the end");
    bench.delete(Kind::Node, "a");
    bench.run(40);
    assert!(bench.get(Kind::Pod, "p").is_none(), "collected with its node");
}

#[test]
fn a_no_execute_taint_ends_pods_that_do_not_tolerate_it() {
    let mut bench = ready_node_with_pod(json!({}));
    bench.pod("tolerant", json!({"spec": {"tolerations": [{"operator": "Exists"}]}}));
    bench.run(5);
    bench.patch(Kind::Node, "a", json!({"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}));
    bench.run(5);
    assert_eq!(bench.pods(), ["tolerant a Running"]);
}

#[test]
fn pods_of_a_deleted_node_are_collected() {
    let mut bench = ready_node_with_pod(json!({}));
    bench.delete(Kind::Node, "a");
    bench.run(39);
    assert_eq!(bench.pods(), ["p a Running"]);
    bench.run(1);
    assert!(bench.pods().is_empty());
}
