//! From effects to requests: what goes over the wire for each thing the engine does to the API.
//!
//! Requests are data, so that a shell over HTTP and a store in memory execute the same ones, and tests read them.
//! Only fields that an effect names are written: merge patches leave alone what others own (a typed replace would even
//! drop fields that are newer than our types). Lists are written whole, and then the version they were read at is
//! part of the request.

mod claim;
mod event;
mod fields;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::ObjectName;
use kerf_model::effect::{ClaimPatch, Effect, MetaPatch, NodePatch, PoolPatch, Target};
use serde_json::{Map, Value, json};

pub use event::repeated as event_repeated;

use crate::api_kind::ApiKind;

/// One request to the API.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiWrite {
    pub kind: ApiKind,
    pub name: ObjectName,
    pub request: Request,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// "Already there" is success: names are deterministic.
    Create(Value),
    /// RFC 7386: what is named is set, `null` removes, lists are replaced.
    MergePatch { subresource: Subresource, version: Version, body: Value },
    /// "Already gone" is success, and so is another object under the name (a conflict of uids).
    Delete { uid: Arc<str>, grace_secs: Option<i64> },
    /// Through the eviction API, which asks the disruption budgets.
    Evict { uid: Arc<str> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subresource {
    None,
    Status,
}

/// Which version of the object a patch may change. Any other is a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    Any,
    Exactly(Arc<str>),
    /// The one that the write before it, to the same object, was answered with.
    AfterPrevious,
}

/// The requests for an effect, to be executed in this order, each after the success of the one before. `None` if the
/// effect is for the cloud.
///
/// `now` dates events; nothing else depends on it.
pub fn api_writes(effect: &Effect, now: Timestamp) -> Option<Vec<ApiWrite>> {
    let one = |kind, target: &Target, request| vec![ApiWrite { kind, name: target.name.clone(), request }];
    let delete = |target: &Target, grace_secs| Request::Delete { uid: Arc::clone(&target.uid), grace_secs };
    Some(match effect {
        Effect::CreateClaim(claim) => vec![claim::create(claim)],
        Effect::PatchClaim(target, patch) => patch_claim(target, patch),
        Effect::DeleteClaim(target) => one(ApiKind::NODE_CLAIM, target, delete(target, None)),
        Effect::PatchNode(target, patch) => patch_node(target, patch),
        Effect::DeleteNode(target) => one(ApiKind::NODE, target, delete(target, None)),
        Effect::PatchPool(target, patch) => patch_pool(target, patch),
        Effect::PatchOverlay(target, patch) => {
            status_patch(ApiKind::NODE_OVERLAY, target, &patch.resource_version, fields::overlay_status(patch))
        }
        Effect::PatchBuffer(target, patch) => status_patch(
            ApiKind::CAPACITY_BUFFER,
            target,
            &patch.resource_version,
            fields::buffer_status(&patch.status),
        ),
        Effect::PatchWindow(target, patch) => status_patch(
            ApiKind::MAINTENANCE_WINDOW,
            target,
            &patch.resource_version,
            fields::window_status(&patch.status),
        ),
        Effect::PatchPod(target, meta) => patches(ApiKind::POD, target, meta, Map::new(), Map::new()),
        Effect::EvictPod(target, _) => one(ApiKind::POD, target, Request::Evict { uid: Arc::clone(&target.uid) }),
        Effect::DeletePod(target, grace, _) => {
            // Rounded up: a pod must not get less time than it was promised.
            let secs = grace.as_secs() + i64::from(grace.subsec_nanos() > 0);
            one(ApiKind::POD, target, delete(target, Some(secs.max(0))))
        }
        Effect::Publish(event) => vec![event::create(event, now)],
        Effect::Launch { .. }
        | Effect::Terminate { .. }
        | Effect::TerminateOrphan { .. }
        | Effect::ListInstances
        | Effect::FindInstance { .. }
        | Effect::CheckDrift { .. }
        | Effect::RunHooks { .. }
        | Effect::UpdateInstance { .. }
        | Effect::Reboot { .. } => return None,
    })
}

fn patch_claim(target: &Target, patch: &ClaimPatch) -> Vec<ApiWrite> {
    patches(ApiKind::NODE_CLAIM, target, &patch.meta, Map::new(), fields::claim_status(&patch.status))
}

fn patch_node(target: &Target, patch: &NodePatch) -> Vec<ApiWrite> {
    let taints = patch.taints.as_ref().map(|taints| taints.iter().map(fields::taint).collect());
    let spec = taints.map(|taints| ("spec".to_owned(), json!({"taints": Value::Array(taints)})));
    patches(ApiKind::NODE, target, &patch.meta, spec.into_iter().collect(), Map::new())
}

fn patch_pool(target: &Target, patch: &PoolPatch) -> Vec<ApiWrite> {
    patches(ApiKind::NODE_POOL, target, &patch.meta, Map::new(), fields::pool_status(patch))
}

/// Of an object of which we write nothing else.
fn status_patch(kind: ApiKind, target: &Target, version: &Arc<str>, status: Map<String, Value>) -> Vec<ApiWrite> {
    let meta = MetaPatch { resource_version: Some(Arc::clone(version)), ..MetaPatch::default() };
    patches(kind, target, &meta, Map::new(), status)
}

/// The object itself, then its status, as far as there is something to write.
///
/// Metadata first: what a launch found out stands in labels before a condition says that the launch is done. The other
/// way round when the last finalizer goes, because the object goes with it.
fn patches(
    kind: ApiKind,
    target: &Target,
    meta: &MetaPatch,
    mut object: Map<String, Value>,
    status: Map<String, Value>,
) -> Vec<ApiWrite> {
    let metadata = fields::metadata(meta);
    if !metadata.is_empty() {
        object.insert("metadata".to_owned(), metadata.into());
    }
    let object = (!object.is_empty()).then(|| (Subresource::None, Value::from(object)));
    let status = (!status.is_empty()).then(|| (Subresource::Status, json!({"status": status})));
    let ends = meta.finalizers.as_ref().is_some_and(Vec::is_empty);
    let bodies = if ends { [status, object] } else { [object, status] };
    let write = |(index, (subresource, mut body)): (usize, (Subresource, Value))| {
        // A patch with another uid than the object's is refused as invalid: it does not hit a namesake. The status of
        // custom resources is the exception, where only the version protects.
        body["metadata"]["uid"] = json!(&*target.uid);
        let version = match (&meta.resource_version, index) {
            (None, _) => Version::Any,
            (Some(version), 0) => Version::Exactly(Arc::clone(version)),
            (Some(_), _) => Version::AfterPrevious,
        };
        ApiWrite { kind, name: target.name.clone(), request: Request::MergePatch { subresource, version, body } }
    };
    bodies.into_iter().flatten().enumerate().map(write).collect()
}

impl ApiWrite {
    /// Where the request goes.
    pub fn path(&self) -> String {
        match &self.request {
            Request::Create(_) => self.kind.collection_path(Some(&self.name.namespace)),
            Request::MergePatch { subresource: Subresource::None, .. } | Request::Delete { .. } => {
                self.kind.object_path(&self.name)
            }
            Request::MergePatch { subresource: Subresource::Status, .. } => {
                format!("{}/status", self.kind.object_path(&self.name))
            }
            Request::Evict { .. } => format!("{}/eviction", self.kind.object_path(&self.name)),
        }
    }

    /// What goes with it. `previous` is the version that the write before it was answered with, if there was one.
    pub fn body(&self, previous: Option<&str>) -> Value {
        match &self.request {
            Request::Create(object) => object.clone(),
            Request::MergePatch { version, body, .. } => {
                let version = match version {
                    Version::Any => None,
                    Version::Exactly(version) => Some(&**version),
                    Version::AfterPrevious => previous,
                };
                let mut body = body.clone();
                if let Some(version) = version {
                    body["metadata"]["resourceVersion"] = json!(version);
                }
                body
            }
            Request::Delete { uid, grace_secs } => delete_options(uid, *grace_secs),
            Request::Evict { uid } => json!({
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": &*self.name.name, "namespace": &*self.name.namespace},
                "deleteOptions": delete_options(uid, None),
            }),
        }
    }
}

fn delete_options(uid: &str, grace_secs: Option<i64>) -> Value {
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
    if let Some(secs) = grace_secs {
        options["gracePeriodSeconds"] = json!(secs);
    }
    options
}
