//! Spread over domains, and pods that want or do not want each other near: the rules, and what runs already.
//!
//! A [`Group`] is one rule with one selector over the values of one label (the domains), and how many pods it counts in
//! each. Pods with the same rule share it. An anti-affinity is two groups: one counts the pods that the owner avoids,
//! the other ([`TopologyRule::AntiAffinityOfOthers`]) counts the owners, for the pods that they avoid.
//!
//! Domains are numbers, in the order of their names. What is here belongs to the cluster and is shared by all questions
//! about it; [`Counts`](crate::counts::Counts) adds what one of them places.

mod keys;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_model::cluster::{
    Node, Pod, PodAffinityTerm, PodConstraints, Texts, WeightedPodAffinityTerm, WhenUnsatisfiable,
};
use kerf_model::dense_id;
use kerf_model::intern::DenseId;
use kerf_model::label::{self, LabelRules};
use kerf_model::requirement::{Operator, Requirement, Requirements, UndefinedKeys};
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::taint::{Taint, tolerates};

use crate::bits::Bits;
use crate::existing::{Hosts, meets};
use crate::refusal::TopologyRule;
use crate::template::Template;
use keys::{GroupKey, affinity_key, spread_key};

dense_id! {
    pub(crate) struct GroupId;
}

#[derive(Debug)]
pub(crate) struct Group {
    key: GroupKey,
    pub(crate) rule: TopologyRule,
    pub(crate) max_skew: i64,
    pub(crate) min_domains: usize,
    /// The label's place among [`Topology::labels`]; `None` for the host name, where every host is a domain.
    pub(crate) label: Option<usize>,
    /// Domains that can be had: reachable by a pool, or the home of a host or of a pod that counts.
    pub(crate) known: Bits,
    /// Of those, what pools can reach.
    reachable: Bits,
    /// Hosts that count.
    counted: Bits,
    /// The same by domain.
    hosts: Vec<u32>,
    /// Pods that run, by domain.
    pub(crate) counts: Vec<u32>,
    /// The same by host, for host names.
    pub(crate) on_hosts: BTreeMap<u32, u32>,
    /// Hosts with at least one of them.
    pub(crate) occupied: Bits,
    /// By host with pods that it selects: where they count.
    homes: BTreeMap<u32, Place>,
    pub(crate) total: u32,
}

/// The pods that run and that one group counts, as [`Group`] keeps them.
#[derive(Default)]
pub(crate) struct Running {
    counts: Vec<u32>,
    on_hosts: BTreeMap<u32, u32>,
    occupied: Bits,
    homes: BTreeMap<u32, Place>,
    total: u32,
}

/// A label that some rule is about.
#[derive(Debug)]
pub(crate) struct TopologyLabel {
    pub(crate) key: Arc<str>,
    /// Sorted.
    pub(crate) values: Vec<Arc<str>>,
    /// Every value as a requirement.
    pub(crate) pins: Vec<Requirement>,
    /// By host: where it is or may come up.
    pub(crate) of_hosts: Vec<Vec<u32>>,
    /// By domain: the hosts that are there and nowhere else.
    pub(crate) hosts_in: Vec<Bits>,
    /// Hosts without the label.
    pub(crate) nowhere: Bits,
    /// Hosts that may come up in any of several domains.
    pub(crate) anywhere: Bits,
}

/// The groups that a pod's own constraints make, by how they can be dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnGroups {
    pub(crate) hard: Vec<GroupId>,
    /// The heaviest first.
    pub(crate) soft_affinity: Vec<GroupId>,
    pub(crate) soft_anti_affinity: Vec<GroupId>,
    pub(crate) soft_spread: Vec<GroupId>,
    /// Counts this pod for those that it avoids.
    pub(crate) announces: Vec<GroupId>,
}

/// What a pod's labels have to do with the groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Membership {
    /// Groups that count the pod.
    pub(crate) counted_in: Vec<GroupId>,
    /// Owners of these groups do not want it near.
    pub(crate) repelled_by: Vec<GroupId>,
}

#[derive(Default)]
pub(crate) struct Topology {
    pub(crate) groups: Vec<Group>,
    pub(crate) labels: Vec<TopologyLabel>,
    ids: BTreeMap<GroupKey, GroupId>,
    own: BTreeMap<(Arc<PodConstraints>, Arc<str>), OwnGroups>,
    /// Groups by a label that their pods must have, so that few are looked at for one pod.
    by_label: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Vec<GroupId>>>,
    unlabelled: Vec<GroupId>,
}

/// Hosts that are not there any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gone {
    hosts: Vec<usize>,
    /// By label and domain: how many of them were there.
    by_domain: Vec<Vec<u32>>,
}

/// Namespace, labels, and where their membership is.
type KnownLabels<'p> = (&'p Arc<str>, &'p Texts, usize);

/// The memberships of label sets, each found once.
#[derive(Default)]
pub(crate) struct Memberships<'p> {
    known: BTreeMap<u64, Vec<KnownLabels<'p>>>,
    pub(crate) all: Vec<Membership>,
}

impl Topology {
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub(crate) fn group(&self, id: GroupId) -> &Group {
        &self.groups[id.index()]
    }

    pub(crate) fn own_groups(&self, constraints: &Arc<PodConstraints>, namespace: &Arc<str>) -> Option<&OwnGroups> {
        // The tuple is cheap to make: two reference counts.
        self.own.get(&(Arc::clone(constraints), Arc::clone(namespace)))
    }

    /// Makes or finds the groups of a pod's constraints.
    pub(crate) fn register(
        &mut self,
        constraints: &Arc<PodConstraints>,
        namespace: &Arc<str>,
        rules: &LabelRules,
        with_preferences: bool,
    ) {
        if self.own_groups(constraints, namespace).is_some() {
            return;
        }
        let mut own = OwnGroups::default();
        for spread in &constraints.spread {
            let hard = spread.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule;
            if hard || with_preferences {
                let id = self.find(spread_key(spread, constraints, namespace, rules));
                if hard { &mut own.hard } else { &mut own.soft_spread }.push(id);
            }
        }
        for term in &constraints.required_affinity {
            own.hard.push(self.find(affinity_key(TopologyRule::Affinity, term, namespace, rules)));
        }
        for term in &constraints.required_anti_affinity {
            own.hard.push(self.find(affinity_key(TopologyRule::AntiAffinity, term, namespace, rules)));
            own.announces.push(self.announce(term, namespace, rules));
        }
        if with_preferences {
            let mut preferred = |terms: &[WeightedPodAffinityTerm], rule| -> Vec<GroupId> {
                let mut sorted: Vec<_> = terms.iter().collect();
                sorted.sort_by_key(|term| std::cmp::Reverse(term.weight));
                sorted.into_iter().map(|term| self.find(affinity_key(rule, &term.term, namespace, rules))).collect()
            };
            own.soft_affinity = preferred(&constraints.preferred_affinity, TopologyRule::Affinity);
            own.soft_anti_affinity = preferred(&constraints.preferred_anti_affinity, TopologyRule::AntiAffinity);
        }
        self.own.insert((Arc::clone(constraints), Arc::clone(namespace)), own);
    }

    fn announce(&mut self, term: &PodAffinityTerm, namespace: &Arc<str>, rules: &LabelRules) -> GroupId {
        self.find(affinity_key(TopologyRule::AntiAffinityOfOthers, term, namespace, rules))
    }

    fn find(&mut self, key: GroupKey) -> GroupId {
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = GroupId::from_index(u32::try_from(self.groups.len()).unwrap_or(u32::MAX));
        match key.selector.as_ref().and_then(|selector| selector.required_label()) {
            Some((label, value)) => {
                let values = self.by_label.entry(Arc::clone(label)).or_default();
                values.entry(Arc::clone(value)).or_default().push(id);
            }
            None => self.unlabelled.push(id),
        }
        self.groups.push(Group {
            rule: key.rule,
            max_skew: key.max_skew,
            min_domains: key.min_domains,
            label: None,
            known: Bits::default(),
            reachable: Bits::default(),
            counted: Bits::default(),
            hosts: Vec::new(),
            counts: Vec::new(),
            on_hosts: BTreeMap::new(),
            occupied: Bits::default(),
            homes: BTreeMap::new(),
            total: 0,
            key: key.clone(),
        });
        self.ids.insert(key, id);
        id
    }

    /// Makes the groups of running pods that keep others away.
    ///
    /// O(pods); constraints that pods share are looked at once.
    pub(crate) fn announce_running(&mut self, cluster: &ClusterSnapshot, rules: &LabelRules) {
        let mut seen = BTreeSet::new();
        for pod in cluster.pods().filter(|pod| !pod.constraints.required_anti_affinity.is_empty()) {
            if pod.is_active() && pod.node_name.is_some() && seen.insert(origin(pod)) {
                for term in &pod.constraints.required_anti_affinity {
                    self.announce(term, &pod.meta.name.namespace, rules);
                }
            }
        }
    }

    /// Finds out which domains there are: those that pools can reach, and those of hosts. `reaches` says whether a
    /// template can launch something for a term at a value.
    pub(crate) fn open_domains(
        &mut self,
        cluster: &ClusterSnapshot,
        hosts: &Hosts<'_>,
        templates: &[Template<'_>],
        mut reaches: impl FnMut(usize, &Requirements, &Requirement) -> bool,
        named: impl Fn(usize, &str) -> BTreeSet<Arc<str>>,
    ) {
        let keys: BTreeSet<Arc<str>> = self.groups.iter().map(|group| Arc::clone(&group.key.topology_key)).collect();
        for key in keys.into_iter().filter(|key| &**key != label::HOSTNAME) {
            let mut values: BTreeSet<Arc<str>> = (0..templates.len()).flat_map(|at| named(at, &key)).collect();
            let of_class = |labels: &Requirements| -> Vec<Arc<str>> {
                let own = labels.get(&key).filter(|own| own.operator() == Operator::In);
                own.map(|own| own.values().to_vec()).unwrap_or_default()
            };
            let of_classes: Vec<_> = hosts.classes.iter().map(|class| of_class(&class.labels)).collect();
            values.extend(of_classes.iter().flatten().cloned());
            values.extend(cluster.nodes().filter_map(|node| node.meta.labels.get(&*key).cloned()));
            let values: Vec<_> = values.into_iter().collect();
            let numbers = |own: &Vec<Arc<str>>| -> Vec<u32> {
                own.iter().filter_map(|value| values.binary_search(value).ok()).map(|at| at as u32).collect()
            };
            let of_classes: Vec<Vec<u32>> = of_classes.iter().map(numbers).collect();
            let of_hosts = hosts.all.iter().map(|host| of_classes[host.class].clone()).collect();
            let pins = values.iter().map(|value| Requirement::one_of(Arc::clone(&key), [value])).collect();
            let none = Bits::none(hosts.len());
            let (nowhere, anywhere, hosts_in) = (none.clone(), none.clone(), vec![none; values.len()]);
            let mut label = TopologyLabel { key, values, pins, of_hosts, hosts_in, nowhere, anywhere };
            label.sort_hosts();
            self.labels.push(label);
        }
        // Rules with the same terms about the same label reach the same domains.
        let mut reached: BTreeMap<(usize, usize, Vec<Requirements>), Bits> = BTreeMap::new();
        for group in &mut self.groups {
            let Some(at) = self.labels.iter().position(|label| label.key == group.key.topology_key) else { continue };
            let label = &self.labels[at];
            group.label = Some(at);
            group.reachable = Bits::none(label.values.len());
            group.hosts = vec![0; label.values.len()];
            group.counts = vec![0; label.values.len()];
            let terms = group.key.node_terms.clone().unwrap_or_else(|| vec![Requirements::new()]);
            for (nth, _) in templates.iter().enumerate().filter(|(_, own)| group.key.tolerates(&own.pool.node.taints)) {
                let reachable = reached.entry((at, nth, terms.clone())).or_insert_with(|| {
                    let own = named(nth, &label.key);
                    let is_named = |value: &usize| own.contains(&label.values[*value]);
                    let mut is_reached =
                        |value: &usize| terms.iter().any(|term| reaches(nth, term, &label.pins[*value]));
                    let values = (0..label.values.len()).filter(is_named).filter(|value| is_reached(value));
                    Bits::of(label.values.len(), values)
                });
                group.reachable.add_all(reachable);
            }
            let accepts: Vec<bool> =
                hosts.classes.iter().map(|class| group.accepts_host(&class.labels, &class.taints)).collect();
            for (at, domains) in label.of_hosts[..hosts.usable].iter().enumerate() {
                if accepts[hosts.all[at].class] {
                    group.counted.insert(at);
                    domains.iter().for_each(|domain| group.hosts[*domain as usize] += 1);
                }
            }
            group.know();
        }
    }

    /// The pods that run, by group. O(pods × groups that count each); what a node is to a group is found out once.
    pub(crate) fn running<'p>(
        &self,
        cluster: &'p ClusterSnapshot,
        hosts: &Hosts<'_>,
        memberships: &mut Memberships<'p>,
        rules: &LabelRules,
    ) -> Vec<Running> {
        let none = |group: &Group| Running { counts: vec![0; group.counts.len()], ..Running::default() };
        let mut running: Vec<Running> = self.groups.iter().map(none).collect();
        if self.groups.is_empty() {
            return running;
        }
        let mut announced: BTreeMap<Origin<'_>, Vec<GroupId>> = BTreeMap::new();
        for node in cluster.nodes() {
            let mut labels: Option<Requirements> = None;
            let host = hosts.find(node.name()).map(|at| at as u32);
            let mut places: Vec<(GroupId, Option<Place>)> = Vec::new();
            for pod in cluster.pods_on(node.name()).filter(|pod| pod.is_active()) {
                let own: &[GroupId] = match pod.constraints.required_anti_affinity.is_empty() {
                    true => &[],
                    false => announced.entry(origin(pod)).or_insert_with(|| self.announced_by(pod, rules)),
                };
                let selected = memberships.id(pod, self, cluster);
                for id in memberships.all[selected].counted_in.iter().chain(own).copied() {
                    let place = match places.iter().find(|(known, _)| *known == id) {
                        Some((_, place)) => *place,
                        None => {
                            let labels = labels.get_or_insert_with(|| labels_of(node, rules));
                            let place = self.place_of(id, node, labels, hosts);
                            places.push((id, place));
                            running[id.index()].homes.extend(host.zip(place));
                            place
                        }
                    };
                    place.into_iter().for_each(|place| running[id.index()].count(place));
                }
            }
        }
        running
    }

    /// From now on these pods run.
    pub(crate) fn set_running(&mut self, running: Vec<Running>) {
        for (group, own) in self.groups.iter_mut().zip(running) {
            let Running { counts, on_hosts, occupied, homes, total } = own;
            (group.counts, group.on_hosts, group.occupied) = (counts, on_hosts, occupied);
            (group.homes, group.total) = (homes, total);
            group.know();
        }
    }

    /// The groups that a running pod counts in: those that select it, and those that its anti-affinities make.
    pub(crate) fn counting<'p>(
        &self,
        pod: &'p Pod,
        cluster: &ClusterSnapshot,
        memberships: &mut Memberships<'p>,
        rules: &LabelRules,
    ) -> Vec<GroupId> {
        let mut ids = memberships.of(pod, self, cluster).counted_in.clone();
        ids.extend(self.announced_by(pod, rules));
        ids
    }

    fn announced_by(&self, pod: &Pod, rules: &LabelRules) -> Vec<GroupId> {
        let terms = pod.constraints.required_anti_affinity.iter();
        let key = |term| affinity_key(TopologyRule::AntiAffinityOfOthers, term, &pod.meta.name.namespace, rules);
        terms.filter_map(|term| self.ids.get(&key(term)).copied()).collect()
    }

    /// Where pods on a host count in a group that selects some of those that ran there from the start.
    pub(crate) fn home(&self, id: GroupId, host: u32) -> Option<Place> {
        self.group(id).homes.get(&host).copied()
    }

    /// Where a pod on a node counts in a group, if at all.
    pub(crate) fn place_of(&self, id: GroupId, node: &Node, labels: &Requirements, hosts: &Hosts<'_>) -> Option<Place> {
        let group = self.group(id);
        let is_repulsion = group.rule == TopologyRule::AntiAffinityOfOthers;
        if !is_repulsion && !group.accepts_host(labels, &node.taints) {
            return None;
        }
        match group.label {
            None if group.key.is_by_host() => hosts.find(node.name()).map(|at| Place::Host(at as u32)),
            None => None,
            Some(at) => {
                let label = &self.labels[at];
                let value = node.meta.labels.get(&*label.key)?;
                label.values.binary_search(value).ok().map(Place::Domain)
            }
        }
    }

    /// What a group knows once some hosts are gone; `None` if that makes no difference.
    ///
    /// A domain goes with the last host that counts there: others may have gone before it, and it stays. O(domains), and
    /// the hosts that have gone for a domain that may have lost its last.
    pub(crate) fn known_without(&self, group: &Group, gone: &Gone) -> Option<Bits> {
        let at = group.label?;
        let (from, of_hosts) = (gone.by_domain.get(at)?, &self.labels[at].of_hosts);
        let is_lost = |domain: &usize| {
            let (counted, is_only_home) = (group.hosts[*domain], !group.reachable.contains(*domain));
            let was_there = |host: &&usize| {
                group.counted.contains(**host) && of_hosts[**host].iter().any(|own| *own as usize == *domain)
            };
            is_only_home
                && (1..=from[*domain]).contains(&counted)
                && group.counts[*domain] == 0
                && gone.hosts.iter().filter(was_there).count() >= counted as usize
        };
        let mut lost = (0..from.len()).filter(is_lost).peekable();
        lost.peek()?;
        let mut known = group.known.clone();
        lost.for_each(|domain| known.remove(domain));
        Some(known)
    }

    fn selecting(&self, pod: &Pod, cluster: &ClusterSnapshot) -> Vec<GroupId> {
        let mut ids: Vec<GroupId> = self.unlabelled.clone();
        for (key, value) in &pod.meta.labels {
            let by_value = self.by_label.get(key).and_then(|values| values.get(value));
            ids.extend(by_value.into_iter().flatten());
        }
        ids.retain(|id| self.group(*id).key.selects(pod, cluster));
        ids.sort_unstable();
        ids
    }
}

/// Where a pod counts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Host(u32),
    Domain(usize),
}

impl Gone {
    pub(crate) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    pub(crate) fn add(&mut self, host: usize, topology: &Topology) {
        if self.by_domain.is_empty() {
            self.by_domain.extend(topology.labels.iter().map(|label| vec![0; label.values.len()]));
        }
        self.hosts.push(host);
        for (gone, label) in self.by_domain.iter_mut().zip(&topology.labels) {
            label.of_hosts[host].iter().for_each(|domain| gone[*domain as usize] += 1);
        }
    }
}

impl<'p> Memberships<'p> {
    pub(crate) fn of(&mut self, pod: &'p Pod, topology: &Topology, cluster: &ClusterSnapshot) -> &Membership {
        let at = self.id(pod, topology, cluster);
        &self.all[at]
    }

    /// O(size of the labels) if labels like these were seen before.
    pub(crate) fn id(&mut self, pod: &'p Pod, topology: &Topology, cluster: &ClusterSnapshot) -> usize {
        let (namespace, labels) = (&pod.meta.name.namespace, &pod.meta.labels);
        let bytes = labels.iter().flat_map(|(key, value)| [&**key, &**value]).chain([&**namespace]);
        let mix = |mix: u64, byte: u8| (mix ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let fingerprint = bytes.flat_map(str::bytes).fold(0xcbf2_9ce4_8422_2325, mix);
        let known = self.known.entry(fingerprint).or_default();
        if let Some((_, _, at)) = known.iter().find(|(ns, own, _)| *ns == namespace && *own == labels) {
            return *at;
        }
        let repels = |id: &GroupId| topology.group(*id).rule == TopologyRule::AntiAffinityOfOthers;
        let (repelled_by, counted_in) = topology.selecting(pod, cluster).into_iter().partition(repels);
        known.push((namespace, labels, self.all.len()));
        self.all.push(Membership { counted_in, repelled_by });
        self.all.len() - 1
    }
}

impl TopologyRule {
    /// Whether a node without the label cannot satisfy it.
    pub(crate) fn needs_domain(self) -> bool {
        matches!(self, Self::Spread | Self::Affinity)
    }

    pub(crate) fn is_repulsion(self) -> bool {
        matches!(self, Self::AntiAffinity | Self::AntiAffinityOfOthers)
    }
}

impl TopologyLabel {
    fn sort_hosts(&mut self) {
        for (at, domains) in self.of_hosts.iter().enumerate() {
            match domains[..] {
                [] => self.nowhere.insert(at),
                [one] => self.hosts_in[one as usize].insert(at),
                [_, _, ..] => self.anywhere.insert(at),
            }
        }
    }
}

impl Running {
    fn count(&mut self, place: Place) {
        self.total += 1;
        match place {
            Place::Host(at) => {
                *self.on_hosts.entry(at).or_default() += 1;
                self.occupied.insert(at as usize);
            }
            Place::Domain(at) => self.counts[at] += 1,
        }
    }
}

impl Group {
    pub(crate) fn is_by_host(&self) -> bool {
        self.key.is_by_host()
    }

    pub(crate) fn topology_key(&self) -> &Arc<str> {
        &self.key.topology_key
    }

    fn know(&mut self) {
        self.known = self.reachable.clone();
        let homes = self.hosts.iter().zip(&self.counts).enumerate();
        let homes: Vec<_> = homes.filter(|(_, (hosts, pods))| **hosts > 0 || **pods > 0).map(|(at, _)| at).collect();
        homes.into_iter().for_each(|at| self.known.insert(at));
    }

    /// Whether every node counts, whatever it is.
    pub(crate) fn counts_everywhere(&self) -> bool {
        let any = |terms: &Vec<Requirements>| terms.iter().any(Requirements::is_empty);
        self.key.tolerations.is_none() && self.key.node_terms.as_ref().is_none_or(any)
    }

    pub(crate) fn accepts_host(&self, labels: &Requirements, taints: &[Taint]) -> bool {
        let holds = |terms: &Vec<Requirements>| terms.iter().any(|term| meets(labels, term).is_ok());
        self.key.tolerates(taints) && self.key.node_terms.as_ref().is_none_or(holds)
    }

    pub(crate) fn accepts_claim(&self, set: &Requirements, taints: &[Taint], undefined: UndefinedKeys<'_>) -> bool {
        let holds = |term: &Requirements| set.compatible(term, undefined).is_ok();
        self.key.tolerates(taints) && self.key.node_terms.as_ref().is_none_or(|terms| terms.iter().any(holds))
    }
}

impl GroupKey {
    fn is_by_host(&self) -> bool {
        &*self.topology_key == label::HOSTNAME
    }

    fn tolerates(&self, taints: &[Taint]) -> bool {
        self.tolerations.as_ref().is_none_or(|tolerations| tolerates(taints, tolerations).is_ok())
    }
}

/// Constraints, as they lie in memory, and the namespace that they are read in: pods of one owner share both.
pub(crate) type Origin<'p> = (*const PodConstraints, &'p str);

pub(crate) fn origin(pod: &Pod) -> Origin<'_> {
    (Arc::as_ptr(&pod.constraints), &pod.meta.name.namespace)
}

pub(crate) fn labels_of(node: &Node, rules: &LabelRules) -> Requirements {
    let pairs = node.meta.labels.iter().map(|(key, value)| (&**key, &**value));
    Requirements::from_labels(pairs, rules)
}
