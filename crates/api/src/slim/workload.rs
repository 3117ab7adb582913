//! What stands around pods: their DaemonSets, budgets and namespaces.

use std::collections::BTreeMap;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Namespace, PodTemplate, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
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

#[derive(Deserialize, Clone, Debug, Default)]
pub struct SlimPodTemplate {
    #[serde(default, deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
    #[serde(default)]
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
    pub max_unavailable: Option<IntOrString>,
    pub min_available: Option<IntOrString>,
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

#[derive(Resource, Deserialize, Clone, Debug)]
#[resource(inherit = PodTemplate)]
pub struct SlimPodTemplateObject {
    #[serde(deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub template: SlimPodTemplate,
}

#[derive(Resource, Deserialize, Clone, Debug)]
#[resource(inherit = Service)]
pub struct SlimService {
    #[serde(deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: ServiceSpec,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct ServiceSpec {
    pub selector: Option<BTreeMap<String, String>>,
}

/// A Deployment, StatefulSet, ReplicaSet or ReplicationController.
#[derive(Deserialize, Clone, Debug)]
pub struct SlimWorkload {
    #[serde(deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: WorkloadSpec,
}

super::resource_of_any_kind!(SlimWorkload, NamespaceResourceScope);

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct WorkloadSpec {
    /// One, if it is not said.
    pub replicas: Option<i32>,
    pub selector: WorkloadSelector,
    pub template: SlimPodTemplate,
}

/// A label selector; of a ReplicationController the labels themselves.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSelector {
    pub match_labels: BTreeMap<String, String>,
    pub match_expressions: Vec<LabelSelectorRequirement>,
    #[serde(flatten)]
    pub plain: BTreeMap<String, String>,
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
