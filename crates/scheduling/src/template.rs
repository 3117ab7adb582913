//! What a pool can launch, compiled once per solve.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_model::cluster::{HostPort, InstanceType, Offering, StoredPool};
use kerf_model::label::{self, LabelRules};
use kerf_model::node_pool::{NodeClassRef, NodePool};
use kerf_model::price::Price;
use kerf_model::quantity::{Notation, Quantity};
use kerf_model::requirement::{Operator, Requirement, Requirements, UndefinedKeys};
use kerf_model::resources::{ResourceList, ResourceName};

use crate::amounts::{Amounts, ResourceIndex, sum};
use crate::daemons::Daemon;
use crate::refusal::Refusal;

pub(crate) struct Template<'a> {
    pub(crate) stored: &'a StoredPool,
    pub(crate) pool: &'a NodePool,
    /// What every node of the pool meets.
    pub(crate) requirements: Requirements,
    /// Types that the pool's requirements leave and that are offered, in the order of the catalogue.
    pub(crate) types: Vec<TypeRow<'a>>,
    pub(crate) groups: Vec<DaemonGroup>,
    /// Labels that differ between the offerings of a type.
    offering_keys: BTreeSet<Arc<str>>,
    /// Why the pool launches nothing at all.
    pub(crate) closed: Option<Refusal>,
    rules: &'a LabelRules,
}

pub(crate) struct TypeRow<'a> {
    pub(crate) kind: &'a InstanceType,
    /// What is left for pods once the daemons run.
    pub(crate) room: Amounts,
    /// As limits count it; every node is one of `nodes`.
    pub(crate) capacity: Amounts,
    allocatable: ResourceList,
    pub(crate) group: usize,
}

/// Types on which the same daemons will run.
pub(crate) struct DaemonGroup {
    pub(crate) overhead: ResourceList,
    ports: Vec<HostPort>,
}

/// The key of the label that names a node's class.
pub(crate) fn class_label(class: &NodeClassRef) -> String {
    format!("{}/{}", class.group, class.kind.to_lowercase())
}

impl<'a> Template<'a> {
    pub(crate) fn compile(
        (stored, pool): (&'a StoredPool, &'a NodePool),
        types: &'a [InstanceType],
        daemons: &[Daemon<'_>],
        index: &ResourceIndex,
        rules: &'a LabelRules,
    ) -> Self {
        let requirements = requirements_of(pool, rules);
        let contradiction = requirements.iter().find(|requirement| requirement.is_contradiction());
        let closed = contradiction.map(|found| Refusal::PoolContradiction { key: Arc::clone(found.key()) });
        let mut template = Self {
            stored,
            pool,
            requirements,
            types: Vec::new(),
            groups: Vec::new(),
            offering_keys: BTreeSet::new(),
            closed,
            rules,
        };
        template.add_types(types, daemons, index);
        if template.closed.is_none() && template.types.is_empty() {
            template.closed = Some(Refusal::NoTypes);
        }
        template
    }

    fn add_types(&mut self, types: &'a [InstanceType], daemons: &[Daemon<'_>], index: &ResourceIndex) {
        let undefined = UndefinedKeys::OpenIfWellKnown(self.rules);
        let daemons: Vec<_> = daemons.iter().filter(|daemon| daemon.tolerates(&self.pool.node.taints)).collect();
        // Of each daemon the terms that the pool can meet; which types can, differs by type.
        let possible = |daemon: &&Daemon<'_>| -> Vec<Requirements> {
            let terms = daemon.terms.iter();
            terms.filter(|term| self.requirements.compatible(term, undefined).is_ok()).cloned().collect()
        };
        let terms: Vec<_> = daemons.iter().map(possible).collect();
        let mut groups: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        for kind in types {
            let fits_pool = kind.requirements.intersects(&self.requirements).is_ok();
            if !fits_pool || !is_offered(kind, &self.requirements, self.rules, |offering| offering.available) {
                continue;
            }
            let runs = |at: &usize| terms[*at].iter().any(|term| kind.requirements.intersects(term).is_ok());
            let set: Vec<usize> = (0..daemons.len()).filter(runs).collect();
            let group = *groups.entry(set).or_insert_with_key(|set| {
                let own = || set.iter().map(|at| daemons[*at]);
                let overhead = sum(own().map(Daemon::requests));
                self.groups.push(DaemonGroup { overhead, ports: own().flat_map(Daemon::ports).collect() });
                self.groups.len() - 1
            });
            let allocatable = kind.allocatable();
            let mut room = index.amounts(&allocatable);
            room.take(&index.amounts(&self.groups[group].overhead));
            let mut capacity = kind.capacity.clone();
            capacity.insert(ResourceName::NODES, Quantity::from_value(1, Notation::DecimalSi));
            let capacity = index.amounts(&capacity);
            self.types.push(TypeRow { kind, room, capacity, allocatable, group });
            let keys = kind.offerings.iter().flat_map(|offering| offering.requirements.iter());
            self.offering_keys.extend(keys.map(|requirement| Arc::clone(requirement.key())));
        }
    }

    pub(crate) fn all(&self) -> Vec<u32> {
        (0..).take(self.types.len()).collect()
    }

    pub(crate) fn rows(&self, options: &[u32]) -> impl Iterator<Item = &TypeRow<'a>> {
        options.iter().map(|at| &self.types[*at as usize])
    }

    /// Which of the options do for `after`, given that all of them do for `before`.
    pub(crate) fn narrow(
        &self,
        options: &[u32],
        (before, after): (&Requirements, &Requirements),
        need: &Amounts,
        ports: &[HostPort],
    ) -> Vec<u32> {
        let changed: Vec<_> = after.iter().filter(|new| before.get(new.key()) != Some(*new)).collect();
        if changed.iter().any(|new| new.is_contradiction()) {
            return Vec::new();
        }
        let offerings_change = changed.iter().any(|new| self.offering_keys.contains(new.key()));
        let free: Vec<bool> = self.groups.iter().map(|group| group.conflict(ports).is_none()).collect();
        let still_does = |row: &TypeRow<'_>| {
            free[row.group]
                && need.fits(&row.room)
                && changed.iter().all(|new| row.kind.requirements.get(new.key()).is_none_or(|own| own.can_meet(new)))
                && (!offerings_change || self.is_launchable(row, after))
        };
        options.iter().copied().filter(|at| still_does(&self.types[*at as usize])).collect()
    }

    /// All types that do for a first pod.
    pub(crate) fn options_for(&self, after: &Requirements, need: &Amounts, ports: &[HostPort]) -> Vec<u32> {
        let mut options = self.narrow(&self.all(), (&self.requirements, after), need, ports);
        options.retain(|at| self.is_launchable(&self.types[*at as usize], after));
        options
    }

    /// The first gate that no type passes, of those that [`options_for`](Self::options_for) asks at once.
    pub(crate) fn why_none(
        &self,
        after: &Requirements,
        (need, asked): (&Amounts, &ResourceList),
        ports: &[HostPort],
        index: &ResourceIndex,
    ) -> Refusal {
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
        let free: Vec<_> =
            matching.iter().filter(|row| self.groups[row.group].conflict(ports).is_none()).copied().collect();
        let Some(first) = free.first() else {
            let conflict = self.groups.iter().find_map(|group| group.conflict(ports));
            return conflict.map_or(Refusal::NoTypes, Refusal::HostPort);
        };
        let fitting: Vec<_> = free.iter().filter(|row| need.fits(&row.room)).copied().collect();
        let Some(nearest) = fitting.first() else {
            return self.shortage(&free, first, need, asked, index);
        };
        let full = |row: &&TypeRow<'_>| is_offered(row.kind, after, self.rules, |offering| offering.available);
        match fitting.iter().any(full) {
            true => Refusal::ReservationsFull,
            false => Refusal::NoOffering { nearest: Arc::clone(&nearest.kind.name) },
        }
    }

    /// The type that comes nearest is short of the fewest resources, and has the most of the first of them.
    fn shortage(
        &self,
        rows: &[&TypeRow<'_>],
        first: &TypeRow<'_>,
        need: &Amounts,
        asked: &ResourceList,
        index: &ResourceIndex,
    ) -> Refusal {
        let rank = |row: &&&TypeRow<'_>| {
            let short = need.shortages(&row.room);
            let room = need.first_short(&row.room).map(|id| row.room.of(id));
            (std::cmp::Reverse(short), room)
        };
        // Of equals the first in the catalogue.
        let nearest = rows.iter().rev().max_by_key(rank).map_or(first, |row| *row);
        let name = index.name(need.first_short(&nearest.room).unwrap_or_default()).clone();
        let overhead = self.groups[nearest.group].overhead.amount(name.as_str());
        let asked = asked.amount(name.as_str());
        Refusal::Resources {
            asked: asked.checked_add(overhead).unwrap_or(asked),
            largest: nearest.allocatable.amount(name.as_str()),
            nearest: Arc::clone(&nearest.kind.name),
            name,
        }
    }

    fn is_launchable(&self, row: &TypeRow<'_>, requirements: &Requirements) -> bool {
        is_offered(row.kind, requirements, self.rules, Offering::is_launchable)
    }

    /// The offerings of a type that could be launched for a claim with these requirements.
    pub(crate) fn launchable<'k>(
        &'k self,
        kind: &'k InstanceType,
        requirements: &'k Requirements,
    ) -> impl Iterator<Item = &'k Offering> {
        let undefined = UndefinedKeys::OpenIfWellKnown(self.rules);
        let launchable = kind.offerings.iter().filter(|offering| offering.is_launchable());
        launchable.filter(move |offering| requirements.compatible(&offering.requirements, undefined).is_ok())
    }

    pub(crate) fn price(&self, kind: &InstanceType, requirements: &Requirements) -> Option<Price> {
        self.launchable(kind, requirements).map(|offering| offering.price).min()
    }

    /// The first label of which too few different values are left, with how many there are.
    pub(crate) fn too_few_values(&self, options: &[u32], requirements: &Requirements) -> Option<(Arc<str>, u32, u32)> {
        requirements.iter().find_map(|requirement| {
            let wanted = requirement.min_values()?;
            let found = self.count_values(options, requirement);
            (found < wanted).then(|| (Arc::clone(requirement.key()), wanted, found))
        })
    }

    pub(crate) fn count_values(&self, options: &[u32], requirement: &Requirement) -> u32 {
        let own = self.rows(options).filter_map(|row| row.kind.requirements.get(requirement.key()));
        let listed = own.filter(|own| own.operator() == Operator::In).flat_map(Requirement::values);
        let values: BTreeSet<_> = listed.filter(|value| requirement.has(value)).collect();
        u32::try_from(values.len()).unwrap_or(u32::MAX)
    }

    /// The values of a label that nodes of this pool can have, of those that one of the terms allows. Only what some type
    /// with an available offering can reach counts: a zone that is named but sold out is none.
    pub(crate) fn domains(&self, key: &str, terms: &[Requirements]) -> BTreeSet<Arc<str>> {
        let undefined = UndefinedKeys::OpenIfWellKnown(self.rules);
        let terms = terms.iter().filter(|term| self.requirements.compatible(term, undefined).is_ok());
        let narrowed: Vec<Requirements> = terms
            .map(|term| {
                let mut both = self.requirements.clone();
                both.merge(term);
                both
            })
            .collect();
        let mut found = BTreeSet::new();
        for row in &self.types {
            for after in narrowed.iter().filter(|after| row.kind.requirements.intersects(after).is_ok()) {
                for offering in self.launchable(row.kind, after) {
                    let sides = [&offering.requirements, &row.kind.requirements, after];
                    let Some(source) = sides.into_iter().find_map(|side| side.get(key)) else { continue };
                    if source.operator() == Operator::In {
                        let reachable =
                            source.values().iter().filter(|value| after.get(key).is_none_or(|own| own.has(value)));
                        found.extend(reachable.cloned());
                    }
                }
            }
        }
        found
    }
}

impl DaemonGroup {
    fn conflict(&self, ports: &[HostPort]) -> Option<HostPort> {
        ports.iter().find(|port| self.ports.iter().any(|own| own.conflicts_with(port))).copied()
    }
}

fn requirements_of(pool: &NodePool, rules: &LabelRules) -> Requirements {
    let mut requirements = pool.node.requirements.clone();
    let labels = pool.labels.iter().map(|(key, value)| (&**key, &**value));
    requirements.merge(&Requirements::from_labels(labels, rules));
    let class = class_label(&pool.node.class);
    // The last two are there for daemons that wait for a node to be ready, and never reach a claim.
    let ours = [
        (label::NODEPOOL, &*pool.name),
        (&class, &*pool.node.class.name),
        (label::REGISTERED, "true"),
        (label::INITIALIZED, "true"),
    ];
    requirements.merge(&Requirements::from_labels(ours, rules));
    requirements
}

fn is_offered(
    kind: &InstanceType,
    requirements: &Requirements,
    rules: &LabelRules,
    usable: impl Fn(&Offering) -> bool,
) -> bool {
    let undefined = UndefinedKeys::OpenIfWellKnown(rules);
    kind.offerings
        .iter()
        .any(|offering| usable(offering) && requirements.compatible(&offering.requirements, undefined).is_ok())
}
