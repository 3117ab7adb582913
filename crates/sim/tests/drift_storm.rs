//! Many nodes drift at once.
#![expect(clippy::unwrap_used, reason = "in helpers of tests a failure is the failure of the test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_api::admission::Admission;
use kerf_cloud::Catalogue;
use kerf_model::cluster::ObjectName;
use kerf_sim::faults::Faults;
use kerf_sim::history::Stage;
use kerf_sim::store::{Kind, Object, Part, Patch};
use serde_json::{Value, json};

const NODES: usize = 1_000;
/// Of the nodes at the beginning: ten percent.
const AT_ONCE: usize = NODES / 10;
/// A place in the budget that becomes free waits for the next round, which is up to five seconds of the 45 that a node
/// takes.
const SLACK: f64 = 1.10;
/// How finely the world is looked at.
const TICK: SignedDuration = SignedDuration::from_secs(1);

/// A node counts as disrupted from its mark until its instance goes. While the budget has room there should always be a
/// node in it: then the storm lasts as long as one node takes, times the nodes, divided by the budget.
#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test drift_storm")]
fn a_drift_of_a_thousand_nodes_is_as_fast_as_budget_and_boot_time_allow() {
    let (mut stage, old) = storm(NODES, "10%");
    let began = stage.world.now();
    let mut busy: BTreeMap<String, i64> = BTreeMap::new();
    let (mut most, mut first, mut last) = (0, None, began);
    while stage.world.store().all(Kind::NodeClaim).any(|claim| old.iter().any(|uid| uid == claim.uid())) {
        stage.run_until(stage.world.now() + TICK).unwrap();
        let disrupted = stage.world.store().all(Kind::NodeClaim).filter(|claim| is_disrupted(claim));
        let mut now = 0;
        for claim in disrupted {
            *busy.entry(claim.uid().to_owned()).or_default() += TICK.as_secs();
            now += 1;
        }
        most = most.max(now);
        if now > 0 {
            first.get_or_insert(stage.world.now());
            last = stage.world.now();
        }
        let took = stage.world.now().duration_since(began);
        assert!(took < SignedDuration::from_hours(2), "{} of {NODES} nodes after {took}", busy.len());
    }
    // From the first mark to the last instance that goes: how soon drift is seen is another question.
    let took = last.duration_since(first.unwrap()).as_secs();
    let each = busy.values().sum::<i64>() as f64 / NODES as f64;
    let ideal = each * NODES as f64 / AT_ONCE as f64;
    println!("{took} s; each node {each:.1} s, at most {most} at once, so that {ideal:.0} s would be ideal");
    assert_eq!(stage.checkers.borrow().violations(), []);
    assert!(took as f64 <= ideal * SLACK, "{took} s, and {ideal:.0} s would be ideal");
}

/// Commands are asked with every look what they want. Three hundred that said each time that their replacements are not
/// ready yet sent so many events that a slow API server fell behind, and the controller kept two gigabytes of them.
#[test]
fn nodes_that_wait_for_their_replacements_say_so_once() {
    const FEW: usize = 40;
    let (mut stage, old) = storm(FEW, "100%");
    let before = stage.autoscaler.borrow().told_again();
    stage.run_until(stage.world.now() + SignedDuration::from_mins(10)).unwrap();
    assert!(!stage.world.store().all(Kind::NodeClaim).any(|claim| old.iter().any(|uid| uid == claim.uid())));
    assert_eq!(stage.checkers.borrow().violations(), []);
    let again = stage.autoscaler.borrow().told_again() - before;
    assert!(again <= 2 * FEW as u64, "{again} events of {FEW} nodes told nothing new");
}

/// So many nodes with a pod each, which have just drifted; and their claims.
fn storm(nodes: usize, budget: &str) -> (Stage, Vec<String>) {
    let admission = Arc::new(Admission::new(&kerf_api::crds(None)).unwrap());
    let start: Timestamp = "2026-01-05T09:00:00Z".parse().unwrap();
    let mut stage = Stage::new(admission, Arc::clone(Catalogue::kwok().types()), 1, Faults::none(), start);
    let class = json!({"metadata": {"name": "default"}});
    let objects = [(Kind::KwokNodeClass, class), (Kind::NodePool, pool(budget)), (Kind::Deployment, deployment(nodes))];
    for (kind, object) in objects {
        stage.world.store_mut().create(kind, object, start).unwrap();
    }
    stage.run_until(start + SignedDuration::from_mins(5)).unwrap();
    let old: Vec<String> = stage.world.store().all(Kind::NodeClaim).map(|claim| claim.uid().to_owned()).collect();
    assert_eq!(old.len(), nodes);
    let edit = Patch::Merge(json!({"spec": {"template": {"metadata": {"annotations": {"example.com/edit": "two"}}}}}));
    stage.world.store_mut().patch(Kind::NodePool, &ObjectName::of_cluster("general"), Part::Main, &edit).unwrap();
    (stage, old)
}

fn is_disrupted(claim: &Object) -> bool {
    claim.is_condition_true("DisruptionReason") && !claim.is_condition_true("InstanceTerminating")
}

/// Nodes that take one pod each.
fn pool(budget: &str) -> Value {
    json!({
        "metadata": {"name": "general"},
        "spec": {
            "disruption": {"consolidateAfter": "Never", "budgets": [{"nodes": budget}]},
            "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                    {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["5"]},
                ],
                "expireAfter": "Never",
            }},
        },
    })
}

fn deployment(replicas: usize) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                {"name": "main", "image": "web", "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}},
            ]}},
        },
    })
}
