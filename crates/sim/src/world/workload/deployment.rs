//! Deployments: a ReplicaSet per template, and the way from one to the next.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{OwnerWatch, owner_reference, replicas, scaled, template_hash};
use crate::store::object::{at, field};
use crate::store::{ApiError, Kind, Object, Part, Store};
use crate::world::Actor;
use crate::world::condition::change_status;

const HASH: &str = "pod-template-hash";

pub struct Deployments(OwnerWatch);

impl Deployments {
    pub fn new() -> Self {
        Self(OwnerWatch::new(Kind::Deployment, Kind::ReplicaSet))
    }
}

impl Actor for Deployments {
    fn name(&self) -> &'static str {
        "deployments"
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        for deployment in self.0.changed_owners(store) {
            roll(store, &deployment, now)?;
            write_status(store, &deployment)?;
        }
        Ok(())
    }

    fn next_due(&self) -> Option<Timestamp> {
        None
    }
}

fn sets_of(store: &Store, deployment: &Object) -> Vec<Object> {
    let owned = store.dependents(deployment.uid());
    owned.filter(|set| set.kind == Kind::ReplicaSet && !set.is_deleting()).cloned().collect()
}

/// One step from the old sets to the new one, within what surge and unavailability allow.
fn roll(store: &mut Store, deployment: &Object, now: Timestamp) -> Result<(), ApiError> {
    let hash = template_hash(deployment.at(&["spec", "template"]));
    let name = format!("{}-{hash}", deployment.name.name);
    let (current, old): (Vec<_>, Vec<_>) =
        sets_of(store, deployment).into_iter().partition(|set| *set.name.name == *name);
    let wanted = replicas(deployment);
    let Some(current) = current.first() else {
        let first = if old.is_empty() { wanted } else { 0 };
        return create_set(store, deployment, &name, &hash, first, now);
    };
    let recreates = deployment.text(&["spec", "strategy", "type"]) == Some("Recreate");
    let limit = |name| at(deployment.body(), &["spec", "strategy", "rollingUpdate", name]);
    let surge = if recreates { 0 } else { scaled(limit("maxSurge"), wanted, true).unwrap_or(0) };
    let unavailable = if recreates { wanted } else { scaled(limit("maxUnavailable"), wanted, false).unwrap_or(0) };
    // Both zero would never move; Kubernetes then takes one away.
    let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
    let total: i64 = replicas(current) + old.iter().map(replicas).sum::<i64>();
    let alive: i64 = old.iter().map(|set| set.number(&["status", "replicas"]).unwrap_or(0)).sum();
    let room = (wanted + surge - total).max(0);
    let target = match replicas(current) {
        // Recreate waits until the old pods are gone.
        _ if recreates && alive > 0 => replicas(current),
        more if more > wanted => wanted,
        fewer => (fewer + room).min(wanted),
    };
    set_replicas(store, current, target)?;

    let available = |set: &Object| set.number(&["status", "availableReplicas"]).unwrap_or(0);
    let not_yet = (replicas(current) - available(current)).max(0);
    let mut may_go = total - (wanted - unavailable) - not_yet;
    for set in &old {
        let going = replicas(set).min(may_go.max(0));
        may_go -= going;
        set_replicas(store, set, replicas(set) - going)?;
    }
    Ok(())
}

fn create_set(
    store: &mut Store,
    deployment: &Object,
    name: &str,
    hash: &str,
    replicas: i64,
    now: Timestamp,
) -> Result<(), ApiError> {
    let mut template = deployment.at(&["spec", "template"]).cloned().unwrap_or_default();
    *field(field(field(&mut template, "metadata"), "labels"), HASH) = json!(hash);
    let mut selector = deployment.at(&["spec", "selector"]).cloned().unwrap_or_default();
    *field(field(&mut selector, "matchLabels"), HASH) = json!(hash);
    let labels = template["metadata"]["labels"].clone();
    let set = json!({
        "metadata": {
            "name": name, "namespace": &*deployment.name.namespace, "labels": labels,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    });
    store.create(Kind::ReplicaSet, set, now)?;
    Ok(())
}

fn set_replicas(store: &mut Store, set: &Object, wanted: i64) -> Result<(), ApiError> {
    let mut body: Value = set.body().clone();
    *field(field(&mut body, "spec"), "replicas") = json!(wanted);
    store.update(Kind::ReplicaSet, &set.name, Part::Main, body)?;
    Ok(())
}

fn write_status(store: &mut Store, deployment: &Object) -> Result<(), ApiError> {
    let hash = template_hash(deployment.at(&["spec", "template"]));
    let sets = sets_of(store, deployment);
    let sum = |name: &str| sets.iter().map(|set| set.number(&["status", name]).unwrap_or(0)).sum::<i64>();
    let updated = sets.iter().find(|set| set.name.name.ends_with(&hash));
    let status = json!({
        "observedGeneration": deployment.generation(),
        "replicas": sum("replicas"), "readyReplicas": sum("readyReplicas"),
        "availableReplicas": sum("availableReplicas"),
        "unavailableReplicas": (replicas(deployment) - sum("availableReplicas")).max(0),
        "updatedReplicas": updated.and_then(|set| set.number(&["status", "replicas"])).unwrap_or(0),
    });
    change_status(store, Kind::Deployment, &deployment.name, |current| *current = status)
}
