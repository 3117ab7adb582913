//! kube-scheduler: finds a node for every pod that waits, or says why there is none.
//!
//! Filters: `filter.rs` and `topology.rs`. Scores: nodes that are least allocated first, as with the default plugins;
//! preferences and preemption are not modelled. Ties go to the first name.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::ObjectName;

use super::condition::{Condition, Truth, change_status, set_condition};
use super::pod_reading::{self, PodView};
use super::{Actor, News, Watch};
use crate::store::{ApiError, ChangeKind, Kind, Object, Store};

mod filter;
mod node;
mod topology;

use filter::Unfit;
use node::NodeState;

pub struct Scheduler {
    nodes: Watch,
    pods: Watch,
    volumes: Watch,
    cluster: Cluster,
    /// By priority, then in the order of appearance.
    queue: BTreeMap<(Reverse<i64>, u64), ObjectName>,
    places: BTreeMap<ObjectName, (Reverse<i64>, u64)>,
    arrivals: u64,
    /// New pods, since something changed that could help the others.
    fresh: BTreeSet<ObjectName>,
    /// Something changed that could help a pod that was tried before.
    has_changed: bool,
    /// Tried in vain, with rules about other pods: the next binding may help them.
    near_others: BTreeSet<ObjectName>,
}

/// What the scheduler knows: every node, and every pod that is bound to one.
#[derive(Default)]
struct Cluster {
    nodes: BTreeMap<String, NodeState>,
    pods: BTreeMap<ObjectName, Arc<PodView>>,
}

impl Scheduler {
    pub fn new() -> Self {
        Self {
            nodes: Watch::new(Kind::Node),
            pods: Watch::new(Kind::Pod),
            volumes: Watch::new(Kind::PersistentVolumeClaim),
            cluster: Cluster::default(),
            queue: BTreeMap::new(),
            places: BTreeMap::new(),
            arrivals: 0,
            fresh: BTreeSet::new(),
            has_changed: false,
            near_others: BTreeSet::new(),
        }
    }

    fn catch_up(&mut self, store: &Store) {
        let mut stale = BTreeSet::new();
        match self.pods.news(store) {
            News::Events(events) => {
                for event in events {
                    self.see_pod(&event.object, event.change == ChangeKind::Deleted, &mut stale);
                }
            }
            News::All(pods) => {
                self.cluster.pods.clear();
                self.queue.clear();
                self.places.clear();
                for pod in pods {
                    self.see_pod(&pod, false, &mut stale);
                }
            }
        }
        match self.nodes.news(store) {
            News::Events(events) => {
                stale.extend(events.iter().map(|event| event.object.name.name.to_string()));
            }
            News::All(nodes) => {
                self.cluster.nodes.clear();
                stale.extend(nodes.iter().map(|node| node.name.name.to_string()));
            }
        }
        for name in stale {
            let after = store
                .get(Kind::Node, &ObjectName::of_cluster(name.as_str()))
                .ok()
                .map(|node| NodeState::read(node, store.pods_on(&name), &self.cluster.pods));
            // A kubelet's word that changes nothing for pods is no reason to try them again.
            if self.cluster.nodes.get(&name) == after.as_ref() {
                continue;
            }
            self.has_changed = true;
            match after {
                Some(state) => self.cluster.nodes.insert(name, state),
                None => self.cluster.nodes.remove(&name),
            };
        }
        if !self.volumes.touched(store).is_empty() {
            self.has_changed = true;
        }
    }

    fn see_pod(&mut self, pod: &Object, is_gone: bool, stale: &mut BTreeSet<String>) {
        let node = pod.text(&["spec", "nodeName"]).filter(|node| !node.is_empty());
        stale.extend(node.map(str::to_owned));
        let is_over = matches!(pod.text(&["status", "phase"]), Some("Succeeded" | "Failed"));
        if is_gone || is_over {
            self.cluster.pods.remove(&pod.name);
        } else {
            // Of what scheduling looks at, only gates, tolerations, labels and the end can change; once bound, only labels and
            // the end matter.
            let labels = pod_reading::texts(pod.at(&["metadata", "labels"]));
            let is_known = self.cluster.pods.get(&pod.name).is_some_and(|known| {
                node.is_some() && known.labels == labels && known.is_terminating == pod.is_deleting()
            });
            if !is_known {
                self.cluster.pods.insert(pod.name.clone(), Arc::new(PodView::read(pod)));
            }
        }
        let waits = !is_gone
            && !is_over
            && node.is_none()
            && !pod.is_deleting()
            && pod.list(&["spec", "schedulingGates"]).is_empty()
            && pod.text(&["spec", "schedulerName"]) == Some("default-scheduler");
        match (waits, self.places.get(&pod.name).copied()) {
            (true, None) => {
                self.arrivals += 1;
                let priority = pod.number(&["spec", "priority"]).unwrap_or(0);
                let place = (Reverse(priority), self.arrivals);
                self.queue.insert(place, pod.name.clone());
                self.places.insert(pod.name.clone(), place);
                self.fresh.insert(pod.name.clone());
            }
            (false, Some(place)) => {
                self.queue.remove(&place);
                self.places.remove(&pod.name);
                self.fresh.remove(&pod.name);
                self.near_others.remove(&pod.name);
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    fn try_pod(&mut self, store: &mut Store, name: &ObjectName, now: Timestamp) -> Result<(), ApiError> {
        let Some(pod) = self.cluster.pods.get(name).cloned() else { return Ok(()) };
        match self.cluster.place(store, &pod) {
            Ok(node) => {
                store.bind(name, &node, now)?;
                if let Some(state) = self.cluster.nodes.get_mut(&node) {
                    state.add(pod);
                }
                self.fresh.append(&mut self.near_others);
                Ok(())
            }
            Err(message) => {
                if !pod.affinity.is_empty() || !pod.spread.is_empty() {
                    self.near_others.insert(name.clone());
                }
                change_status(store, Kind::Pod, name, |status| {
                    let (type_, reason) = ("PodScheduled", "Unschedulable");
                    set_condition(status, &Condition { type_, is_true: Truth::False, reason, message: &message }, now);
                })
            }
        }
    }
}

impl Actor for Scheduler {
    fn name(&self) -> &'static str {
        "scheduler"
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        self.catch_up(store);
        let everyone = std::mem::take(&mut self.has_changed);
        let fresh = std::mem::take(&mut self.fresh);
        if !everyone && fresh.is_empty() {
            return Ok(());
        }
        let waiting: Vec<_> = self.queue.values().filter(|name| everyone || fresh.contains(name)).cloned().collect();
        for name in waiting {
            self.try_pod(store, &name, now)?;
        }
        Ok(())
    }

    fn next_due(&self) -> Option<Timestamp> {
        None
    }
}

impl Cluster {
    /// The best node for a pod, or what is wrong with all of them.
    fn place(&self, store: &Store, pod: &PodView) -> Result<String, String> {
        if self.nodes.is_empty() {
            return Err("no nodes available to schedule pods".to_owned());
        }
        let volumes = filter::volumes_of(store, pod)
            .map_err(|reason| format!("0/{} nodes are available: {reason}.", self.nodes.len()))?;
        let topology = topology::Counts::new(self, store, pod);
        let mut reasons: BTreeMap<Unfit, usize> = BTreeMap::new();
        let mut best = None;
        for (name, node) in &self.nodes {
            let fit = filter::check(pod, name, node, &volumes).and_then(|()| topology.check(pod, node));
            match fit {
                Ok(()) => {
                    let score = node.score(pod);
                    if best.as_ref().is_none_or(|(known, _)| score > *known) {
                        best = Some((score, name));
                    }
                }
                Err(reason) => *reasons.entry(reason).or_default() += 1,
            }
        }
        match best {
            Some((_, name)) => Ok(name.clone()),
            None => {
                let mut reasons: Vec<_> =
                    reasons.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
                reasons.sort();
                Err(format!("0/{} nodes are available: {}.", self.nodes.len(), reasons.join(", ")))
            }
        }
    }
}
