//! Why a pod has no place: values, and their text in one place.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kerf_model::cluster::HostPort;
use kerf_model::quantity::Quantity;
use kerf_model::requirement::Incompatible;
use kerf_model::resources::ResourceName;
use kerf_model::taint::Taint;

use crate::intake::InvalidPod;

/// Why a pod is nowhere in the schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Unplaced {
    pub overall: Overall,
    /// For every pool that was tried, the first gate that it failed at, after all preferences were dropped.
    pub pools: BTreeMap<Arc<str>, Refusal>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Overall {
    /// No host has room, and no pool can launch one.
    NoPlace,
    /// No host has room, and there is no pool that may launch.
    NoPools,
    /// The pod says that it wants no node of ours.
    OptedOut,
    Invalid(InvalidPod),
    NotSupportedYet(Feature),
    /// Waits for a reservation that is full now; tried again without a word.
    Deferred,
}

/// What this scheduler does not do yet. A pod that uses it is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    ResourceClaims,
}

/// Why a pool launches no node for a pod, in the order in which the gates are tried.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The pool's own limits on a label cannot be met.
    PoolContradiction {
        key: Arc<str>,
    },
    /// The pool's requirements leave none of its instance types, or none with an offering.
    NoTypes,
    /// Fewer different values than the pool wants are left to choose from.
    MinValues {
        key: Arc<str>,
        wanted: u32,
        found: u32,
    },
    /// Naming no more types than allowed leaves too few values.
    Truncated {
        key: Arc<str>,
        wanted: u32,
        found: u32,
    },
    Taint(Taint),
    /// The pool and the pod disagree about a label.
    Requirements(Incompatible),
    /// The pool and the pod agree, but every instance type is excluded; this is how the last one is.
    NoMatchingType(Incompatible),
    /// No type that would do attaches as many volumes.
    VolumeLimit,
    /// Every type that would do has a daemon on the port.
    HostPort(HostPort),
    /// Too large for every type that would do.
    Resources {
        name: ResourceName,
        asked: Quantity,
        largest: Quantity,
        nearest: Arc<str>,
    },
    /// Types that would do have no offering that may be launched where and how it must be.
    NoOffering {
        nearest: Arc<str>,
    },
    /// What would do is reserved, and the reservations are full.
    ReservationsFull,
    Limit {
        name: ResourceName,
        left: Quantity,
        smallest: Quantity,
    },
    Topology {
        rule: TopologyRule,
        key: Arc<str>,
        /// How uneven a spread may be; zero for other rules.
        max_skew: i64,
        /// Pods that are counted, by domain, where the rule is not about host names.
        counts: Vec<(Arc<str>, u32)>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TopologyRule {
    Spread,
    Affinity,
    AntiAffinity,
    /// Another pod does not want this one near.
    AntiAffinityOfOthers,
}

impl Unplaced {
    pub(crate) fn overall(overall: Overall) -> Self {
        Self { overall, pools: BTreeMap::new() }
    }

    /// Whether it was turned away before a place was looked for.
    pub fn is_ignored(&self) -> bool {
        matches!(self.overall, Overall::OptedOut | Overall::Invalid(_))
    }

    /// Whether nobody needs to be told.
    pub fn is_silent(&self) -> bool {
        matches!(self.overall, Overall::OptedOut | Overall::Deferred)
    }
}

impl Overall {
    /// Stable; for metrics, JSON and the CLI.
    pub fn id(&self) -> &'static str {
        match self {
            Self::NoPlace => "no_place",
            Self::NoPools => "no_pools",
            Self::OptedOut => "opted_out",
            Self::Invalid(_) => "invalid_pod",
            Self::NotSupportedYet(_) => "not_supported_yet",
            Self::Deferred => "deferred",
        }
    }
}

impl Refusal {
    /// Stable; for metrics, JSON and the CLI.
    pub fn id(&self) -> &'static str {
        match self {
            Self::PoolContradiction { .. } => "pool_contradiction",
            Self::NoTypes => "no_types",
            Self::MinValues { .. } => "min_values",
            Self::Truncated { .. } => "truncated",
            Self::Taint(_) => "taint",
            Self::Requirements(_) => "requirements",
            Self::NoMatchingType(_) => "no_matching_type",
            Self::VolumeLimit => "volume_limit",
            Self::HostPort(_) => "host_port",
            Self::Resources { .. } => "resources",
            Self::NoOffering { .. } => "no_offering",
            Self::ReservationsFull => "reservations_full",
            Self::Limit { .. } => "limit",
            Self::Topology { .. } => "topology",
        }
    }

    /// How far the pod came: of the alternatives of a pod, the one that came furthest is worth telling.
    pub(crate) fn depth(&self) -> u8 {
        match self {
            Self::PoolContradiction { .. } => 0,
            Self::NoTypes => 1,
            Self::Taint(_) => 2,
            Self::Requirements(_) => 3,
            Self::NoMatchingType(_) => 4,
            Self::VolumeLimit => 5,
            Self::HostPort(_) => 6,
            Self::Resources { .. } => 7,
            Self::NoOffering { .. } => 8,
            Self::ReservationsFull => 9,
            Self::MinValues { .. } => 10,
            Self::Limit { .. } => 11,
            Self::Topology { .. } => 12,
            Self::Truncated { .. } => 13,
        }
    }
}

impl fmt::Display for Unplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.overall {
            Overall::NoPlace if !self.pools.is_empty() => {}
            Overall::NoPlace => f.write_str("no host has room and no pool could be tried")?,
            Overall::NoPools => f.write_str("no host has room and no pool may launch nodes")?,
            Overall::OptedOut => f.write_str("the pod asks for a node outside of every pool")?,
            Overall::Invalid(error) => write!(f, "{error}")?,
            Overall::NotSupportedYet(feature) => write!(f, "{feature} are not supported yet")?,
            Overall::Deferred => f.write_str("waiting for a reservation that is full")?,
        }
        for (index, (pool, refusal)) in self.pools.iter().enumerate() {
            let separator = if index == 0 && self.overall == Overall::NoPlace { "" } else { "; " };
            write!(f, "{separator}pool {pool}: {refusal}")?;
        }
        Ok(())
    }
}

/// A rack label may have hundreds of values.
const SHOWN_DOMAINS: usize = 5;

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PoolContradiction { key } => write!(f, "no value of {key} meets all that the pool asks of it"),
            Self::NoTypes => f.write_str("its requirements leave no instance type that is offered"),
            Self::MinValues { key, wanted, found } => {
                write!(f, "{found} values of {key} are left to choose from, it wants {wanted}")
            }
            Self::Truncated { key, wanted, found } => {
                write!(f, "the cheapest instance types leave {found} values of {key}, it wants {wanted}")
            }
            Self::Taint(taint) => write!(f, "its taint {taint} is not tolerated"),
            Self::Requirements(incompatible) => incompatible.fmt(f),
            Self::NoMatchingType(incompatible) => write!(f, "no instance type matches: {incompatible}"),
            Self::VolumeLimit => f.write_str("no instance type that would do attaches as many volumes"),
            Self::HostPort(HostPort { port, ip, .. }) => write!(f, "a daemon takes the host port {ip}:{port}"),
            Self::Resources { name, asked, largest, nearest } => {
                write!(f, "{asked} {name} is needed, {nearest} comes nearest with {largest}")?;
                // `2M` for `2m` is the classic: nobody asks for a million cores.
                match name == &ResourceName::CPU && asked.value().is_some_and(|cores| cores >= 1_000_000) {
                    true => f.write_str(" (is m meant, not M?)"),
                    false => Ok(()),
                }
            }
            Self::NoOffering { nearest } => {
                write!(f, "{nearest} and all others that would do are not offered where and how the pod needs them")
            }
            Self::ReservationsFull => f.write_str("the reservations that would do are full"),
            Self::Limit { name, left, smallest } => {
                write!(f, "its limit leaves {left} {name}, the smallest node that would do has {smallest}")
            }
            Self::Topology { rule, key, max_skew, counts } => {
                write!(f, "no {key} satisfies {rule}")?;
                if *rule == TopologyRule::Spread {
                    write!(f, " with a skew of at most {max_skew}")?;
                }
                for (at, (domain, count)) in counts.iter().take(SHOWN_DOMAINS).enumerate() {
                    write!(f, "{}{domain} has {count}", if at == 0 { ": " } else { ", " })?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for TopologyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spread => "the pod's topology spread",
            Self::Affinity => "the pod's affinity to other pods",
            Self::AntiAffinity => "the pod's anti-affinity to other pods",
            Self::AntiAffinityOfOthers => "the anti-affinity of other pods to this one",
        })
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ResourceClaims => "resource claims",
        })
    }
}
