//! Spread constraints and affinity between pods: rules about where other pods are.
//!
//! Counted anew for each pod that has such a rule, or that others' rules may concern.

use std::collections::{BTreeMap, BTreeSet};

use kerf_model::cluster::{ObjectName, WhenUnsatisfiable};
use kerf_model::taint::Effect;

use super::Cluster;
use super::filter::{Unfit, tolerates};
use super::node::NodeState;
use crate::store::{Kind, Store};
use crate::world::pod_reading::{PodTerm, PodView, Spread};

/// What the rules of one pod need to know of all others.
pub struct Counts {
    spread: Vec<SpreadCount>,
    affinity: Vec<Domains>,
    /// No other pod matches the affinity, and the pod matches it itself: then it may go first.
    is_first_of_its_kind: bool,
    anti_affinity: Vec<Domains>,
    /// Where anti-affinity of other pods forbids this one.
    forbidden: Vec<Domains>,
}

struct SpreadCount {
    key: String,
    /// By domain, over the nodes that count.
    matching: BTreeMap<String, i64>,
    least: i64,
    max_skew: i64,
    counts_itself: bool,
}

/// The values of a label where matching pods are.
struct Domains {
    key: String,
    values: BTreeSet<String>,
}

impl Counts {
    pub fn new(cluster: &Cluster, store: &Store, pod: &PodView) -> Self {
        let affinity: Vec<_> = pod.affinity.iter().map(|term| domains(cluster, store, pod, term)).collect();
        let matches_itself = pod.affinity.iter().all(|term| concerns(store, pod, term, pod));
        let spread = pod.spread.iter().filter(|spread| spread.when == WhenUnsatisfiable::DoNotSchedule);
        Self {
            spread: spread.map(|spread| count(cluster, pod, spread)).collect(),
            is_first_of_its_kind: matches_itself && affinity.iter().all(|domains| domains.values.is_empty()),
            affinity,
            anti_affinity: pod.anti_affinity.iter().map(|term| domains(cluster, store, pod, term)).collect(),
            forbidden: forbidden(cluster, store, pod),
        }
    }

    pub fn check(&self, pod: &PodView, node: &NodeState) -> Result<(), Unfit> {
        for spread in &self.spread {
            let Some(domain) = node.labels.get(&spread.key) else { return Err(Unfit::SpreadLabel) };
            let itself = i64::from(spread.counts_itself);
            let there = spread.matching.get(domain).copied().unwrap_or(0);
            if there + itself - spread.least > spread.max_skew {
                return Err(Unfit::Spread);
            }
        }
        let reaches = |domains: &Domains| {
            node.labels
                .get(&domains.key)
                .is_some_and(|value| self.is_first_of_its_kind || domains.values.contains(value))
        };
        if !pod.affinity.is_empty() && !self.affinity.iter().all(reaches) {
            return Err(Unfit::Affinity);
        }
        let touches =
            |domains: &Domains| node.labels.get(&domains.key).is_some_and(|value| domains.values.contains(value));
        if self.anti_affinity.iter().any(touches) {
            return Err(Unfit::AntiAffinity);
        }
        match self.forbidden.iter().any(touches) {
            true => Err(Unfit::AntiAffinityOfOthers),
            false => Ok(()),
        }
    }
}

fn count(cluster: &Cluster, pod: &PodView, spread: &Spread) -> SpreadCount {
    let mut matching: BTreeMap<String, i64> = BTreeMap::new();
    for (name, node) in &cluster.nodes {
        let Some(domain) = node.labels.get(&spread.key) else { continue };
        let hard = |effect| effect != Effect::PreferNoSchedule;
        let is_repelled = node.taints.iter().any(|taint| hard(taint.effect) && !tolerates(pod, taint));
        if (spread.honors_placement && !pod.placement.allows(name, &node.labels))
            || (spread.honors_taints && is_repelled)
        {
            continue;
        }
        // Pods that end are counted by affinity, and not by spread (upstream: `countPodsMatchSelector`).
        let selected = node.pods.iter().filter(|other| !other.is_terminating).filter(|other| {
            other.name.namespace == pod.name.namespace
                && spread.selector.as_ref().is_some_and(|selector| selector.matches(&other.labels))
        });
        *matching.entry(domain.clone()).or_default() += i64::try_from(selected.count()).unwrap_or(i64::MAX);
    }
    let domains = i64::try_from(matching.len()).unwrap_or(i64::MAX);
    let least = match spread.min_domains {
        // Too few domains: the missing ones count as empty.
        Some(wanted) if domains < wanted => 0,
        Some(_) | None => matching.values().copied().min().unwrap_or(0),
    };
    let counts_itself = spread.selector.as_ref().is_some_and(|selector| selector.matches(&pod.labels));
    SpreadCount { key: spread.key.clone(), matching, least, max_skew: spread.max_skew, counts_itself }
}

/// Where pods are that a term of this pod names.
fn domains(cluster: &Cluster, store: &Store, pod: &PodView, term: &PodTerm) -> Domains {
    let nodes = cluster.nodes.values();
    let with = nodes.filter(|node| node.pods.iter().any(|other| concerns(store, pod, term, other)));
    let values = with.filter_map(|node| node.labels.get(&term.key).cloned()).collect();
    Domains { key: term.key.clone(), values }
}

fn forbidden(cluster: &Cluster, store: &Store, pod: &PodView) -> Vec<Domains> {
    let mut found = Vec::new();
    for node in cluster.nodes.values() {
        for other in &node.repelling {
            for term in other.anti_affinity.iter().filter(|term| concerns(store, other, term, pod)) {
                let values = node.labels.get(&term.key).cloned().into_iter().collect();
                found.push(Domains { key: term.key.clone(), values });
            }
        }
    }
    found
}

/// Whether a term of `holder` names `other`.
fn concerns(store: &Store, holder: &PodView, term: &PodTerm, other: &PodView) -> bool {
    let in_reach = if term.namespaces.is_empty() && term.namespace_selector.is_none() {
        holder.name.namespace == other.name.namespace
    } else {
        term.namespaces.iter().any(|namespace| **namespace == *other.name.namespace)
            || term.namespace_selector.as_ref().is_some_and(|selector| {
                let namespace = store.get(Kind::Namespace, &ObjectName::of_cluster(other.name.namespace.clone()));
                namespace.is_ok_and(|namespace| selector.matches(&namespace.labels()))
            })
    };
    in_reach && term.selector.as_ref().is_some_and(|selector| selector.matches(&other.labels))
}
