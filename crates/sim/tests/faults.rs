//! The autoscaler among faults: random histories, a crash at every cut point, and proof that the checkers bite.
#![expect(clippy::unwrap_used, reason = "in helpers of tests a failure is the failure of the test")]

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use jiff::{SignedDuration, Timestamp};
use kerf_api::admission::Admission;
use kerf_cloud::Catalogue;
use kerf_engine::Settings;
use kerf_model::cloud::{InterruptionCause, RepairAction, RepairPolicy};
use kerf_model::cluster::{ConditionStatus, ObjectName};
use kerf_sim::autoscaler::{Autoscaler, CURED_BY_REBOOT, CloudPace};
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
    /// The template is edited in a way that running nodes can take.
    DriftInPlace,
    /// Besides, a pool has three nodes whatever the pods need, and each is replaced.
    DriftStatic,
    /// A node is sick for good.
    Repair,
    /// A node is sick in a way that a reboot cures.
    Reboot,
    /// The nodes are 20 minutes old.
    Expire,
    /// No pod is left.
    Empty,
    /// The cloud takes a machine back, and says so.
    Interrupt,
}

impl Script {
    fn settings(self) -> Settings {
        let mut settings = Autoscaler::default_settings();
        match self {
            Self::DriftInPlace => assert!(settings.set_gate("InPlaceDrift", true)),
            Self::DriftStatic => assert!(settings.set_gate("StaticCapacity", true)),
            Self::Repair | Self::Reboot => assert!(settings.set_gate("NodeRepair", true)),
            Self::Provision
            | Self::DeleteNode
            | Self::DeletePool
            | Self::Consolidate
            | Self::Drift
            | Self::Expire
            | Self::Empty
            | Self::Interrupt => {}
        }
        let policy = |condition: &str, reason: Option<&str>, action| RepairPolicy {
            condition: condition.into(),
            status: ConditionStatus::True,
            reason: reason.map(Into::into),
            toleration: SignedDuration::from_secs(30),
            termination_grace_period: Some(SignedDuration::from_mins(1)),
            priority: 0,
            action,
        };
        let policies = vec![
            policy("Sick", None, RepairAction::ReplaceNode),
            policy("Stuck", Some(".*"), RepairAction::RebootNode),
        ];
        settings.repair_by(policies, false).unwrap();
        settings
    }

    /// What there is besides a node class and pods.
    fn pools(self) -> Vec<Value> {
        let mut pools = vec![pool()];
        match self {
            Self::Expire => pools[0]["spec"]["template"]["spec"]["expireAfter"] = json!("20m"),
            Self::DriftStatic => {
                let mut fixed = pool();
                fixed["metadata"]["name"] = json!("fixed");
                fixed["spec"]["replicas"] = json!(3);
                pools.push(fixed);
            }
            Self::Provision
            | Self::DeleteNode
            | Self::DeletePool
            | Self::Consolidate
            | Self::Drift
            | Self::DriftInPlace
            | Self::Repair
            | Self::Reboot
            | Self::Empty
            | Self::Interrupt => {}
        }
        pools
    }
}

/// What is there in the end: pods that run, claims, nodes, instances, and what they cost in thousandths of a dollar per
/// hour.
type End = [usize; 5];

fn play(script: Script, faults: Faults) -> (End, u64, Vec<String>) {
    let start: Timestamp = "2026-01-05T09:00:00Z".parse().unwrap();
    let types = Arc::clone(Catalogue::kwok().types());
    let autoscaler = Autoscaler::new(types, CloudPace::default()).with_settings(script.settings());
    let mut stage = Stage::of(Arc::clone(&ADMISSION), autoscaler, 1, start);
    let class = json!({"metadata": {"name": "default"}});
    stage.world.store_mut().create(Kind::KwokNodeClass, class, start).unwrap();
    for pool in script.pools() {
        stage.world.store_mut().create(Kind::NodePool, pool, start).unwrap();
    }
    match script {
        Script::Provision => {
            *stage.autoscaler.borrow_mut().faults_mut() = faults;
            stage.world.store_mut().create(Kind::Deployment, deployment(), start).unwrap();
        }
        Script::DeleteNode
        | Script::DeletePool
        | Script::Consolidate
        | Script::Drift
        | Script::DriftInPlace
        | Script::DriftStatic
        | Script::Repair
        | Script::Reboot
        | Script::Expire
        | Script::Empty
        | Script::Interrupt => {
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
    if let Script::Interrupt = script {
        let mut autoscaler = stage.autoscaler.borrow_mut();
        let id = autoscaler.cloud().machines().next().unwrap().provider_id.to_owned();
        return autoscaler.cloud_mut().interrupt(&id, InterruptionCause::SpotReclaimed, now);
    }
    let oldest = stage.world.store().all(Kind::Node).next().map(|node| node.name.clone());
    let store = stage.world.store_mut();
    let pool = ObjectName::of_cluster("general");
    let web = ObjectName::new("default", "web");
    let edit = |template: Value| Patch::Merge(json!({"spec": {"template": template}}));
    let note = edit(json!({"metadata": {"annotations": {"example.com/edit": "two"}}}));
    let mut fall_ill = |type_: &str, reason: &str| {
        let condition =
            json!({"type": type_, "status": "True", "reason": reason, "lastTransitionTime": now.to_string()});
        let mut node = store.get(Kind::Node, oldest.as_ref().unwrap()).unwrap().body().clone();
        node["status"]["conditions"].as_array_mut().unwrap().push(condition);
        store.update(Kind::Node, oldest.as_ref().unwrap(), Part::Status, node).unwrap();
    };
    match script {
        Script::Provision | Script::Interrupt => {}
        Script::Repair => fall_ill("Sick", "DiskDied"),
        Script::Reboot => fall_ill("Stuck", CURED_BY_REBOOT),
        Script::DriftStatic => {
            for name in ["general", "fixed"] {
                store.patch(Kind::NodePool, &ObjectName::of_cluster(name), Part::Main, &note).unwrap();
            }
        }
        // Nodes that come later live for ever, and those that are there go by age alone.
        Script::Expire => {
            let never = edit(json!({"spec": {"expireAfter": "Never"}}));
            store.patch(Kind::NodePool, &pool, Part::Main, &never).unwrap();
            let stays = Patch::Merge(json!({"spec": {"disruption": {"drift": {"enabled": false}}}}));
            store.patch(Kind::NodePool, &pool, Part::Main, &stays).unwrap();
        }
        Script::Empty => {
            let none = Patch::Merge(json!({"spec": {"replicas": 0}}));
            store.patch(Kind::Deployment, &web, Part::Main, &none).unwrap();
        }
        Script::DeleteNode => drop(store.delete(Kind::Node, &oldest.unwrap(), &DeleteOptions::default(), now).unwrap()),
        Script::DeletePool => drop(store.delete(Kind::NodePool, &pool, &DeleteOptions::default(), now).unwrap()),
        Script::Consolidate => {
            let fewer = Patch::Merge(json!({"spec": {"replicas": FEWER_PODS}}));
            store.patch(Kind::Deployment, &web, Part::Main, &fewer).unwrap();
        }
        Script::Drift | Script::DriftInPlace => drop(store.patch(Kind::NodePool, &pool, Part::Main, &note).unwrap()),
    }
}

fn check_every_cut_point(script: Script) {
    let (expected, effects, violations) = play(script, Faults::none());
    assert_eq!(violations, [""; 0]);
    assert!(effects > 5, "{effects} effects are no script");
    for cut in 0..effects {
        let (end, _, violations) = play(script, Faults::crash_at(cut));
        // Pods that leave a node before its reboot may wait for it or not: then there are more nodes for the same price.
        let [pods, .., cost] = expected;
        let expected = if let Script::Reboot = script { [pods, end[1], end[2], end[3], cost] } else { expected };
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

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn a_crash_at_any_point_of_a_drift_in_place_gives_the_same_end() {
    assert_eq!(play(Script::DriftInPlace, Faults::none()).0, play(Script::Provision, Faults::none()).0);
    check_every_cut_point(Script::DriftInPlace);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn a_crash_at_any_point_of_a_static_pools_drift_gives_the_same_end() {
    assert_eq!(play(Script::DriftStatic, Faults::none()).0[0], PODS);
    check_every_cut_point(Script::DriftStatic);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn a_crash_at_any_point_of_a_repair_gives_the_same_end() {
    assert_eq!(play(Script::Repair, Faults::none()).0[0], PODS);
    check_every_cut_point(Script::Repair);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn a_crash_at_any_point_of_a_reboot_gives_the_same_end() {
    assert_eq!(play(Script::Reboot, Faults::none()).0[0], PODS);
    check_every_cut_point(Script::Reboot);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn a_crash_at_any_point_of_an_expiry_gives_the_same_end() {
    assert_eq!(play(Script::Expire, Faults::none()).0[0], PODS);
    check_every_cut_point(Script::Expire);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn a_crash_at_any_point_of_emptying_gives_the_same_end() {
    assert_eq!(play(Script::Empty, Faults::none()).0, [0; 5]);
    check_every_cut_point(Script::Empty);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn a_crash_at_any_point_of_an_interruption_gives_the_same_end() {
    assert_eq!(play(Script::Interrupt, Faults::none()).0[0], PODS);
    check_every_cut_point(Script::Interrupt);
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

/// So many histories are enough to meet every rule.
const ENOUGH: u64 = 60;

/// What a broken rule is reported as.
type Expected = fn(&Broken) -> bool;

/// Every rule that can be broken on purpose, and how the checkers say so: what this table does not show to bite, nobody
/// should believe. Flapping and a cluster that gets dearer have their own tests.
const BREACHES: [(Mutation, Expected); 25] = [
    (Mutation::SkipBudgets, |broken| matches!(broken, Broken::BudgetExceeded { .. })),
    (Mutation::ForgetFinalizer, |broken| matches!(broken, Broken::ClaimGoneBeforeInstance { .. })),
    (Mutation::LaunchTwice, |broken| matches!(broken, Broken::LaunchedTwice { .. })),
    (Mutation::IgnoreNodeBudgets, |broken| matches!(broken, Broken::NodeBudgetExceeded { .. })),
    (
        Mutation::IgnoreNodeBudgets,
        |broken| matches!(broken, Broken::NodeBudgetExceeded { reason, .. } if reason == "Unhealthy"),
    ),
    (Mutation::IgnoreWindows, |broken| matches!(broken, Broken::WindowIgnored { .. })),
    (Mutation::IgnoreWindows, |broken| matches!(broken, Broken::ExpiredTooEarly { .. })),
    (Mutation::DeleteAtOnce, |broken| matches!(broken, Broken::DeletedBeforeReplacement { .. })),
    (Mutation::KeepReplacements, |broken| matches!(broken, Broken::ReplacementOrphaned { .. })),
    (Mutation::KeepMarks, |broken| matches!(broken, Broken::MarkLeft { .. })),
    (Mutation::IgnoreProtectedNodes, is_chosen_in_spite_of_do_not_disrupt),
    (Mutation::IgnoreProtectedNodes, |broken| is_chosen_in_spite_of(broken, "karpenter.sh/do-not-deprovision")),
    (Mutation::IgnoreProtectedNodes, |broken| is_chosen_in_spite_of(broken, "karpenter.sh/do-not-repair")),
    (Mutation::IgnoreProtectedPods, |broken| matches!(broken, Broken::ProtectedPodTaken { .. })),
    (Mutation::IgnoreLimits, |broken| matches!(broken, Broken::LimitExceeded { .. })),
    (Mutation::IgnoreSwitches, |broken| matches!(broken, Broken::DisabledPoolDisrupted { .. })),
    (Mutation::IgnoreSwitches, |broken| matches!(broken, Broken::DisabledPoolGrew { .. })),
    (Mutation::IgnoreSwitches, |broken| matches!(broken, Broken::SwitchedOff { reason, .. } if reason == "Drifted")),
    (Mutation::ShrinkTooFar, |broken| matches!(broken, Broken::StaticPoolTooSmall { .. })),
    (Mutation::TakeStaticForDynamic, |broken| matches!(broken, Broken::StaticNodeNotReplaced { .. })),
    (Mutation::LaunchDear, |broken| matches!(broken, Broken::CostRaised { .. })),
    (Mutation::OverlookPods, |broken| matches!(broken, Broken::PodLeftWaiting { .. })),
    (Mutation::IgnoreWaves, |broken| matches!(broken, Broken::WaveExceeded { .. })),
    (Mutation::RepairAtOnce, |broken| matches!(broken, Broken::HealthyRepaired { .. })),
    (Mutation::DeleteHealthy, |broken| matches!(broken, Broken::DeletedForNothing { .. })),
];

/// These are rare: only few histories come to where they matter.
const RARE_BREACHES: [(Mutation, Expected); 6] = [
    (Mutation::OverlookSickness, |broken| matches!(broken, Broken::BreakerIgnored { .. })),
    (Mutation::KeepTaints, |broken| matches!(broken, Broken::TaintLeft { .. })),
    (Mutation::IgnoreProtectedNodes, |broken| is_chosen_in_spite_of(broken, "karpenter.sh/do-not-consolidate")),
    (Mutation::IgnoreLimits, |broken| matches!(broken, Broken::StaticPoolTooLarge { .. })),
    (Mutation::IgnoreFailures, |broken| matches!(broken, Broken::HaltIgnored { .. })),
    (Mutation::TakeCostsForOurs, |broken| matches!(broken, Broken::ForeignCostOverwritten { .. })),
];
const ENOUGH_FOR_RARE: u64 = 300;

fn is_chosen_in_spite_of(broken: &Broken, key: &str) -> bool {
    matches!(broken, Broken::ProtectedNodeChosen { annotation, .. } if annotation == key)
}

fn is_chosen_in_spite_of_do_not_disrupt(broken: &Broken) -> bool {
    is_chosen_in_spite_of(broken, "karpenter.sh/do-not-disrupt")
}

/// Runs histories with a rule broken on purpose until a checker says so.
fn missed(breaches: &[(Mutation, Expected)], enough: u64) -> Vec<(usize, Mutation)> {
    let mut missed: Vec<_> = breaches.iter().enumerate().collect();
    for mutation in breaches.iter().map(|(mutation, _)| *mutation).collect::<BTreeSet<_>>() {
        let options = Options { mutation: Some(mutation), ..Options::default() };
        for seed in 1..=enough {
            if !missed.iter().any(|(_, (own, _))| *own == mutation) {
                break;
            }
            let report = run(seed, &ADMISSION, Catalogue::kwok().types(), &options);
            let is_found = |expected: Expected| report.violations.iter().any(|it| expected(&it.broken));
            missed.retain(|(_, (own, expected))| *own != mutation || !is_found(*expected));
        }
    }
    missed.into_iter().map(|(at, (mutation, _))| (at, *mutation)).collect()
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn every_rule_that_is_broken_on_purpose_is_caught() {
    assert_eq!(missed(&BREACHES, ENOUGH), []);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn every_rule_that_rarely_matters_is_caught_too() {
    assert_eq!(missed(&RARE_BREACHES, ENOUGH_FOR_RARE), []);
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

/// Prices that swing: what has just been saved is to be saved again.
#[test]
#[cfg_attr(debug_assertions, ignore = "minutes unless optimised: cargo test --release -p kerf-sim --test faults")]
fn moving_pods_to_and_fro_to_save_money_is_caught() {
    let start: Timestamp = "2026-01-05T09:00:00Z".parse().unwrap();
    let faults = Faults::none().with(Some(Mutation::SwingPrices));
    let autoscaler = Autoscaler::new(Arc::clone(Catalogue::kwok().types()), CloudPace::default()).with_faults(faults);
    let mut stage = Stage::of(Arc::clone(&ADMISSION), autoscaler, 1, start);
    let mut pool = pool();
    pool["spec"]["disruption"] = json!({"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]});
    let class = (Kind::KwokNodeClass, json!({"metadata": {"name": "default"}}));
    for (kind, object) in [class, (Kind::NodePool, pool), (Kind::Deployment, deployment())] {
        stage.world.store_mut().create(kind, object, start).unwrap();
    }
    stage.run_until(start + SignedDuration::from_mins(5)).unwrap();
    stage.settle().unwrap();
    let checkers = stage.checkers.borrow();
    let broken: Vec<_> = checkers.violations().iter().map(|violation| violation.broken.label()).collect();
    assert!(broken.contains(&"flapping"), "{broken:?}");
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
