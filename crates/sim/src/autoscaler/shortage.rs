//! Capacity that cannot be had.

use std::fmt;

use kerf_model::cluster::InstanceType;
use kerf_model::label;

/// Offerings that are sold out. What is not named is any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shortage {
    pub instance_type: Option<String>,
    pub zone: Option<String>,
    pub capacity_type: Option<String>,
}

impl Shortage {
    /// Whether an offering, named in full, is sold out by this.
    pub(super) fn covers(&self, offering: &Self) -> bool {
        let pairs = [
            (&self.instance_type, &offering.instance_type),
            (&self.zone, &offering.zone),
            (&self.capacity_type, &offering.capacity_type),
        ];
        pairs.into_iter().all(|(short, offered)| short.is_none() || short == offered)
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<&str> =
            [&self.instance_type, &self.zone, &self.capacity_type].into_iter().flatten().map(String::as_str).collect();
        f.write_str(&parts.join(", "))
    }
}

/// The type with what is short marked as not available.
pub(super) fn without(plenty: &InstanceType, shortages: &[Shortage]) -> InstanceType {
    let mut left = plenty.clone();
    for offering in &mut left.offerings {
        let has = |key: &str, value: &str| offering.requirements.get(key).is_some_and(|known| known.has(value));
        let is_short = shortages.iter().any(|shortage| {
            let named = [(label::ZONE, &shortage.zone), (label::CAPACITY_TYPE, &shortage.capacity_type)];
            shortage.instance_type.as_ref().is_none_or(|name| **name == *plenty.name)
                && named.into_iter().all(|(key, value)| value.as_ref().is_none_or(|value| has(key, value)))
        });
        offering.available &= !is_short;
    }
    left
}
