//! What a solve answers.

use std::collections::BTreeSet;
use std::sync::Arc;

use kerf_model::cluster::{InstanceType, Owner, Pod, Texts};
use kerf_model::effect::NewClaim;
use kerf_model::label::{self, capacity_type};
use kerf_model::node_pool::NodeSpec;
use kerf_model::price::Price;
use kerf_model::requirement::{Operator, Requirement, Requirements};
use kerf_model::resources::ResourceList;

use crate::refusal::Unplaced;

/// A place for every pod, or the reason why there is none. Every pod of the problem is in exactly one of the lists.
#[derive(Debug, Clone, Default)]
pub struct Schedule {
    /// Hosts that get pods, in the order of attempts: initialised ones first, then by name.
    pub on_existing: Vec<OnHost>,
    /// In the order in which they were opened.
    pub new_claims: Vec<PlannedClaim>,
    /// Pods alike share their reason.
    pub unplaced: Vec<(Arc<Pod>, Arc<Unplaced>)>,
}

/// Something that runs or will run pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    Node(Arc<str>),
    /// A claim whose node has not joined yet.
    Claim(Arc<str>),
}

#[derive(Debug, Clone)]
pub struct OnHost {
    pub host: Host,
    /// Whether pods can start there at once.
    pub is_initialized: bool,
    pub pods: Vec<Arc<Pod>>,
}

/// A node to launch.
#[derive(Debug, Clone)]
pub struct PlannedClaim {
    pub pool: Arc<str>,
    pub owner: Owner,
    pub labels: Texts,
    pub annotations: Texts,
    /// The pool's template as it was read, with the requirements narrowed to what its pods need and to the options.
    pub node: NodeSpec,
    /// What may be launched, the cheapest first. Never empty. Claims alike share it.
    pub options: Arc<[Arc<TypeOption>]>,
    /// Its pods and daemons.
    pub requests: ResourceList,
    pub pods: Vec<Arc<Pod>>,
    /// Whether there are fewer different values to choose from than the pool wants.
    pub min_values_relaxed: bool,
}

/// An instance type that a claim may become.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeOption {
    pub instance_type: Arc<str>,
    /// Of its cheapest offering that could be launched for the claim.
    pub price: Price,
    /// What it may cost at most: the dearest of its reserved offerings, else of its spot ones, else of the others. A
    /// cloud launches in that order.
    pub worst_price: Price,
    /// What could be launched for the claim, in the order of the catalogue; those that override what their type has come
    /// last. Never empty.
    pub offerings: Vec<OptionOffering>,
    pub(crate) catalogue: Arc<[InstanceType]>,
    pub(crate) at: u32,
}

/// One way to get a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionOffering {
    pub capacity_type: Option<Arc<str>>,
    pub zone: Option<Arc<str>>,
    pub price: Price,
    /// The reservation that it comes from.
    pub reservation: Option<Arc<str>>,
}

impl TypeOption {
    /// A type of a catalogue, by its place there. `None` without offerings, or if there is no such place.
    pub fn new(catalogue: &Arc<[InstanceType]>, at: u32, offerings: Vec<OptionOffering>) -> Option<Self> {
        let price = offerings.iter().map(|offering| offering.price).min()?;
        let worst_price = worst_price(&offerings)?;
        let kind = catalogue.get(at as usize)?;
        let instance_type = Arc::clone(&kind.name);
        Some(Self { instance_type, price, worst_price, offerings, catalogue: Arc::clone(catalogue), at })
    }

    /// The type itself.
    pub fn kind(&self) -> &InstanceType {
        &self.catalogue[self.at as usize]
    }

    /// With what of the same type can be launched besides.
    pub(crate) fn joined_with(&self, other: &Self) -> Option<Self> {
        let all = self.offerings.iter().chain(&other.offerings).cloned().collect();
        Self::new(&self.catalogue, self.at, all)
    }

    fn with_offerings(&self, keep: impl Fn(&OptionOffering) -> bool) -> Option<Self> {
        let kept = self.offerings.iter().filter(|offering| keep(offering)).cloned().collect();
        Self::new(&self.catalogue, self.at, kept)
    }
}

impl OptionOffering {
    pub fn is(&self, capacity_type: &str) -> bool {
        self.capacity_type.as_deref() == Some(capacity_type)
    }
}

/// Upstream's `WorstLaunchPrice` (sheet 03 §8.5).
fn worst_price(offerings: &[OptionOffering]) -> Option<Price> {
    let dearest =
        |kind: &str| offerings.iter().filter(|offering| offering.is(kind)).map(|offering| offering.price).max();
    let any = || offerings.iter().map(|offering| offering.price).max();
    dearest(capacity_type::RESERVED)
        .or_else(|| dearest(capacity_type::SPOT))
        .or_else(|| dearest(capacity_type::ON_DEMAND))
        .or_else(any)
}

impl Host {
    pub fn name(&self) -> &Arc<str> {
        match self {
            Self::Node(name) | Self::Claim(name) => name,
        }
    }
}

impl PlannedClaim {
    pub fn requirements(&self) -> &Requirements {
        &self.node.requirements
    }

    /// Of the cheapest option.
    pub fn price(&self) -> Option<Price> {
        self.options.first().map(|option| option.price)
    }

    /// The reservations that it may be launched from.
    pub fn reservations(&self) -> BTreeSet<&Arc<str>> {
        let offerings = self.options.iter().flat_map(|option| &option.offerings);
        offerings.filter_map(|offering| offering.reservation.as_ref()).collect()
    }

    /// Whether the claim may be launched with this capacity type.
    pub fn may_be(&self, capacity_type: &str) -> bool {
        self.options.iter().any(|option| option.offerings.iter().any(|offering| offering.is(capacity_type)))
    }

    /// The claim with some of its types; `None` if none is kept.
    pub fn only_types(&self, keep: impl Fn(&TypeOption) -> bool) -> Option<Self> {
        self.with_options(self.options.iter().filter(|option| keep(option)).cloned().collect())
    }

    /// The claim with one capacity type only, like spot; `None` if nothing of it can be launched.
    pub fn only_capacity_type(&self, capacity_type: &str) -> Option<Self> {
        let options = self.options.iter().filter_map(|option| option.with_offerings(|own| own.is(capacity_type)));
        let mut only = self.with_options(options.map(Arc::new).collect())?;
        only.node.requirements.narrow(Requirement::one_of(label::CAPACITY_TYPE, [capacity_type]));
        Some(only)
    }

    /// The claim in one zone only; `None` if nothing can be launched there.
    pub fn only_zone(&self, zone: &str) -> Option<Self> {
        let in_zone = |own: &OptionOffering| own.zone.as_deref() == Some(zone);
        let options = self.options.iter().filter_map(|option| option.with_offerings(in_zone));
        let mut only = self.with_options(options.map(Arc::new).collect())?;
        only.node.requirements.narrow(Requirement::one_of(label::ZONE, [zone]));
        Some(only)
    }

    fn with_options(&self, mut options: Vec<Arc<TypeOption>>) -> Option<Self> {
        options.sort_by(|a, b| (a.price, &a.instance_type).cmp(&(b.price, &b.instance_type)));
        let mut only = self.clone();
        let names = options.iter().map(|option| Arc::clone(&option.instance_type)).collect();
        only.node.requirements.narrow(Requirement::one_of_shared(label::INSTANCE_TYPE, names));
        only.options = options.into();
        (!only.options.is_empty()).then_some(only)
    }

    /// The first label of which there are fewer different values to choose from than its pool wants, with the number
    /// wanted and the number found.
    pub fn too_few_values(&self) -> Option<(Arc<str>, u32, u32)> {
        self.node.requirements.iter().find_map(|requirement| {
            let wanted = requirement.min_values()?;
            let own = self.options.iter().filter_map(|option| option.kind().requirements.get(requirement.key()));
            let listed = own.filter(|own| own.operator() == Operator::In).flat_map(Requirement::values);
            let values: BTreeSet<_> = listed.filter(|value| requirement.has(value)).collect();
            let found = u32::try_from(values.len()).unwrap_or(u32::MAX);
            (found < wanted).then(|| (Arc::clone(requirement.key()), wanted, found))
        })
    }

    /// The claim to create. `annotations` are what only the caller knows, like the hash of the pool; they win.
    pub fn to_new_claim(&self, name: Arc<str>, annotations: Texts) -> NewClaim {
        let mut all = self.annotations.clone();
        all.extend(annotations);
        NewClaim {
            name,
            labels: self.labels.clone(),
            annotations: all,
            owner: Some(self.owner.clone()),
            node: self.node.clone(),
            requests: self.requests.clone(),
            replaces_for: None,
        }
    }
}
