//! Offerings that the cloud has just taken back: for a while nothing new is launched there (sheet 03 §13).

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::{InstanceType, NodeClaim, OfferingName};
use kerf_model::label;
use kerf_scheduling::Catalogues;

/// As long as the reference's AWS provider remembers that something cannot be had.
const AVOIDED_FOR: SignedDuration = SignedDuration::from_mins(3);

type Types = Arc<[InstanceType]>;

#[derive(Debug, Default)]
pub struct Avoided(BTreeMap<OfferingName, Timestamp>);

impl Avoided {
    /// The cloud takes the claim's instance back. Whether that was not known.
    pub fn interrupted(&mut self, claim: &NodeClaim, now: Timestamp) -> bool {
        let of = |key: &str| claim.meta.labels.get(key).cloned();
        let (Some(instance_type), Some(zone), Some(capacity_type)) =
            (of(label::INSTANCE_TYPE), of(label::ZONE), of(label::CAPACITY_TYPE))
        else {
            return false;
        };
        let until = now.checked_add(AVOIDED_FOR).unwrap_or(Timestamp::MAX);
        self.0.insert(OfferingName { instance_type, zone, capacity_type }, until).is_none()
    }

    /// Forgets what is over. Whether something was.
    pub fn refresh(&mut self, now: Timestamp) -> bool {
        let before = self.0.len();
        self.0.retain(|_, until| now < *until);
        self.0.len() != before
    }

    pub fn next_due(&self) -> Option<Timestamp> {
        self.0.values().min().copied()
    }

    pub fn names(&self) -> Vec<OfferingName> {
        self.0.keys().cloned().collect()
    }

    /// The catalogues with what is avoided marked as not available.
    pub fn apply(&self, types: &Catalogues) -> Catalogues {
        if self.0.is_empty() {
            return types.clone();
        }
        let names = self.names();
        // Pools often share one list: it is copied once.
        let mut done: Vec<(&Types, Types)> = Vec::new();
        let mut all = Catalogues::new();
        for (pool, types) in types {
            let known = done.iter().find(|(old, _)| Arc::ptr_eq(old, types)).map(|(_, new)| Arc::clone(new));
            let without = known.unwrap_or_else(|| {
                let new: Types = types.iter().map(|kind| kind.without(&names)).collect();
                done.push((types, Arc::clone(&new)));
                new
            });
            all.insert(Arc::clone(pool), without);
        }
        all
    }
}
