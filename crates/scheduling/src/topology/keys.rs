//! What tells one rule about other pods from another: all that it says.

use std::sync::Arc;

use kerf_model::cluster::{Pod, PodAffinityTerm, PodConstraints, SpreadConstraint};
use kerf_model::label::LabelRules;
use kerf_model::requirement::Requirements;
use kerf_model::selector::Selector;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::taint::Toleration;

use crate::refusal::TopologyRule;
use crate::shape::node_terms;

/// All that tells one group from another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupKey {
    pub(super) rule: TopologyRule,
    pub(super) topology_key: Arc<str>,
    pub(super) selector: Option<Selector>,
    /// Of the pod that has the rule.
    pub(super) namespace: Arc<str>,
    pub(super) namespaces: Vec<Arc<str>>,
    pub(super) namespace_selector: Option<Selector>,
    pub(super) max_skew: i64,
    pub(super) min_domains: usize,
    pub(super) node_terms: Option<Vec<Requirements>>,
    pub(super) tolerations: Option<Vec<Toleration>>,
}

impl GroupKey {
    /// Without a selector nothing is selected.
    pub(super) fn selects(&self, pod: &Pod, cluster: &ClusterSnapshot) -> bool {
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

pub(super) fn spread_key(
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

pub(super) fn affinity_key(
    rule: TopologyRule,
    term: &PodAffinityTerm,
    namespace: &Arc<str>,
    rules: &LabelRules,
) -> GroupKey {
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
