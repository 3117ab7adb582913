//! StatefulSets: pods with names that last, one after the other.

use jiff::Timestamp;
use kerf_model::cluster::ObjectName;
use serde_json::{Value, json};

use super::{
    OwnerWatch, count, create_pod, delete_pod, has_label, is_active, is_over, is_ready, pods_of, replicas,
    template_hash,
};
use crate::store::object::field;
use crate::store::{ApiError, Kind, Object, Store};
use crate::world::Actor;
use crate::world::condition::change_status;

const REVISION: &str = "controller-revision-hash";

pub struct StatefulSets(OwnerWatch);

impl StatefulSets {
    pub fn new() -> Self {
        Self(OwnerWatch::new(Kind::StatefulSet, Kind::Pod))
    }
}

impl Actor for StatefulSets {
    fn name(&self) -> &'static str {
        "stateful sets"
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        for set in self.0.changed_owners(store) {
            advance(store, &set, now)?;
            let pods = pods_of(store, &set);
            let ready = count(&pods, |pod| is_active(pod) && is_ready(pod));
            let status = json!({
                "replicas": count(&pods, is_active), "readyReplicas": ready, "availableReplicas": ready,
                "observedGeneration": set.generation(),
            });
            change_status(store, Kind::StatefulSet, &set.name, |current| *current = status)?;
        }
        Ok(())
    }

    fn next_due(&self) -> Option<Timestamp> {
        None
    }
}

/// The next step; in order, nothing moves while a pod with a smaller number is missing, starting or stopping.
fn advance(store: &mut Store, set: &Object, now: Timestamp) -> Result<(), ApiError> {
    let in_order = set.text(&["spec", "podManagementPolicy"]) != Some("Parallel");
    let revision = template_hash(set.at(&["spec", "template"]));
    let wanted = replicas(set);
    for ordinal in 0..wanted {
        let name = pod_name(set, ordinal);
        match store.get(Kind::Pod, &name).cloned() {
            // The name is free only when the old pod is gone: never two of them.
            Err(_) => {
                create_claims(store, set, &name, now)?;
                create_pod(store, set, |pod| edit(pod, set, &name, &revision), now)?;
                if in_order {
                    return Ok(());
                }
            }
            Ok(pod) if is_over(&pod) && !pod.is_deleting() => delete_pod(store, &pod, now)?,
            Ok(pod) if in_order && (pod.is_deleting() || !is_ready(&pod)) => return Ok(()),
            Ok(_) => {}
        }
    }
    let mut pods = pods_of(store, set);
    pods.sort_by_key(|pod| std::cmp::Reverse(ordinal(set, pod)));
    if let Some(surplus) = pods.iter().find(|pod| ordinal(set, pod).is_some_and(|ordinal| ordinal >= wanted)) {
        return if surplus.is_deleting() { Ok(()) } else { delete_pod(store, surplus, now) };
    }
    // A new template replaces pods from the last to the first, one at a time.
    let rolls = set.text(&["spec", "updateStrategy", "type"]) == Some("RollingUpdate");
    let is_settled = pods.iter().all(|pod| is_active(pod) && is_ready(pod));
    match pods.iter().find(|pod| !has_label(pod, REVISION, &revision)) {
        Some(outdated) if rolls && is_settled => delete_pod(store, outdated, now),
        Some(_) | None => Ok(()),
    }
}

fn pod_name(set: &Object, ordinal: i64) -> ObjectName {
    ObjectName::new(set.name.namespace.clone(), format!("{}-{ordinal}", set.name.name))
}

fn ordinal(set: &Object, pod: &Object) -> Option<i64> {
    pod.name.name.strip_prefix(&*set.name.name)?.strip_prefix('-')?.parse().ok()
}

fn claim_templates(set: &Object) -> impl Iterator<Item = (&str, &Value)> {
    let templates = set.list(&["spec", "volumeClaimTemplates"]).iter();
    templates.filter_map(|template| Some((template["metadata"]["name"].as_str()?, template)))
}

/// Claims outlive their pods.
fn create_claims(store: &mut Store, set: &Object, pod: &ObjectName, now: Timestamp) -> Result<(), ApiError> {
    for (template_name, template) in claim_templates(set) {
        let name = format!("{template_name}-{}", pod.name);
        let key = ObjectName::new(pod.namespace.clone(), name.as_str());
        if store.get(Kind::PersistentVolumeClaim, &key).is_err() {
            let claim = json!({
                "metadata": {"name": name, "namespace": &*pod.namespace}, "spec": template["spec"].clone(),
            });
            store.create(Kind::PersistentVolumeClaim, claim, now)?;
        }
    }
    Ok(())
}

fn edit(pod: &mut Value, set: &Object, name: &ObjectName, revision: &str) {
    let metadata = field(pod, "metadata");
    *field(metadata, "name") = json!(&*name.name);
    let labels = field(metadata, "labels");
    *field(labels, REVISION) = json!(revision);
    *field(labels, "statefulset.kubernetes.io/pod-name") = json!(&*name.name);
    let spec = field(pod, "spec");
    let mut volumes = spec["volumes"].as_array().cloned().unwrap_or_default();
    for (template_name, _) in claim_templates(set) {
        let claim = json!({"claimName": format!("{template_name}-{}", name.name)});
        volumes.push(json!({"name": template_name, "persistentVolumeClaim": claim}));
    }
    if !volumes.is_empty() {
        *field(spec, "volumes") = json!(volumes);
    }
}
