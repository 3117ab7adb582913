//! Overlays: what a cloud says about its instance types, corrected by people who know better.
//!
//! [`overlaid`] takes the catalogue of every pool and gives it back with prices and extended resources changed, before
//! anything is scheduled. Overlays are tried from the highest weight down, and among equals by name, the last one first.
//! One that touches what another of its own weight touches is refused as a whole (sheet 02 §22): half an overlay helps
//! nobody. Whether the other one is hidden behind a third does not matter, so that the answer does not depend on which.
//!
//! A type keeps everything that an overlay does not name (sheet 08 S7).

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::cluster::{InstanceType, NodeOverlay, OverlaySpec, PriceChange};
use kerf_model::label::{LabelRules, NODEPOOL};
use kerf_model::node_pool::NodePool;
use kerf_model::quantity::Quantity;
use kerf_model::requirement::{Requirement, Requirements, UndefinedKeys};
use kerf_model::resources::ResourceName;

/// By pool.
pub type Catalogues = BTreeMap<Arc<str>, Arc<[InstanceType]>>;

/// The catalogue with overlays on it, and what became of each of them.
#[derive(Debug, Clone, Default)]
pub struct Overlaid {
    /// Only pools that could be looked at: a pool that cannot be read has no types.
    pub types: Catalogues,
    /// By the name of the overlay.
    pub verdicts: BTreeMap<Arc<str>, OverlayVerdict>,
    /// By pool and type.
    marks: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Marks>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverlayVerdict {
    /// It is used wherever it matches and none of higher weight stands above it.
    Applied,
    /// Another one of the same weight changes the same; this one is not used at all.
    Conflict { with: Arc<str> },
    /// It cannot be read.
    Invalid { problems: Arc<str> },
}

/// What of a type is not as the cloud says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks {
    pub price: bool,
    pub capacity: bool,
}

/// What an overlay changes: one price, or one resource of a type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Price { pool: Arc<str>, index: usize, offering: usize },
    Capacity { pool: Arc<str>, index: usize, resource: ResourceName },
}

/// Who changes a place: the first one's change counts, the last one's weight is the lowest.
struct Taken<'a> {
    first: &'a OverlaySpec,
    lowest: (u32, Arc<str>),
}

/// Puts overlays on what the pools may launch.
pub fn overlaid<'a>(
    catalogues: &Catalogues,
    overlays: impl IntoIterator<Item = &'a NodeOverlay>,
    pools: impl IntoIterator<Item = &'a NodePool>,
    rules: &LabelRules,
) -> Overlaid {
    let mut result = Overlaid::default();
    let pools: BTreeMap<&Arc<str>, &NodePool> = pools.into_iter().map(|pool| (&pool.name, pool)).collect();
    for (name, types) in catalogues.iter().filter(|(name, _)| pools.contains_key(name)) {
        result.types.insert(Arc::clone(name), Arc::clone(types));
    }
    let mut usable = Vec::new();
    for overlay in overlays {
        let name = Arc::clone(&overlay.meta.name.name);
        match &overlay.spec {
            Ok(spec) => usable.push((name, spec)),
            Err(problems) => {
                let verdict = OverlayVerdict::Invalid { problems: Arc::clone(problems) };
                result.verdicts.insert(name, verdict);
            }
        }
    }
    usable.sort_by(|(a, first), (b, second)| (second.weight, b).cmp(&(first.weight, a)));
    let mut taken: BTreeMap<Place, Taken<'_>> = BTreeMap::new();
    for (name, spec) in usable {
        let places = places(spec, &result.types, &pools, rules);
        let conflict = places.iter().find_map(|place| {
            let (weight, with) = &taken.get(place)?.lowest;
            (*weight == spec.weight).then(|| Arc::clone(with))
        });
        let verdict = match conflict {
            Some(with) => OverlayVerdict::Conflict { with },
            None => {
                for place in places {
                    let lowest = (spec.weight, Arc::clone(&name));
                    taken
                        .entry(place)
                        .and_modify(|taken| taken.lowest = lowest.clone())
                        .or_insert(Taken { first: spec, lowest });
                }
                OverlayVerdict::Applied
            }
        };
        result.verdicts.insert(name, verdict);
    }
    result.apply(&taken);
    result
}

/// Everything that the overlay would change.
fn places(
    spec: &OverlaySpec,
    catalogues: &Catalogues,
    pools: &BTreeMap<&Arc<str>, &NodePool>,
    rules: &LabelRules,
) -> Vec<Place> {
    let mut places = Vec::new();
    for (name, types) in catalogues {
        let Some(pool) = pools.get(name) else { continue };
        let mut of_pool = Requirements::new();
        of_pool.add(Requirement::one_of(NODEPOOL, [name]), rules);
        of_pool.merge(&Requirements::from_labels(pool.labels.iter().map(|(key, value)| (&**key, &**value)), rules));
        for (index, kind) in types.iter().enumerate() {
            let offerings = matching(spec, &of_pool, kind, rules);
            if offerings.is_empty() {
                continue;
            }
            if spec.price.is_some() {
                let price = |offering| Place::Price { pool: Arc::clone(name), index, offering };
                places.extend(offerings.into_iter().map(price));
            }
            let resources = spec.capacity.iter().map(|(resource, _)| resource.clone());
            places.extend(resources.map(|resource| Place::Capacity { pool: Arc::clone(name), index, resource }));
        }
    }
    places
}

/// The offerings that the overlay is about. A type must say all that the overlay asks of it.
fn matching(spec: &OverlaySpec, of_pool: &Requirements, kind: &InstanceType, rules: &LabelRules) -> Vec<usize> {
    let mut known = of_pool.clone();
    known.merge(&kind.requirements);
    if known.compatible(&spec.requirements, UndefinedKeys::Absent).is_err() {
        return Vec::new();
    }
    let undefined = UndefinedKeys::OpenIfWellKnown(rules);
    let offerings = kind.offerings.iter().enumerate();
    let meets = |requirements: &Requirements| spec.requirements.compatible(requirements, undefined).is_ok();
    offerings.filter(|(_, offering)| meets(&offering.requirements)).map(|(at, _)| at).collect()
}

impl Overlaid {
    /// What of a type is not as the cloud says.
    pub fn marks(&self, pool: &str, instance_type: &str) -> Marks {
        self.marks.get(pool).and_then(|types| types.get(instance_type)).copied().unwrap_or_default()
    }

    fn apply(&mut self, taken: &BTreeMap<Place, Taken<'_>>) {
        // Only lists that change are copied; the others stay shared.
        let mut changed: BTreeMap<Arc<str>, Vec<InstanceType>> = BTreeMap::new();
        for (place, Taken { first, .. }) in taken {
            let (Place::Price { pool, index, .. } | Place::Capacity { pool, index, .. }) = place;
            let Some(types) = self.types.get(pool) else { continue };
            let types = changed.entry(Arc::clone(pool)).or_insert_with(|| types.to_vec());
            let kind = &mut types[*index];
            let marks = self.marks.entry(Arc::clone(pool)).or_default().entry(Arc::clone(&kind.name)).or_default();
            match place {
                Place::Price { offering, .. } => {
                    let offering = &mut kind.offerings[*offering];
                    offering.price =
                        first.price.map_or(offering.price, |change: PriceChange| change.apply(offering.price));
                    marks.price = true;
                }
                Place::Capacity { resource, .. } => {
                    let amount: Quantity = first.capacity.amount(resource.as_str());
                    kind.capacity.insert(resource.clone(), amount);
                    marks.capacity = true;
                }
            }
        }
        self.types.extend(changed.into_iter().map(|(pool, types)| (pool, types.into())));
    }
}
