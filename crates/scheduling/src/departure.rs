//! Hosts that were chosen to go while questions are asked, and where their pods will be.
//!
//! Who makes one choice after the other tells [`Prepared`](crate::Prepared) of each. What follows from it is worked out
//! once and kept as differences over the compiled cluster, so that the hundredth question of a round costs what the
//! first one does.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::cluster::Pod;

use crate::amounts::Amounts;
use crate::bits::Bits;
use crate::counts::{Counts, Differences};
use crate::known::KnownPod;
use crate::prepared::Base;
use crate::reservation::Reservations;
use crate::schedule::{OnHost, PlannedClaim};
use crate::topology::{GroupId, Memberships, Place, labels_of};

/// Hosts that go, and what becomes of their pods.
#[derive(Debug, Clone, Default)]
pub struct Departure {
    /// Nodes, and claims without a node: no destinations from now on, and their capacity counts against no limit.
    pub hosts: Vec<Arc<str>>,
    /// The pods that will run on hosts that are there: they take their room, count there, and nothing else is moved there.
    pub landing: Vec<OnHost>,
    /// What is launched, each with those of the pods that it is for.
    pub launched: Vec<PlannedClaim>,
}

/// What all departures come to, as differences over the cluster.
#[derive(Default)]
pub(crate) struct Departed {
    pub(crate) hosts: Bits,
    /// Hosts that got pods: closed to others that only move.
    pub(crate) closed: Bits,
    /// What each pool's limits leave, once a host has gone.
    pub(crate) left: Option<Vec<Amounts>>,
    /// What is left of the reservations, once something is launched.
    pub(crate) slots: Option<Reservations>,
    pub(crate) counts: Differences,
    /// What is left on hosts that got pods.
    rooms: BTreeMap<usize, Vec<i64>>,
}

impl Departed {
    pub(crate) fn room(&self, host: usize) -> Option<&[i64]> {
        if self.closed.contains(host) { self.rooms.get(&host).map(Vec::as_slice) } else { None }
    }

    pub(crate) fn left<'s>(&'s self, base: &'s Base<'_>) -> &'s [Amounts] {
        self.left.as_deref().unwrap_or(&base.left)
    }

    /// O(hosts + pods × groups that count each), with logarithms.
    pub(crate) fn add(&mut self, departure: &Departure, base: &Base<'_>) {
        self.remove_hosts(departure, base);
        self.count_against_limits(departure, base);
        self.fill_rooms(departure, base);
        self.move_counts(departure, base);
    }

    fn remove_hosts(&mut self, departure: &Departure, base: &Base<'_>) {
        let named: Vec<usize> = departure.hosts.iter().filter_map(|name| base.hosts.find(name)).collect();
        for host in named {
            if self.hosts.contains(host) {
                continue;
            }
            self.hosts.insert(host);
            self.counts.leave_out(host, &base.topology);
            if let Some((template, capacity)) = &base.hosts.all[host].usage {
                self.left.get_or_insert_with(|| base.left.clone())[*template].give_back(capacity);
            }
        }
    }

    fn count_against_limits(&mut self, departure: &Departure, base: &Base<'_>) {
        for claim in &departure.launched {
            if let Some(held) = claim.reservations().first() {
                self.slots.get_or_insert_with(|| base.reservations.clone()).take_named(held);
            }
            let Some(at) = base.templates.iter().position(|template| template.pool.name == claim.pool) else {
                continue;
            };
            let template = &base.templates[at];
            if template.pool.limits.is_empty() {
                continue;
            }
            let may_be = |name: &Arc<str>| claim.options.iter().any(|option| option.instance_type == *name);
            let types = template.types.iter().enumerate().filter(|(_, row)| may_be(&row.kind.name));
            let most = template.most_capacity(&Bits::of(template.types.len(), types.map(|(at, _)| at)));
            self.left.get_or_insert_with(|| base.left.clone())[at].take_bounded(&most);
        }
    }

    fn fill_rooms(&mut self, departure: &Departure, base: &Base<'_>) {
        for on in &departure.landing {
            let Some(host) = base.hosts.find(on.host.name()) else { continue };
            self.closed.insert(host);
            let room = self.rooms.entry(host).or_insert_with(|| base.room(host).to_vec());
            for pod in &on.pods {
                let asked = base.index.asked(&pod.requests);
                room.iter_mut().zip(asked.as_slice()).for_each(|(room, asked)| *room = room.saturating_sub(*asked));
            }
        }
    }

    /// The pods count where they will be, and no more where they are.
    fn move_counts(&mut self, departure: &Departure, base: &Base<'_>) {
        if base.topology.is_empty() {
            return;
        }
        let mut memberships = Memberships::default();
        let mut counts = Counts::new(&base.topology, base.supply.rules, &self.counts);
        for on in &departure.landing {
            let Some(host) = base.hosts.find(on.host.name()) else { continue };
            let class = &base.hosts.classes[base.hosts.all[host].class];
            for pod in on.pods.iter().filter(|pod| pod.is_active()) {
                let groups = forget(&mut counts, pod, base, &mut memberships);
                let accepts = |group: &crate::topology::Group| group.accepts_host(&class.labels, &class.taints);
                counts.record_on_host(groups.into_iter(), host, accepts);
            }
        }
        for claim in &departure.launched {
            for pod in claim.pods.iter().filter(|pod| pod.is_active()) {
                let groups = forget(&mut counts, pod, base, &mut memberships);
                counts.record_on_launched(&groups, claim.requirements(), &claim.node.taints);
            }
        }
        let found = counts.differences();
        self.counts.extend(found);
    }
}

/// Takes a pod back from where it runs; the answer is the groups that count it.
fn forget<'p>(counts: &mut Counts<'_>, pod: &'p Arc<Pod>, base: &Base<'_>, of: &mut Memberships<'p>) -> Vec<GroupId> {
    let known = base.known.pod(pod);
    base.tell_places(pod, known, of, |id, place| counts.forget(id, place));
    match known {
        Some(known) => base.groups_of(known).collect(),
        None => base.topology.counting(pod, base.cluster, of, base.supply.rules),
    }
}

impl Base<'_> {
    /// The groups that pods like this count in.
    fn groups_of(&self, known: KnownPod) -> impl Iterator<Item = GroupId> {
        let kind = &self.known.kinds[self.known.shapes[known.shape as usize].shape.kind];
        kind.membership.counted_in.iter().chain(&kind.announces).copied()
    }

    /// Where a pod counts that runs.
    pub(crate) fn tell_places<'p>(
        &self,
        pod: &'p Arc<Pod>,
        known: Option<KnownPod>,
        memberships: &mut Memberships<'p>,
        mut tell: impl FnMut(GroupId, Place),
    ) {
        if let Some(known) = known {
            let places = known.host.into_iter().flat_map(|host| self.groups_of(known).map(move |id| (id, host)));
            places.for_each(|(id, host)| self.topology.home(id, host).into_iter().for_each(|place| tell(id, place)));
            return;
        }
        let Some(node) = pod.node_name.as_deref().and_then(|node| self.cluster.node(node)) else { return };
        let labels = labels_of(node, self.supply.rules);
        for id in self.topology.counting(pod, self.cluster, memberships, self.supply.rules) {
            let place = self.topology.place_of(id, node, &labels, &self.hosts);
            place.into_iter().for_each(|place| tell(id, place));
        }
    }
}
