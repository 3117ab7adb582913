//! What the API server does to Kubernetes' own kinds before it stores them: defaults, the admission plugins that are on
//! by default, and the checks that a client can run into.

use kerf_model::cluster::ObjectName;
use serde_json::{Value, json};

use super::object::{at, default_to, field, fields, list};
use super::{ApiError, FieldProblem, Kind, Object, Store, query};

mod pod;
mod pod_update;

/// Fills in and checks a new object.
pub(super) fn admit_new(store: &Store, kind: Kind, name: &ObjectName, body: &mut Value) -> Result<(), ApiError> {
    fill_defaults(kind, name, body);
    match kind {
        Kind::Pod => pod::admit_new(store, name, body)?,
        Kind::Node => taint_as_not_ready(body),
        _ => {}
    }
    refuse(kind, name, check(kind, body))
}

/// Fills in and checks an object that replaces an older one.
pub(super) fn admit_update(kind: Kind, name: &ObjectName, old: &Object, body: &mut Value) -> Result<(), ApiError> {
    fill_defaults(kind, name, body);
    if kind == Kind::Pod {
        pod::tolerate_lost_nodes(field(body, "spec"));
    }
    let mut found = check(kind, body);
    match kind {
        Kind::Pod => found.extend(pod_update::check(old.body(), body)),
        Kind::Node => found.extend(check_node_update(old.body(), body)),
        _ => {}
    }
    refuse(kind, name, found)
}

fn refuse(kind: Kind, name: &ObjectName, causes: Vec<FieldProblem>) -> Result<(), ApiError> {
    if causes.is_empty() {
        return Ok(());
    }
    Err(ApiError::Invalid { kind, name: name.name.to_string(), causes })
}

fn fill_defaults(kind: Kind, name: &ObjectName, body: &mut Value) {
    match kind {
        Kind::Namespace => {
            *field(field(field(body, "metadata"), "labels"), "kubernetes.io/metadata.name") = json!(&*name.name);
            default_to(field(body, "status"), "phase", "Active");
        }
        Kind::Pod => pod::fill_defaults(field(body, "spec")),
        Kind::Deployment => {
            let spec = template_of(body);
            default_to(spec, "replicas", 1);
            default_to(spec, "revisionHistoryLimit", 10);
            default_to(spec, "progressDeadlineSeconds", 600);
            let strategy = field(spec, "strategy");
            default_to(strategy, "type", "RollingUpdate");
            if strategy["type"] == "RollingUpdate" {
                default_to(field(strategy, "rollingUpdate"), "maxUnavailable", "25%");
                default_to(field(strategy, "rollingUpdate"), "maxSurge", "25%");
            }
        }
        Kind::ReplicaSet => default_to(template_of(body), "replicas", 1),
        Kind::StatefulSet => {
            let spec = template_of(body);
            default_to(spec, "replicas", 1);
            default_to(spec, "podManagementPolicy", "OrderedReady");
            default_to(field(spec, "updateStrategy"), "type", "RollingUpdate");
        }
        Kind::DaemonSet => {
            let strategy = field(template_of(body), "updateStrategy");
            default_to(strategy, "type", "RollingUpdate");
        }
        Kind::Job => {
            let uid = at(body, &["metadata", "uid"]).cloned().unwrap_or_default();
            let spec = template_of(body);
            if at(spec, &["completions"]).is_none() && at(spec, &["parallelism"]).is_none() {
                default_to(spec, "completions", 1);
            }
            default_to(spec, "parallelism", 1);
            default_to(spec, "backoffLimit", 6);
            if at(spec, &["selector"]).is_none() {
                let label = "batch.kubernetes.io/controller-uid";
                *field(spec, "selector") = json!({"matchLabels": {label: uid}});
                let template = field(field(spec, "template"), "metadata");
                *field(field(template, "labels"), label) = uid;
            }
        }
        Kind::PersistentVolumeClaim => default_to(field(body, "status"), "phase", "Pending"),
        Kind::PersistentVolume => default_to(field(body, "status"), "phase", "Available"),
        Kind::StorageClass => {
            default_to(body, "volumeBindingMode", "Immediate");
            default_to(body, "reclaimPolicy", "Delete");
        }
        Kind::VolumeAttachment => default_to(field(body, "status"), "attached", false),
        Kind::Service => default_to(field(body, "spec"), "type", "ClusterIP"),
        _ => {}
    }
}

/// The workload's spec, with its pod template filled in.
fn template_of(body: &mut Value) -> &mut Value {
    let spec = field(body, "spec");
    pod::fill_defaults(field(field(spec, "template"), "spec"));
    spec
}

/// The plugin `TaintNodesByCondition`: no pod goes to a node before the node lifecycle controller has seen it ready.
fn taint_as_not_ready(node: &mut Value) {
    const KEY: &str = "node.kubernetes.io/not-ready";
    let taints = field(field(node, "spec"), "taints");
    if !taints.is_array() {
        *taints = json!([]);
    }
    let is_there = list(taints, &[]).iter().any(|taint| taint["key"] == KEY && taint["effect"] == "NoSchedule");
    if let (Value::Array(taints), false) = (taints, is_there) {
        taints.push(json!({"key": KEY, "effect": "NoSchedule"}));
    }
}

fn check(kind: Kind, body: &Value) -> Vec<FieldProblem> {
    match kind {
        Kind::Pod => pod::check(at(body, &["spec"]), "spec"),
        Kind::Deployment | Kind::ReplicaSet | Kind::StatefulSet | Kind::DaemonSet => check_workload(body),
        Kind::Job => pod::check(at(body, &["spec", "template", "spec"]), "spec.template.spec"),
        Kind::PodDisruptionBudget => {
            let spec = at(body, &["spec"]);
            let has = |name| spec.is_some_and(|spec| at(spec, &[name]).is_some());
            match has("minAvailable") && has("maxUnavailable") {
                true => vec![FieldProblem::new("spec", "minAvailable and maxUnavailable cannot be both set")],
                false => vec![],
            }
        }
        _ => vec![],
    }
}

fn check_workload(body: &Value) -> Vec<FieldProblem> {
    let mut found = pod::check(at(body, &["spec", "template", "spec"]), "spec.template.spec");
    let labels = at(body, &["spec", "template", "metadata", "labels"]).and_then(Value::as_object);
    match query::selector(at(body, &["spec", "selector"])) {
        None => found.push(FieldProblem::new("spec.selector", "Required value")),
        Some(selector) if !selector.matches(&super::LabelMap(labels)) => {
            let message = "Invalid value: `selector` does not match template `labels`";
            found.push(FieldProblem::new("spec.template.metadata.labels", message));
        }
        Some(_) => {}
    }
    found
}

fn check_node_update(old: &Value, new: &Value) -> Option<FieldProblem> {
    let provider_id = |node| at(node, &["spec", "providerID"]).and_then(Value::as_str).unwrap_or_default().to_owned();
    let before = provider_id(old);
    let message = "Forbidden: node updates may not change providerID except from \"\" to valid";
    (!before.is_empty() && before != provider_id(new)).then(|| FieldProblem::new("spec.providerID", message))
}

/// Drops nulls everywhere, and what is empty in metadata: to Kubernetes' own types they are the same as absent.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            entries.retain(|_, value| !value.is_null());
            entries.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    if let Some(metadata) = value.get_mut("metadata") {
        fields(metadata).retain(|_, value| {
            !value.as_array().is_some_and(Vec::is_empty) && !value.as_object().is_some_and(serde_json::Map::is_empty)
        });
    }
}
