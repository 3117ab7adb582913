//! Decides one round over many nodes and prints how long it took.
//!
//! `cargo run --release -p kerf-disruption --example round -- 1000 [busy|idle|drifted] [compatible] [pdbs=500]`
//!
//! Five pools, 20 pods on each node, a sixth of them with topology spread, a sixth with anti-affinity, a sixth bound to
//! a zone. `busy` nodes are well packed, so that nothing can go; `idle` ones are a third full. `pdbs` are in the namespace of
//! all pods, and few of them select any.

#![expect(clippy::unwrap_used, reason = "an example that measures itself")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use kerf_disruption::{Memory, Policy, Settings, View, decide};
use kerf_model::budget::{Budget, BudgetText};
use kerf_model::change::Change;
use kerf_model::cluster::*;
use kerf_model::duration::NillableDuration;
use kerf_model::label::{self, LabelRules};
use kerf_model::node_pool::*;
use kerf_model::price::Price;
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::resources::{ResourceList, ResourceName};
use kerf_model::selector::Selector;
use kerf_model::snapshot::ClusterSnapshot;

const POOLS: usize = 5;
const PODS: usize = 20;
const ZONES: [&str; 3] = ["a", "b", "c"];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let count: usize = words.first().map_or(1000, |count| count.parse().unwrap());
    let has = |word: &str| words.iter().any(|own| own == word);
    let types: BTreeMap<Arc<str>, Arc<[InstanceType]>> = {
        let all: Arc<[InstanceType]> = instance_types().into();
        (0..POOLS).map(|at| (pool_name(at), Arc::clone(&all))).collect()
    };
    let mut snapshot = cluster(count, has("idle"), has("drifted"));
    let pdbs = words.iter().find_map(|word| word.strip_prefix("pdbs=")).map_or(0, |pdbs| pdbs.parse().unwrap());
    for at in 0..pdbs {
        let pdb = pdb(at);
        snapshot.apply(Change::DisruptionBudget(pdb.meta.name.clone(), Some(Arc::new(pdb))));
    }
    let rules = LabelRules::core();
    let mut settings = Settings::for_classes(vec![ClassKind { group: Arc::from("test"), kind: Arc::from("Class") }]);
    if has("compatible") {
        settings.policy = Policy::Compatible;
    }
    let memory = Memory::default();
    let view = View {
        snapshot: &snapshot,
        types: &types,
        labels: &rules,
        scheduling: kerf_scheduling::Options::default(),
        default_spread: &kerf_scheduling::NO_DEFAULT_SPREAD,
        virtual_pods: &[],
        settings: &settings,
        memory: &memory,
        now: now(),
    };
    let start = Instant::now();
    let round = decide(&view);
    let took = start.elapsed();
    let mut labels: BTreeMap<&str, usize> = BTreeMap::new();
    for verdict in round.verdicts.values() {
        *labels.entry(verdict.label()).or_default() += 1;
    }
    let going: usize = round.proposals.iter().map(|proposal| proposal.candidates.len()).sum();
    println!(
        "{count} nodes: {:.0} ms, {} what-ifs, {} proposals for {going} nodes",
        took.as_secs_f64() * 1e3,
        round.work.what_ifs,
        round.proposals.len()
    );
    println!("{labels:?}");
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365)
}

fn pool_name(at: usize) -> Arc<str> {
    Arc::from(format!("pool-{at}"))
}

fn list(amounts: &[(&str, String)]) -> ResourceList {
    amounts.iter().map(|(name, amount)| (ResourceName::from(*name), amount.parse().unwrap())).collect()
}

fn instance_types() -> Vec<InstanceType> {
    let rules = LabelRules::core();
    let mut types = Vec::new();
    for family in 0..10_i64 {
        for size in [2_i64, 4, 8, 16, 32, 64] {
            let name = format!("f{family}-{size}");
            let offerings = ZONES.iter().flat_map(|zone| ["on-demand", "spot"].map(|kind| (*zone, kind)));
            let offerings = offerings.map(|(zone, kind)| Offering {
                requirements: Requirements::from_labels([(label::ZONE, zone), (label::CAPACITY_TYPE, kind)], &rules),
                price: Price::from_micros((50_000 + family * 1_500) * size * if kind == "spot" { 6 } else { 10 } / 10),
                available: true,
                reservation_capacity: None,
                overrides: None,
            });
            let mut requirements = Requirements::new();
            requirements.add(Requirement::one_of(label::INSTANCE_TYPE, [&name]), &rules);
            requirements.add(Requirement::one_of(label::ZONE, ZONES), &rules);
            requirements.add(Requirement::one_of(label::CAPACITY_TYPE, ["on-demand", "spot"]), &rules);
            requirements.add(Requirement::one_of(label::ARCH, ["amd64"]), &rules);
            requirements.add(Requirement::one_of(label::OS, ["linux"]), &rules);
            types.push(InstanceType {
                name: Arc::from(name),
                requirements,
                offerings: offerings.collect(),
                capacity: capacity(size),
                overhead: Overhead::default(),
                volume_limits: BTreeMap::new(),
            });
        }
    }
    types
}

fn capacity(cpu: i64) -> ResourceList {
    list(&[("cpu", cpu.to_string()), ("memory", format!("{}Gi", cpu * 4)), ("pods", "110".to_owned())])
}

fn meta(name: &str, namespace: &str) -> ObjectMeta {
    ObjectMeta {
        name: ObjectName::new(namespace, name),
        uid: Arc::from(format!("uid-{name}")),
        resource_version: Arc::from("1"),
        generation: 1,
        created: Timestamp::UNIX_EPOCH,
        deleting: None,
        labels: Texts::new(),
        annotations: Texts::new(),
        finalizers: Vec::new(),
        owners: Vec::new(),
    }
}

fn class() -> NodeClassRef {
    NodeClassRef { group: Arc::from("test"), kind: Arc::from("Class"), name: Arc::from("default") }
}

fn condition(kind: &str) -> Condition {
    let (reason, message) = (Arc::from(kind), Arc::from(""));
    let since = Timestamp::UNIX_EPOCH;
    Condition { kind: Arc::from(kind), status: ConditionStatus::True, reason, message, since, observed_generation: 1 }
}

fn node_spec() -> NodeSpec {
    NodeSpec {
        class: class(),
        requirements: Requirements::new(),
        taints: Vec::new(),
        startup_taints: Vec::new(),
        expire_after: NillableDuration::Never,
        termination_grace_period: None,
    }
}

fn pool(at: usize) -> StoredPool {
    let name = pool_name(at);
    let rules = LabelRules::core();
    let mut node = node_spec();
    node.requirements.add(Requirement::one_of(label::CAPACITY_TYPE, ["on-demand"]), &rules);
    let spec = NodePool {
        weight: 0,
        size: PoolSize::Dynamic,
        limits: ResourceList::new(),
        labels: Texts::from([(Arc::from("team"), Arc::clone(&name))]),
        annotations: Texts::new(),
        node,
        disruption: Disruption {
            enabled: true,
            policy: ConsolidationPolicy::WhenEmptyOrUnderutilized,
            consolidate_after: "0s".parse().unwrap(),
            consolidation_enabled: true,
            drift_enabled: true,
            drift_force_evict: false,
            expiration_enabled: true,
            budgets: [Budget::parse(BudgetText { nodes: "10%", ..BudgetText::default() })].into_iter().collect(),
        },
        disabled: false,
        name: Arc::clone(&name),
    };
    let status = PoolStatus { conditions: Conditions(vec![condition("Ready")]), ..PoolStatus::default() };
    StoredPool { meta: meta(&name, ""), spec: Ok(spec), class: class(), hash: None, status }
}

fn cluster(count: usize, is_idle: bool, is_drifted: bool) -> ClusterSnapshot {
    let mut snapshot = ClusterSnapshot::default();
    for at in 0..POOLS {
        let stored = pool(at);
        snapshot.apply(Change::NodePool(stored.meta.name.clone(), Some(Arc::new(stored))));
    }
    let shapes: Vec<Arc<PodConstraints>> = (0..POOLS * 6).map(|at| Arc::new(constraints(at))).collect();
    for at in 0..count {
        let name = format!("node-{at:05}");
        for change in node(&name, at, is_drifted && at % 2 == 0) {
            snapshot.apply(change);
        }
        for index in 0..PODS {
            let pod = pod(&name, at, index, is_idle, &shapes);
            snapshot.apply(Change::Pod(pod.meta.name.clone(), Some(Arc::new(pod))));
        }
    }
    snapshot
}

fn node(name: &str, at: usize, is_drifted: bool) -> Vec<Change> {
    let size = 16;
    let kind = format!("f{}-{size}", at % 3);
    let mut meta = meta(name, "");
    let pool = pool_name(at % POOLS);
    for (key, value) in [
        (label::NODEPOOL, &*pool),
        ("team", &*pool),
        (label::INSTANCE_TYPE, kind.as_str()),
        (label::ZONE, ZONES[at % 3]),
        (label::CAPACITY_TYPE, "on-demand"),
        (label::HOSTNAME, name),
        (label::ARCH, "amd64"),
        (label::OS, "linux"),
        (label::REGISTERED, "true"),
        (label::INITIALIZED, "true"),
    ] {
        meta.labels.insert(Arc::from(key), Arc::from(value));
    }
    let id: Arc<str> = Arc::from(format!("id-{name}"));
    let mut conditions = vec![condition("Launched"), condition("Initialized"), condition("Consolidatable")];
    if is_drifted {
        conditions.push(condition("Drifted"));
    }
    let claim = NodeClaim {
        meta: meta.clone(),
        node: node_spec(),
        requests: ResourceList::new(),
        status: ClaimStatus {
            provider_id: Some(Arc::clone(&id)),
            capacity: capacity(size),
            allocatable: capacity(size),
            conditions: Conditions(conditions),
            ..ClaimStatus::default()
        },
    };
    let ready = NodeCondition {
        kind: Arc::from("Ready"),
        status: ConditionStatus::True,
        reason: Arc::from(""),
        since: Timestamp::UNIX_EPOCH,
    };
    let node = Node {
        provider_id: Some(id),
        taints: Vec::new(),
        unschedulable: false,
        capacity: capacity(size),
        allocatable: capacity(size),
        conditions: vec![ready],
        boot_id: None,
        meta,
    };
    vec![
        Change::NodeClaim(claim.meta.name.clone(), Some(Arc::new(claim))),
        Change::Node(node.meta.name.clone(), Some(Arc::new(node))),
    ]
}

fn pdb(at: usize) -> DisruptionBudget {
    let app = format!("app-{at}");
    DisruptionBudget {
        meta: meta(&format!("pdb-{at}"), "default"),
        selector: Some(Selector::new([("app", app.as_str())], []).unwrap()),
        disruptions_allowed: 1_000,
        never_allows: false,
        always_allows_unhealthy: false,
    }
}

/// By pool, then by kind of constraint.
fn constraints(at: usize) -> PodConstraints {
    let mut own =
        PodConstraints { node_selector: vec![(Arc::from("team"), pool_name(at / 6))], ..PodConstraints::default() };
    let app = format!("app-{at}");
    let selector = Some(Selector::new([("app", app.as_str())], []).unwrap());
    match at % 6 {
        0 => own.spread.push(SpreadConstraint {
            max_skew: 5,
            topology_key: Arc::from(label::ZONE),
            when_unsatisfiable: WhenUnsatisfiable::DoNotSchedule,
            selector,
            min_domains: None,
            honors_node_affinity: true,
            honors_node_taints: false,
        }),
        1 => own.required_anti_affinity.push(PodAffinityTerm {
            topology_key: Arc::from(label::HOSTNAME),
            selector: Some(Selector::new([("app", "nobody")], []).unwrap()),
            namespaces: Vec::new(),
            namespace_selector: None,
        }),
        2 => own.node_selector.push((Arc::from(label::ZONE), Arc::from(ZONES[at % 3]))),
        _ => {}
    }
    own
}

fn pod(node: &str, at: usize, index: usize, is_idle: bool, shapes: &[Arc<PodConstraints>]) -> Pod {
    let name = format!("{node}-{index}");
    let shape = (at % POOLS) * 6 + index % 6;
    let mut meta = meta(&name, "default");
    meta.labels.insert(Arc::from("app"), Arc::from(format!("app-{shape}")));
    let milli = [400, 900, 700, 1000, 600, 800][index % 6] / if is_idle { 3 } else { 1 };
    let requests =
        list(&[("cpu", format!("{milli}m")), ("memory", format!("{}Mi", milli * 3)), ("pods", "1".to_owned())]);
    Pod {
        meta,
        node_name: Some(Arc::from(node)),
        phase: PodPhase::Running,
        requests,
        constraints: Arc::clone(&shapes[shape]),
        volumes: Vec::new(),
        priority: 0,
        priority_class: None,
        unschedulable: false,
        nominated_node: None,
        do_not_disrupt: DoNotDisrupt::No,
        started: Some(Timestamp::UNIX_EPOCH),
        is_unready: false,
        termination_grace: None,
        uses_resource_claims: false,
    }
}
