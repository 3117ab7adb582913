use super::*;

/// Nodes that are ready, and then pods; what becomes of the pods.
fn check(nodes: &[(&str, Value)], pods: &[(&str, Value)], expected: &[&str]) -> Bench {
    let mut bench = Bench::new();
    for (name, more) in nodes {
        bench.node(name, more.clone());
    }
    bench.run(20);
    for (name, more) in pods {
        bench.pod(name, more.clone());
    }
    bench.run(20);
    assert_eq!(bench.pods(), expected);
    bench
}

fn cpu(amount: &str) -> Value {
    json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": amount}}}]}})
}

#[test]
fn a_pod_without_nodes_waits_and_says_so() {
    let bench = check(&[], &[("p", json!({}))], &["p - Pending"]);
    assert_eq!(bench.why("p"), "no nodes available to schedule pods");
}

#[test]
fn pods_go_where_most_is_free_and_ties_to_the_first_name() {
    check(
        &[("a", json!({})), ("b", json!({}))],
        &[("p", cpu("2")), ("q", cpu("1")), ("r", cpu("1"))],
        &["p a Running", "q b Running", "r b Running"],
    );
}

#[test]
fn a_pod_that_is_too_large_waits_for_a_larger_node() {
    let mut bench = check(&[("a", json!({}))], &[("p", cpu("5"))], &["p - Pending"]);
    assert_eq!(bench.why("p"), "0/1 nodes are available: 1 Insufficient cpu.");
    bench.node("b", json!({"status": {"allocatable": {"cpu": "8"}}}));
    bench.run(5);
    assert_eq!(
        bench.why("p"),
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }."
    );
    bench.run(15);
    assert_eq!(bench.pods(), ["p b Running"]);
}

#[test]
fn a_full_node_takes_the_next_pod_when_one_leaves() {
    let node = [("a", json!({"status": {"allocatable": {"pods": "1"}}}))];
    let mut bench = check(&node, &[("p", json!({})), ("q", json!({}))], &["p a Running", "q - Pending"]);
    assert_eq!(bench.why("q"), "0/1 nodes are available: 1 Too many pods.");
    bench.delete(Kind::Pod, "p");
    bench.run(10);
    assert_eq!(bench.pods(), ["q a Running"]);
}

#[test]
fn init_containers_and_sidecars_count() {
    let requests = |cpu: &str| json!({"requests": {"cpu": cpu}});
    let init = json!({"spec": {"initContainers": [
        {"name": "s", "image": "i", "restartPolicy": "Always", "resources": requests("1")},
        {"name": "i", "image": "i", "resources": requests("4")},
    ]}});
    let bench = check(&[("a", json!({}))], &[("p", init)], &["p - Pending"]);
    assert_eq!(bench.why("p"), "0/1 nodes are available: 1 Insufficient cpu.");
}

#[test]
fn taints_keep_pods_away_unless_tolerated() {
    let tainted = json!({"spec": {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}});
    let soft = json!({"spec": {"taints": [{"key": "old", "effect": "PreferNoSchedule"}]}});
    let tolerating = json!({"spec": {
        "tolerations": [{"key": "team", "operator": "Equal", "value": "a"}], "nodeSelector": {"kubernetes.io/hostname": "a"},
    }});
    let bench = check(
        &[("a", tainted), ("b", soft)],
        &[
            ("p", json!({})),
            ("q", tolerating),
            ("r", json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "a"}}})),
        ],
        &["p b Running", "q a Running", "r - Pending"],
    );
    assert_eq!(
        bench.why("r"),
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint {team: a}."
    );
}

#[test]
fn a_cordoned_node_takes_no_pods() {
    let bench = check(&[("a", json!({"spec": {"unschedulable": true}}))], &[("p", json!({}))], &["p - Pending"]);
    assert_eq!(bench.why("p"), "0/1 nodes are available: 1 node(s) were unschedulable.");
}

#[test]
fn required_node_affinity_holds_if_one_of_its_terms_does() {
    let terms = json!([
        {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["x"]}]},
        {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["4"]}]},
    ]);
    let path = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    let affine = json!({"spec": {"affinity": {"nodeAffinity": path}}});
    check(
        &[("a", zone("y")), ("b", json!({"metadata": {"labels": {"size": "5"}}}))],
        &[("p", affine)],
        &["p b Running"],
    );
}

#[test]
fn host_ports_are_used_once_per_node() {
    let port = json!({"spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]}});
    let bench = check(&[("a", json!({}))], &[("p", port.clone()), ("q", port)], &["p a Running", "q - Pending"]);
    assert_eq!(
        bench.why("q"),
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    );
}

fn in_set(more: Value) -> Value {
    let base = json!({"metadata": {"labels": {"app": "web"}}});
    Patch::Merge(more).apply(Kind::Pod, &base).unwrap()
}

#[test]
fn spread_constraints_keep_domains_level() {
    let spread = in_set(json!({"spec": {"topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]}}));
    // The node of zone y has room for one.
    let small = json!({"metadata": zone("y")["metadata"], "status": {"allocatable": {"cpu": "1"}}});
    let bench = check(
        &[("a", zone("x")), ("b", small), ("c", json!({}))],
        &[("p", spread.clone()), ("q", spread.clone()), ("r", spread.clone()), ("s", spread)],
        &["p a Running", "q b Running", "r a Running", "s - Pending"],
    );
    assert_eq!(
        bench.why("s"),
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints, \
         1 node(s) didn't match pod topology spread constraints (missing required label)."
    );
}

/// A history waited for ever: a silent node kept pods that were to end, and its zone was taken for full.
#[test]
fn pods_that_end_do_not_count_for_spread() {
    let spread = in_set(json!({"spec": {"topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]}}));
    let nodes = [("a", zone("x")), ("b", zone("y"))];
    let mut bench = check(&nodes, &[("p", spread.clone()), ("q", spread.clone())], &["p a Running", "q b Running"]);
    bench.patch(Kind::Node, "b", json!({"metadata": {"annotations": {crate::world::LOST: "true"}}}));
    bench.delete(Kind::Pod, "q");
    bench.pod("r", spread);
    bench.run(1);
    assert_eq!(bench.get(Kind::Pod, "r").unwrap().text(&["spec", "nodeName"]), Some("b"));
}

fn pod_affinity(kind: &str, app: &str) -> Value {
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}});
    json!({"spec": {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}})
}

#[test]
fn anti_affinity_works_in_both_directions() {
    let repelling = in_set(pod_affinity("podAntiAffinity", "web"));
    let bench = check(
        &[("a", json!({})), ("b", json!({}))],
        &[("p", repelling.clone()), ("q", repelling.clone()), ("r", repelling), ("s", in_set(json!({})))],
        &["p a Running", "q b Running", "r - Pending", "s - Pending"],
    );
    assert_eq!(bench.why("r"), "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.");
    assert_eq!(bench.why("s"), "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules.");
}

#[test]
fn affinity_follows_the_pod_it_names_even_if_that_comes_later() {
    let mut bench = check(
        &[("a", json!({})), ("b", json!({}))],
        &[("first", pod_affinity("podAffinity", "db"))],
        &["first - Pending"],
    );
    assert_eq!(bench.why("first"), "0/2 nodes are available: 2 node(s) didn't match pod affinity rules.");
    bench.pod("db", json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "b"}}}));
    bench.run(10);
    assert_eq!(bench.pods(), ["db b Running", "first b Running"]);
}

#[test]
fn the_first_pod_of_a_group_with_affinity_to_itself_goes_anywhere() {
    let together = in_set(pod_affinity("podAffinity", "web"));
    check(
        &[("a", json!({})), ("b", json!({}))],
        &[("p", together.clone()), ("q", together)],
        &["p a Running", "q a Running"],
    );
}

#[test]
fn important_pods_go_first() {
    let mut bench = Bench::new();
    bench.node("a", json!({"status": {"allocatable": {"pods": "1"}}}));
    bench.pod("p", json!({}));
    bench.pod("q", json!({"spec": {"priorityClassName": "system-cluster-critical"}}));
    bench.run(20);
    assert_eq!(bench.pods(), ["p - Pending", "q a Running"]);
}

#[test]
fn gated_pods_wait_for_their_gate() {
    let gated = json!({"spec": {"schedulingGates": [{"name": "sim.kerf.dev/gate"}]}});
    let mut bench = check(&[("a", json!({}))], &[("p", gated)], &["p - Pending"]);
    bench.patch(Kind::Pod, "p", json!({"spec": {"schedulingGates": null}}));
    bench.run(10);
    assert_eq!(bench.pods(), ["p a Running"]);
}
