//! Offerings that the cloud has just taken back: for a while nothing new is launched there (sheet 03 §13).

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::{InstanceType, NodeClaim, OfferingName};
use kerf_model::label;
use kerf_model::time::later;
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
        self.0.insert(OfferingName { instance_type, zone, capacity_type }, later(now, AVOIDED_FOR)).is_none()
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

#[cfg(test)]
mod tests {
    use super::*;
    use kerf_model::cluster::{Offering, Overhead};
    use kerf_model::price::Price;
    use kerf_model::requirement::Requirements;
    use kerf_model::resources::ResourceList;
    use kerf_testkit::texts;

    fn claim(labels: &[(&str, &str)]) -> NodeClaim {
        let mut claim = kerf_testkit::claim("a");
        claim.meta.labels = texts(labels.iter().copied());
        claim
    }

    fn small() -> InstanceType {
        let offering = |zone: &str, kind: &str| Offering {
            requirements: Requirements::from_labels(
                [(label::ZONE, zone), (label::CAPACITY_TYPE, kind)],
                &label::LabelRules::core(),
            ),
            price: Price::ZERO,
            available: true,
            reservation_capacity: None,
            overrides: None,
        };
        InstanceType {
            name: Arc::from("small"),
            requirements: Requirements::new(),
            offerings: vec![offering("a", "spot"), offering("b", "spot"), offering("a", "on-demand")],
            capacity: ResourceList::new(),
            overhead: Overhead::default(),
            volume_limits: Default::default(),
        }
    }

    /// Sheet 03 §13: the type, in its zone, as spot; and for three minutes.
    #[test]
    fn what_the_cloud_has_just_taken_back_is_not_launched_again_for_a_while() {
        let types = Catalogues::from([(Arc::from("p"), Arc::from([small()])), (Arc::from("q"), Arc::from([small()]))]);
        let spot = [(label::INSTANCE_TYPE, "small"), (label::ZONE, "a"), (label::CAPACITY_TYPE, "spot")];
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut avoided = Avoided::default();
        assert!(avoided.interrupted(&claim(&spot), at(0)));
        assert!(!avoided.interrupted(&claim(&spot), at(10)), "known already, and counted anew");
        assert!(!avoided.interrupted(&claim(&spot[..2]), at(10)), "nobody knows what it was");
        let available = |avoided: &Avoided| -> Vec<bool> {
            avoided.apply(&types)["q"][0].offerings.iter().map(|offering| offering.available).collect()
        };
        assert_eq!(available(&avoided), [false, true, true]);
        assert_eq!(avoided.next_due(), Some(at(190)));
        assert!(!avoided.refresh(at(189)) && avoided.refresh(at(190)));
        assert_eq!(available(&avoided), [true, true, true]);
    }
}
