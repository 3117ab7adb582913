//! Metadata without what nobody reads: managed fields, and annotations that hold copies of whole objects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer};

/// `kubectl apply` keeps the whole manifest in this annotation.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What a decision may read of an object's metadata. `managedFields` is skipped while parsing and never built.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    finalizers: Option<Vec<String>>,
}

/// For `#[serde(deserialize_with = ...)]` on the metadata of a slim type.
pub(super) fn slim<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let read = Read::deserialize(deserializer)?;
    let mut annotations = read.annotations;
    if let Some(annotations) = &mut annotations {
        annotations.remove(LAST_APPLIED);
    }
    Ok(ObjectMeta {
        name: read.name,
        namespace: read.namespace,
        uid: read.uid,
        resource_version: read.resource_version,
        generation: read.generation,
        creation_timestamp: read.creation_timestamp,
        deletion_timestamp: read.deletion_timestamp,
        deletion_grace_period_seconds: read.deletion_grace_period_seconds,
        labels: read.labels,
        annotations,
        owner_references: read.owner_references,
        finalizers: read.finalizers,
        ..ObjectMeta::default()
    })
}
