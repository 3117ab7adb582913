//! What a pool can launch, compiled once: types and offerings as rows of bits.

mod compile;
mod reasons;

pub(crate) use compile::Compiler;
pub(crate) use reasons::Asked;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use kerf_model::cluster::{HostPort, InstanceType, Offering, Overrides, StoredPool};
use kerf_model::label::{self, LabelRules};
use kerf_model::node_pool::NodePool;
use kerf_model::price::Price;
use kerf_model::requirement::{Operator, Requirement, Requirements};
use kerf_model::resources::ResourceList;

use crate::amounts::Amounts;
use crate::bits::Bits;
use crate::refusal::Refusal;
use crate::reservation::ReservationId;
use crate::rows::{KeyRows, Rows};
use crate::schedule::{OptionOffering, TypeOption};
use crate::sets::SetId;
use crate::volumes::Attached;

pub(crate) struct Template<'a> {
    pub(crate) stored: &'a StoredPool,
    pub(crate) pool: &'a NodePool,
    /// What every node of the pool meets.
    pub(crate) set: SetId,
    /// Types that the pool's requirements leave and that are offered, in the order of the catalogue. A type whose
    /// offerings override what it has is there once for each that differs, the type as it is first: what does for a claim
    /// is then a matter of rows, here as with types that differ in all else.
    pub(crate) types: Vec<TypeRow<'a>>,
    /// Whether some type is there more than once.
    pub(crate) has_overrides: bool,
    type_rows: Rows,
    /// Of all types, type by type.
    offers: Vec<Offer<'a>>,
    offer_rows: Rows,
    available: Bits,
    reserved: Bits,
    pub(crate) groups: Vec<DaemonGroup>,
    /// By resource: types by their room for pods, the least first, with the types that have at least that much.
    rooms: Vec<Vec<(i64, Bits)>>,
    /// No type has more of anything.
    most_capacity: Amounts,
    /// The same by their capacity, as limits count it.
    capacities: Vec<Vec<(i64, Bits)>>,
    pub(crate) has_min_values: bool,
    pub(crate) has_volume_limits: bool,
    /// Why the pool launches nothing at all.
    pub(crate) closed: Option<Refusal>,
    catalogue: &'a Arc<[InstanceType]>,
    rules: &'a LabelRules,
}

pub(crate) struct TypeRow<'a> {
    /// Its place in the catalogue.
    at: u32,
    pub(crate) kind: &'a InstanceType,
    /// Its offerings are those that override the type like this.
    overrides: Option<&'a Overrides>,
    /// What is left for pods once the daemons run.
    pub(crate) room: Amounts,
    /// As limits count it; every node is one of `nodes`.
    pub(crate) capacity: Amounts,
    pub(crate) allocatable: ResourceList,
    pub(crate) group: usize,
    /// Its offerings are those from here.
    first_offer: u32,
    /// The same as options of a claim, once one of them was asked for.
    ways: OnceLock<Vec<OptionOffering>>,
}

struct Offer<'a> {
    kind: u32,
    offering: &'a Offering,
    reservation: Option<ReservationId>,
}

/// Types on which the same daemons will run.
pub(crate) struct DaemonGroup {
    pub(crate) overhead: ResourceList,
    ports: Vec<HostPort>,
    members: Bits,
}

/// What of a pool's catalogue does for a requirement set, before anything is placed.
#[derive(Debug)]
pub(crate) struct Selection {
    /// Types that match and have an offering that may be launched.
    pub(crate) types: Bits,
    /// Available offerings that match, reserved ones too.
    offers: Bits,
    /// Types with an offering that is no reservation.
    pub(crate) open: Bits,
    /// Types and their reservations that match, the cheapest first.
    pub(crate) reserved: Vec<(Price, ReservationId, u32)>,
    /// Types that may be launched, the cheapest first, and then by name.
    pub(crate) by_price: Vec<(Price, u32)>,
}

impl<'a> Template<'a> {
    /// What does for a set of requirements; `slots` says how many instances a reservation takes.
    ///
    /// A few row operations per label, and one pass over the offerings left: O(keys × words + offerings).
    pub(crate) fn select(&self, asked: &Requirements, slots: impl Fn(ReservationId) -> u32) -> Selection {
        let len = self.types.len();
        let mut matching = self.type_rows.meeting(asked, |_| true);
        let mut offers = self.offer_rows.meeting(asked, |key| self.rules.is_well_known(key));
        offers.keep(&self.available);
        if asked.iter().any(Requirement::is_contradiction) {
            (matching, offers) = (Bits::none(len), Bits::none(self.offers.len()));
        }
        let (mut open, mut obtainable) = (Bits::none(len), Bits::none(len));
        let mut cheapest: Vec<Option<Price>> = vec![None; len];
        let mut reserved = Vec::new();
        for at in offers.iter() {
            let Offer { kind, offering, reservation } = &self.offers[at];
            let kind = *kind as usize;
            if !matching.contains(kind) {
                continue;
            }
            match reservation {
                None => open.insert(kind),
                Some(id) if slots(*id) > 0 => reserved.push((offering.price, *id, kind as u32)),
                Some(_) => continue,
            }
            obtainable.insert(kind);
            cheapest[kind] = Some(cheapest[kind].map_or(offering.price, |known| known.min(offering.price)));
        }
        reserved.sort_unstable();
        matching.keep(&obtainable);
        let mut by_price: Vec<_> = matching.iter().filter_map(|at| Some((cheapest[at]?, at as u32))).collect();
        by_price.sort_by(|(a, left), (b, right)| a.cmp(b).then_with(|| self.name(*left).cmp(self.name(*right))));
        Selection { types: matching, offers, open, reserved, by_price }
    }

    fn name(&self, at: u32) -> &Arc<str> {
        &self.types[at as usize].kind.name
    }

    /// Narrows types to those with room for all that is asked. O(resources × (log types + words)).
    pub(crate) fn keep_fitting(&self, types: &mut Bits, asked: &[i64]) {
        for (rooms, asked) in self.rooms.iter().zip(asked) {
            // Nothing fits where anything is overdrawn, asked for or not.
            let at = rooms.partition_point(|(room, _)| room < asked);
            match (at, rooms.get(at)) {
                (0, Some(_)) => {}
                (_, Some((_, enough))) => types.keep(enough),
                (_, None) => *types = Bits::none(self.types.len()),
            }
        }
    }

    /// Narrows types to those whose daemons leave the ports free.
    pub(crate) fn keep_free_ports(&self, types: &mut Bits, ports: &[HostPort]) {
        for group in self.groups.iter().filter(|group| group.conflict(ports).is_some()) {
            types.drop_all(&group.members);
        }
    }

    /// Narrows types to those whose nodes can attach all of these volumes.
    pub(crate) fn keep_attaching(&self, types: &mut Bits, attached: &Attached) {
        let too_many: Vec<_> =
            types.iter().filter(|at| !attached.is_within(&self.types[*at].kind.volume_limits)).collect();
        too_many.into_iter().for_each(|at| types.remove(at));
    }

    /// Narrows types to those that a pool's limits leave room for. O(resources × (log types + words)).
    pub(crate) fn keep_within(&self, types: &mut Bits, left: &Amounts) {
        if self.most_capacity.fits(left) {
            return;
        }
        for (capacities, left) in self.capacities.iter().zip(left.as_slice()) {
            let over = capacities.get(capacities.partition_point(|(capacity, _)| capacity <= left));
            over.into_iter().for_each(|(_, over)| types.drop_all(over));
        }
    }

    /// The most of each resource that any of the types has: what a limit must be prepared for.
    ///
    /// O(resources × log types × words).
    pub(crate) fn most_capacity(&self, types: &Bits) -> Amounts {
        let most = |capacities: &Vec<(i64, Bits)>| {
            let above = capacities.partition_point(|(_, enough)| enough.meets(types));
            above.checked_sub(1).map_or(0, |at| capacities[at].0)
        };
        Amounts::from(self.capacities.iter().map(most).collect::<Vec<_>>())
    }

    /// The first label of which too few different values are left, with how many there are.
    pub(crate) fn too_few_values(&self, types: &Bits, asked: &Requirements) -> Option<(Arc<str>, u32, u32)> {
        if !self.has_min_values {
            return None;
        }
        asked.iter().find_map(|requirement| {
            let wanted = requirement.min_values()?;
            let found = self.count_values(types, requirement);
            (found < wanted).then(|| (Arc::clone(requirement.key()), wanted, found))
        })
    }

    /// Only values that the requirement allows (sheet 08, S4).
    pub(crate) fn count_values(&self, types: &Bits, requirement: &Requirement) -> u32 {
        let row = self.type_rows.key(requirement.key());
        row.map_or(0, |row| u32::try_from(row.count_values(types, requirement)).unwrap_or(u32::MAX))
    }

    /// The values of a label that some type, offering or the pool itself names.
    pub(crate) fn named_values<'s>(&'s self, key: &'s str, own: &'s Requirements) -> BTreeSet<&'s Arc<str>> {
        let rows = [&self.offer_rows, &self.type_rows].into_iter().filter_map(|rows| rows.key(key));
        let mut named: BTreeSet<_> = rows.flat_map(KeyRows::values).collect();
        let of_pool = own.get(key).filter(|own| own.operator() == Operator::In);
        named.extend(of_pool.into_iter().flat_map(Requirement::values));
        named
    }

    /// The type as an option of a claim; `None` if it could not be launched. With a reservation held, only from there.
    pub(crate) fn option(
        &self,
        at: usize,
        selection: &Selection,
        held: Option<(ReservationId, &Arc<str>)>,
    ) -> Option<TypeOption> {
        let row = &self.types[at];
        let first = row.first_offer as usize;
        let launched = |nth: &usize| {
            selection.offers.contains(first + nth) && self.offers[first + nth].reservation == held.map(|(id, _)| id)
        };
        let way = |own: &OptionOffering| OptionOffering {
            reservation: held.map(|(_, name)| Arc::clone(name)),
            ..own.clone()
        };
        let ways = row.ways.get_or_init(|| self.ways(at)).iter().enumerate();
        let offerings = ways.filter(|(nth, _)| launched(nth)).map(|(_, own)| way(own));
        TypeOption::new(self.catalogue, row.at, offerings.collect())
    }

    /// The offerings of a type, in their order, as they are without a reservation held.
    fn ways(&self, at: usize) -> Vec<OptionOffering> {
        let only = |offering: &Offering, key: &str| offering.requirements.get(key)?.values().first().cloned();
        let own = self.offers[self.types[at].first_offer as usize..].iter();
        own.take_while(|offer| offer.kind as usize == at)
            .map(|Offer { offering, .. }| OptionOffering {
                capacity_type: only(offering, label::CAPACITY_TYPE),
                zone: only(offering, label::ZONE),
                price: offering.price,
                reservation: None,
            })
            .collect()
    }

    /// Types that offer a reservation for the set.
    pub(crate) fn offering(&self, selection: &Selection, held: ReservationId) -> Bits {
        let own = selection.reserved.iter().filter(|(_, id, _)| *id == held);
        Bits::of(self.types.len(), own.map(|(_, _, kind)| *kind as usize))
    }
}

impl DaemonGroup {
    fn conflict(&self, ports: &[HostPort]) -> Option<HostPort> {
        ports.iter().find(|port| self.ports.iter().any(|own| own.conflicts_with(port))).copied()
    }
}
