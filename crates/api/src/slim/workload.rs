//! What stands around pods: their DaemonSets, budgets and namespaces.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::Resource;
use serde::Deserialize;

use super::pod::SlimPodSpec;

#[derive(Resource, Deserialize, Clone, Debug)]
#[resource(inherit = DaemonSet)]
pub struct SlimDaemonSet {
    #[serde(deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
    pub spec: DaemonSetSpec,
}

#[derive(Deserialize, Clone, Debug)]
pub struct DaemonSetSpec {
    pub template: SlimPodTemplate,
}

#[derive(Deserialize, Clone, Debug)]
pub struct SlimPodTemplate {
    #[serde(default, deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
    pub spec: SlimPodSpec,
}

#[derive(Resource, Deserialize, Clone, Debug)]
#[resource(inherit = PodDisruptionBudget)]
pub struct SlimPodDisruptionBudget {
    #[serde(deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: DisruptionBudgetSpec,
    #[serde(default)]
    pub status: DisruptionBudgetStatus,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct DisruptionBudgetSpec {
    /// Absent selects no pod, empty selects all pods of the namespace.
    pub selector: Option<LabelSelector>,
    pub unhealthy_pod_eviction_policy: Option<String>,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct DisruptionBudgetStatus {
    pub disruptions_allowed: i32,
    pub current_healthy: i32,
    pub desired_healthy: i32,
    pub expected_pods: i32,
    pub observed_generation: Option<i64>,
}

#[derive(Resource, Deserialize, Clone, Debug)]
#[resource(inherit = Namespace)]
pub struct SlimNamespace {
    #[serde(deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_without_selector_differs_from_one_that_selects_all() {
        let selector = |spec| {
            serde_json::from_value::<SlimPodDisruptionBudget>(
                serde_json::json!({"metadata": {"name": "b"}, "spec": spec}),
            )
            .unwrap()
            .spec
            .selector
        };
        assert_eq!(selector(serde_json::json!({"minAvailable": 1})), None);
        assert_eq!(selector(serde_json::json!({"selector": {}})), Some(LabelSelector::default()));
    }

    #[test]
    fn a_daemon_set_brings_its_pod_template() {
        let set: SlimDaemonSet = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "d", "namespace": "kube-system"},
            "spec": {"selector": {}, "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "100m"}}}]},
            }},
        }))
        .unwrap();
        assert_eq!(set.spec.template.spec.containers[0].resources.limits["cpu"].0, "100m");
    }
}
