//! Node classes, of any provider.

use std::sync::Arc;

use kerf_model::cluster::{ClassReadiness, Condition, ConditionStatus, NodeClass};
use kerf_model::node_pool::NodeClassRef;

use crate::slim::SlimNodeClass;

use super::metadata::{conditions, object_meta};

/// `group` and `kind` are those of the watch: an item of a list does not repeat them.
pub fn node_class(wire: &SlimNodeClass, group: &str, kind: &str) -> NodeClass {
    let meta = object_meta(&wire.metadata);
    let class = NodeClassRef { group: Arc::from(group), kind: Arc::from(kind), name: Arc::clone(&meta.name.name) };
    let conditions = conditions(Some(&wire.status.conditions));
    NodeClass { meta, class, readiness: readiness(conditions.get("Ready")) }
}

fn readiness(ready: Option<&Condition>) -> ClassReadiness {
    let Some(ready) = ready else {
        return ClassReadiness::Unknown;
    };
    match ready.status {
        ConditionStatus::True => ClassReadiness::Ready,
        ConditionStatus::Unknown => ClassReadiness::Unknown,
        ConditionStatus::False => {
            ClassReadiness::NotReady { reason: Arc::clone(&ready.reason), message: Arc::clone(&ready.message) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_class_is_what_its_ready_condition_says() {
        let parse = |conditions| {
            let wire = json!({"metadata": {"name": "c"}, "spec": {"any": 1}, "status": {"conditions": conditions}});
            node_class(&serde_json::from_value(wire).unwrap(), "karpenter.k8s.aws", "EC2NodeClass")
        };
        let ready = |status: &str| {
            let since = "2026-11-17T10:00:00Z";
            let ready =
                json!({"type": "Ready", "status": status, "lastTransitionTime": since, "reason": "R", "message": "m"});
            json!([{"type": "AMIsReady", "status": "True", "lastTransitionTime": since}, ready])
        };
        assert_eq!(parse(ready("True")).readiness, ClassReadiness::Ready);
        assert_eq!(parse(ready("Unknown")).readiness, ClassReadiness::Unknown);
        assert_eq!(parse(json!([])).readiness, ClassReadiness::Unknown);
        let refused = parse(ready("False"));
        assert_eq!(refused.readiness, ClassReadiness::NotReady { reason: "R".into(), message: "m".into() });
        assert_eq!(refused.class.to_string(), "EC2NodeClass.karpenter.k8s.aws/c");
    }
}
