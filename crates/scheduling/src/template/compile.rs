//! From a pool and its catalogue to a template.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use kerf_model::cluster::{InstanceType, Overrides, StoredPool};
use kerf_model::label::{self, LabelRules};
use kerf_model::node_pool::NodePool;
use kerf_model::quantity::{Notation, Quantity};
use kerf_model::requirement::{Requirements, UndefinedKeys};
use kerf_model::resources::ResourceName;

use super::{DaemonGroup, Offer, Template, TypeRow};
use crate::amounts::{Amounts, ResourceIndex, sum};
use crate::bits::Bits;
use crate::daemons::Daemon;
use crate::refusal::Refusal;
use crate::reservation::Reservations;
use crate::rows::Rows;
use crate::sets::Sets;

/// What compiling a pool needs besides the pool.
pub(crate) struct Compiler<'s, 'a> {
    pub(crate) daemons: &'s [Daemon<'a>],
    pub(crate) index: &'s ResourceIndex,
    pub(crate) sets: &'s mut Sets<'static>,
    pub(crate) reservations: &'s mut Reservations,
    pub(crate) rules: &'a LabelRules,
}

impl<'a> Compiler<'_, 'a> {
    pub(crate) fn compile(
        &mut self,
        (stored, pool): (&'a StoredPool, &'a NodePool),
        catalogue: &'a Arc<[InstanceType]>,
    ) -> Template<'a> {
        let requirements = requirements_of(pool, self.rules);
        let contradiction = requirements.iter().find(|requirement| requirement.is_contradiction());
        let closed = contradiction.map(|found| Refusal::PoolContradiction { key: Arc::clone(found.key()) });
        let has_min_values = requirements.iter().any(|requirement| requirement.min_values().is_some());
        let (types, mut groups) = self.types(pool, catalogue, &requirements);
        for (at, group) in groups.iter_mut().enumerate() {
            group.members = Bits::of(types.len(), (0..types.len()).filter(|kind| types[*kind].group == at));
        }
        let offers = self.offers(&types);
        let usable = |at: &usize| offers[*at].offering.available;
        let available = Bits::of(offers.len(), (0..offers.len()).filter(usable));
        let reserved = Bits::of(offers.len(), (0..offers.len()).filter(|at| offers[*at].reservation.is_some()));
        let mut most_capacity = self.index.nothing();
        types.iter().for_each(|row| most_capacity.raise_to(&row.capacity));
        let closed = closed.or_else(|| types.is_empty().then_some(Refusal::NoTypes));
        Template {
            stored,
            pool,
            set: self.sets.intern(requirements),
            type_rows: Rows::of(types.iter().map(|row| &row.kind.requirements)),
            offer_rows: Rows::of(offers.iter().map(|offer| &offer.offering.requirements)),
            available,
            reserved,
            groups,
            rooms: (0..self.index.len()).map(|id| by_amount(&types, |row| row.room.of(id))).collect(),
            capacities: (0..self.index.len()).map(|id| by_amount(&types, |row| row.capacity.of(id))).collect(),
            most_capacity,
            has_overrides: types.iter().any(|row| row.overrides.is_some()),
            has_min_values,
            has_volume_limits: types.iter().any(|row| !row.kind.volume_limits.is_empty()),
            closed,
            catalogue,
            rules: self.rules,
            types,
            offers,
        }
    }

    fn types(
        &self,
        pool: &NodePool,
        catalogue: &'a [InstanceType],
        requirements: &Requirements,
    ) -> (Vec<TypeRow<'a>>, Vec<DaemonGroup>) {
        let undefined = UndefinedKeys::OpenIfWellKnown(self.rules);
        let daemons: Vec<_> = self.daemons.iter().filter(|daemon| daemon.tolerates(&pool.node.taints)).collect();
        // Of each daemon the terms that the pool can meet; which types can, differs by type.
        let possible = |daemon: &&Daemon<'_>| -> Vec<Requirements> {
            let terms = daemon.terms.iter();
            terms.filter(|term| requirements.compatible(term, undefined).is_ok()).cloned().collect()
        };
        let terms: Vec<_> = daemons.iter().map(possible).collect();
        let (mut rows, mut groups): (Vec<TypeRow<'a>>, Vec<DaemonGroup>) = (Vec::new(), Vec::new());
        let mut known: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        let mut overheads: Vec<Amounts> = Vec::new();
        let one_node = Quantity::from_value(1, Notation::DecimalSi);
        for (at, kind) in (0..).zip(catalogue) {
            let fits_pool = kind.requirements.intersects(requirements).is_ok();
            let variants = if fits_pool { variants(kind, requirements, self.rules) } else { Vec::new() };
            if variants.is_empty() {
                continue;
            }
            let runs = |at: &usize| terms[*at].iter().any(|term| kind.requirements.intersects(term).is_ok());
            let set: Vec<usize> = (0..daemons.len()).filter(runs).collect();
            let group = *known.entry(set).or_insert_with_key(|set| {
                let own = || set.iter().map(|at| daemons[*at]);
                let overhead = sum(own().map(Daemon::requests));
                overheads.push(self.index.asked(&overhead));
                let ports = own().flat_map(Daemon::ports).collect();
                groups.push(DaemonGroup { overhead, ports, members: Bits::default() });
                groups.len() - 1
            });
            for overrides in variants {
                let allocatable = kind.allocatable_with(overrides);
                let mut room = self.index.offered(&allocatable);
                room.take(&overheads[group]);
                let mut capacity = self.index.asked(&kind.capacity_with(overrides));
                if let Some(nodes) = self.index.id(&ResourceName::NODES) {
                    let one_node = [(ResourceName::NODES, one_node)].into_iter().collect();
                    capacity.set(nodes, self.index.asked(&one_node).of(nodes));
                }
                let ways = OnceLock::new();
                rows.push(TypeRow { at, kind, overrides, room, capacity, allocatable, group, first_offer: 0, ways });
            }
        }
        (rows, groups)
    }

    fn offers(&mut self, types: &[TypeRow<'a>]) -> Vec<Offer<'a>> {
        let mut offers = Vec::new();
        for (kind, row) in (0..).zip(types) {
            for offering in row.kind.offerings.iter().filter(|own| own.overrides.as_deref() == row.overrides) {
                let reservation = offering
                    .reservation_capacity
                    .map(|slots| self.reservations.register(&row.kind.name, offering, slots, self.rules));
                offers.push(Offer { kind, offering, reservation });
            }
        }
        offers
    }
}

impl<'a> Template<'a> {
    /// Sets the place of every type's offerings. They stand type by type.
    pub(crate) fn link_offers(&mut self) {
        let mut next = 0;
        for (at, row) in (0..).zip(&mut self.types) {
            row.first_offer = next;
            next += u32::try_from(self.offers[next as usize..].iter().take_while(|offer| offer.kind == at).count())
                .unwrap_or_default();
        }
    }
}

/// Amounts, the least first, with the types that have at least that much.
///
/// O(types × different amounts): most catalogues have a few dozen of each resource.
fn by_amount<'a>(types: &[TypeRow<'a>], amount: impl Fn(&TypeRow<'a>) -> i64) -> Vec<(i64, Bits)> {
    let mut amounts: Vec<(i64, usize)> = types.iter().enumerate().map(|(at, row)| (amount(row), at)).collect();
    amounts.sort_unstable_by(|a, b| b.cmp(a));
    let (mut rows, mut enough): (Vec<(i64, Bits)>, Bits) = (Vec::new(), Bits::none(types.len()));
    for (amount, at) in amounts {
        enough.insert(at);
        match rows.last_mut() {
            Some((last, row)) if *last == amount => row.insert(at),
            Some(_) | None => rows.push((amount, enough.clone())),
        }
    }
    rows.reverse();
    rows
}

fn requirements_of(pool: &NodePool, rules: &LabelRules) -> Requirements {
    let mut requirements = pool.node.requirements.clone();
    let labels = pool.labels.iter().map(|(key, value)| (&**key, &**value));
    requirements.merge(&Requirements::from_labels(labels, rules));
    let class = pool.node.class.label_key();
    // The last two are there for daemons that wait for a node to be ready, and never reach a claim.
    let ours = [
        (label::NODEPOOL, &*pool.name),
        (&*class, &*pool.node.class.name),
        (label::REGISTERED, "true"),
        (label::INITIALIZED, "true"),
    ];
    requirements.merge(&Requirements::from_labels(ours, rules));
    requirements
}

/// What the offerings override that can be launched for the pool, each once; nothing comes first.
fn variants<'a>(kind: &'a InstanceType, requirements: &Requirements, rules: &LabelRules) -> Vec<Option<&'a Overrides>> {
    let undefined = UndefinedKeys::OpenIfWellKnown(rules);
    let mut found = Vec::new();
    for offering in kind.offerings.iter().filter(|offering| offering.available) {
        let overrides = offering.overrides.as_deref();
        if !found.contains(&overrides) && requirements.compatible(&offering.requirements, undefined).is_ok() {
            found.push(overrides);
        }
    }
    found.sort_by_key(Option::is_some);
    found
}
