//! The autoscaler among faults: random histories, a crash at every cut point, and proof that the checkers bite.
#![expect(clippy::unwrap_used, reason = "in helpers of tests a failure is the failure of the test")]

use std::sync::{Arc, LazyLock};

use jiff::{SignedDuration, Timestamp};
use kerf_api::admission::Admission;
use kerf_cloud::Catalogue;
use kerf_model::cluster::ObjectName;
use kerf_sim::checkers::Broken;
use kerf_sim::faults::{Faults, Mutation};
use kerf_sim::history::{Options, Stage, run};
use kerf_sim::store::{DeleteOptions, Kind};
use serde_json::{Value, json};

static ADMISSION: LazyLock<Arc<Admission>> = LazyLock::new(|| Arc::new(Admission::new(&kerf_api::crds(None)).unwrap()));

const PODS: usize = 20;

/// More by `cargo xtask sim`.
#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn a_few_random_histories_break_no_promise() {
    for seed in 1..=3 {
        let report = run(seed, &ADMISSION, Catalogue::kwok().types(), &Options::default());
        let violations: Vec<_> = report.violations.iter().map(ToString::to_string).collect();
        assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
        assert!(report.effects > 50 && report.crashes > 0, "{report:?}");
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn the_same_seed_gives_the_same_history() {
    let history = || {
        let options = Options { lasts: SignedDuration::from_mins(30), ..Options::default() };
        let report = run(2, &ADMISSION, Catalogue::kwok().types(), &options);
        (report.steps, report.effects, report.crashes, report.virtual_time)
    };
    assert_eq!(history(), history());
}

#[derive(Debug, Clone, Copy)]
enum Script {
    Provision,
    DeleteNode,
    DeletePool,
}

/// What is there in the end: pods that run, claims, nodes, instances.
type End = [usize; 4];

fn play(script: Script, faults: Faults) -> (End, u64, Vec<String>) {
    let start: Timestamp = "2026-01-05T09:00:00Z".parse().unwrap();
    let mut stage = Stage::new(Arc::clone(&ADMISSION), Arc::clone(Catalogue::kwok().types()), 1, Faults::none(), start);
    let objects = [(Kind::KwokNodeClass, json!({"metadata": {"name": "default"}})), (Kind::NodePool, pool())];
    for (kind, object) in objects {
        stage.world.store_mut().create(kind, object, start).unwrap();
    }
    match script {
        Script::Provision => {
            *stage.autoscaler.borrow_mut().faults_mut() = faults;
            stage.world.store_mut().create(Kind::Deployment, deployment(), start).unwrap();
        }
        Script::DeleteNode | Script::DeletePool => {
            stage.world.store_mut().create(Kind::Deployment, deployment(), start).unwrap();
            // Without a pool there is no place to go: a budget would hold the drain for ever.
            if let Script::DeleteNode = script {
                stage.world.store_mut().create(Kind::PodDisruptionBudget, budget(), start).unwrap();
            }
            stage.run_until(start + SignedDuration::from_mins(5)).unwrap();
            *stage.autoscaler.borrow_mut().faults_mut() = faults;
            let (kind, name) = match script {
                Script::DeletePool => (Kind::NodePool, ObjectName::of_cluster("general")),
                Script::Provision | Script::DeleteNode => {
                    (Kind::Node, stage.world.store().all(Kind::Node).next().unwrap().name.clone())
                }
            };
            let now = stage.world.now();
            stage.world.store_mut().delete(kind, &name, &DeleteOptions::default(), now).unwrap();
        }
    }
    stage.run_until(stage.world.now() + SignedDuration::from_mins(30)).unwrap();
    let effects = stage.autoscaler.borrow().faults().effects();
    stage.settle().unwrap();
    let store = stage.world.store();
    let running = store.all(Kind::Pod).filter(|pod| pod.text(&["status", "phase"]) == Some("Running")).count();
    let instances = stage.autoscaler.borrow().cloud().machines().count();
    let end = [running, store.all(Kind::NodeClaim).count(), store.all(Kind::Node).count(), instances];
    let violations = stage.checkers.borrow().violations().iter().map(ToString::to_string).collect();
    (end, effects, violations)
}

fn check_every_cut_point(script: Script) {
    let (expected, effects, violations) = play(script, Faults::none());
    assert_eq!(violations, [""; 0]);
    assert!(effects > 5, "{effects} effects are no script");
    for cut in 0..effects {
        let (end, _, violations) = play(script, Faults::crash_at(cut));
        assert_eq!((end, violations), (expected, vec![]), "crash after {cut} of {effects} effects of {script:?}");
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn a_crash_at_any_point_of_provisioning_gives_the_same_end() {
    assert_eq!(play(Script::Provision, Faults::none()).0, [PODS, 2, 2, 2]);
    check_every_cut_point(Script::Provision);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn a_crash_at_any_point_of_a_nodes_deletion_gives_the_same_end() {
    assert_eq!(play(Script::DeleteNode, Faults::none()).0[0], PODS);
    check_every_cut_point(Script::DeleteNode);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn a_crash_at_any_point_of_a_pools_deletion_gives_the_same_end() {
    assert_eq!(play(Script::DeletePool, Faults::none()).0, [0; 4]);
    check_every_cut_point(Script::DeletePool);
}

/// Runs histories with a rule broken on purpose until a checker says so.
fn is_caught(mutation: Mutation, expected: fn(&Broken) -> bool) -> bool {
    let options = Options { mutation: Some(mutation), disruption: true, ..Options::default() };
    (1..=20).any(|seed| {
        let report = run(seed, &ADMISSION, Catalogue::kwok().types(), &options);
        report.violations.iter().any(|violation| expected(&violation.broken))
    })
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn deleting_pods_past_their_budgets_is_caught() {
    assert!(is_caught(Mutation::SkipBudgets, |broken| matches!(broken, Broken::BudgetExceeded { .. })));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn letting_a_claim_go_before_its_instance_is_caught() {
    let expected = |broken: &Broken| matches!(broken, Broken::ClaimGoneBeforeInstance { .. });
    assert!(is_caught(Mutation::ForgetFinalizer, expected));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn launching_twice_for_one_claim_is_caught() {
    assert!(is_caught(Mutation::LaunchTwice, |broken| matches!(broken, Broken::LaunchedTwice { .. })));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn disrupting_more_nodes_than_a_budget_allows_is_caught() {
    let expected = |broken: &Broken| matches!(broken, Broken::NodeBudgetExceeded { .. });
    assert!(is_caught(Mutation::IgnoreNodeBudgets, expected));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn disrupting_a_node_in_a_window_is_caught() {
    assert!(is_caught(Mutation::IgnoreWindows, |broken| matches!(broken, Broken::WindowIgnored { .. })));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn deleting_a_node_before_its_replacement_is_ready_is_caught() {
    let expected = |broken: &Broken| matches!(broken, Broken::DeletedBeforeReplacement { .. });
    assert!(is_caught(Mutation::DeleteAtOnce, expected));
}

fn pool() -> Value {
    json!({
        "metadata": {"name": "general"},
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

fn deployment() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": PODS, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                {"name": "c", "image": "web", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
            ]}},
        },
    })
}

fn budget() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
    })
}
