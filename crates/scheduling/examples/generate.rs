//! Schedules many pods on many instance types and prints how long it took.
//!
//! `cargo run --release -p kerf-scheduling --example generate -- 5000 [diverse|compatible|what-ifs]`: that many pods, all
//! alike or in the mix of the benchmark, by the best or the compatible policy; or what-ifs on that many nodes.

#![expect(clippy::unwrap_used, reason = "an example that measures itself")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use kerf_model::budget::BudgetList;
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
use kerf_scheduling::{Aim, Options, PlannedClaim, Policy, Prepared, Problem, Question, ReservedMode, Supply, solve};

const TYPES: u32 = 400;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().map_or(5000, |count| count.parse().unwrap());
    let mode = arguments.next();
    let is_diverse = matches!(mode.as_deref(), Some("diverse" | "compatible"));
    let rules = LabelRules::core();
    if mode.as_deref() == Some("what-ifs") {
        return what_ifs(count, &rules);
    }
    let policy = if mode.as_deref() == Some("compatible") { Policy::Compatible } else { Policy::Best };
    let mut cluster = ClusterSnapshot::default();
    cluster.apply(Change::NodePool(ObjectName::of_cluster("general"), Some(Arc::new(pool()))));
    let types: Arc<[InstanceType]> = (1..=TYPES).map(|size| instance_type(size, &rules)).collect();
    let shapes = shapes();
    let mut random = Random(42);
    let pods: Vec<_> = (0..count)
        .map(|at| {
            let (labels, constraints) = if is_diverse { random.pick(&shapes).clone() } else { shapes[0].clone() };
            Arc::new(pod(at, labels, constraints, &mut random))
        })
        .collect();
    let problem = Problem {
        pods,
        excluded: BTreeSet::new(),
        types: BTreeMap::from([(Arc::from("general"), types)]),
        rules: &rules,
        options: Options { policy, ..Options::default() },
    };
    let start = Instant::now();
    let schedule = solve(&cluster, &problem);
    let took = start.elapsed();
    let cost: i64 = schedule.new_claims.iter().filter_map(PlannedClaim::price).map(Price::micros).sum();
    println!(
        "{count} pods on {TYPES} types: {took:?}, {} claims for {} per hour, {} pods left over",
        schedule.new_claims.len(),
        Price::from_micros(cost),
        schedule.unplaced.len()
    );
}

/// How long it takes to ask what became of the pods of one node, of so many nodes with twenty pods each.
fn what_ifs(count: usize, rules: &LabelRules) {
    const ASKED: usize = 500;
    let mut cluster = ClusterSnapshot::default();
    cluster.apply(Change::NodePool(ObjectName::of_cluster("general"), Some(Arc::new(pool()))));
    let types: Arc<[InstanceType]> = (1..=TYPES).map(|size| instance_type(size, rules)).collect();
    let (shapes, mut random) = (shapes(), Random(42));
    for at in 0..count {
        let labels = [
            (label::NODEPOOL, "general"),
            (label::ZONE, ["zone-1", "zone-2", "zone-3"][at % 3]),
            (label::CAPACITY_TYPE, "on-demand"),
            (label::INSTANCE_TYPE, "type-20"),
        ];
        let labels = labels.into_iter().map(|(key, value)| (Arc::from(key), Arc::from(value))).collect();
        let capacity = resources(&[("cpu", "20"), ("memory", "40Gi"), ("pods", "200")]);
        let node = Node {
            meta: meta("", &format!("node-{at}"), labels),
            provider_id: Some(Arc::from(format!("id-{at}"))),
            taints: Vec::new(),
            unschedulable: false,
            capacity: capacity.clone(),
            allocatable: capacity,
            conditions: Vec::new(),
            boot_id: None,
        };
        let name = node.name().clone();
        cluster.apply(Change::Node(node.meta.name.clone(), Some(Arc::new(node))));
        for nth in 0..20 {
            let (labels, constraints) = random.pick(&shapes).clone();
            let mut pod = pod(at * 20 + nth, labels, constraints, &mut random);
            pod.node_name = Some(Arc::clone(&name));
            pod.unschedulable = false;
            cluster.apply(Change::Pod(pod.meta.name.clone(), Some(Arc::new(pod))));
        }
    }
    let types = BTreeMap::from([(Arc::from("general"), types)]);
    let start = Instant::now();
    let prepared = Prepared::new(&cluster, Supply { types: &types, rules, options: Options::default() });
    let prepared_in = start.elapsed();
    let start = Instant::now();
    let mut claims = 0;
    for at in 0..ASKED {
        let name: Arc<str> = Arc::from(format!("node-{}", at * count / ASKED));
        let pods = cluster.pods_on(&name).cloned().collect();
        let excluded = BTreeSet::from([name]);
        let question =
            Question { pods, excluded, reserved: ReservedMode::Fallback, aim: Aim::Replace, ..Question::default() };
        claims += prepared.solve(&question).new_claims.len();
    }
    let each = start.elapsed() / u32::try_from(ASKED).unwrap();
    println!("{count} nodes prepared in {prepared_in:?}; a what-if takes {each:?}; {claims} new claims in {ASKED}");
}

/// xorshift, so that every run is the same.
struct Random(u64);

impl Random {
    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        &from[usize::try_from(self.0 % from.len() as u64).unwrap()]
    }
}

/// The mix of sheet 02 §27: generic, spread by zone, spread by host, together in a zone, one per host.
fn shapes() -> Vec<(Texts, Arc<PodConstraints>)> {
    let labels = |key: &str, value: &str| Texts::from([(Arc::from(key), Arc::from(value))]);
    let selector = |key, value| Some(Selector::new([(key, value)], []).unwrap());
    let spread = |topology_key: &str, value| SpreadConstraint {
        max_skew: 1,
        topology_key: Arc::from(topology_key),
        when_unsatisfiable: WhenUnsatisfiable::DoNotSchedule,
        selector: selector("my-label", value),
        min_domains: None,
        honors_node_affinity: true,
        honors_node_taints: false,
    };
    let near = |topology_key: &str, key, value| PodAffinityTerm {
        topology_key: Arc::from(topology_key),
        selector: selector(key, value),
        namespaces: Vec::new(),
        namespace_selector: None,
    };
    let mut shapes = Vec::new();
    let values = ["a", "b", "c", "d", "e", "f", "g"];
    for value in values {
        let other = values[(value.len() * 3) % values.len()];
        let spread_by = |key| PodConstraints { spread: vec![spread(key, other)], ..PodConstraints::default() };
        let together = PodConstraints {
            required_affinity: vec![near(label::ZONE, "my-affinity", value)],
            ..PodConstraints::default()
        };
        let alone = PodConstraints {
            required_anti_affinity: vec![near(label::HOSTNAME, "app", "nginx")],
            ..PodConstraints::default()
        };
        shapes.extend([
            (labels("my-label", value), Arc::new(PodConstraints::default())),
            (labels("my-label", value), Arc::new(spread_by(label::ZONE))),
            (labels("my-label", value), Arc::new(spread_by(label::HOSTNAME))),
            (labels("my-affinity", value), Arc::new(together)),
            (labels("app", "nginx"), Arc::new(alone)),
        ]);
    }
    shapes
}

fn meta(namespace: &str, name: &str, labels: Texts) -> ObjectMeta {
    ObjectMeta {
        name: ObjectName::new(namespace, name),
        uid: Arc::from(name),
        resource_version: Arc::from("1"),
        generation: 1,
        created: Timestamp::UNIX_EPOCH,
        deleting: None,
        labels,
        annotations: Texts::new(),
        finalizers: Vec::new(),
        owners: Vec::new(),
    }
}

fn pod(at: usize, labels: Texts, constraints: Arc<PodConstraints>, random: &mut Random) -> Pod {
    let cpu = random.pick(&["100m", "250m", "500m", "1", "1500m"]);
    let memory = random.pick(&["100Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi"]);
    Pod {
        meta: meta("default", &format!("pod-{at}"), labels),
        node_name: None,
        phase: PodPhase::Pending,
        requests: resources(&[("cpu", cpu), ("memory", memory), ("pods", "1")]),
        constraints,
        volumes: Vec::new(),
        priority: 0,
        priority_class: None,
        unschedulable: true,
        nominated_node: None,
        do_not_disrupt: DoNotDisrupt::No,
        started: None,
        termination_grace: None,
        is_unready: false,
        uses_resource_claims: false,
    }
}

fn resources(amounts: &[(&str, &str)]) -> ResourceList {
    amounts.iter().map(|(name, amount)| (ResourceName::from(*name), amount.parse().unwrap())).collect()
}

fn instance_type(size: u32, rules: &LabelRules) -> InstanceType {
    let name: Arc<str> = Arc::from(format!("type-{size}"));
    let zones = ["zone-1", "zone-2", "zone-3"];
    let mut requirements = Requirements::new();
    requirements.add(Requirement::one_of(label::INSTANCE_TYPE, [&name]), rules);
    requirements.add(Requirement::one_of(label::ARCH, ["amd64"]), rules);
    requirements.add(Requirement::one_of(label::OS, ["linux"]), rules);
    requirements.add(Requirement::one_of(label::ZONE, zones), rules);
    requirements.add(Requirement::one_of(label::CAPACITY_TYPE, ["spot", "on-demand"]), rules);
    let offers = zones.map(|zone| (zone, "on-demand")).into_iter().chain([("zone-1", "spot"), ("zone-2", "spot")]);
    let offering = |(zone, kind)| Offering {
        requirements: Requirements::from_labels([(label::ZONE, zone), (label::CAPACITY_TYPE, kind)], rules),
        price: Price::from_micros(i64::from(size) * 300_000),
        available: true,
        reservation_capacity: None,
        overrides: None,
    };
    let text = |number: u32, unit: &str| format!("{number}{unit}");
    InstanceType {
        name,
        requirements,
        offerings: offers.map(offering).collect(),
        capacity: resources(&[
            ("cpu", &text(size, "")),
            ("memory", &text(size * 2, "Gi")),
            ("pods", &text(size * 10, "")),
        ]),
        overhead: Overhead { kube_reserved: resources(&[("cpu", "100m"), ("memory", "10Mi")]), ..Overhead::default() },
        volume_limits: BTreeMap::new(),
    }
}

fn pool() -> StoredPool {
    let class = NodeClassRef { group: Arc::from("example.com"), kind: Arc::from("Class"), name: Arc::from("default") };
    let node = NodeSpec {
        class: class.clone(),
        requirements: Requirements::new(),
        taints: Vec::new(),
        startup_taints: Vec::new(),
        expire_after: NillableDuration::Never,
        termination_grace_period: None,
    };
    let spec = NodePool {
        name: Arc::from("general"),
        weight: 0,
        size: PoolSize::Dynamic,
        limits: resources(&[("cpu", "10000000"), ("memory", "10000000Gi")]),
        labels: Texts::new(),
        annotations: Texts::new(),
        node,
        disruption: Disruption {
            enabled: true,
            policy: ConsolidationPolicy::WhenEmpty,
            consolidate_after: NillableDuration::Never,
            consolidation_enabled: true,
            drift_enabled: true,
            drift_force_evict: false,
            expiration_enabled: true,
            budgets: BudgetList::default(),
        },
        disabled: false,
    };
    let ready = Condition {
        kind: Arc::from("Ready"),
        status: ConditionStatus::True,
        reason: Arc::from("Ready"),
        message: Arc::from(""),
        since: Timestamp::UNIX_EPOCH,
        observed_generation: 1,
    };
    let status = PoolStatus { conditions: Conditions(vec![ready]), ..PoolStatus::default() };
    StoredPool { meta: meta("", "general", Texts::new()), spec: Ok(spec), class, hash: None, status }
}
