//! The engine in the world: pending pods get nodes, and nodes that are deleted go politely.
#![expect(clippy::unwrap_used, reason = "in helpers of tests a failure is the failure of the test")]

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_api::admission::Admission;
use kerf_cloud::Catalogue;
use kerf_model::cluster::ObjectName;
use kerf_sim::autoscaler::{Autoscaler, CloudPace};
use kerf_sim::store::{DeleteOptions, Kind, Object, Part, Patch, Propagation};
use kerf_sim::world::{Pace, World};
use serde_json::{Value, json};

fn world() -> World {
    let admission = Arc::new(Admission::new(&kerf_api::crds(None)).unwrap());
    let start: Timestamp = "2026-01-05T09:00:00Z".parse().unwrap();
    let mut world = World::new(admission, 1, Pace::default(), start);
    world.add(Autoscaler::new(Catalogue::kwok().types().clone(), CloudPace::default()));
    for (kind, object) in [(Kind::KwokNodeClass, class()), (Kind::NodePool, pool())] {
        let now = world.now();
        world.store_mut().create(kind, object, now).unwrap();
    }
    world
}

fn class() -> Value {
    json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}})
}

fn pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["17"]},
            ],
            "expireAfter": "Never",
        }}},
    })
}

fn deployment(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                {"name": "c", "image": "web", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
            ]}},
        },
    })
}

fn run(world: &mut World, seconds: i64) {
    let end = world.now() + SignedDuration::from_secs(seconds);
    world.run_until(end).unwrap();
}

fn running(world: &World) -> usize {
    world.store().all(Kind::Pod).filter(|pod| pod.text(&["status", "phase"]) == Some("Running")).count()
}

fn names(world: &World, kind: Kind) -> Vec<ObjectName> {
    world.store().all(kind).map(|object| object.name.clone()).collect()
}

fn ready_world(replicas: u32) -> World {
    let mut world = world();
    let now = world.now();
    world.store_mut().create(Kind::Deployment, deployment(replicas), now).unwrap();
    run(&mut world, 180);
    assert_eq!(running(&world), replicas as usize, "pods run");
    world
}

#[test]
fn pending_pods_get_nodes_that_register_and_initialise() {
    let world = ready_world(20);
    let claims: Vec<_> = world.store().all(Kind::NodeClaim).collect();
    assert_eq!((claims.len(), names(&world, Kind::Node).len()), (2, 2), "two nodes of 16 cores");
    for claim in claims {
        for condition in ["Launched", "Registered", "Initialized", "Ready"] {
            assert!(claim.is_condition_true(condition), "{condition}: {}", claim.body());
        }
    }
    for node in world.store().all(Kind::Node) {
        assert_eq!(node.text(&["metadata", "labels", "karpenter.sh/initialized"]), Some("true"));
        assert!(node.list(&["spec", "taints"]).is_empty(), "{}", node.body());
    }
    let pool = world.store().all(Kind::NodePool).next().unwrap();
    assert_eq!(pool.number(&["status", "nodes"]), Some(2));
    assert!(pool.is_condition_true("Ready"), "{}", pool.body());
}

#[test]
fn a_deleted_node_is_drained_and_its_pods_run_elsewhere() {
    let mut world = ready_world(10);
    let node = names(&world, Kind::Node).remove(0);
    let on_node = |pod: &&Object| pod.text(&["spec", "nodeName"]) == Some(&*node.name);
    let pods = world.store().all(Kind::Pod).filter(on_node).map(|pod| pod.uid().to_string());
    let pods: BTreeSet<String> = pods.collect();
    let now = world.now();
    world.store_mut().delete(Kind::Node, &node, &DeleteOptions::default(), now).unwrap();
    run(&mut world, 3);
    let tainted = world.store().get(Kind::Node, &node).unwrap();
    let has_taint = |taint: &Value| taint["key"] == "karpenter.sh/disrupted" && taint["effect"] == "NoSchedule";
    assert!(tainted.list(&["spec", "taints"]).iter().any(has_taint), "{}", tainted.body());
    run(&mut world, 300);
    assert!(!names(&world, Kind::Node).contains(&node), "the node is gone");
    assert_eq!(running(&world), 10);
    assert_eq!(names(&world, Kind::NodeClaim).len(), names(&world, Kind::Node).len(), "nothing is left over");
    let told = world.store().all(Kind::Event).filter(|event| event.text(&["reason"]) == Some("Evicted"));
    let told: BTreeSet<String> =
        told.filter_map(|event| event.text(&["involvedObject", "uid"])).map(str::to_owned).collect();
    assert_eq!(told, pods, "each pod is told that it was evicted, and nobody else");
}

#[test]
fn deleting_a_claim_deletes_its_node() {
    let mut world = ready_world(5);
    let claim = names(&world, Kind::NodeClaim).remove(0);
    let now = world.now();
    world.store_mut().delete(Kind::NodeClaim, &claim, &DeleteOptions::default(), now).unwrap();
    run(&mut world, 300);
    assert!(!names(&world, Kind::NodeClaim).contains(&claim));
    assert_eq!(running(&world), 5);
    assert_eq!(names(&world, Kind::NodeClaim).len(), names(&world, Kind::Node).len());
}

#[test]
fn deleting_a_pool_removes_its_nodes_and_launches_no_new_ones() {
    let mut world = ready_world(5);
    let now = world.now();
    let options = DeleteOptions { propagation: Propagation::Background, ..DeleteOptions::default() };
    world.store_mut().delete(Kind::NodePool, &ObjectName::of_cluster("general"), &options, now).unwrap();
    run(&mut world, 600);
    assert!(names(&world, Kind::NodeClaim).is_empty() && names(&world, Kind::Node).is_empty());
    assert_eq!(running(&world), 0);
}

/// Sheet 03 case 81: from the decision until the last pod has moved, its pods are counted on the replacement.
#[test]
fn case_81_the_pods_of_a_node_that_is_replaced_get_one_new_node() {
    let mut world = ready_world(5);
    let pool = ObjectName::of_cluster("general");
    let edit = Patch::Merge(json!({"spec": {"template": {"metadata": {"labels": {"team": "new"}}}}}));
    world.store_mut().patch(Kind::NodePool, &pool, Part::Main, &edit).unwrap();
    let mut claims: BTreeSet<_> = names(&world, Kind::NodeClaim).into_iter().collect();
    let old = claims.clone();
    assert_eq!(old.len(), 1);
    for _ in 0..300 {
        run(&mut world, 1);
        claims.extend(names(&world, Kind::NodeClaim));
    }
    assert_eq!(claims.len(), 2, "{claims:?}");
    assert!(names(&world, Kind::NodeClaim).iter().all(|claim| !old.contains(claim)), "the old one is gone");
    assert_eq!(running(&world), 5);
}

#[test]
fn the_same_script_gives_the_same_history() {
    let history = || {
        let world = ready_world(20);
        let pods = world.store().all(Kind::Pod).map(|pod| pod.body().to_string());
        let claims = world.store().all(Kind::NodeClaim).map(|claim| claim.body().to_string());
        (world.store().version(), pods.chain(claims).collect::<Vec<_>>())
    };
    assert_eq!(history(), history());
}
