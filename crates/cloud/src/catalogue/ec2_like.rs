//! Families and sizes as on EC2.
//!
//! Shapes are EC2's; on-demand prices are list prices of us-east-1 as they once were; spot prices are made up, between 30
//! and 54 percent of that by type and zone. Labels are those of the AWS provider, so that pools written for it mean
//! something, and KWOK's, because it is KWOK's nodes that get them.

mod families;

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::cluster::{InstanceType, Offering, Overhead};
use kerf_model::label::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, LabelRules, OS, REGION, ZONE, capacity_type};
use kerf_model::price::Price;
use kerf_model::quantity::{Notation, Quantity};
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::resources::{ResourceList, ResourceName};

use super::{KWOK_CPU, KWOK_FAMILY, KWOK_MEMORY, KWOK_SIZE, labels};
use crate::fingerprint::fingerprint;
use families::{Architecture, FAMILIES, Family, GPU_TYPES, GpuType};

const REGION_NAME: &str = "us-east-1";
const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-east-1c"];
const ROOT_DISK: i64 = 20 << 30;

/// By family, small sizes first; GPU types last.
pub(super) fn types() -> impl Iterator<Item = InstanceType> {
    let regular = FAMILIES.iter().flat_map(|family| family.sizes.iter().map(|size| Machine::of_size(family, size)));
    regular.chain(GPU_TYPES.iter().map(Machine::with_gpus)).map(|machine| machine.to_type())
}

/// One type, all its numbers settled.
struct Machine {
    family: &'static str,
    size: &'static str,
    category: &'static str,
    generation: u32,
    architecture: Architecture,
    manufacturer: &'static str,
    cpus: u32,
    memory_mib: i64,
    nvme_gb: u32,
    gpu: Option<&'static GpuType>,
    on_demand: Price,
    zones: &'static [&'static str],
}

impl Machine {
    fn of_size(family: &'static Family, (size, cpus): &'static (&str, u32)) -> Self {
        let memory_mib = i64::from(cpus * family.gib_per_cpu) * 1024;
        Self {
            family: family.name,
            size,
            category: family.category,
            generation: family.generation,
            architecture: family.architecture,
            manufacturer: family.manufacturer,
            cpus: *cpus,
            memory_mib,
            nvme_gb: family.nvme_gb_of_large * cpus / 2,
            gpu: None,
            on_demand: Price::from_micros(family.micros_of_large * i64::from(*cpus) / 2),
            // The newest generation has not reached every zone.
            zones: if family.generation >= 8 { &ZONES[..2] } else { &ZONES },
        }
    }

    fn with_gpus(gpu: &'static GpuType) -> Self {
        Self {
            family: gpu.family,
            size: gpu.size,
            category: &gpu.family[..1],
            generation: gpu.generation,
            architecture: Architecture::Amd64,
            manufacturer: gpu.cpu_manufacturer,
            cpus: gpu.cpus,
            memory_mib: i64::from(gpu.gib) * 1024,
            nvme_gb: gpu.nvme_gb,
            gpu: Some(gpu),
            on_demand: Price::from_micros(gpu.micros),
            zones: if gpu.gpus >= 8 { &ZONES[..1] } else { &ZONES },
        }
    }

    fn to_type(&self) -> InstanceType {
        let name: Arc<str> = format!("{}.{}", self.family, self.size).into();
        InstanceType {
            requirements: self.requirements(&name),
            offerings: self.zones.iter().flat_map(|zone| self.offerings(&name, zone)).collect(),
            capacity: self.capacity(),
            overhead: self.overhead(),
            volume_limits: BTreeMap::new(),
            name,
        }
    }

    fn offerings(&self, name: &str, zone: &str) -> [Offering; 2] {
        let percent = 30 + i64::try_from(fingerprint(&format!("{name}/{zone}")) % 25).unwrap_or_default();
        let spot = Price::from_micros(self.on_demand.micros() * percent / 100);
        [(capacity_type::SPOT, spot), (capacity_type::ON_DEMAND, self.on_demand)].map(|(kind, price)| Offering {
            requirements: labels([(CAPACITY_TYPE, [kind]), (ZONE, [zone])]),
            price,
            available: true,
            reservation_capacity: None,
            overrides: None,
        })
    }

    /// The kernel and the hypervisor keep part of the memory; 7.5 percent is the AWS provider's guess (sheet 05 §8).
    fn capacity(&self) -> ResourceList {
        let visible_mib = match self.architecture {
            Architecture::Arm64 => self.memory_mib - 64,
            Architecture::Amd64 => self.memory_mib,
        };
        let hidden_mib = (visible_mib * 75 + 999) / 1000;
        let mut capacity = ResourceList::from_iter([
            (ResourceName::CPU, Quantity::from_value(i64::from(self.cpus), Notation::DecimalSi)),
            (ResourceName::MEMORY, mebibytes(visible_mib - hidden_mib)),
            (ResourceName::PODS, Quantity::from_value(self.pods(), Notation::DecimalSi)),
            (ResourceName::EPHEMERAL_STORAGE, Quantity::from_value(ROOT_DISK, Notation::BinarySi)),
        ]);
        if let Some(gpu) = self.gpu {
            let count = Quantity::from_value(i64::from(gpu.gpus), Notation::DecimalSi);
            capacity.insert(ResourceName::from("nvidia.com/gpu"), count);
        }
        capacity
    }

    /// As many as the network interfaces have addresses for, by size: `ENIs x (IPv4 per ENI - 1) + 2`.
    fn pods(&self) -> i64 {
        let (interfaces, addresses) = match self.cpus {
            0..=1 => (2, 4),
            2..=3 => (3, 10),
            4..=15 => (4, 15),
            16..=63 => (8, 30),
            64.. => (15, 50),
        };
        interfaces * (addresses - 1) + 2
    }

    fn overhead(&self) -> Overhead {
        let kube_reserved = [
            (ResourceName::CPU, Quantity::from_milli(reserved_millis(self.cpus), Notation::DecimalSi)),
            (ResourceName::MEMORY, mebibytes(11 * self.pods() + 255)),
            (ResourceName::EPHEMERAL_STORAGE, Quantity::from_value(1 << 30, Notation::BinarySi)),
        ];
        let eviction_threshold = [
            (ResourceName::MEMORY, mebibytes(100)),
            (ResourceName::EPHEMERAL_STORAGE, Quantity::from_value(ROOT_DISK / 10, Notation::BinarySi)),
        ];
        Overhead {
            kube_reserved: kube_reserved.into_iter().collect(),
            system_reserved: ResourceList::new(),
            eviction_threshold: eviction_threshold.into_iter().collect(),
        }
    }

    fn requirements(&self, name: &str) -> Requirements {
        let text = |number: i64| number.to_string();
        let memory_label = text(self.memory_mib);
        let settled = [
            (INSTANCE_TYPE, name.to_owned()),
            (ARCH, self.architecture.as_str().to_owned()),
            (OS, "linux".to_owned()),
            (REGION, REGION_NAME.to_owned()),
            (KWOK_FAMILY, self.family.to_owned()),
            (KWOK_SIZE, self.size.to_owned()),
            (KWOK_CPU, self.cpus.to_string()),
            (KWOK_MEMORY, mebibytes(self.memory_mib).to_string()),
            ("karpenter.k8s.aws/instance-category", self.category.to_owned()),
            ("karpenter.k8s.aws/instance-family", self.family.to_owned()),
            ("karpenter.k8s.aws/instance-generation", self.generation.to_string()),
            ("karpenter.k8s.aws/instance-size", self.size.to_owned()),
            ("karpenter.k8s.aws/instance-cpu", self.cpus.to_string()),
            ("karpenter.k8s.aws/instance-cpu-manufacturer", self.manufacturer.to_owned()),
            ("karpenter.k8s.aws/instance-memory", memory_label),
            ("karpenter.k8s.aws/instance-hypervisor", "nitro".to_owned()),
        ];
        let mut requirements = labels(settled.iter().map(|(key, value)| (*key, [value])));
        let rules = LabelRules::core();
        requirements.add(Requirement::one_of(ZONE, self.zones), &rules);
        requirements.add(Requirement::one_of(CAPACITY_TYPE, [capacity_type::SPOT, capacity_type::ON_DEMAND]), &rules);
        let nvme = (self.nvme_gb > 0).then(|| self.nvme_gb.to_string());
        let perhaps = [
            ("karpenter.k8s.aws/instance-local-nvme", nvme),
            ("karpenter.k8s.aws/instance-gpu-name", self.gpu.map(|gpu| gpu.gpu_name.to_owned())),
            ("karpenter.k8s.aws/instance-gpu-manufacturer", self.gpu.map(|_| "nvidia".to_owned())),
            ("karpenter.k8s.aws/instance-gpu-count", self.gpu.map(|gpu| gpu.gpus.to_string())),
            ("karpenter.k8s.aws/instance-gpu-memory", self.gpu.map(|gpu| gpu.gpu_memory_mib.to_string())),
        ];
        for (key, value) in perhaps {
            // Said to be absent, and not left open: a pod that asks for a GPU by label must not get this type.
            let requirement =
                value.map_or_else(|| Requirement::does_not_exist(key), |value| Requirement::one_of(key, [value]));
            requirements.add(requirement, &rules);
        }
        requirements
    }
}

/// What the node's agents get: 6% of the first core, 1% of the second, half a percent of the next two, then a quarter.
fn reserved_millis(cpus: u32) -> i64 {
    let millis = i64::from(cpus) * 1000;
    let steps = [(0, 1000, 600), (1000, 2000, 100), (2000, 4000, 50), (4000, i64::MAX, 25)];
    steps.iter().map(|(from, to, of_ten_thousand)| (millis.min(*to) - from).max(0) * of_ten_thousand / 10_000).sum()
}

fn mebibytes(count: i64) -> Quantity {
    Quantity::from_value(count << 20, Notation::BinarySi)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::Catalogue;
    use super::*;

    fn shown(instance_type: &InstanceType) -> String {
        let on_demand = |offering: &&Offering| offering.requirements.get(CAPACITY_TYPE).unwrap().has("on-demand");
        let price = instance_type.offerings.iter().find(on_demand).unwrap().price;
        format!("{} | {} | {} | {price}", instance_type.name, instance_type.capacity, instance_type.allocatable())
    }

    #[test]
    fn machines_have_the_shape_they_have_on_ec2() {
        let catalogue = Catalogue::ec2_like();
        let cases = [
            "m5.large | cpu=2 ephemeral-storage=20Gi memory=7577Mi pods=29 | cpu=1930m ephemeral-storage=17Gi memory=6903Mi pods=29 | 0.096",
            "m7g.medium | cpu=1 ephemeral-storage=20Gi memory=3729Mi pods=8 | cpu=940m ephemeral-storage=17Gi memory=3286Mi pods=8 | 0.0408",
            "c5.24xlarge | cpu=96 ephemeral-storage=20Gi memory=181862Mi pods=737 | cpu=95690m ephemeral-storage=17Gi memory=173400Mi pods=737 | 4.08",
            "g5.12xlarge | cpu=48 ephemeral-storage=20Gi memory=181862Mi nvidia.com/gpu=4 pods=234 | cpu=47810m ephemeral-storage=17Gi memory=178933Mi nvidia.com/gpu=4 pods=234 | 5.672",
        ];
        for case in cases {
            let name = case.split_once(' ').unwrap().0;
            assert_eq!(shown(catalogue.get(name).unwrap()), case);
        }
    }

    #[test]
    fn there_are_some_hundred_types_with_names_of_their_own() {
        let catalogue = Catalogue::ec2_like();
        let names: BTreeSet<_> = catalogue.types().iter().map(|kind| &kind.name).collect();
        assert_eq!(names.len(), catalogue.types().len());
        assert!((300..600).contains(&names.len()), "{}", names.len());
        assert_eq!(catalogue, Catalogue::ec2_like());
    }

    #[test]
    fn spot_is_cheaper_and_differs_between_zones() {
        let catalogue = Catalogue::ec2_like();
        let mut zone_matters = false;
        for kind in catalogue.types().iter() {
            let mut spot_prices = BTreeSet::new();
            for pair in kind.offerings.chunks(2) {
                let [spot, on_demand] = pair else { panic!("offerings come in pairs") };
                let (spot, on_demand) = (spot.price.micros(), on_demand.price.micros());
                assert!((on_demand * 29..=on_demand * 54).contains(&(spot * 100)), "{}", kind.name);
                spot_prices.insert(spot);
            }
            zone_matters |= spot_prices.len() > 1;
        }
        assert!(zone_matters);
    }

    #[test]
    fn what_a_machine_lacks_cannot_be_asked_of_it() {
        let catalogue = Catalogue::ec2_like();
        let asks = |key: &str, value: &str| labels([(key, [value])]);
        let meets =
            |name: &str, wanted: &Requirements| catalogue.get(name).unwrap().requirements.intersects(wanted).is_ok();
        let t4 = asks("karpenter.k8s.aws/instance-gpu-name", "t4");
        assert!(meets("g4dn.xlarge", &t4));
        assert!(!meets("g5.xlarge", &t4));
        assert!(!meets("m5.xlarge", &t4));
        let big_disk =
            Requirement::new("karpenter.k8s.aws/instance-local-nvme", "Gt".parse().unwrap(), ["100"]).unwrap();
        let mut wanted = Requirements::new();
        wanted.add(big_disk, &LabelRules::core());
        assert!(meets("m6id.large", &wanted));
        assert!(!meets("m6i.large", &wanted));
    }
}
