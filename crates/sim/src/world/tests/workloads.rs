use super::*;

fn with_nodes(names: &[&str]) -> Bench {
    let mut bench = Bench::new();
    for name in names {
        bench.node(name, json!({}));
    }
    bench.run(15);
    bench
}

#[test]
fn a_deployment_runs_and_keeps_its_replicas() {
    let mut bench = with_nodes(&["a", "b"]);
    bench.workload(Kind::Deployment, "web", json!({"spec": {"replicas": 4}}));
    bench.run(5);
    assert_eq!(bench.nodes_of_pods(), ["a", "a", "b", "b"]);
    assert_eq!(bench.get(Kind::Deployment, "web").unwrap().number(&["status", "readyReplicas"]), Some(4));

    let first = bench.0.store().all(Kind::Pod).next().unwrap().name.name.to_string();
    assert!(first.starts_with("web-"), "{first}");
    bench.delete(Kind::Pod, &first);
    bench.run(10);
    assert_eq!((bench.pods().len(), bench.get(Kind::Pod, &first)), (4, None));
    assert!(bench.pods().iter().all(|pod| pod.ends_with("Running")));
}

#[test]
fn scaling_down_takes_pods_that_do_not_run_first() {
    let mut bench = with_nodes(&["a"]);
    bench.workload(Kind::Deployment, "web", json!({"spec": {"replicas": 6}}));
    bench.run(5);
    assert_eq!(bench.nodes_of_pods(), ["-", "-", "a", "a", "a", "a"]);
    bench.patch(Kind::Deployment, "web", json!({"spec": {"replicas": 3}}));
    bench.run(5);
    assert_eq!(bench.nodes_of_pods(), ["a", "a", "a"]);
}

#[test]
fn a_new_template_replaces_pods_without_a_gap() {
    let mut bench = with_nodes(&["a", "b"]);
    bench.workload(Kind::Deployment, "web", json!({"spec": {"replicas": 4}}));
    bench.run(5);
    let containers = json!([{"name": "c", "image": "new", "resources": {"requests": {"cpu": "1"}}}]);
    bench.patch(Kind::Deployment, "web", json!({"spec": {"template": {"spec": {"containers": containers}}}}));
    let mut steps = 0;
    loop {
        bench.0.step(bench.0.now()).unwrap();
        let ready = bench.0.store().all(Kind::Pod).filter(|pod| !pod.is_deleting() && pod.is_condition_true("Ready"));
        assert!(ready.count() >= 3, "at most a quarter is missing");
        let Some(due) = bench.0.next_due() else { break };
        bench.0.step(due).unwrap();
        steps += 1;
        assert!(steps < 100, "the rollout ends");
    }
    let images: Vec<_> =
        bench.0.store().all(Kind::Pod).map(|pod| pod.body()["spec"]["containers"][0]["image"].clone()).collect();
    assert_eq!(images, vec![json!("new"); 4]);
}

#[test]
fn deleting_a_deployment_takes_everything_with_it() {
    let mut bench = with_nodes(&["a"]);
    bench.workload(Kind::Deployment, "web", json!({"spec": {"replicas": 2}}));
    bench.run(5);
    bench.delete(Kind::Deployment, "web");
    bench.run(5);
    assert!(bench.pods().is_empty());
    assert_eq!(bench.0.store().all(Kind::ReplicaSet).count(), 0);
}

#[test]
fn a_stateful_set_starts_and_stops_one_pod_at_a_time() {
    let mut bench = with_nodes(&["a"]);
    bench.workload(Kind::StatefulSet, "db", json!({"spec": {"replicas": 3}}));
    bench.run(1);
    assert_eq!(bench.pods(), ["db-0 a Pending"]);
    bench.run(2);
    assert_eq!(bench.pods(), ["db-0 a Running", "db-1 a Pending"]);
    bench.run(5);
    assert_eq!(bench.pods(), ["db-0 a Running", "db-1 a Running", "db-2 a Running"]);
    bench.patch(Kind::StatefulSet, "db", json!({"spec": {"replicas": 1}}));
    bench.run(1);
    let deleting: Vec<_> =
        bench.0.store().all(Kind::Pod).filter(|pod| pod.is_deleting()).map(|pod| pod.name.name.to_string()).collect();
    assert_eq!(deleting, ["db-2"]);
    bench.run(5);
    assert_eq!(bench.pods(), ["db-0 a Running"]);
}

#[test]
fn a_stateful_pod_comes_back_under_its_name_only_after_the_old_one_is_gone() {
    let mut bench = with_nodes(&["a"]);
    bench.workload(Kind::StatefulSet, "db", json!({}));
    bench.run(5);
    let old = bench.get(Kind::Pod, "db-0").unwrap().uid().to_owned();
    bench.delete(Kind::Pod, "db-0");
    bench.run(1);
    assert_eq!(bench.get(Kind::Pod, "db-0").unwrap().uid(), old);
    bench.run(5);
    let new = bench.get(Kind::Pod, "db-0").unwrap();
    assert!(new.uid() != old && new.is_condition_true("Ready"));
}

#[test]
fn a_daemon_set_runs_on_every_node_that_it_tolerates() {
    let mut bench = with_nodes(&["a"]);
    bench.node("b", json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}));
    bench.workload(Kind::DaemonSet, "agent", json!({}));
    bench.workload(
        Kind::DaemonSet,
        "net",
        json!({"spec": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}}),
    );
    bench.run(5);
    assert_eq!(bench.nodes_of_pods(), ["a", "a", "b"], "a pod that tolerates everything does not wait for Ready");
    bench.node("c", json!({}));
    bench.run(20);
    assert_eq!(bench.nodes_of_pods(), ["a", "a", "b", "c", "c"]);
    bench.delete(Kind::Node, "c");
    bench.run(60);
    assert_eq!(bench.nodes_of_pods(), ["a", "a", "b"]);
}

#[test]
fn a_daemon_pod_stays_on_a_cordoned_node() {
    let mut bench = with_nodes(&["a"]);
    bench.workload(Kind::DaemonSet, "agent", json!({}));
    bench.run(5);
    bench.patch(Kind::Node, "a", json!({"spec": {"unschedulable": true}}));
    bench.run(5);
    assert_eq!(bench.nodes_of_pods(), ["a"]);
}

#[test]
fn a_job_ends_when_enough_of_its_pods_have() {
    let mut bench = with_nodes(&["a"]);
    let more = json!({"spec": {"completions": 3, "parallelism": 2, "selector": null, "template": {"spec": {"restartPolicy": "Never"}}}});
    bench.workload(Kind::Job, "batch", more);
    bench.run(10);
    assert_eq!(bench.nodes_of_pods(), ["a", "a"]);
    bench.run(1000);
    let job = bench.get(Kind::Job, "batch").unwrap();
    assert!(job.is_condition_true("Complete"));
    assert_eq!(job.number(&["status", "succeeded"]), Some(3));
    assert_eq!(bench.nodes_of_pods().len(), 3);
}
