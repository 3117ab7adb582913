//! Why nothing in a pool's catalogue does.

use std::sync::Arc;

use kerf_model::cluster::HostPort;
use kerf_model::requirement::Requirements;
use kerf_model::resources::ResourceList;

use super::{Template, TypeRow};
use crate::amounts::{Amounts, ResourceIndex};
use crate::bits::Bits;
use crate::refusal::Refusal;
use crate::volumes::Attached;

/// What was asked for when no type did.
pub(crate) struct Asked<'p> {
    pub(crate) need: &'p Amounts,
    pub(crate) list: &'p ResourceList,
    pub(crate) ports: &'p [HostPort],
    pub(crate) attached: &'p Attached,
}

impl Template<'_> {
    /// The first gate that no type passes, of those that are asked at once.
    pub(crate) fn why_none(&self, after: &Requirements, asked: &Asked<'_>, index: &ResourceIndex) -> Refusal {
        let mut mismatch = None;
        let matching: Vec<_> = self
            .types
            .iter()
            .filter(|row| match row.kind.requirements.intersects(after) {
                Ok(()) => true,
                Err(why) => {
                    mismatch.get_or_insert(why);
                    false
                }
            })
            .collect();
        if let (true, Some(why)) = (matching.is_empty(), mismatch) {
            return Refusal::NoMatchingType(why);
        }
        let attaching: Vec<_> =
            matching.iter().filter(|row| asked.attached.is_within(&row.kind.volume_limits)).copied().collect();
        if attaching.is_empty() && !matching.is_empty() {
            return Refusal::VolumeLimit;
        }
        let is_free = |row: &&&TypeRow<'_>| self.groups[row.group].conflict(asked.ports).is_none();
        let free: Vec<_> = attaching.iter().filter(is_free).copied().collect();
        let Some(first) = free.first() else {
            let conflict = self.groups.iter().find_map(|group| group.conflict(asked.ports));
            return conflict.map_or(Refusal::NoTypes, Refusal::HostPort);
        };
        let fitting: Vec<_> = free.iter().filter(|row| asked.need.fits(&row.room)).copied().collect();
        let Some(nearest) = fitting.first() else {
            return self.shortage(&free, first, asked, index);
        };
        let mut offers = self.offer_rows.meeting(after, |key| self.rules.is_well_known(key));
        offers.keep(&self.available);
        offers.keep(&self.reserved);
        let is_full = |row: &&TypeRow<'_>| offers.iter().any(|at| std::ptr::eq(self.row_of(at), *row));
        match fitting.iter().any(is_full) {
            true => Refusal::ReservationsFull,
            false => Refusal::NoOffering { nearest: Arc::clone(&nearest.kind.name) },
        }
    }

    fn row_of(&self, offer: usize) -> &TypeRow<'_> {
        &self.types[self.offers[offer].kind as usize]
    }

    /// The type that comes nearest is short of the fewest resources, and has the most of the first of them.
    fn shortage(
        &self,
        rows: &[&TypeRow<'_>],
        first: &TypeRow<'_>,
        asked: &Asked<'_>,
        index: &ResourceIndex,
    ) -> Refusal {
        let rank = |row: &&&TypeRow<'_>| {
            let short = asked.need.shortages(&row.room);
            let room = asked.need.first_short(&row.room).map(|id| row.room.of(id));
            (std::cmp::Reverse(short), room)
        };
        // Of equals the first in the catalogue.
        let nearest = rows.iter().rev().max_by_key(rank).map_or(first, |row| *row);
        let name = index.name(asked.need.first_short(&nearest.room).unwrap_or_default()).clone();
        let overhead = self.groups[nearest.group].overhead.amount(name.as_str());
        let amount = asked.list.amount(name.as_str());
        Refusal::Resources {
            asked: amount.checked_add(overhead).unwrap_or(amount),
            largest: nearest.allocatable.amount(name.as_str()),
            nearest: Arc::clone(&nearest.kind.name),
            name,
        }
    }

    /// What a pool's limits leave no room for.
    pub(crate) fn exceeded_limit(&self, types: &Bits, left: &Amounts, index: &ResourceIndex) -> Refusal {
        let short = types.iter().find_map(|at| self.types[at].capacity.first_short(left));
        let Some(id) = short else { return Refusal::NoTypes };
        let name = index.name(id).clone();
        let like = self.pool.limits.amount(name.as_str());
        let smallest = types.iter().map(|at| self.types[at].capacity.of(id)).min().unwrap_or_default();
        Refusal::Limit {
            left: index.quantity(id, left.of(id), like),
            smallest: index.quantity(id, smallest, like),
            name,
        }
    }
}
