//! What a cloud can launch.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::label;
use crate::price::Price;
use crate::quantity::Quantity;
use crate::requirement::Requirements;
use crate::resources::{ResourceList, ResourceName, ResourceOverflow};

/// A kind of machine, as one pool sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceType {
    pub name: Arc<str>,
    /// What its nodes' labels can be: name, architecture, zones, size, …
    pub requirements: Requirements,
    /// In the order of the catalogue.
    pub offerings: Vec<Offering>,
    pub capacity: ResourceList,
    pub overhead: Overhead,
    /// How many volumes of each driver its nodes take. A driver without a limit is not in the map.
    pub volume_limits: BTreeMap<Arc<str>, u32>,
}

/// A way to get the type: a zone and a capacity type, at a price.
#[derive(Debug, Clone, PartialEq)]
pub struct Offering {
    pub requirements: Requirements,
    pub price: Price,
    /// Whether a launch may succeed, as far as is known.
    pub available: bool,
    /// How many more instances a reservation takes; `None` if this is no reservation.
    pub reservation_capacity: Option<u32>,
    /// What its instances have instead of what the type says; `None` if nothing differs.
    pub overrides: Option<Arc<Overrides>>,
}

/// How the instances of an offering differ from their type: amounts that replace the type's, name by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    pub capacity: ResourceList,
    pub overhead: Overhead,
}

/// One offering of one type, as far as clouds run out of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OfferingName {
    pub instance_type: Arc<str>,
    pub zone: Arc<str>,
    pub capacity_type: Arc<str>,
}

/// What of the capacity pods cannot use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overhead {
    pub kube_reserved: ResourceList,
    pub system_reserved: ResourceList,
    pub eviction_threshold: ResourceList,
}

impl InstanceType {
    /// The type with these offerings marked as not available.
    #[must_use]
    pub fn without(&self, names: &[OfferingName]) -> Self {
        let mut left = self.clone();
        for offering in &mut left.offerings {
            let has = |key: &str, value: &str| offering.requirements.get(key).is_some_and(|known| known.has(value));
            let is_named = names.iter().any(|name| {
                name.instance_type == self.name
                    && has(label::ZONE, &name.zone)
                    && has(label::CAPACITY_TYPE, &name.capacity_type)
            });
            offering.available &= !is_named;
        }
        left
    }

    /// What pods can use: the capacity without the overhead, and memory without what huge pages take of it (sheet 02 §5).
    ///
    /// Nothing falls below zero, as the kubelet reports it. Upstream floors only memory, and only where there are huge
    /// pages.
    pub fn allocatable(&self) -> ResourceList {
        allocatable(&self.capacity, &self.overhead)
    }

    /// What instances have that are launched with these overrides.
    pub fn capacity_with(&self, overrides: Option<&Overrides>) -> ResourceList {
        overrides.map_or_else(|| self.capacity.clone(), |own| replaced(&self.capacity, &own.capacity))
    }

    /// What pods can use of it.
    pub fn allocatable_with(&self, overrides: Option<&Overrides>) -> ResourceList {
        let Some(own) = overrides else { return self.allocatable() };
        let overhead = Overhead {
            kube_reserved: replaced(&self.overhead.kube_reserved, &own.overhead.kube_reserved),
            system_reserved: replaced(&self.overhead.system_reserved, &own.overhead.system_reserved),
            eviction_threshold: replaced(&self.overhead.eviction_threshold, &own.overhead.eviction_threshold),
        };
        allocatable(&self.capacity_with(overrides), &overhead)
    }

    /// The most that an instance has, whatever it is launched from.
    pub fn most_capacity(&self) -> ResourceList {
        let overrides = self.offerings.iter().filter_map(|offering| offering.overrides.as_deref());
        overrides.fold(self.capacity.clone(), |most, own| most.max(&own.capacity))
    }
}

fn allocatable(capacity: &ResourceList, overhead: &Overhead) -> ResourceList {
    let reserved = [&overhead.kube_reserved, &overhead.system_reserved, &overhead.eviction_threshold];
    let huge_pages = || capacity.iter().filter(|(name, _)| name.is_huge_pages()).map(|(_, amount)| amount);
    let usable = capacity.iter().map(|(name, amount)| {
        let mut left = take(amount, reserved.map(|list| list.amount(name.as_str())));
        if *name == ResourceName::MEMORY {
            left = take(left, huge_pages());
        }
        (name.clone(), left)
    });
    usable.collect()
}

fn replaced(own: &ResourceList, by: &ResourceList) -> ResourceList {
    let mut all = own.clone();
    by.iter().for_each(|(name, amount)| all.insert(name.clone(), amount));
    all
}

/// Amounts too large to count leave nothing.
fn take(amount: Quantity, parts: impl IntoIterator<Item = Quantity>) -> Quantity {
    let left = parts.into_iter().try_fold(amount, Quantity::checked_sub);
    left.unwrap_or_default().max(Quantity::ZERO)
}

impl Offering {
    /// Whether an instance could be had now: a reservation may be fine and full.
    pub fn is_launchable(&self) -> bool {
        self.available && self.reservation_capacity != Some(0)
    }
}

impl Overhead {
    pub fn total(&self) -> Result<ResourceList, ResourceOverflow> {
        self.kube_reserved.clone().plus(&self.system_reserved)?.plus(&self.eviction_threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> ResourceList {
        let amounts = text.split_whitespace().map(|item| {
            let (name, amount) = item.split_once('=').unwrap();
            (ResourceName::from(name), amount.parse().unwrap())
        });
        amounts.collect()
    }

    fn check(capacity: &str, [kube, system, eviction]: [&str; 3], allocatable: &str) {
        let overhead =
            Overhead { kube_reserved: list(kube), system_reserved: list(system), eviction_threshold: list(eviction) };
        let requirements = Requirements::new();
        let name = Arc::from("a");
        let volume_limits = BTreeMap::new();
        let kind = InstanceType {
            name,
            requirements,
            offerings: Vec::new(),
            capacity: list(capacity),
            overhead,
            volume_limits,
        };
        assert_eq!(kind.allocatable().to_string(), allocatable, "{capacity}");
    }

    #[test]
    fn pods_get_what_the_overhead_leaves() {
        check("cpu=2 memory=4Gi pods=32", ["cpu=100m memory=10Mi", "", ""], "cpu=1900m memory=4086Mi pods=32");
        check(
            "cpu=4 memory=8Gi ephemeral-storage=20Gi",
            ["cpu=80m memory=1Gi", "memory=512Mi other=1", "memory=512Mi ephemeral-storage=2Gi"],
            "cpu=3920m ephemeral-storage=18Gi memory=6Gi",
        );
    }

    #[test]
    fn an_offering_replaces_what_it_names_and_nothing_else() {
        let mut kind = InstanceType {
            name: Arc::from("a"),
            requirements: Requirements::new(),
            offerings: Vec::new(),
            capacity: list("cpu=2 memory=4Gi"),
            overhead: Overhead { kube_reserved: list("cpu=100m memory=1Gi"), ..Overhead::default() },
            volume_limits: BTreeMap::new(),
        };
        let overrides = Overrides {
            capacity: list("memory=3Gi gpu=1"),
            overhead: Overhead { kube_reserved: list("cpu=500m"), ..Overhead::default() },
        };
        assert_eq!(kind.capacity_with(None).to_string(), "cpu=2 memory=4Gi");
        assert_eq!(kind.capacity_with(Some(&overrides)).to_string(), "cpu=2 gpu=1 memory=3Gi");
        assert_eq!(kind.allocatable_with(None), kind.allocatable());
        assert_eq!(kind.allocatable_with(Some(&overrides)).to_string(), "cpu=1500m gpu=1 memory=2Gi");
        kind.offerings.push(Offering {
            requirements: Requirements::new(),
            price: Price::ZERO,
            available: true,
            reservation_capacity: None,
            overrides: Some(Arc::new(overrides)),
        });
        assert_eq!(kind.most_capacity().to_string(), "cpu=2 gpu=1 memory=4Gi");
    }

    #[test]
    fn huge_pages_are_taken_from_memory() {
        check(
            "cpu=1 hugepages-2Mi=1Gi hugepages-1Gi=2Gi memory=8Gi",
            ["memory=1Gi", "", ""],
            "cpu=1 hugepages-1Gi=2Gi hugepages-2Mi=1Gi memory=4Gi",
        );
    }

    #[test]
    fn nothing_falls_below_zero() {
        check("cpu=50m memory=1Gi hugepages-1Gi=2Gi", ["cpu=100m", "", ""], "cpu=0 hugepages-1Gi=2Gi memory=0");
        check("cpu=1 memory=1", ["memory=-1e29", "memory=-1e29", ""], "cpu=1 memory=0");
    }
}
