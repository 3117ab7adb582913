//! New pods.

use kerf_model::cluster::ObjectName;
use serde_json::{Value, json};

use crate::store::object::{at, default_to, field, list};
use crate::store::{ApiError, FieldProblem, Kind, Query, Store};

/// How long a pod stays on a node that is not ready or not reachable (plugin `DefaultTolerationSeconds`).
const TOLERATION_SECONDS: i64 = 300;

/// Of pods and of pod templates alike.
pub fn fill_defaults(spec: &mut Value) {
    default_to(spec, "restartPolicy", "Always");
    default_to(spec, "terminationGracePeriodSeconds", 30);
    default_to(spec, "dnsPolicy", "ClusterFirst");
    default_to(spec, "schedulerName", "default-scheduler");
}

/// The admission plugins, in the server's order, and the status that every pod starts with.
pub fn admit_new(store: &Store, name: &ObjectName, pod: &mut Value) -> Result<(), ApiError> {
    let spec = field(pod, "spec");
    apply_limit_ranges(store, name, spec);
    copy_limits_to_requests(spec);
    tolerate_lost_nodes(spec);
    set_priority(store, name, spec)?;
    let is_gated = !list(spec, &["schedulingGates"]).is_empty();
    *field(pod, "status") = json!({"phase": "Pending"});
    if is_gated {
        *field(field(pod, "status"), "conditions") = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    Ok(())
}

pub fn check(spec: Option<&Value>, path: &str) -> Vec<FieldProblem> {
    let containers = spec.map_or(&[][..], |spec| list(spec, &["containers"]));
    if containers.is_empty() {
        return vec![FieldProblem::new(format!("{path}.containers"), "Required value")];
    }
    let unnamed = containers.iter().position(|container| at(container, &["name"]).is_none());
    unnamed
        .map(|index| FieldProblem::new(format!("{path}.containers[{index}].name"), "Required value"))
        .into_iter()
        .collect()
}

fn containers(spec: &mut Value) -> impl Iterator<Item = &mut Value> {
    let lists = spec.as_object_mut().into_iter().flat_map(|fields| fields.iter_mut());
    lists
        .filter(|(name, _)| matches!(name.as_str(), "containers" | "initContainers"))
        .filter_map(|(_, list)| list.as_array_mut())
        .flatten()
}

fn apply_limit_ranges(store: &Store, name: &ObjectName, spec: &mut Value) {
    let ranges = store.list(Kind::LimitRange, &Query::in_namespace(name.namespace.clone()));
    for range in &ranges.items {
        for limit in range.list(&["spec", "limits"]).iter().filter(|limit| limit["type"] == "Container") {
            for container in containers(spec) {
                let resources = field(container, "resources");
                fill(field(resources, "limits"), at(limit, &["default"]));
                fill(field(resources, "requests"), at(limit, &["defaultRequest"]));
            }
        }
    }
}

fn copy_limits_to_requests(spec: &mut Value) {
    for container in containers(spec) {
        let limits = at(container, &["resources", "limits"]).cloned();
        if limits.is_some() {
            fill(field(field(container, "resources"), "requests"), limits.as_ref());
        }
    }
}

/// Adds what is not there.
fn fill(target: &mut Value, defaults: Option<&Value>) {
    for (name, value) in defaults.and_then(Value::as_object).into_iter().flatten() {
        default_to(target, name, value.clone());
    }
}

/// The plugin works on updates too: what it added cannot be taken away.
pub fn tolerate_lost_nodes(spec: &mut Value) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covers = |toleration: &Value| {
            let same_key = at(toleration, &["key"]).is_none_or(|known| known == key);
            same_key && at(toleration, &["effect"]).is_none_or(|effect| effect == "NoExecute")
        };
        if list(spec, &["tolerations"]).iter().any(covers) {
            continue;
        }
        let tolerations = field(spec, "tolerations");
        if !tolerations.is_array() {
            *tolerations = json!([]);
        }
        if let Value::Array(tolerations) = tolerations {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
}

/// From the named class, or the default class of the cluster.
fn set_priority(store: &Store, name: &ObjectName, spec: &mut Value) -> Result<(), ApiError> {
    let class = match at(spec, &["priorityClassName"]).and_then(Value::as_str) {
        Some(class) => match store.get(Kind::PriorityClass, &ObjectName::of_cluster(class)) {
            Ok(class) => Some(class.clone()),
            Err(_) => {
                let message = format!("no PriorityClass with name {class} was found");
                return Err(ApiError::Forbidden { kind: Kind::Pod, name: name.clone(), message });
            }
        },
        None => {
            let classes = store.list(Kind::PriorityClass, &Query::default());
            classes.items.into_iter().find(|class| class.body()["globalDefault"] == true)
        }
    };
    let Some(class) = class else {
        default_to(spec, "priority", 0);
        default_to(spec, "preemptionPolicy", "PreemptLowerPriority");
        return Ok(());
    };
    *field(spec, "priorityClassName") = json!(&*class.name.name);
    *field(spec, "priority") = json!(class.number(&["value"]).unwrap_or(0));
    default_to(spec, "preemptionPolicy", class.text(&["preemptionPolicy"]).unwrap_or("PreemptLowerPriority"));
    Ok(())
}
