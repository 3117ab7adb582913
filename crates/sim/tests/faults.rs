//! The autoscaler among faults: random histories, a crash at every cut point, and proof that the checkers bite.
#![expect(clippy::unwrap_used, reason = "in helpers of tests a failure is the failure of the test")]

use std::sync::{Arc, LazyLock};

use jiff::{SignedDuration, Timestamp};
use kerf_api::admission::Admission;
use kerf_cloud::Catalogue;
use kerf_model::cluster::ObjectName;
use kerf_sim::checkers::Broken;
use kerf_sim::faults::{Faults, Mutation, Rates};
use kerf_sim::history::{Options, Stage, run};
use kerf_sim::store::{DeleteOptions, Kind, Part, Patch};
use serde_json::{Value, json};

static ADMISSION: LazyLock<Arc<Admission>> = LazyLock::new(|| Arc::new(Admission::new(&kerf_api::crds(None)).unwrap()));

const PODS: usize = 20;
const FEWER_PODS: usize = 3;

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

#[derive(Debug, Clone, Copy)]
enum Script {
    Provision,
    DeleteNode,
    DeletePool,
    /// Most pods go, and what is left fits on something smaller.
    Consolidate,
    /// The template is edited, and every node is replaced.
    Drift,
}

/// What is there in the end: pods that run, claims, nodes, instances, and what they cost in thousandths of a dollar per
/// hour.
type End = [usize; 5];

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
        Script::DeleteNode | Script::DeletePool | Script::Consolidate | Script::Drift => {
            stage.world.store_mut().create(Kind::Deployment, deployment(), start).unwrap();
            // Without a pool there is no place to go: a budget would hold the drain for ever.
            if !matches!(script, Script::DeletePool) {
                stage.world.store_mut().create(Kind::PodDisruptionBudget, budget(), start).unwrap();
            }
            stage.run_until(start + SignedDuration::from_mins(5)).unwrap();
            *stage.autoscaler.borrow_mut().faults_mut() = faults;
            disturb(&mut stage, script);
        }
    }
    stage.run_until(stage.world.now() + SignedDuration::from_mins(30)).unwrap();
    let effects = stage.autoscaler.borrow().faults().effects();
    stage.settle().unwrap();
    let store = stage.world.store();
    let running = store.all(Kind::Pod).filter(|pod| pod.text(&["status", "phase"]) == Some("Running")).count();
    let instances = stage.autoscaler.borrow().cloud().machines().count();
    let cost = usize::try_from(stage.autoscaler.borrow().ledger().hourly().micros() / 1_000).unwrap();
    let end = [running, store.all(Kind::NodeClaim).count(), store.all(Kind::Node).count(), instances, cost];
    let violations = stage.checkers.borrow().violations().iter().map(ToString::to_string).collect();
    (end, effects, violations)
}

fn disturb(stage: &mut Stage, script: Script) {
    let now = stage.world.now();
    let oldest = stage.world.store().all(Kind::Node).next().map(|node| node.name.clone());
    let store = stage.world.store_mut();
    let pool = ObjectName::of_cluster("general");
    let web = ObjectName::new("default", "web");
    let edit = json!({"spec": {"template": {"metadata": {"annotations": {"example.com/edit": "two"}}}}});
    match script {
        Script::Provision => {}
        Script::DeleteNode => drop(store.delete(Kind::Node, &oldest.unwrap(), &DeleteOptions::default(), now).unwrap()),
        Script::DeletePool => drop(store.delete(Kind::NodePool, &pool, &DeleteOptions::default(), now).unwrap()),
        Script::Consolidate => {
            let fewer = Patch::Merge(json!({"spec": {"replicas": FEWER_PODS}}));
            store.patch(Kind::Deployment, &web, Part::Main, &fewer).unwrap();
        }
        Script::Drift => drop(store.patch(Kind::NodePool, &pool, Part::Main, &Patch::Merge(edit)).unwrap()),
    }
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
    assert_eq!(play(Script::Provision, Faults::none()).0[..4], [PODS, 2, 2, 2]);
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
    assert_eq!(play(Script::DeletePool, Faults::none()).0, [0; 5]);
    check_every_cut_point(Script::DeletePool);
}

/// What the cluster costs before anything is consolidated, in thousandths of a dollar per hour.
fn cost_at_first() -> usize {
    play(Script::Provision, Faults::none()).0[4]
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn a_crash_at_any_point_of_a_consolidation_gives_the_same_end() {
    let [pods, claims, _, _, cost] = play(Script::Consolidate, Faults::none()).0;
    assert_eq!((pods, claims), (FEWER_PODS, 1));
    assert!(cost * 3 < cost_at_first(), "{cost} is no replacement by something smaller");
    check_every_cut_point(Script::Consolidate);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn a_crash_at_any_point_of_a_drift_gives_the_same_end() {
    assert_eq!(play(Script::Drift, Faults::none()).0[0], PODS);
    check_every_cut_point(Script::Drift);
}

/// What every round decides is carried out, and nothing that is promised breaks: by rounds of random clusters.
#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn with_faults_off_no_round_of_a_random_cluster_breaks_a_promise_or_raises_the_cost() {
    let options = Options { rates: Rates::default(), ..Options::default() };
    for seed in 1..=20 {
        let report = run(seed, &ADMISSION, Catalogue::kwok().types(), &options);
        let violations: Vec<_> = report.violations.iter().map(ToString::to_string).collect();
        assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
    }
}

/// Runs histories with a rule broken on purpose until a checker says so.
fn is_caught(mutation: Mutation, expected: fn(&Broken) -> bool) -> bool {
    let options = Options { mutation: Some(mutation), ..Options::default() };
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

/// The cluster is at rest, at the prices that there are, before it is consolidated at those that are misread: what that does
/// to its cost is what the checker looks at.
#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn replacing_nodes_by_dearer_ones_is_caught() {
    let found = |mutation: Option<Mutation>| -> Vec<&'static str> {
        let start: Timestamp = "2026-01-05T09:00:00Z".parse().unwrap();
        let types = Arc::clone(Catalogue::kwok().types());
        let mut stage = Stage::new(Arc::clone(&ADMISSION), types, 1, Faults::none(), start);
        let pool = |name: &str| {
            let mut pool = pool();
            pool["metadata"]["name"] = json!(name);
            // Longer than it takes to be at rest, and shorter than to be called settled.
            pool["spec"]["disruption"]["consolidateAfter"] = json!("17m");
            (Kind::NodePool, pool)
        };
        let class = (Kind::KwokNodeClass, json!({"metadata": {"name": "default"}}));
        for (kind, object) in [class, pool("general"), (Kind::Deployment, deployment())] {
            stage.world.store_mut().create(kind, object, start).unwrap();
        }
        stage.run_until(start + SignedDuration::from_mins(5)).unwrap();
        *stage.autoscaler.borrow_mut().faults_mut() = Faults::none().with(mutation);
        // Prices are told again when there is another pool.
        let (kind, other) = pool("other");
        stage.world.store_mut().create(kind, other, start).unwrap();
        stage.settle().unwrap();
        let checkers = stage.checkers.borrow();
        checkers.violations().iter().map(|violation| violation.broken.label()).collect()
    };
    assert_eq!(found(None), [""; 0]);
    let broken = found(Some(Mutation::MisreadPrices));
    assert!(broken.contains(&"cluster_dearer"), "{broken:?}");
}

fn pool() -> Value {
    json!({
        "metadata": {"name": "general"},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["17"]},
                // Spot is replaced by spot only where an operator asks for it.
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
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
