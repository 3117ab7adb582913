//! The controllers that make pods, as kube-controller-manager has them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kerf_model::cluster::ObjectName;
use serde_json::{Value, json};

use super::Watch;
use crate::store::object::{at, field, fields};
use crate::store::{ApiError, DeleteOptions, Kind, Object, Store};

mod daemon_set;
mod deployment;
mod job;
mod replica_set;
mod stateful_set;

pub use daemon_set::DaemonSets;
pub use deployment::Deployments;
pub use job::Jobs;
pub use replica_set::ReplicaSets;
pub use stateful_set::StatefulSets;

/// Which owners to look at: those that changed, and those of which something changed.
#[derive(Debug)]
struct OwnerWatch {
    kind: Kind,
    owners: Watch,
    owned: Watch,
}

impl OwnerWatch {
    fn new(kind: Kind, owned: Kind) -> Self {
        Self { kind, owners: Watch::new(kind), owned: Watch::new(owned) }
    }

    /// The owners that are still there and not on their way out.
    fn changed_owners(&mut self, store: &Store) -> Vec<Object> {
        let mut names: BTreeSet<_> = self.owners.touched(store).into_iter().map(|owner| owner.name).collect();
        let owned = self.owned.touched(store);
        names.extend(owned.iter().filter_map(|owned| {
            let owner = owned.controller()?;
            let is_ours = Kind::find(owner.api_version, owner.kind) == Some(self.kind);
            is_ours.then(|| ObjectName::new(owned.name.namespace.clone(), owner.name))
        }));
        let found = names.iter().filter_map(|name| store.get(self.kind, name).ok());
        found.filter(|owner| !owner.is_deleting()).cloned().collect()
    }
}

/// The pods that an owner controls.
fn pods_of(store: &Store, owner: &Object) -> Vec<Object> {
    let owned = store.dependents(owner.uid()).filter(|object| object.kind == Kind::Pod);
    owned.filter(|pod| pod.controller().is_some_and(|it| it.uid == owner.uid())).cloned().collect()
}

fn is_over(pod: &Object) -> bool {
    matches!(pod.text(&["status", "phase"]), Some("Succeeded" | "Failed"))
}

/// Neither ended nor on its way out.
fn is_active(pod: &Object) -> bool {
    !is_over(pod) && !pod.is_deleting()
}

fn is_ready(pod: &Object) -> bool {
    pod.is_condition_true("Ready")
}

/// Makes a pod from the owner's template. `edit` gives it its name and what else is its own.
fn create_pod(
    store: &mut Store,
    owner: &Object,
    edit: impl FnOnce(&mut Value),
    now: Timestamp,
) -> Result<Object, ApiError> {
    let mut pod = owner.at(&["spec", "template"]).cloned().unwrap_or_else(|| json!({}));
    fields(field(&mut pod, "metadata")).remove("creationTimestamp");
    let metadata = field(&mut pod, "metadata");
    *field(metadata, "namespace") = json!(&*owner.name.namespace);
    *field(metadata, "generateName") = json!(format!("{}-", owner.name.name));
    *field(metadata, "ownerReferences") = json!([owner_reference(owner)]);
    edit(&mut pod);
    store.create(Kind::Pod, pod, now)
}

fn owner_reference(owner: &Object) -> Value {
    let facts = owner.kind.facts();
    json!({
        "apiVersion": facts.api_version(), "kind": facts.kind, "name": &*owner.name.name, "uid": owner.uid(),
        "controller": true, "blockOwnerDeletion": true,
    })
}

fn delete_pod(store: &mut Store, pod: &Object, now: Timestamp) -> Result<(), ApiError> {
    store.delete(Kind::Pod, &pod.name, &DeleteOptions::of_uid(pod.uid()), now)?;
    Ok(())
}

/// Tells templates apart, in the form of Kubernetes' hashes: ten characters without vowels.
fn template_hash(template: Option<&Value>) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    // FNV-1a: the JSON of a template is written the same way every time.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in template.map(Value::to_string).unwrap_or_default().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (0..10)
        .map(|_| {
            let character = char::from(ALPHABET[(hash % 27) as usize]);
            hash /= 27;
            character
        })
        .collect()
}

/// A count, or a share of `whole`.
pub(super) fn scaled(value: Option<&Value>, whole: i64, round_up: bool) -> Option<i64> {
    match value? {
        Value::String(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let product = percent * whole;
            Some(if round_up { (product + 99) / 100 } else { product / 100 })
        }
        value => value.as_i64(),
    }
}

fn replicas(owner: &Object) -> i64 {
    owner.number(&["spec", "replicas"]).unwrap_or(1)
}

fn count<'a>(pods: impl IntoIterator<Item = &'a Object>, test: impl Fn(&Object) -> bool) -> i64 {
    i64::try_from(pods.into_iter().filter(|pod| test(pod)).count()).unwrap_or(i64::MAX)
}

/// Whether the pod was made from the owner's present template.
fn has_label(object: &Object, key: &str, value: &str) -> bool {
    at(object.body(), &["metadata", "labels", key]).and_then(Value::as_str) == Some(value)
}
