//! ReplicaSets: so many pods, no matter which.

use jiff::Timestamp;
use serde_json::json;

use super::{OwnerWatch, count, create_pod, delete_pod, is_active, is_ready, pods_of, replicas};
use crate::store::{ApiError, Kind, Object, Store};
use crate::world::Actor;
use crate::world::condition::change_status;

pub struct ReplicaSets(OwnerWatch);

impl ReplicaSets {
    pub fn new() -> Self {
        Self(OwnerWatch::new(Kind::ReplicaSet, Kind::Pod))
    }
}

impl Actor for ReplicaSets {
    fn name(&self) -> &'static str {
        "replica sets"
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        for set in self.0.changed_owners(store) {
            scale(store, &set, now)?;
            let pods = pods_of(store, &set);
            change_status(store, Kind::ReplicaSet, &set.name, |status| {
                let ready = count(&pods, |pod| is_active(pod) && is_ready(pod));
                *status = json!({
                    "replicas": count(&pods, is_active), "readyReplicas": ready, "availableReplicas": ready,
                    "observedGeneration": set.generation(),
                });
            })?;
        }
        Ok(())
    }

    fn next_due(&self) -> Option<Timestamp> {
        None
    }
}

fn scale(store: &mut Store, set: &Object, now: Timestamp) -> Result<(), ApiError> {
    let mut active = pods_of(store, set);
    active.retain(is_active);
    let wanted = usize::try_from(replicas(set)).unwrap_or(0);
    for _ in active.len()..wanted {
        create_pod(store, set, |_| {}, now)?;
    }
    // The first to go are those that would be missed least: not placed, not running, not ready, youngest.
    active.sort_by_cached_key(|pod| {
        let is_placed = pod.at(&["spec", "nodeName"]).is_some();
        let is_running = pod.text(&["status", "phase"]) == Some("Running");
        (is_placed, is_running, is_ready(pod), std::cmp::Reverse(pod.created()), pod.name.clone())
    });
    let surplus = active.len().saturating_sub(wanted);
    for pod in &active[..surplus] {
        delete_pod(store, pod, now)?;
    }
    Ok(())
}
