//! Changes of pods: almost nothing of a pod's spec may change.

use serde_json::Value;

use crate::store::FieldProblem;
use crate::store::object::{at, field, fields, list};

const MESSAGE: &str = "Forbidden: pod updates may not change fields other than `spec.containers[*].image`, \
     `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing \
     tolerations), `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub fn check(old: &Value, new: &Value) -> Option<FieldProblem> {
    let added_only = list(old, &["spec", "tolerations"])
        .iter()
        .all(|toleration| list(new, &["spec", "tolerations"]).contains(toleration));
    // Gates may go, never come.
    let removed_only = list(new, &["spec", "schedulingGates"])
        .iter()
        .all(|gate| list(old, &["spec", "schedulingGates"]).contains(gate));
    let allowed = added_only && removed_only && (old["spec"] == new["spec"] || fixed_part(old) == fixed_part(new));
    (!allowed).then(|| FieldProblem::new("spec", MESSAGE))
}

/// The spec without what may change.
fn fixed_part(pod: &Value) -> Value {
    let mut spec = at(pod, &["spec"]).cloned().unwrap_or_default();
    for name in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        fields(&mut spec).remove(name);
    }
    for name in ["containers", "initContainers"] {
        if let Value::Array(containers) = field(&mut spec, name) {
            for container in containers {
                fields(container).remove("image");
            }
        }
    }
    spec
}
