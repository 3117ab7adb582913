//! Spread over domains, and pods that want or do not want each other near.
//!
//! A [`Group`] is one rule with one selector over the values of one label (the domains), and how many pods it counts in
//! each. Pods with the same rule share it. An anti-affinity is two groups: one counts the pods that the owner avoids,
//! the other ([`TopologyRule::AntiAffinityOfOthers`]) counts the owners, for the pods that they avoid.
//!
//! A pod with a rule about zones commits its claim to one zone. Upstream leaves the zone of a claim open under an
//! anti-affinity and so blocks every zone for the next such pod: three of them need three passes there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_model::cluster::{
    Node, ObjectName, Pod, PodAffinityTerm, PodConstraints, SpreadConstraint, WeightedPodAffinityTerm,
    WhenUnsatisfiable,
};
use kerf_model::dense_id;
use kerf_model::intern::DenseId;
use kerf_model::label::{self, LabelRules};
use kerf_model::requirement::{Operator, Requirement, Requirements, UndefinedKeys};
use kerf_model::selector::Selector;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::taint::{Taint, Toleration, tolerates};

use crate::existing::{ExistingHost, meets};
use crate::refusal::{Refusal, TopologyRule};
use crate::shape::node_terms;
use crate::template::Template;

dense_id! {
    pub(crate) struct GroupId;
}

#[derive(Debug)]
pub(crate) struct Group {
    key: GroupKey,
    /// Of the nodes that count; compiled.
    filter: NodeFilter,
    /// Domains that can be had, and how many pods are counted in each.
    counts: BTreeMap<Arc<str>, u32>,
    /// Counted pods whose claim is not committed to a domain.
    uncommitted: u32,
}

/// All that tells one group from another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    rule: TopologyRule,
    topology_key: Arc<str>,
    selector: Option<Selector>,
    /// Of the pod that has the rule.
    namespace: Arc<str>,
    namespaces: Vec<Arc<str>>,
    namespace_selector: Option<Selector>,
    max_skew: i64,
    min_domains: usize,
    node_terms: Option<Vec<Requirements>>,
    tolerations: Option<Vec<Toleration>>,
}

#[derive(Debug)]
struct NodeFilter {
    /// One of them must hold.
    terms: Option<Vec<Requirements>>,
    tolerations: Option<Vec<Toleration>>,
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

/// What a shape has to do with the groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Membership {
    /// Groups that count the pod.
    pub(crate) counted_in: Vec<GroupId>,
    /// Owners of these groups do not want it near.
    pub(crate) repelled_by: Vec<GroupId>,
}

/// Where a pod is about to go, or has gone.
pub(crate) struct Target<'t> {
    pub(crate) requirements: &'t Requirements,
    pub(crate) hostname: &'t Arc<str>,
    pub(crate) taints: &'t [Taint],
    pub(crate) undefined: UndefinedKeys<'t>,
    /// Pods on it that wait to be counted until it is committed.
    pub(crate) uncommitted: &'t BTreeMap<GroupId, u32>,
}

/// A pod's side of the question.
pub(crate) struct Asking<'p> {
    /// Groups that must be satisfied.
    pub(crate) groups: &'p [GroupId],
    pub(crate) membership: &'p Membership,
    /// What the pod must have of a node, without preferences.
    pub(crate) strict: &'p Requirements,
}

/// How a claim may be narrowed so that all groups are satisfied.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    pub(crate) limits: Vec<Requirement>,
    /// For each label the domains to commit to, the best first.
    commits: BTreeMap<Arc<str>, Vec<Arc<str>>>,
}

/// Pods with many rules about many labels are rare; this bounds what one of them can cost.
const MAX_COMBINATIONS: usize = 64;

#[derive(Default)]
pub(crate) struct Topology {
    groups: Vec<Group>,
    ids: BTreeMap<GroupKey, GroupId>,
}

impl Topology {
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Makes or finds the groups of a pod's constraints.
    pub(crate) fn register(
        &mut self,
        constraints: &PodConstraints,
        namespace: &Arc<str>,
        rules: &LabelRules,
        with_preferences: bool,
    ) -> OwnGroups {
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
        own
    }

    fn announce(&mut self, term: &PodAffinityTerm, namespace: &Arc<str>, rules: &LabelRules) -> GroupId {
        self.find(affinity_key(TopologyRule::AntiAffinityOfOthers, term, namespace, rules))
    }

    fn find(&mut self, key: GroupKey) -> GroupId {
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = GroupId::from_index(u32::try_from(self.groups.len()).unwrap_or(u32::MAX));
        let filter = NodeFilter { terms: key.node_terms.clone(), tolerations: key.tolerations.clone() };
        self.ids.insert(key.clone(), id);
        self.groups.push(Group { key, filter, counts: BTreeMap::new(), uncommitted: 0 });
        id
    }

    /// Counts the pods that run. Those of the batch are counted when they are placed.
    pub(crate) fn count_running(
        &mut self,
        cluster: &ClusterSnapshot,
        batch: &BTreeSet<&ObjectName>,
        rules: &LabelRules,
    ) {
        let running = || {
            let bound = cluster.pods().filter(|pod| pod.is_active() && !batch.contains(&pod.meta.name));
            bound.filter_map(|pod| Some((pod, cluster.node(pod.node_name.as_deref()?)?)))
        };
        for (pod, node) in running() {
            for term in &pod.constraints.required_anti_affinity {
                let id = self.announce(term, &pod.meta.name.namespace, rules);
                let key = &self.groups[id.index()].key.topology_key;
                if let Some(domain) = domain_of(node, key) {
                    *self.groups[id.index()].counts.entry(domain).or_default() += 1;
                }
            }
        }
        if self.groups.is_empty() {
            return;
        }
        let mut labels: BTreeMap<&Arc<str>, Requirements> = BTreeMap::new();
        for (pod, node) in running() {
            for at in self.selecting(pod, cluster) {
                let group = &mut self.groups[at.index()];
                if group.key.rule == TopologyRule::AntiAffinityOfOthers {
                    continue;
                }
                let key = &group.key.topology_key;
                let Some(domain) = domain_of(node, key) else { continue };
                let labels = labels.entry(node.name()).or_insert_with(|| {
                    let pairs = node.meta.labels.iter().map(|(key, value)| (&**key, &**value));
                    Requirements::from_labels(pairs, rules)
                });
                if group.filter.accepts_host(labels, &node.taints) {
                    *group.counts.entry(domain).or_default() += 1;
                }
            }
        }
    }

    /// Makes known which domains there are: those that pools can reach, and those of hosts.
    pub(crate) fn open_domains(&mut self, templates: &[Template<'_>], hosts: &[ExistingHost<'_>]) {
        let anywhere = [Requirements::new()];
        for group in &mut self.groups {
            let key = Arc::clone(&group.key.topology_key);
            if &*key == label::HOSTNAME {
                continue;
            }
            let terms = group.filter.terms.as_deref().unwrap_or(&anywhere);
            for template in templates.iter().filter(|template| group.filter.tolerates(&template.pool.node.taints)) {
                for domain in template.domains(&key, terms) {
                    group.counts.entry(domain).or_default();
                }
            }
            for host in hosts.iter().filter(|host| group.filter.accepts_host(&host.labels, &host.taints)) {
                for domain in host.labels.get(&key).filter(|own| own.operator() == Operator::In).into_iter() {
                    for value in domain.values() {
                        group.counts.entry(Arc::clone(value)).or_default();
                    }
                }
            }
        }
    }

    pub(crate) fn membership(&self, pod: &Pod, cluster: &ClusterSnapshot) -> Membership {
        let repels = |id: &GroupId| self.groups[id.index()].key.rule == TopologyRule::AntiAffinityOfOthers;
        let (repelled_by, counted_in) = self.selecting(pod, cluster).into_iter().partition(repels);
        Membership { counted_in, repelled_by }
    }

    fn selecting(&self, pod: &Pod, cluster: &ClusterSnapshot) -> Vec<GroupId> {
        let ids = (0..).map(GroupId::from_index);
        ids.zip(&self.groups).filter(|(_, group)| group.key.selects(pod, cluster)).map(|(id, _)| id).collect()
    }

    /// Whether a pod may go to a host, whose domains are what they are.
    pub(crate) fn check_host(&self, asking: &Asking<'_>, target: &Target<'_>) -> Result<(), Refusal> {
        for id in asking.all_groups() {
            let group = &self.groups[id.index()];
            let domains = group.domains_of(target);
            let allowed = group.allowed(&domains, asking, id, 0);
            let nowhere = domains.is_empty() && group.key.rule.needs_domain();
            if nowhere || allowed.len() < domains.len() {
                return Err(group.refusal());
            }
        }
        Ok(())
    }

    /// Whether a host has as many pods of some group as it may ever have: counts only grow.
    pub(crate) fn is_host_closed(&self, asking: &Asking<'_>, hostname: &Arc<str>) -> bool {
        asking.all_groups().any(|id| {
            let group = &self.groups[id.index()];
            let is_lasting = group.is_by_host() && group.key.rule != TopologyRule::Affinity;
            is_lasting && group.allowed(std::slice::from_ref(hostname), asking, id, 0).is_empty()
        })
    }

    /// How a claim must be narrowed to take a pod.
    pub(crate) fn choices(&self, asking: &Asking<'_>, target: &Target<'_>) -> Result<Choices, Refusal> {
        let mut choices = Choices::default();
        for id in asking.all_groups() {
            let group = &self.groups[id.index()];
            let key = &group.key.topology_key;
            let domains = group.domains_of(target);
            if domains.is_empty() && !group.key.rule.needs_domain() {
                continue;
            }
            let here = target.uncommitted.get(&id).copied().unwrap_or_default();
            let allowed = group.allowed(&domains, asking, id, here);
            if allowed.is_empty() {
                return Err(group.refusal());
            }
            if &**key == label::HOSTNAME {
                continue;
            }
            if group.key.rule == TopologyRule::AntiAffinityOfOthers {
                let taken = group.counts.iter().filter(|(_, count)| **count > 0).map(|(domain, _)| domain);
                choices.limits.push(Requirement::none_of(Arc::clone(key), taken));
                continue;
            }
            let commit = choices.commits.entry(Arc::clone(key)).or_insert_with(|| allowed.clone());
            commit.retain(|domain| allowed.contains(domain));
            if commit.is_empty() {
                return Err(group.refusal());
            }
        }
        Ok(choices)
    }

    /// The refusal to tell when no combination of domains could be launched.
    pub(crate) fn refusal_of(&self, asking: &Asking<'_>) -> Option<Refusal> {
        let key_of = |id: GroupId| &self.groups[id.index()].key;
        let by_label = asking.all_groups().find(|id| &*key_of(*id).topology_key != label::HOSTNAME);
        by_label.map(|id| self.groups[id.index()].refusal())
    }

    /// Counts a pod that was placed. The answer are the groups to count it in once the target is committed.
    pub(crate) fn record(
        &mut self,
        membership: &Membership,
        announces: &[GroupId],
        target: &Target<'_>,
    ) -> Vec<GroupId> {
        let mut later = Vec::new();
        for id in membership.counted_in.iter().chain(announces) {
            let group = &mut self.groups[id.index()];
            if !group.filter.accepts(target) {
                continue;
            }
            let domains = group.domains_of(target);
            match domains.as_slice() {
                [domain] => *group.counts.entry(Arc::clone(domain)).or_default() += 1,
                // It may come up in any of them, so all are taken.
                several if group.key.rule.is_repulsion() => {
                    for domain in several {
                        *group.counts.entry(Arc::clone(domain)).or_default() += 1;
                    }
                }
                [] => {}
                _ => {
                    group.uncommitted += 1;
                    later.push(*id);
                }
            }
        }
        later
    }

    /// Counts the pods of a claim that has been committed since they were placed.
    pub(crate) fn commit(&mut self, uncommitted: &mut BTreeMap<GroupId, u32>, requirements: &Requirements) {
        uncommitted.retain(|id, count| {
            let group = &mut self.groups[id.index()];
            match requirements.get(&group.key.topology_key) {
                Some(only) if only.count() == Some(1) => {
                    for domain in only.values() {
                        *group.counts.entry(Arc::clone(domain)).or_default() += *count;
                    }
                    group.uncommitted -= *count;
                    false
                }
                Some(_) | None => true,
            }
        });
    }
}

impl Choices {
    /// Every combination of domains to commit to, the best first; one without commitments if none is needed.
    pub(crate) fn combinations(&self) -> Vec<Vec<Requirement>> {
        let mut all = vec![self.limits.clone()];
        for (key, domains) in &self.commits {
            let extended = all.iter().flat_map(|before| {
                domains.iter().map(move |domain| {
                    let mut with = before.clone();
                    with.push(Requirement::one_of(Arc::clone(key), [domain]));
                    with
                })
            });
            all = extended.take(MAX_COMBINATIONS).collect();
        }
        all
    }
}

impl Asking<'_> {
    fn all_groups(&self) -> impl Iterator<Item = GroupId> {
        self.groups.iter().chain(&self.membership.repelled_by).copied()
    }

    pub(crate) fn is_free(&self) -> bool {
        self.groups.is_empty() && self.membership.repelled_by.is_empty()
    }
}

impl TopologyRule {
    /// Whether a node without the label cannot satisfy it.
    fn needs_domain(self) -> bool {
        matches!(self, Self::Spread | Self::Affinity)
    }

    fn is_repulsion(self) -> bool {
        matches!(self, Self::AntiAffinity | Self::AntiAffinityOfOthers)
    }
}

impl Group {
    fn refusal(&self) -> Refusal {
        Refusal::Topology { rule: self.key.rule, key: Arc::clone(&self.key.topology_key) }
    }

    fn is_by_host(&self) -> bool {
        &*self.key.topology_key == label::HOSTNAME
    }

    fn count(&self, domain: &str) -> u32 {
        self.counts.get(domain).copied().unwrap_or_default()
    }

    /// The domains that the target is or can come up in.
    fn domains_of(&self, target: &Target<'_>) -> Vec<Arc<str>> {
        if self.is_by_host() {
            return vec![Arc::clone(target.hostname)];
        }
        let key = &self.key.topology_key;
        match target.requirements.get(key) {
            Some(own) if own.operator() == Operator::In => own.values().to_vec(),
            Some(own) => self.counts.keys().filter(|domain| own.has(domain)).cloned().collect(),
            None if target.undefined.is_open(key) => self.counts.keys().cloned().collect(),
            None => Vec::new(),
        }
    }

    /// Which of the domains satisfy the rule, the best first. `here` pods of the target itself are not counted yet.
    fn allowed(&self, domains: &[Arc<str>], asking: &Asking<'_>, id: GroupId, here: u32) -> Vec<Arc<str>> {
        let counts_itself = asking.membership.counted_in.contains(&id);
        let pod_side = asking.strict.get(&self.key.topology_key);
        let reachable = |domain: &str| pod_side.is_none_or(|own| own.has(domain));
        let mut allowed: Vec<_> = match self.key.rule {
            TopologyRule::Spread => {
                let least = self.least(reachable);
                let after = |domain: &str| i64::from(self.count(domain)) + i64::from(here) + i64::from(counts_itself);
                let known = |domain: &str| self.is_by_host() || self.counts.contains_key(domain);
                let fits = |domain: &&Arc<str>| known(domain) && after(domain) - least <= self.key.max_skew;
                domains.iter().filter(fits).cloned().collect()
            }
            TopologyRule::Affinity => {
                let with: Vec<_> =
                    domains.iter().filter(|domain| here > 0 || self.count(domain) > 0).cloned().collect();
                let exists = self.counts.iter().any(|(domain, count)| *count > 0 && reachable(domain));
                // The first of pods that want to be together may go anywhere.
                let is_first = counts_itself && !exists && self.uncommitted == 0;
                if with.is_empty() && is_first { domains.to_vec() } else { with }
            }
            TopologyRule::AntiAffinity | TopologyRule::AntiAffinityOfOthers => {
                domains.iter().filter(|domain| self.count(domain) == 0).cloned().collect()
            }
        };
        allowed.sort_by_cached_key(|domain| (self.count(domain), Arc::clone(domain)));
        allowed
    }

    /// The smallest count among the domains that the pod can reach; a new host would be empty.
    fn least(&self, reachable: impl Fn(&str) -> bool) -> i64 {
        if self.is_by_host() {
            return 0;
        }
        let counts = || self.counts.iter().filter(|(domain, _)| reachable(domain)).map(|(_, count)| *count);
        match counts().count() < self.key.min_domains {
            true => 0,
            false => counts().min().map_or(0, i64::from),
        }
    }
}

impl GroupKey {
    /// Without a selector nothing is selected.
    fn selects(&self, pod: &Pod, cluster: &ClusterSnapshot) -> bool {
        self.includes_namespace(&pod.meta.name.namespace, cluster)
            && self.selector.as_ref().is_some_and(|selector| selector.matches(&pod.meta.labels))
    }

    fn includes_namespace(&self, namespace: &Arc<str>, cluster: &ClusterSnapshot) -> bool {
        let listed = self.namespaces.contains(namespace);
        match &self.namespace_selector {
            None if self.namespaces.is_empty() => self.namespace == *namespace,
            None => listed,
            Some(selector) => {
                let labels = cluster.namespace(namespace).map(|found| &found.meta.labels);
                listed || *selector == Selector::default() || labels.is_some_and(|labels| selector.matches(labels))
            }
        }
    }
}

impl NodeFilter {
    fn tolerates(&self, taints: &[Taint]) -> bool {
        self.tolerations.as_ref().is_none_or(|tolerations| tolerates(taints, tolerations).is_ok())
    }

    fn accepts_host(&self, labels: &Requirements, taints: &[Taint]) -> bool {
        let holds = |terms: &Vec<Requirements>| terms.iter().any(|term| meets(labels, term).is_ok());
        self.tolerates(taints) && self.terms.as_ref().is_none_or(holds)
    }

    fn accepts(&self, target: &Target<'_>) -> bool {
        let holds = |term: &Requirements| target.requirements.compatible(term, target.undefined).is_ok();
        self.tolerates(target.taints) && self.terms.as_ref().is_none_or(|terms| terms.iter().any(holds))
    }
}

/// A node's value of a label; its name is its host name unless it says otherwise.
fn domain_of(node: &Node, key: &str) -> Option<Arc<str>> {
    let own = node.meta.labels.get(key);
    own.or_else(|| (key == label::HOSTNAME).then(|| node.name())).cloned()
}

fn spread_key(
    spread: &SpreadConstraint,
    constraints: &PodConstraints,
    namespace: &Arc<str>,
    rules: &LabelRules,
) -> GroupKey {
    GroupKey {
        rule: TopologyRule::Spread,
        topology_key: Arc::from(rules.normalise(&spread.topology_key)),
        selector: spread.selector.clone(),
        namespace: Arc::clone(namespace),
        namespaces: Vec::new(),
        namespace_selector: None,
        max_skew: i64::from(spread.max_skew),
        min_domains: spread.min_domains.and_then(|least| usize::try_from(least).ok()).unwrap_or_default(),
        node_terms: spread.honors_node_affinity.then(|| node_terms(constraints, rules)),
        tolerations: spread.honors_node_taints.then(|| constraints.tolerations.clone()),
    }
}

fn affinity_key(rule: TopologyRule, term: &PodAffinityTerm, namespace: &Arc<str>, rules: &LabelRules) -> GroupKey {
    GroupKey {
        rule,
        topology_key: Arc::from(rules.normalise(&term.topology_key)),
        selector: term.selector.clone(),
        namespace: Arc::clone(namespace),
        namespaces: term.namespaces.clone(),
        namespace_selector: term.namespace_selector.clone(),
        max_skew: 0,
        min_domains: 0,
        node_terms: None,
        tolerations: None,
    }
}
