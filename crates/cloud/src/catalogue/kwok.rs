//! KWOK's instance types: the built-in ones by their rule, and how any description becomes a type.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_model::cluster::{InstanceType, Offering, Overhead};
use kerf_model::label::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE, capacity_type};
use kerf_model::price::Price;
use kerf_model::quantity::{Notation, Quantity};
use kerf_model::resources::{ResourceList, ResourceName};

use super::{KWOK_CPU, KWOK_FAMILY, KWOK_MEMORY, KWOK_SIZE, labels};

const CPUS: [u32; 12] = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256];
/// GiB per CPU, and the family named after it.
const FAMILIES: [(u32, &str); 3] = [(2, "c"), (4, "s"), (8, "m")];
const SYSTEMS: [&str; 2] = ["linux", "windows"];
const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];
const ZONES: [&str; 4] = ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"];
const MOST_PODS: i64 = 1024;

/// The built-in set (sheet 04 §13), in the order of upstream's file: ties go to the first.
pub(super) fn types() -> impl Iterator<Item = InstanceType> {
    CPUS.into_iter().flat_map(|cpus| {
        FAMILIES.into_iter().flat_map(move |(factor, family)| {
            SYSTEMS.into_iter().flat_map(move |system| {
                ARCHITECTURES.into_iter().map(move |architecture| built_in(cpus, factor, family, system, architecture))
            })
        })
    })
}

fn built_in(cpus: u32, factor: u32, family: &str, system: &str, architecture: &str) -> InstanceType {
    let memory = i64::from(cpus * factor) << 30;
    let capacity = [
        (ResourceName::CPU, Quantity::from_value(i64::from(cpus), Notation::DecimalSi)),
        (ResourceName::MEMORY, Quantity::from_value(memory, Notation::BinarySi)),
        (ResourceName::PODS, Quantity::from_value(MOST_PODS.min(16 * i64::from(cpus)), Notation::DecimalSi)),
        (ResourceName::EPHEMERAL_STORAGE, Quantity::from_value(20 << 30, Notation::BinarySi)),
    ];
    let offerings = ZONES.into_iter().flat_map(|zone| {
        [capacity_type::SPOT, capacity_type::ON_DEMAND].map(|kind| Offering {
            requirements: labels([(CAPACITY_TYPE, [kind]), (ZONE, [zone])]),
            price: price(cpus, memory, kind),
            available: true,
            reservation_capacity: None,
            overrides: None,
        })
    });
    let description = Description {
        name: format!("{family}-{cpus}x-{architecture}-{system}").into(),
        architectures: vec![architecture.into()],
        systems: vec![system.into()],
        capacity: capacity.into_iter().collect(),
        offerings: offerings.collect(),
    };
    description.into_type()
}

/// 0.025 dollars per CPU and 0.001 per 10^9 bytes; on spot 70% of it. Exact until the last rounding, which is that of the
/// six decimal places of upstream's price label.
fn price(cpus: u32, memory: i64, kind: &str) -> Price {
    const TENTHS_OF_PICOS_PER_MICRO: i64 = 10_000_000;
    let on_demand_picos = 25_000_000_000 * i64::from(cpus) + memory;
    let tenths_of_picos = on_demand_picos * if kind == capacity_type::SPOT { 7 } else { 10 };
    Price::from_micros((tenths_of_picos + TENTHS_OF_PICOS_PER_MICRO / 2) / TENTHS_OF_PICOS_PER_MICRO)
}

/// What is said of a type; the rest follows from it.
pub(super) struct Description {
    pub name: Arc<str>,
    pub architectures: Vec<Arc<str>>,
    pub systems: Vec<Arc<str>>,
    pub capacity: ResourceList,
    pub offerings: Vec<Offering>,
}

impl Description {
    pub(super) fn into_type(self) -> InstanceType {
        let of_offerings = |key: &str| -> BTreeSet<Arc<str>> {
            let entries = self.offerings.iter().filter_map(|offering| offering.requirements.get(key));
            entries.flat_map(|entry| entry.values().iter().cloned()).collect()
        };
        let (zones, capacity_types) = (of_offerings(ZONE), of_offerings(CAPACITY_TYPE));
        let cpu = self.capacity.amount(ResourceName::CPU.as_str()).to_string();
        let memory = self.capacity.amount(ResourceName::MEMORY.as_str()).to_string();
        let one = |text: &str| vec![Arc::from(text)];
        let requirements = labels::<Vec<Arc<str>>>([
            (INSTANCE_TYPE, one(&self.name)),
            (ARCH, self.architectures),
            (OS, self.systems),
            (ZONE, zones.into_iter().collect()),
            (CAPACITY_TYPE, capacity_types.into_iter().collect()),
            (KWOK_SIZE, one(size(&self.name).unwrap_or(&cpu))),
            (KWOK_FAMILY, one(family(&self.name))),
            (KWOK_CPU, one(&cpu)),
            (KWOK_MEMORY, one(&memory)),
        ]);
        InstanceType {
            name: self.name,
            requirements,
            offerings: self.offerings,
            capacity: self.capacity,
            overhead: overhead(),
            volume_limits: BTreeMap::new(),
        }
    }
}

fn overhead() -> Overhead {
    let kube_reserved = [
        (ResourceName::CPU, Quantity::from_milli(100, Notation::DecimalSi)),
        (ResourceName::MEMORY, Quantity::from_value(10 << 20, Notation::BinarySi)),
    ];
    Overhead { kube_reserved: kube_reserved.into_iter().collect(), ..Overhead::default() }
}

/// The size in a name like `m5.2xlarge`.
fn size(name: &str) -> Option<&str> {
    const WORDS: [&str; 6] = ["nano", "micro", "small", "medium", "large", "metal"];
    let (family, size) = name.split_once('.')?;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let multiple =
        |size: &str| size.strip_suffix("xlarge").is_some_and(|n| n.bytes().all(|byte| byte.is_ascii_digit()));
    let named_so = !family.is_empty() && family.bytes().all(is_word) && (WORDS.contains(&size) || multiple(size));
    named_so.then_some(size)
}

/// The text before the first `.` or `-`, as most clouds name their types; else the first character.
fn family(name: &str) -> &str {
    let first = name.chars().next().map_or(0, char::len_utf8);
    name.split_once(['.', '-']).map_or(&name[..first], |(family, _)| family)
}

#[cfg(test)]
mod tests {
    use super::super::Catalogue;
    use super::*;

    fn shown(instance_type: &InstanceType) -> String {
        let prices: BTreeSet<_> = instance_type.offerings.iter().map(|offering| offering.price).collect();
        let prices: Vec<_> = prices.iter().map(ToString::to_string).collect();
        format!("{} | {} | {}", instance_type.name, instance_type.capacity, prices.join(" "))
    }

    #[test]
    fn there_are_144_built_in_types_in_upstreams_order() {
        let catalogue = Catalogue::kwok();
        let types = catalogue.types();
        assert_eq!(types.len(), 144);
        let names: Vec<_> = types.iter().take(6).map(|kind| &*kind.name).collect();
        let expected = [
            "c-1x-amd64-linux",
            "c-1x-arm64-linux",
            "c-1x-amd64-windows",
            "c-1x-arm64-windows",
            "s-1x-amd64-linux",
            "s-1x-arm64-linux",
        ];
        assert_eq!(names, expected);
        assert_eq!(&*types[143].name, "m-256x-arm64-windows");
        let distinct: BTreeSet<_> = types.iter().map(|kind| &kind.name).collect();
        assert_eq!(distinct.len(), 144);
    }

    /// Sheet 04 §13; spot first in a row of prices, because it is cheaper.
    #[test]
    fn built_in_types_have_the_published_sizes_and_prices() {
        let catalogue = Catalogue::kwok();
        let cases = [
            "c-1x-amd64-linux | cpu=1 ephemeral-storage=20Gi memory=2Gi pods=16 | 0.019003 0.027147",
            "s-4x-arm64-linux | cpu=4 ephemeral-storage=20Gi memory=16Gi pods=64 | 0.082026 0.11718",
            "m-48x-amd64-windows | cpu=48 ephemeral-storage=20Gi memory=384Gi pods=768 | 1.128622 1.612317",
            "m-256x-arm64-windows | cpu=256 ephemeral-storage=20Gi memory=2Ti pods=1024 | 6.019316 8.599023",
        ];
        for case in cases {
            let name = case.split_once(' ').unwrap().0;
            assert_eq!(shown(catalogue.get(name).unwrap()), case);
        }
    }

    /// Upstream computes with floating point and prints six places.
    #[test]
    fn every_price_is_the_one_that_floating_point_prints() {
        for instance_type in Catalogue::kwok().types().iter() {
            let amount = |name: ResourceName| instance_type.capacity.amount(name.as_str()).value().unwrap() as f64;
            let on_demand = 0.025 * amount(ResourceName::CPU) + 0.001 * amount(ResourceName::MEMORY) / 1e9;
            for offering in &instance_type.offerings {
                let is_spot = offering.requirements.get(CAPACITY_TYPE).unwrap().has(capacity_type::SPOT);
                let float = if is_spot { on_demand * 0.7 } else { on_demand };
                assert_eq!(offering.price, format!("{float:.6}").parse().unwrap(), "{}", instance_type.name);
            }
        }
    }

    #[test]
    fn a_built_in_type_is_on_offer_in_four_zones_and_two_ways() {
        let catalogue = Catalogue::kwok();
        let offerings = &catalogue.types()[0].offerings;
        let shown: Vec<_> = offerings.iter().map(|offering| offering.requirements.to_string()).collect();
        assert_eq!(shown.len(), 8);
        assert_eq!(shown[0], "karpenter.sh/capacity-type In [spot], topology.kubernetes.io/zone In [test-zone-a]");
        assert_eq!(shown[7], "karpenter.sh/capacity-type In [on-demand], topology.kubernetes.io/zone In [test-zone-d]");
    }

    #[test]
    fn a_built_in_type_defines_its_labels() {
        let catalogue = Catalogue::kwok();
        let requirements = &catalogue.get("m-256x-arm64-linux").unwrap().requirements;
        let expected = [
            (ARCH, "arm64"),
            (OS, "linux"),
            (INSTANCE_TYPE, "m-256x-arm64-linux"),
            (KWOK_SIZE, "256"),
            (KWOK_FAMILY, "m"),
            (KWOK_CPU, "256"),
            (KWOK_MEMORY, "2Ti"),
        ];
        for (key, value) in expected {
            assert_eq!(requirements.get(key).unwrap().values(), [Arc::from(value)], "{key}");
        }
        assert_eq!(requirements.get(ZONE).unwrap().values().len(), 4);
        assert_eq!(requirements.get(CAPACITY_TYPE).unwrap().values().len(), 2);
        assert_eq!(requirements.len(), 9);
    }

    /// Sheet 04, case 73: one pod of one CPU fits.
    #[test]
    fn a_two_cpu_type_has_1900m_for_pods() {
        let allocatable = Catalogue::kwok().get("c-2x-amd64-linux").unwrap().allocatable();
        assert_eq!(allocatable.to_string(), "cpu=1900m ephemeral-storage=20Gi memory=4086Mi pods=32");
    }

    #[test]
    fn size_and_family_are_read_from_the_name() {
        let cases = [
            ("m5.2xlarge", Some("2xlarge"), "m5"),
            ("c5.xlarge", Some("xlarge"), "c5"),
            ("t3.nano", Some("nano"), "t3"),
            ("m7i-flex.large", None, "m7i"),
            ("n2-standard-8", None, "n2"),
            ("m5.2xlarger", None, "m5"),
            ("Standard_D4s_v5", None, "S"),
            ("élan", None, "é"),
            ("", None, ""),
        ];
        for (name, expected_size, expected_family) in cases {
            assert_eq!((size(name), family(name)), (expected_size, expected_family), "{name}");
        }
    }
}
