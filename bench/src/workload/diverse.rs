//! The mix of the reference's own benchmark (sheet 02 §27).

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use kerf_model::cluster::{InstanceType, Offering, Overhead};
use kerf_model::label::{ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, LabelRules, OS, ZONE};
use kerf_model::price::Price;
use kerf_model::quantity::{Notation, Quantity};
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::resources::{ResourceList, ResourceName};
use serde_json::{Value, json};

use super::Problem;
use crate::objects::{PodTemplate, Pool, anti_affinity, hard_spread, pod_term};
use crate::random::Random;

const TYPES: u32 = 400;
const SEED: u64 = 42;
pub(super) const ZONES: [&str; 3] = ["test-zone-1", "test-zone-2", "test-zone-3"];
const LABEL_VALUES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
const MILLI_CPUS: [u32; 5] = [100, 250, 500, 1000, 1500];
const MEMORIES_MIB: [u32; 6] = [100, 256, 512, 1024, 2048, 4096];

pub(super) fn write(count: usize, name: &str, file: &mut Problem<'_>) -> io::Result<()> {
    file.begin(name, "Respect", &types())?;
    file.pool(&pool())?;
    let mut random = Random::seeded(SEED);
    for at in 0..count {
        file.object("Pod", &pod(at, count, &mut random).pending(&format!("pod-{at:06}")))?;
    }
    Ok(())
}

/// A fifth of each class; the rest of the division is generic.
fn pod(at: usize, count: usize, random: &mut Random) -> PodTemplate {
    pod_of(if count < 5 { 0 } else { at / (count / 5) }, random)
}

/// Classes beyond the last are generic, like the first.
pub(super) fn pod_of(class: usize, random: &mut Random) -> PodTemplate {
    let own = random.pick(&LABEL_VALUES);
    let sized = |labels: Value, random: &mut Random| {
        let milli_cpu = random.pick(&MILLI_CPUS);
        PodTemplate::new(labels, milli_cpu, random.pick(&MEMORIES_MIB))
    };
    match class {
        1 | 2 => {
            // Drawn apart from the pod's own label: one pod in seven counts itself.
            let counted = json!({ "my-label": random.pick(&LABEL_VALUES) });
            let key = if class == 1 { ZONE } else { HOSTNAME };
            sized(json!({ "my-label": own }), random).with("topologySpreadConstraints", hard_spread(key, &counted))
        }
        3 => {
            let labels = json!({ "my-affininity": own });
            let term = pod_term(ZONE, &labels);
            let near = json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
            sized(labels, random).with("affinity", near)
        }
        4 => {
            let labels = json!({ "app": "nginx" });
            let apart = anti_affinity(HOSTNAME, &labels);
            sized(labels, random).with("affinity", apart)
        }
        _ => sized(json!({ "my-label": own }), random),
    }
}

pub(super) fn pool() -> Pool {
    Pool { limits: json!({ "cpu": "10000000", "memory": "10000000Gi" }), ..Pool::new("default") }
}

pub(super) fn types() -> Vec<InstanceType> {
    (1..=TYPES).map(instance_type).collect()
}

/// `cpu` cores, twice as many GiB, ten times as many pods; every offering at the same price.
fn instance_type(cpu: u32) -> InstanceType {
    let rules = LabelRules::core();
    let memory = (i64::from(cpu) * 2) << 30;
    let is_large = cpu > 4;
    let name: Arc<str> = format!("fake-it-{}", cpu - 1).into();
    let mut requirements = Requirements::new();
    let mut one_of = |key: &str, values: &[&str]| requirements.add(Requirement::one_of(key, values), &rules);
    one_of(INSTANCE_TYPE, &[&name]);
    one_of(ARCH, &["amd64"]);
    one_of(OS, &["linux", "windows", "darwin"]);
    one_of(ZONE, &ZONES);
    one_of(CAPACITY_TYPE, &["spot", "on-demand"]);
    one_of("integer", &[&cpu.to_string()]);
    one_of("size", &[if is_large { "large" } else { "small" }]);
    let special =
        if is_large { Requirement::one_of("special", ["optional"]) } else { Requirement::does_not_exist("special") };
    requirements.add(special, &rules);
    let offers = ZONES.map(|zone| (zone, "on-demand")).into_iter().chain([(ZONES[0], "spot"), (ZONES[1], "spot")]);
    // A tenth of a dollar per core and per 10^9 bytes.
    let price = Price::from_micros(i64::from(cpu) * 100_000 + memory / 10_000);
    let offering = |(zone, kind)| Offering {
        requirements: Requirements::from_labels([(ZONE, zone), (CAPACITY_TYPE, kind)], &rules),
        price,
        available: true,
        reservation_capacity: None,
        overrides: None,
    };
    InstanceType {
        offerings: offers.map(offering).collect(),
        name,
        requirements,
        capacity: list([
            (ResourceName::CPU, Quantity::from_value(i64::from(cpu), Notation::DecimalSi)),
            (ResourceName::MEMORY, Quantity::from_value(memory, Notation::BinarySi)),
            (ResourceName::PODS, Quantity::from_value(i64::from(cpu) * 10, Notation::DecimalSi)),
        ]),
        volume_limits: BTreeMap::new(),
        overhead: Overhead {
            kube_reserved: list([
                (ResourceName::CPU, Quantity::from_milli(100, Notation::DecimalSi)),
                (ResourceName::MEMORY, Quantity::from_value(10 << 20, Notation::BinarySi)),
            ]),
            ..Overhead::default()
        },
    }
}

fn list<const N: usize>(amounts: [(ResourceName, Quantity); N]) -> ResourceList {
    amounts.into_iter().collect()
}
