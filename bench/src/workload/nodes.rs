//! Clusters to consolidate: twenty pods on each node, with the rules of the diverse mix, in five pools.

use std::collections::BTreeMap;
use std::io;

use kerf_model::cluster::InstanceType;
use kerf_model::label::{CAPACITY_TYPE, ZONE};
use kerf_model::resources::ResourceName;
use serde_json::{Value, json};

use super::{Problem, amounts, diverse};
use crate::objects::{PodTemplate, Pool, PoolNode};
use crate::random::Random;

const SEED: u64 = 5000;
const PODS_PER_NODE: usize = 20;
const POOLS: usize = 5;

pub(super) fn write(count: usize, name: &str, file: &mut Problem<'_>) -> io::Result<()> {
    let types = diverse::types();
    file.begin(name, "Respect", &types)?;
    let pools: Vec<_> = (0..POOLS).map(pool).collect();
    for pool in &pools {
        file.pool(pool)?;
    }
    let mut random = Random::seeded(SEED);
    for at in 0..count {
        let pool = &pools[at % POOLS];
        let zone = diverse::ZONES[at / POOLS % diverse::ZONES.len()];
        let pods = pods(zone, &mut random);
        let kind = machine(&types, &pods, &mut random);
        let node_name = format!("node-{at:05}");
        let node = PoolNode {
            name: &node_name,
            pool: &pool.name,
            labels: labels(kind, zone, capacity_type(at % POOLS, zone)),
            taints: json!([]),
            capacity: amounts(&kind.capacity),
            allocatable: amounts(&kind.allocatable()),
        };
        file.object("NodeClaim", &node.claim())?;
        file.object("Node", &node.node())?;
        for (pod_at, pod) in pods.iter().enumerate() {
            file.object("Pod", &pod.running(&format!("pod-{at:05}-{pod_at:02}"), &node_name))?;
        }
    }
    Ok(())
}

/// Three pools of on-demand nodes, two that may have both.
fn pool(at: usize) -> Pool {
    let kinds: &[&str] = if at < 3 { &["on-demand"] } else { &["spot", "on-demand"] };
    Pool::new(&format!("pool-{at}")).requiring(CAPACITY_TYPE, "In", kinds)
}

/// Spot is not offered in every zone.
fn capacity_type(pool: usize, zone: &str) -> &'static str {
    if pool >= 3 && zone != diverse::ZONES[2] { "spot" } else { "on-demand" }
}

/// Twenty pods of all classes that may share a node in this zone.
fn pods(zone: &str, random: &mut Random) -> Vec<PodTemplate> {
    let mut pods: Vec<PodTemplate> = Vec::new();
    let mut on_this_host: BTreeMap<String, usize> = BTreeMap::new();
    while pods.len() < PODS_PER_NODE {
        let class = random.below(5);
        let pod = diverse::pod_of(class, random);
        // Those that belong together are in one zone, those that keep apart are alone or even on their host.
        let group = pod.labels.to_string();
        let fine = match class {
            2 => on_this_host.get(&counted(&pod)).copied().unwrap_or_default() == 0,
            3 => zone_of(&pod.labels) == zone,
            4 => !on_this_host.contains_key(&group),
            _ => true,
        };
        if fine {
            *on_this_host.entry(group).or_default() += 1;
            pods.push(pod);
        }
    }
    pods
}

/// The labels that a pod's spread counts.
fn counted(pod: &PodTemplate) -> String {
    pod.spec["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"].to_string()
}

fn zone_of(labels: &Value) -> &'static str {
    let letter = labels["my-affininity"].as_str().and_then(|value| value.bytes().next()).unwrap_or_default();
    diverse::ZONES[usize::from(letter) % diverse::ZONES.len()]
}

/// Between just large enough and twice that.
fn machine<'a>(types: &'a [InstanceType], pods: &[PodTemplate], random: &mut Random) -> &'a InstanceType {
    let (cpu, memory) = pods.iter().fold((0, 0), |(cpu, memory), pod| {
        (cpu + i64::from(pod.milli_cpu), memory + (i64::from(pod.memory_mib) << 20))
    });
    let large_enough = |kind: &&InstanceType| {
        let allocatable = kind.allocatable();
        let amount = |name: ResourceName| allocatable.amount(name.as_str());
        amount(ResourceName::CPU).milli().unwrap_or_default() >= cpu
            && amount(ResourceName::MEMORY).value().unwrap_or_default() >= memory
            && amount(ResourceName::PODS).value().unwrap_or_default() >= pods.len() as i64
    };
    let smallest = types.iter().position(|kind| large_enough(&kind)).unwrap_or(types.len() - 1);
    let more = random.below(smallest + 2);
    &types[(smallest + more).min(types.len() - 1)]
}

/// Of a node of this type.
pub(crate) fn labels(kind: &InstanceType, zone: &str, capacity_type: &str) -> Value {
    let mut labels = json!({ "kubernetes.io/os": "linux" });
    for requirement in kind.requirements.iter() {
        if let [value] = requirement.values() {
            labels[&**requirement.key()] = json!(&**value);
        }
    }
    labels[ZONE] = json!(zone);
    labels[CAPACITY_TYPE] = json!(capacity_type);
    labels
}
