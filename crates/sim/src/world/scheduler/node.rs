//! A node as the scheduler keeps it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::cluster::{HostPort, ObjectName};
use kerf_model::resources::ResourceList;
use kerf_model::taint::{Effect, Taint};
use serde_json::Value;

use crate::store::Object;
use crate::world::pod_reading::{self, PodView};

#[derive(Debug, Clone)]
pub struct NodeState {
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    pub is_cordoned: bool,
    pub allocatable: ResourceList,
    pub used: ResourceList,
    pub ports: Vec<HostPort>,
    pub pods: Vec<Arc<PodView>>,
    /// Those of the pods that keep others away.
    pub repelling: Vec<Arc<PodView>>,
}

/// Larger is better: fewer soft taints, then more of the node left free.
pub type Score = (Reverse<usize>, i128);

impl NodeState {
    pub fn read<'a>(
        node: &Object,
        pods: impl Iterator<Item = &'a Object>,
        known: &BTreeMap<ObjectName, Arc<PodView>>,
    ) -> Self {
        let mut labels = pod_reading::texts(node.at(&["metadata", "labels"]));
        labels.entry("kubernetes.io/hostname".to_owned()).or_insert_with(|| node.name.name.to_string());
        let mut state = Self {
            labels,
            taints: pod_reading::taints(node.body()),
            is_cordoned: node.at(&["spec", "unschedulable"]) == Some(&Value::Bool(true)),
            allocatable: pod_reading::resources(node.at(&["status", "allocatable"])),
            used: ResourceList::new(),
            ports: Vec::new(),
            pods: Vec::new(),
            repelling: Vec::new(),
        };
        for pod in pods.filter_map(|pod| known.get(&pod.name)) {
            state.add(Arc::clone(pod));
        }
        state
    }

    pub fn add(&mut self, pod: Arc<PodView>) {
        self.used = pod_reading::sum(std::mem::take(&mut self.used), pod.requests.clone());
        self.ports.extend(&pod.ports);
        if !pod.anti_affinity.is_empty() {
            self.repelling.push(Arc::clone(&pod));
        }
        self.pods.push(pod);
    }

    pub fn score(&self, pod: &PodView) -> Score {
        let is_soft = |taint: &&Taint| taint.effect == Effect::PreferNoSchedule;
        let tolerated = |taint: &Taint| pod.tolerations.iter().any(|toleration| toleration.covers(taint));
        let soft = self.taints.iter().filter(is_soft).filter(|taint| !tolerated(taint)).count();
        // LeastAllocated: the mean free share of cpu and memory, in millionths.
        let share = |name: &str| {
            let total = self.allocatable.amount(name).nanos();
            let used = self.used.amount(name).nanos() + pod.requests.amount(name).nanos();
            if total > 0 { (total - used).saturating_mul(1_000_000) / total } else { 0 }
        };
        (Reverse(soft), (share("cpu") + share("memory")) / 2)
    }
}

impl PartialEq for NodeState {
    /// Whether nothing changed that scheduling looks at. A pod is read again only when something of it has changed.
    fn eq(&self, other: &Self) -> bool {
        let sorted = |state: &Self| {
            let mut pods = state.pods.clone();
            pods.sort_by(|left, right| left.name.cmp(&right.name));
            pods
        };
        let same_pods = || sorted(self).iter().zip(&sorted(other)).all(|(left, right)| Arc::ptr_eq(left, right));
        self.labels == other.labels
            && self.taints == other.taints
            && self.is_cordoned == other.is_cordoned
            && self.allocatable == other.allocatable
            && self.used == other.used
            && self.pods.len() == other.pods.len()
            && same_pods()
    }
}
