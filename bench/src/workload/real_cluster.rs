//! A cluster as companies run them: many Deployments with a few rules each, pools by purpose and by team, prices that
//! differ by zone, nodes that are partly full, daemons on all of them.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use kerf_cloud::catalogue::Catalogue;
use kerf_model::cluster::InstanceType;
use kerf_model::label::{ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, LabelRules, ZONE};
use kerf_model::price::Price;
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::resources::ResourceName;
use serde_json::{Value, json};

use super::{Problem, amounts};
use crate::objects::{CREATED, PodTemplate, Pool, PoolNode, anti_affinity, hard_spread, pod_term};
use crate::random::Random;

const SEED: u64 = 20_261_118;
const TYPES: usize = 800;
const DEPLOYMENTS: usize = 300;
const NODES: usize = 2000;
const PENDING: usize = 10_000;
const TEAMS: usize = 16;
/// How many Deployments a node is offered while it is being filled.
const TRIES: usize = 500;
const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-east-1c"];
const CATEGORY: &str = "karpenter.k8s.aws/instance-category";
const GENERATION: &str = "karpenter.k8s.aws/instance-generation";
const GPU_COUNT: &str = "karpenter.k8s.aws/instance-gpu-count";
const GPU: &str = "nvidia.com/gpu";
/// Name, thousandths of a core, MiB.
const DAEMONS: [(&str, u32, u32); 3] = [("agent", 100, 128), ("proxy", 50, 64), ("logs", 150, 256)];

pub(super) fn write(name: &str, file: &mut Problem<'_>) -> io::Result<()> {
    let mut random = Random::seeded(SEED);
    let types = types();
    let pools = pools();
    file.begin(name, "Respect", &types)?;
    for plan in &pools {
        file.pool(&plan.pool)?;
    }
    for daemon in DAEMONS {
        file.object("DaemonSet", &daemon_set(daemon))?;
    }
    let mut deployments: Vec<_> = (0..DEPLOYMENTS).map(|at| Deployment::new(at, &mut random)).collect();
    for at in 0..NODES {
        let plan = &pools[pool_of_node(at)];
        Machine::new(at, plan, &types, &mut random).write(&mut deployments, &mut random, file)?;
    }
    write_pending(&mut deployments, &mut random, file)
}

/// The EC2-like catalogue, and as many siblings of its machines as are missing: another name, three percent dearer.
fn types() -> Vec<InstanceType> {
    let catalogue = Catalogue::ec2_like();
    let siblings = ["s", "e", "q"].into_iter().flat_map(|suffix| {
        catalogue.types().iter().filter(|kind| kind.capacity.get(GPU).is_none()).map(move |kind| sibling(kind, suffix))
    });
    catalogue.types().iter().cloned().chain(siblings).take(TYPES).collect()
}

fn sibling(kind: &InstanceType, suffix: &str) -> InstanceType {
    let rules = LabelRules::core();
    let (family, size) = kind.name.split_once('.').unwrap_or((&kind.name, ""));
    let name: Arc<str> = format!("{family}{suffix}.{size}").into();
    let mut requirements = Requirements::new();
    for requirement in kind.requirements.iter() {
        let renamed = match &**requirement.key() {
            INSTANCE_TYPE => Requirement::one_of(INSTANCE_TYPE, [&name]),
            key if requirement.values() == [Arc::from(family)] => {
                Requirement::one_of(key, [format!("{family}{suffix}")])
            }
            _ => requirement.clone(),
        };
        requirements.add(renamed, &rules);
    }
    let mut offerings = kind.offerings.clone();
    for offering in &mut offerings {
        offering.price = Price::from_micros(offering.price.micros() * 103 / 100);
    }
    InstanceType { name, requirements, offerings, ..kind.clone() }
}

/// A pool, and what of it the generator must know to fill nodes.
struct PoolPlan {
    pool: Pool,
    purpose: Purpose,
    categories: &'static [&'static str],
    architecture: &'static str,
    capacity_types: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    General,
    OnDemand,
    Arm,
    Gpu,
    Team(usize),
}

const BOTH: &[&str] = &["spot", "on-demand"];
const ON_DEMAND: &[&str] = &["on-demand"];

fn pools() -> Vec<PoolPlan> {
    let all: &[&str] = &["c", "m", "r"];
    let mut plans = vec![
        PoolPlan::new(Purpose::General, "general", 50, all, "amd64", BOTH),
        PoolPlan::new(Purpose::OnDemand, "general-on-demand", 40, all, "amd64", ON_DEMAND),
        PoolPlan::new(Purpose::Arm, "arm", 30, all, "arm64", BOTH),
        PoolPlan::new(Purpose::Gpu, "gpu", 20, &["g", "p"], "amd64", ON_DEMAND),
    ];
    for team in 0..TEAMS {
        let categories: &[&str] = [all, &["c", "m"], &["m", "r"], &["m"]][team % 4];
        let capacity_types = if team % 4 == 3 { ON_DEMAND } else { BOTH };
        let name = format!("team-{team:02}");
        let mut plan = PoolPlan::new(Purpose::Team(team), &name, 10, categories, "amd64", capacity_types);
        plan.pool.labels = json!({ "team": name });
        plan.pool.taints = json!([{ "key": "dedicated", "value": name, "effect": "NoSchedule" }]);
        plans.push(plan);
    }
    plans
}

/// A third of the nodes are general; every team has its share.
fn pool_of_node(at: usize) -> usize {
    match at % 50 {
        0..19 => 0,
        19..24 => 1,
        24..29 => 2,
        29 => 3,
        rest => 4 + (at / 50 * 20 + rest - 30) % TEAMS,
    }
}

impl PoolPlan {
    fn new(
        purpose: Purpose,
        name: &str,
        weight: u32,
        categories: &'static [&'static str],
        architecture: &'static str,
        capacity_types: &'static [&'static str],
    ) -> Self {
        let mut pool = Pool::new(name)
            .requiring(CATEGORY, "In", categories)
            .requiring(ARCH, "In", &[architecture])
            .requiring(CAPACITY_TYPE, "In", capacity_types)
            .requiring(GENERATION, "Gt", &["3"]);
        if purpose == Purpose::Gpu {
            pool = pool.requiring(GPU_COUNT, "Exists", &[]);
            pool.taints = json!([{ "key": GPU, "effect": "NoSchedule" }]);
        }
        pool.weight = Some(weight);
        Self { pool, purpose, categories, architecture, capacity_types }
    }

    fn launches(&self, kind: &InstanceType) -> bool {
        let has = |key: &str, value: &str| kind.requirements.get(key).is_some_and(|own| own.has(value));
        let cores = kind.capacity.amount(ResourceName::CPU.as_str()).value().unwrap_or_default();
        has(ARCH, self.architecture)
            && self.categories.iter().any(|category| has(CATEGORY, category))
            && (self.purpose != Purpose::Gpu || kind.capacity.get(GPU).is_some())
            && (4..=32).contains(&cores)
    }
}

struct Deployment {
    name: String,
    template: PodTemplate,
    purpose: Purpose,
    spread_by_zone: bool,
    alone_on_a_host: bool,
    /// Only in this zone.
    zone: Option<&'static str>,
    made: usize,
    by_zone: BTreeMap<&'static str, usize>,
}

impl Deployment {
    fn new(at: usize, random: &mut Random) -> Self {
        let purpose = match random.below(100) {
            0..53 => Purpose::General,
            53..60 => Purpose::OnDemand,
            60..70 => Purpose::Arm,
            70..72 => Purpose::Gpu,
            _ => Purpose::Team(random.below(TEAMS)),
        };
        let name = format!("app-{at:03}");
        let labels = json!({ "app": name });
        let milli_cpu = random.pick(&[100, 250, 500, 500, 1000, 1000, 2000, 4000]);
        let memory_mib = (milli_cpu * random.pick(&[1, 2, 4, 4, 7]) * 1024 / 1000).max(128);
        let mut template = PodTemplate::new(labels.clone(), milli_cpu, memory_mib);
        let mut selector = json!({});
        match purpose {
            Purpose::General => {
                if random.percent(50) {
                    selector[ARCH] = json!("amd64");
                }
            }
            Purpose::OnDemand => selector[CAPACITY_TYPE] = json!("on-demand"),
            Purpose::Arm => selector[ARCH] = json!("arm64"),
            Purpose::Gpu => {
                template.resources.push((GPU, 1));
                template = template.with("tolerations", json!([{ "key": GPU, "operator": "Exists" }]));
            }
            Purpose::Team(team) => {
                let team = format!("team-{team:02}");
                template =
                    template.with("tolerations", json!([{ "key": "dedicated", "operator": "Equal", "value": team }]));
                selector["team"] = json!(team);
            }
        }
        let rule = random.below(100);
        let (mut spread_by_zone, mut alone_on_a_host, mut zone) = (false, false, None);
        match rule {
            0..25 => {
                spread_by_zone = true;
                template = template.with("topologySpreadConstraints", hard_spread(ZONE, &labels));
            }
            25..35 => {
                alone_on_a_host = true;
                template = template.with("affinity", anti_affinity(HOSTNAME, &labels));
            }
            35..43 => {
                let rather_apart = json!({ "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
                    { "weight": 100, "podAffinityTerm": pod_term(HOSTNAME, &labels) },
                ] } });
                template = template.with("affinity", rather_apart);
            }
            43..47 => {
                let pinned = random.pick(&ZONES);
                zone = Some(pinned);
                selector[ZONE] = json!(pinned);
            }
            _ => {}
        }
        let template = template.with("nodeSelector", selector);
        let by_zone = ZONES.into_iter().map(|zone| (zone, 0)).collect();
        Self { name, template, purpose, spread_by_zone, alone_on_a_host, zone, made: 0, by_zone }
    }

    fn next_name(&mut self) -> String {
        self.made += 1;
        format!("{}-{:05}", self.name, self.made)
    }

    /// Whether one more may run in the zone without breaking its spread.
    fn may_run_in(&self, zone: &str) -> bool {
        let least = self.by_zone.values().min().copied().unwrap_or_default();
        let evenly = !self.spread_by_zone || self.by_zone[zone] <= least;
        evenly && self.zone.is_none_or(|pinned| pinned == zone)
    }
}

/// A node that is up.
struct Machine<'a> {
    name: String,
    plan: &'a PoolPlan,
    kind: &'a InstanceType,
    zone: &'static str,
    capacity_type: &'static str,
}

impl<'a> Machine<'a> {
    fn new(at: usize, plan: &'a PoolPlan, types: &'a [InstanceType], random: &mut Random) -> Self {
        let fitting: Vec<_> = types.iter().filter(|kind| plan.launches(kind)).collect();
        let kind = random.pick(&fitting);
        let in_zone = |zone: &&'static str| kind.requirements.get(ZONE).is_some_and(|own| own.has(zone));
        let zones: Vec<_> = ZONES.into_iter().filter(|zone| in_zone(zone)).collect();
        Self {
            name: format!("node-{at:04}"),
            plan,
            kind,
            zone: random.pick(&zones),
            capacity_type: random.pick(plan.capacity_types),
        }
    }

    fn write(&self, deployments: &mut [Deployment], random: &mut Random, file: &mut Problem<'_>) -> io::Result<()> {
        let allocatable = self.kind.allocatable();
        let node = PoolNode {
            name: &self.name,
            pool: &self.plan.pool.name,
            labels: self.labels(),
            taints: self.plan.pool.taints.clone(),
            capacity: amounts(&self.kind.capacity),
            allocatable: amounts(&allocatable),
        };
        file.object("NodeClaim", &node.claim())?;
        file.object("Node", &node.node())?;
        for (daemon, milli_cpu, memory_mib) in DAEMONS {
            file.object("Pod", &daemon_pod((daemon, milli_cpu, memory_mib), &self.name))?;
        }
        let amount = |name: &str, unit: i64| allocatable.amount(name).milli().unwrap_or_default() / unit;
        let mut room = Room {
            milli_cpu: amount("cpu", 1) - DAEMONS.map(|(_, cpu, _)| i64::from(cpu)).iter().sum::<i64>(),
            memory_mib: amount("memory", 1000 << 20)
                - DAEMONS.map(|(_, _, memory)| i64::from(memory)).iter().sum::<i64>(),
            pods: amount("pods", 1000) - DAEMONS.len() as i64,
            gpus: amount(GPU, 1000),
        };
        // Most nodes are nearly full, some have a quarter free.
        let enough = room.milli_cpu * i64::from(random.pick(&[1, 3, 6, 12, 25])) / 100;
        let mut alone = Vec::new();
        for _ in 0..TRIES {
            let at = random.below(deployments.len());
            let deployment = &mut deployments[at];
            let welcome = deployment.purpose == self.plan.purpose
                && deployment.may_run_in(self.zone)
                && !(deployment.alone_on_a_host && alone.contains(&at));
            if welcome && room.milli_cpu > enough && room.take(&deployment.template) {
                alone.push(at);
                *deployment.by_zone.entry(self.zone).or_default() += 1;
                let name = deployment.next_name();
                file.object("Pod", &deployment.template.running(&name, &self.name))?;
            }
        }
        Ok(())
    }

    fn labels(&self) -> Value {
        let mut labels = self.plan.pool.labels.clone();
        for requirement in self.kind.requirements.iter() {
            if let [value] = requirement.values() {
                labels[&**requirement.key()] = json!(&**value);
            }
        }
        labels[ZONE] = json!(self.zone);
        labels[CAPACITY_TYPE] = json!(self.capacity_type);
        labels
    }
}

struct Room {
    milli_cpu: i64,
    memory_mib: i64,
    pods: i64,
    gpus: i64,
}

impl Room {
    /// Whether there was enough; then it is taken.
    fn take(&mut self, template: &PodTemplate) -> bool {
        let gpus: i64 = template.resources.iter().map(|(_, amount)| i64::from(*amount)).sum();
        let (milli_cpu, memory_mib) = (i64::from(template.milli_cpu), i64::from(template.memory_mib));
        let fits = milli_cpu <= self.milli_cpu && memory_mib <= self.memory_mib && gpus <= self.gpus && self.pods > 0;
        if fits {
            self.milli_cpu -= milli_cpu;
            self.memory_mib -= memory_mib;
            self.gpus -= gpus;
            self.pods -= 1;
        }
        fits
    }
}

/// A third of the Deployments are being scaled up; those that want a host each by little.
fn write_pending(deployments: &mut [Deployment], random: &mut Random, file: &mut Problem<'_>) -> io::Result<()> {
    let scaled: Vec<_> = (0..deployments.len()).filter(|_| random.percent(33)).collect();
    let mut pending = vec![0; deployments.len()];
    let mut left = PENDING;
    while left > 0 {
        let at = random.pick(&scaled);
        let deployment = &mut deployments[at];
        let most = match (deployment.purpose, deployment.alone_on_a_host) {
            (_, true) => 40,
            (Purpose::Gpu, false) => 30,
            (Purpose::General | Purpose::OnDemand | Purpose::Arm | Purpose::Team(_), false) => 400,
        };
        if pending[at] < most {
            pending[at] += 1;
            left -= 1;
            let name = deployment.next_name();
            file.object("Pod", &deployment.template.pending(&name))?;
        }
    }
    Ok(())
}

fn daemon_template((name, milli_cpu, memory_mib): (&str, u32, u32)) -> PodTemplate {
    let everywhere = json!([{ "operator": "Exists" }]);
    PodTemplate::new(json!({ "daemon": name }), milli_cpu, memory_mib).with("tolerations", everywhere)
}

fn daemon_pod(daemon: (&str, u32, u32), node: &str) -> Value {
    let mut pod = daemon_template(daemon).running(&format!("{}-{node}", daemon.0), node);
    let owner =
        json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemon.0, "uid": daemon.0, "controller": true });
    pod["metadata"]["ownerReferences"] = json!([owner]);
    pod
}

fn daemon_set(daemon: (&str, u32, u32)) -> Value {
    let pod = daemon_template(daemon).pending("template");
    json!({
        "apiVersion": "apps/v1",
        "metadata": { "name": daemon.0, "namespace": "default", "uid": daemon.0, "creationTimestamp": CREATED },
        "spec": {
            "selector": { "matchLabels": pod["metadata"]["labels"] },
            "template": { "metadata": { "labels": pod["metadata"]["labels"] }, "spec": pod["spec"] },
        },
    })
}
