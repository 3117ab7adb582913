//! What replacements may cost, and how a claim is narrowed to what is cheap enough.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::price::Price;
use kerf_scheduling::{PlannedClaim, TypeOption};

use crate::KeepReason;

/// What a replacement may cost at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Below(Price),
    AtMost(Price),
}

/// Why no option of a claim is left.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TooDear {
    /// `cheapest` is what the best type may cost at worst.
    Nothing {
        cheapest: Option<Price>,
    },
    MinValues {
        key: Arc<str>,
        wanted: u32,
        found: u32,
    },
}

impl Bound {
    pub(crate) fn admits(self, price: Price) -> bool {
        match self {
            Self::Below(bound) => price < bound,
            Self::AtMost(bound) => price <= bound,
        }
    }
}

impl TooDear {
    /// As the reason of nodes that cost this much.
    pub(crate) fn keep(self, price: Price) -> KeepReason {
        match self {
            Self::Nothing { cheapest } => KeepReason::NoCheaper { price, cheapest },
            Self::MinValues { key, wanted, found } => KeepReason::MinValues { key, wanted, found },
        }
    }
}

/// The claim with only the types that are surely within the bound, wherever they are launched.
///
/// # Errors
/// Nothing is left, or too little for the pool's `minValues`; no policy relaxes those here.
pub(crate) fn at_most(claim: &PlannedClaim, bound: Bound) -> Result<PlannedClaim, TooDear> {
    only_types(claim, |option| bound.admits(option.worst_price))
}

pub(crate) fn only_types(claim: &PlannedClaim, keep: impl Fn(&TypeOption) -> bool) -> Result<PlannedClaim, TooDear> {
    let only = claim.only_types(keep).ok_or(TooDear::Nothing { cheapest: least_worst(claim) })?;
    enough_values(only)
}

/// The claim launched in one way and no other: if that is sold out the launch must fail, and not fall back to something
/// dearer.
pub(crate) fn only_as(claim: &PlannedClaim, capacity_type: &str) -> Result<PlannedClaim, TooDear> {
    let only = claim.only_capacity_type(capacity_type).ok_or(TooDear::Nothing { cheapest: None })?;
    enough_values(only)
}

fn enough_values(claim: PlannedClaim) -> Result<PlannedClaim, TooDear> {
    match claim.too_few_values() {
        Some((key, wanted, found)) => Err(TooDear::MinValues { key, wanted, found }),
        None => Ok(claim),
    }
}

/// What the claim may cost at worst if the best of its types is launched.
pub(crate) fn least_worst(claim: &PlannedClaim) -> Option<Price> {
    claim.options.iter().map(|option| option.worst_price).min()
}

/// The zones that the claim could be launched in, if there is a choice; that with the cheapest offering first.
pub(crate) fn zones(claim: &PlannedClaim) -> Vec<Arc<str>> {
    let mut zones: BTreeMap<&Arc<str>, Price> = BTreeMap::new();
    for offering in claim.options.iter().flat_map(|option| &option.offerings) {
        let Some(zone) = &offering.zone else { continue };
        let known = zones.entry(zone).or_insert(offering.price);
        *known = (*known).min(offering.price);
    }
    let mut zones: Vec<_> = zones.into_iter().map(|(zone, price)| (price, zone)).collect();
    zones.sort();
    match zones.len() {
        0 | 1 => Vec::new(),
        _ => zones.into_iter().map(|(_, zone)| Arc::clone(zone)).collect(),
    }
}

/// How many of the claim's types, the cheapest first, its `minValues` need.
pub(crate) fn types_for_min_values(claim: &PlannedClaim) -> usize {
    let names: Vec<_> = claim.options.iter().map(|option| &option.instance_type).collect();
    let enough = |count: &usize| {
        let first = &names[..*count];
        claim
            .only_types(|option| first.contains(&&option.instance_type))
            .is_some_and(|only| only.too_few_values().is_none())
    };
    match claim.requirements().iter().any(|own| own.min_values().is_some()) {
        true => (1..=names.len()).find(enough).unwrap_or(names.len()),
        false => 0,
    }
}
