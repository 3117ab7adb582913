//! Where the pods of every rule are, while a solve places more of them.
//!
//! The counts of labels are copied from the cluster's: one small array. Those of hosts are kept as differences, so that
//! a what-if costs what it touches and not what the cluster has.
//!
//! A pod with a rule about zones commits its claim to one zone. Upstream leaves the zone of a claim open under an
//! anti-affinity and so blocks every zone for the next such pod: three of them need three passes there.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::intern::DenseId;
use kerf_model::label::LabelRules;
use kerf_model::requirement::{Requirement, Requirements, UndefinedKeys};
use kerf_model::taint::Taint;

use crate::bits::Bits;
use crate::refusal::{Refusal, TopologyRule};
use crate::sets::{SetId, Sets};
use crate::shape::Rule;
use crate::topology::{Gone, Group, GroupId, Place, Topology};

pub(crate) struct Counts<'b> {
    topology: &'b Topology,
    /// What the cluster's counts have become since it was compiled.
    before: &'b Differences,
    /// Where a group's domains start in `by_domain`.
    starts: Vec<usize>,
    by_domain: Vec<u32>,
    /// Where they differ from those before.
    by_host: BTreeMap<(GroupId, u32), u32>,
    /// Hosts where some rule counts less than before.
    lessened: Bits,
    by_claim: Vec<Vec<u32>>,
    totals: Vec<u32>,
    /// Counted pods whose claim is not committed to a domain.
    uncommitted: Vec<u32>,
    /// Domains known to groups, where that differs from the cluster's.
    known: BTreeMap<GroupId, Bits>,
    /// By label: claims that are committed to a domain, and by domain which.
    settled: Vec<(Bits, Vec<Bits>)>,
    /// By set and label: domains that it allows.
    sides: Vec<Option<Box<Sides>>>,
    rules: &'b LabelRules,
}

/// Where counts differ from the cluster's.
#[derive(Default)]
pub(crate) struct Differences {
    /// All counts of labels and all totals; empty if none differs.
    by_domain: Vec<u32>,
    totals: Vec<u32>,
    uncommitted: Vec<u32>,
    by_host: BTreeMap<(GroupId, u32), u32>,
    lessened: Bits,
    gone: Gone,
}

struct Sides {
    /// For a node to be launched with these requirements.
    of_node: Vec<Bits>,
    /// For a pod with them; `None` if it says nothing about the label.
    of_pod: Vec<Option<Bits>>,
}

/// Pods of a claim that wait to be counted until it is committed.
pub(crate) type Uncommitted = Vec<(GroupId, u32)>;

/// How a claim may be narrowed so that all groups are satisfied.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    /// Labels of which some values are taken: those that are left.
    limits: Vec<(usize, Bits)>,
    /// Labels to commit, each with its domains, the best first.
    commits: Vec<(usize, Vec<usize>)>,
}

/// What rules say about whole domains of hosts.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Labels with the domains that a rule allows, and whether hosts without the label will do.
    allowed: Vec<(usize, Bits, bool)>,
    /// Rules of which no host may have a pod.
    empty: Vec<GroupId>,
}

/// A rule that keeps a pod off a claim.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocked {
    pub(crate) by: GroupId,
    /// Whether it always will.
    pub(crate) for_good: bool,
}

/// Pods with many rules about many labels are rare; this bounds what one of them can cost.
const MAX_COMBINATIONS: usize = 64;

impl<'b> Counts<'b> {
    pub(crate) fn new(topology: &'b Topology, rules: &'b LabelRules, before: &'b Differences) -> Self {
        let groups = &topology.groups;
        let starts = groups.iter().scan(0, |next, group| Some(std::mem::replace(next, *next + group.counts.len())));
        let is_same = before.totals.is_empty();
        let or_before = |of: &dyn Fn() -> Vec<u32>, before: &Vec<u32>| if is_same { of() } else { before.clone() };
        Self {
            topology,
            before,
            starts: starts.collect(),
            by_domain: or_before(
                &|| groups.iter().flat_map(|group| &group.counts).copied().collect(),
                &before.by_domain,
            ),
            by_host: BTreeMap::new(),
            lessened: Bits::empty(),
            by_claim: vec![Vec::new(); groups.len()],
            totals: or_before(&|| groups.iter().map(|group| group.total).collect(), &before.totals),
            uncommitted: or_before(&|| vec![0; groups.len()], &before.uncommitted),
            known: BTreeMap::new(),
            settled: topology
                .labels
                .iter()
                .map(|label| (Bits::empty(), vec![Bits::empty(); label.values.len()]))
                .collect(),
            sides: Vec::new(),
            rules,
        }
    }

    /// What differs from the counts before.
    pub(crate) fn differences(self) -> Differences {
        let Self { by_domain, totals, uncommitted, by_host, lessened, .. } = self;
        Differences { by_domain, totals, uncommitted, by_host, lessened, gone: Gone::default() }
    }

    /// Takes back a pod that ran and is to be placed anew.
    pub(crate) fn forget(&mut self, id: GroupId, place: Place) {
        self.totals[id.index()] = self.totals[id.index()].saturating_sub(1);
        match place {
            Place::Host(host) => {
                let left = self.on_host(id, host).saturating_sub(1);
                self.by_host.insert((id, host), left);
                self.lessened.insert(host as usize);
            }
            Place::Domain(domain) => {
                let count = &mut self.by_domain[self.starts[id.index()] + domain];
                *count = count.saturating_sub(1);
            }
        }
    }

    /// Leaves hosts out, besides those that have gone before: a domain that only they had is none any more.
    pub(crate) fn leave_out(&mut self, hosts: &[usize]) {
        if hosts.is_empty() && self.before.gone.is_empty() {
            return;
        }
        let mut gone = self.before.gone.clone();
        hosts.iter().for_each(|host| gone.add(*host, self.topology));
        for (at, group) in self.topology.groups.iter().enumerate() {
            if let Some(known) = self.topology.known_without(group, &gone) {
                self.known.insert(GroupId::from_index(u32::try_from(at).unwrap_or(u32::MAX)), known);
            }
        }
    }

    fn group(&self, id: GroupId) -> &'b Group {
        self.topology.group(id)
    }

    fn known(&self, id: GroupId) -> &Bits {
        self.known.get(&id).unwrap_or(&self.group(id).known)
    }

    fn in_domain(&self, id: GroupId, domain: usize) -> u32 {
        self.by_domain[self.starts[id.index()] + domain]
    }

    fn on_host(&self, id: GroupId, host: u32) -> u32 {
        let own = |counts: &BTreeMap<(GroupId, u32), u32>| {
            if counts.is_empty() { None } else { counts.get(&(id, host)).copied() }
        };
        own(&self.by_host)
            .or_else(|| own(&self.before.by_host))
            .unwrap_or_else(|| self.group(id).on_hosts.get(&host).copied().unwrap_or_default())
    }

    pub(crate) fn on_claim(&self, id: GroupId, claim: usize) -> u32 {
        self.by_claim[id.index()].get(claim).copied().unwrap_or_default()
    }

    /// Whether one more pod is right where `count` are counted already, on a host of its own.
    fn may_join(&self, rule: Rule, count: u32) -> bool {
        let group = self.group(rule.group);
        match group.rule {
            TopologyRule::Spread => i64::from(count) + i64::from(rule.counts_itself) <= group.max_skew,
            TopologyRule::Affinity => {
                count > 0
                    || (rule.counts_itself
                        && self.totals[rule.group.index()] == 0
                        && self.uncommitted[rule.group.index()] == 0)
            }
            TopologyRule::AntiAffinity | TopologyRule::AntiAffinityOfOthers => count == 0,
        }
    }

    /// Whether a pod may go to a host, whose domains are what they are. O(rules × domains).
    pub(crate) fn host_allows(&self, rules: &[Rule], host: usize, strict: SetId) -> bool {
        rules.iter().all(|rule| {
            let group = self.group(rule.group);
            let Some(label) = group.label else {
                return group.is_by_host() && self.may_join(*rule, self.on_host(rule.group, host as u32))
                    || !group.is_by_host() && !group.rule.needs_domain();
            };
            let own = &self.topology.labels[label].of_hosts[host];
            match own[..] {
                [] => !group.rule.needs_domain(),
                [only] => self.domain_allows(*rule, only as usize, strict),
                [..] => {
                    let len = self.topology.labels[label].values.len();
                    let domains = Bits::of(len, own.iter().map(|domain| *domain as usize));
                    domains.is_within(&self.allowed(*rule, &domains, strict, 0))
                }
            }
        })
    }

    /// What holds for all hosts of a domain, before they are asked one by one. O(rules × domains).
    pub(crate) fn gate(&self, rules: &[Rule], strict: SetId) -> Gate {
        let mut gate = Gate::default();
        for rule in rules {
            let group = self.group(rule.group);
            match group.label {
                Some(label) => {
                    let len = group.counts.len();
                    let allowed = Bits::of(len, (0..len).filter(|domain| self.domain_allows(*rule, *domain, strict)));
                    gate.allowed.push((label, allowed, !group.rule.needs_domain()));
                }
                None if group.is_by_host() && group.rule.is_repulsion() => gate.empty.push(rule.group),
                None => {}
            }
        }
        gate
    }

    /// Which of 64 hosts a gate lets through; where they may come up in several domains, all.
    pub(crate) fn word(&self, gate: &Gate, at: usize) -> u64 {
        let mut open = u64::MAX;
        for (label, domains, with_nowhere) in &gate.allowed {
            let label = &self.topology.labels[*label];
            let mut there = label.anywhere.word(at) | if *with_nowhere { label.nowhere.word(at) } else { 0 };
            for domain in domains.iter() {
                there |= label.hosts_in[domain].word(at);
            }
            open &= there;
        }
        for id in &gate.empty {
            open &= !self.group(*id).occupied.word(at) | self.lessened.word(at) | self.before.lessened.word(at);
        }
        open
    }

    /// Which of 64 claims a gate lets through; those that are not committed to a domain, all.
    pub(crate) fn word_of_claims(&self, gate: &Gate, at: usize) -> u64 {
        let mut open = u64::MAX;
        for (label, domains, _) in &gate.allowed {
            let (settled, by_domain) = &self.settled[*label];
            let there = domains.iter().fold(0, |there, domain| there | by_domain[domain].word(at));
            open &= !settled.word(at) | there;
        }
        open
    }

    /// Remembers which domains a claim is committed to. Claims only get narrower: what is said once stays true.
    pub(crate) fn settle(&mut self, claim: usize, set: SetId) {
        for label in 0..self.settled.len() {
            if let Some(domain) = self.of_node(set, label).single() {
                self.settled[label].0.insert(claim);
                self.settled[label].1[domain].insert(claim);
            }
        }
    }

    /// Whether the rule is satisfied on a host that is in the domain and in no other.
    fn domain_allows(&self, rule: Rule, domain: usize, strict: SetId) -> bool {
        let (id, group) = (rule.group, self.group(rule.group));
        let count = self.in_domain(id, domain);
        match group.rule {
            TopologyRule::Spread => {
                let reachable = group.label.and_then(|label| self.of_pod(strict, label));
                let after = i64::from(count) + i64::from(rule.counts_itself);
                self.known(id).contains(domain) && after - self.least(id, reachable) <= group.max_skew
            }
            TopologyRule::Affinity => count > 0 || self.is_first(rule, strict),
            TopologyRule::AntiAffinity | TopologyRule::AntiAffinityOfOthers => count == 0,
        }
    }

    /// Whether none of the pods that want to be together is anywhere yet: then it may go anywhere.
    fn is_first(&self, rule: Rule, strict: SetId) -> bool {
        let (id, group) = (rule.group, self.group(rule.group));
        let reachable = group.label.and_then(|label| self.of_pod(strict, label));
        let is_reachable = |domain: usize| reachable.is_none_or(|own| own.contains(domain));
        let exists = (0..group.counts.len()).any(|domain| self.in_domain(id, domain) > 0 && is_reachable(domain));
        rule.counts_itself && !exists && self.uncommitted[id.index()] == 0
    }

    /// Whether a claim as a host allows the pod: `Err` says that it never will again.
    pub(crate) fn claim_allows(&self, rules: &[Rule], claim: usize) -> Result<bool, ()> {
        for rule in rules.iter().filter(|rule| self.group(rule.group).is_by_host()) {
            if !self.may_join(*rule, self.on_claim(rule.group, claim)) {
                let may_change = self.group(rule.group).rule == TopologyRule::Affinity;
                return if may_change { Ok(false) } else { Err(()) };
            }
        }
        Ok(true)
    }

    /// Why a rule cannot be met now.
    pub(crate) fn refusal(&self, id: GroupId) -> Refusal {
        let group = self.group(id);
        let domains = group.label.map(|label| &self.topology.labels[label].values);
        let count = |at: usize| domains.map(|values| (Arc::clone(&values[at]), self.in_domain(id, at)));
        Refusal::Topology {
            rule: group.rule,
            key: Arc::clone(group.topology_key()),
            max_skew: group.max_skew,
            counts: self.known(id).iter().filter_map(count).collect(),
        }
    }

    /// The first rule that a claim as a host breaks.
    pub(crate) fn broken_by_claim(&self, rules: &[Rule], claim: usize) -> Option<GroupId> {
        let by_host = rules.iter().filter(|rule| self.group(rule.group).is_by_host());
        by_host.into_iter().find(|rule| !self.may_join(**rule, self.on_claim(rule.group, claim))).map(|rule| rule.group)
    }

    /// How a claim with requirements `set` must be narrowed to take a pod. Call [`prepare`](Self::prepare) before.
    pub(crate) fn choices(
        &self,
        rules: &[Rule],
        (set, strict): (SetId, SetId),
        uncommitted: &Uncommitted,
    ) -> Result<Choices, Blocked> {
        let mut choices = Choices::default();
        for rule in rules {
            let group = self.group(rule.group);
            let Some(label) = group.label else {
                match group.is_by_host() || !group.rule.needs_domain() {
                    true => continue,
                    false => return Err(Blocked { by: rule.group, for_good: false }),
                }
            };
            let mut domains = self.of_node(set, label).clone();
            domains.keep(self.known(rule.group));
            if domains.is_empty() {
                match group.rule.needs_domain() {
                    true => return Err(Blocked { by: rule.group, for_good: false }),
                    false => continue,
                }
            }
            let here = uncommitted.iter().find(|(id, _)| *id == rule.group).map_or(0, |(_, count)| *count);
            let allowed = self.allowed(*rule, &domains, strict, here);
            if allowed.is_empty() {
                // Claims only get narrower and taken domains stay taken.
                return Err(Blocked { by: rule.group, for_good: group.rule.is_repulsion() });
            }
            if group.rule == TopologyRule::AntiAffinityOfOthers {
                if allowed != domains {
                    choices.limits.push((label, allowed));
                }
                continue;
            }
            match choices.commits.iter_mut().find(|(own, _)| *own == label) {
                Some((_, order)) => order.retain(|domain| allowed.contains(*domain)),
                None => {
                    let mut order: Vec<usize> = allowed.iter().collect();
                    order.sort_by_key(|domain| self.in_domain(rule.group, *domain));
                    choices.commits.push((label, order));
                }
            }
            if choices.commits.iter().any(|(_, order)| order.is_empty()) {
                return Err(Blocked { by: rule.group, for_good: false });
            }
        }
        Ok(choices)
    }

    /// Which of the domains satisfy the rule. `here` pods of the target itself are not counted yet.
    fn allowed(&self, rule: Rule, domains: &Bits, strict: SetId, here: u32) -> Bits {
        let (id, group) = (rule.group, self.group(rule.group));
        let reachable = group.label.and_then(|label| self.of_pod(strict, label));
        let len = group.counts.len();
        match group.rule {
            TopologyRule::Spread => {
                let least = self.least(id, reachable);
                let after = |domain: usize| {
                    i64::from(self.in_domain(id, domain)) + i64::from(here) + i64::from(rule.counts_itself)
                };
                let known = self.known(id);
                let fits = |domain: &usize| known.contains(*domain) && after(*domain) - least <= group.max_skew;
                Bits::of(len, domains.iter().filter(fits))
            }
            TopologyRule::Affinity => {
                let with = domains.iter().filter(|domain| here > 0 || self.in_domain(id, *domain) > 0);
                let with = Bits::of(len, with);
                if !with.is_empty() {
                    return with;
                }
                if self.is_first(rule, strict) { domains.clone() } else { with }
            }
            TopologyRule::AntiAffinity | TopologyRule::AntiAffinityOfOthers => {
                Bits::of(len, domains.iter().filter(|domain| self.in_domain(id, *domain) == 0))
            }
        }
    }

    /// The smallest count among the domains that the pod can reach.
    fn least(&self, id: GroupId, reachable: Option<&Bits>) -> i64 {
        let counts = || {
            let domains = self.known(id).iter().filter(|domain| reachable.is_none_or(|own| own.contains(*domain)));
            domains.map(|domain| self.in_domain(id, domain))
        };
        let enough = self.group(id).min_domains == 0 || counts().count() >= self.group(id).min_domains;
        if enough { counts().min().map_or(0, i64::from) } else { 0 }
    }

    /// Counts a pod that was placed on a host.
    pub(crate) fn record_on_host(
        &mut self,
        groups: impl Iterator<Item = GroupId>,
        host: usize,
        accepts: impl Fn(&Group) -> bool,
    ) {
        for id in groups {
            let group = self.group(id);
            if !group.rule.is_repulsion() && !group.counts_everywhere() && !accepts(group) {
                continue;
            }
            match group.label {
                None if group.is_by_host() => {
                    let count = self.on_host(id, host as u32) + 1;
                    self.by_host.insert((id, host as u32), count);
                    self.totals[id.index()] += 1;
                }
                None => {}
                Some(label) => {
                    let domains = &self.topology.labels[label].of_hosts[host];
                    // Where it is not known yet, an attraction counts on nothing and a repulsion on everything.
                    if domains.len() == 1 || group.rule.is_repulsion() {
                        for domain in domains {
                            self.by_domain[self.starts[id.index()] + *domain as usize] += 1;
                        }
                    }
                }
            }
        }
    }

    /// Counts a pod that was placed on a claim; where its domain is open, later.
    pub(crate) fn record_on_claim(
        &mut self,
        groups: impl Iterator<Item = GroupId>,
        (claim, set): (usize, SetId),
        uncommitted: &mut Uncommitted,
        accepts: impl Fn(GroupId, &Group) -> bool,
    ) {
        for id in groups {
            let group = self.group(id);
            if !group.counts_everywhere() && !accepts(id, group) {
                continue;
            }
            let Some(label) = group.label else {
                if group.is_by_host() {
                    let counts = &mut self.by_claim[id.index()];
                    if counts.len() <= claim {
                        counts.resize(claim + 1, 0);
                    }
                    counts[claim] += 1;
                    self.totals[id.index()] += 1;
                }
                continue;
            };
            let mut domains = self.of_node(set, label).clone();
            domains.keep(self.known(id));
            match domains.single() {
                Some(domain) => self.by_domain[self.starts[id.index()] + domain] += 1,
                // It may come up in any of them, so all are taken.
                None if group.rule.is_repulsion() => {
                    domains.iter().for_each(|domain| self.by_domain[self.starts[id.index()] + domain] += 1);
                }
                None if domains.is_empty() => {}
                None => {
                    self.uncommitted[id.index()] += 1;
                    match uncommitted.iter_mut().find(|(own, _)| *own == id) {
                        Some((_, count)) => *count += 1,
                        None => uncommitted.push((id, 1)),
                    }
                }
            }
        }
    }

    /// Counts a pod of a claim that is to be launched, whatever is asked about.
    pub(crate) fn record_on_launched(&mut self, groups: &[GroupId], claim: &Requirements, taints: &[Taint]) {
        let undefined = UndefinedKeys::OpenIfWellKnown(self.rules);
        let sides = Sides::of(claim, self.topology, self.rules);
        for id in groups.iter().copied() {
            let group = self.group(id);
            if !group.counts_everywhere() && !group.accepts_claim(claim, taints, undefined) {
                continue;
            }
            let Some(label) = group.label else {
                self.totals[id.index()] += u32::from(group.is_by_host());
                continue;
            };
            let domains = &sides.of_node[label];
            match domains.single() {
                Some(domain) => self.by_domain[self.starts[id.index()] + domain] += 1,
                // It may come up in any of them, so all are taken.
                None if group.rule.is_repulsion() => {
                    domains.iter().for_each(|domain| self.by_domain[self.starts[id.index()] + domain] += 1);
                }
                None => self.uncommitted[id.index()] += u32::from(!domains.is_empty()),
            }
        }
    }

    /// Counts the pods of a claim that has been committed since they were placed.
    pub(crate) fn commit(&mut self, uncommitted: &mut Uncommitted, set: SetId) {
        uncommitted.retain(|(id, count)| {
            let Some(label) = self.group(*id).label else { return false };
            let mut domains = self.of_node(set, label).clone();
            domains.keep(self.known(*id));
            match domains.single() {
                Some(domain) => {
                    self.by_domain[self.starts[id.index()] + domain] += *count;
                    self.uncommitted[id.index()] -= *count;
                    false
                }
                None => true,
            }
        });
    }

    /// Whether claims with these sets come up in the same domain of a label, and in no other.
    pub(crate) fn same_domain(&self, label: usize, one: SetId, other: SetId) -> bool {
        let domain = self.of_node(one, label).single();
        domain.is_some() && domain == self.of_node(other, label).single()
    }

    /// Counts a pod on another claim of the same domains.
    pub(crate) fn shift(&mut self, groups: impl Iterator<Item = GroupId>, from: usize, to: usize) {
        for id in groups.filter(|id| self.topology.group(*id).is_by_host()) {
            let counts = &mut self.by_claim[id.index()];
            if counts.len() <= from.max(to) {
                counts.resize(from.max(to) + 1, 0);
            }
            counts[from] = counts[from].saturating_sub(1);
            counts[to] += 1;
        }
    }

    /// Works out which domains a set allows, once.
    pub(crate) fn prepare(&mut self, set: SetId, sets: &Sets<'_>) {
        if self.topology.labels.is_empty() {
            return;
        }
        if self.sides.len() < sets.len() {
            self.sides.resize_with(sets.len(), || None);
        }
        if self.sides[set.index()].is_none() {
            let sides = Sides::of(sets.get(set), self.topology, self.rules);
            self.sides[set.index()] = Some(Box::new(sides));
        }
    }

    fn of_node(&self, set: SetId, label: usize) -> &Bits {
        static NONE: Bits = Bits::empty();
        self.sides.get(set.index()).and_then(Option::as_ref).map_or(&NONE, |sides| &sides.of_node[label])
    }

    fn of_pod(&self, set: SetId, label: usize) -> Option<&Bits> {
        self.sides.get(set.index()).and_then(Option::as_ref).and_then(|sides| sides.of_pod[label].as_ref())
    }

    pub(crate) fn pin(&self, label: usize, domain: usize) -> &'b Requirement {
        &self.topology.labels[label].pins[domain]
    }

    /// The domains of a label but for some: a limit for a claim.
    pub(crate) fn only(&self, label: usize, domains: &Bits) -> Requirements {
        let label = &self.topology.labels[label];
        let taken = (0..label.values.len()).filter(|at| !domains.contains(*at)).map(|at| &label.values[at]);
        let mut only = Requirements::new();
        only.narrow(Requirement::none_of(Arc::clone(&label.key), taken));
        only
    }
}

impl Differences {
    /// A host goes.
    pub(crate) fn leave_out(&mut self, host: usize, topology: &Topology) {
        self.gone.add(host, topology);
    }

    /// With what has changed since.
    pub(crate) fn extend(&mut self, later: Self) {
        let Self { by_domain, totals, uncommitted, by_host, lessened, gone: _ } = later;
        (self.by_domain, self.totals, self.uncommitted) = (by_domain, totals, uncommitted);
        self.by_host.extend(by_host);
        self.lessened.add_all(&lessened);
    }
}

impl Sides {
    fn of(set: &Requirements, topology: &Topology, rules: &LabelRules) -> Self {
        let undefined = UndefinedKeys::OpenIfWellKnown(rules);
        let (mut of_node, mut of_pod) = (Vec::new(), Vec::new());
        for label in &topology.labels {
            let len = label.values.len();
            let own = set.get(&label.key);
            let allowed = own.map(|own| Bits::of(len, (0..len).filter(|at| own.has(&label.values[*at]))));
            let open = if undefined.is_open(&label.key) { Bits::all(len) } else { Bits::none(len) };
            of_node.push(allowed.clone().unwrap_or(open));
            of_pod.push(allowed);
        }
        Self { of_node, of_pod }
    }
}

impl Choices {
    pub(crate) fn is_free(&self) -> bool {
        self.limits.is_empty() && self.commits.is_empty()
    }

    pub(crate) fn limits(&self) -> &[(usize, Bits)] {
        &self.limits
    }

    /// Every combination of domains to commit to, the best first; one without commitments if none is needed.
    pub(crate) fn combinations(&self) -> Vec<Vec<(usize, usize)>> {
        let mut all = vec![Vec::new()];
        for (label, domains) in &self.commits {
            let extended = all.iter().flat_map(|before: &Vec<(usize, usize)>| {
                domains.iter().map(move |domain| {
                    let mut with = before.clone();
                    with.push((*label, *domain));
                    with
                })
            });
            all = extended.take(MAX_COMBINATIONS).collect();
        }
        all
    }
}
