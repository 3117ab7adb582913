//! Reservations: so many instances, paid for already, wherever they may be launched from.
//!
//! Every planned claim holds at most one, and none is held twice: what a plan counts on can be launched. Upstream lets
//! a claim hold all that it could use, and pods wait a round for what nobody will take.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::cluster::Offering;
use kerf_model::label::LabelRules;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReservationId(u32);

/// The reservations that the catalogues name, and how many slots each has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reservations {
    ids: BTreeMap<Arc<str>, ReservationId>,
    names: Vec<Arc<str>>,
    slots: Vec<u32>,
}

impl Reservations {
    /// Seen from several pools or types, the least counts (sheet 02 §11).
    pub(crate) fn register(
        &mut self,
        kind: &Arc<str>,
        offering: &Offering,
        slots: u32,
        rules: &LabelRules,
    ) -> ReservationId {
        let named = offering.requirements.get(rules.reservation_id()).and_then(|own| own.values().first());
        // One that has no name is its type's own.
        let name = named.unwrap_or(kind);
        let next = ReservationId(u32::try_from(self.slots.len()).unwrap_or(u32::MAX));
        let id = *self.ids.entry(Arc::clone(name)).or_insert(next);
        match self.slots.get_mut(id.0 as usize) {
            Some(least) => *least = slots.min(*least),
            None => {
                self.slots.push(slots);
                self.names.push(Arc::clone(name));
            }
        }
        id
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// With slots in addition, for those that are known.
    pub(crate) fn with_credits(&self, credits: &BTreeMap<Arc<str>, u32>) -> Self {
        let mut with = self.clone();
        for (name, more) in credits {
            if let Some(id) = self.ids.get(name) {
                with.slots[id.0 as usize] += more;
            }
        }
        with
    }

    pub(crate) fn name(&self, id: ReservationId) -> &Arc<str> {
        &self.names[id.0 as usize]
    }

    pub(crate) fn left(&self, id: ReservationId) -> u32 {
        self.slots.get(id.0 as usize).copied().unwrap_or_default()
    }

    pub(crate) fn take(&mut self, id: ReservationId) {
        self.slots[id.0 as usize] -= 1;
    }

    /// One of those with the name, if there is one left.
    pub(crate) fn take_named(&mut self, name: &str) {
        if let Some(id) = self.ids.get(name) {
            let left = &mut self.slots[id.0 as usize];
            *left = left.saturating_sub(1);
        }
    }

    pub(crate) fn give_back(&mut self, id: ReservationId) {
        self.slots[id.0 as usize] += 1;
    }
}
