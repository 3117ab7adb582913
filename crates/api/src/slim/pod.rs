//! Pods: what the scheduler looks at, what a drain looks at.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, Pod, PodCondition, PodResourceClaim, PodSchedulingGate, Toleration, TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::Deserialize;

#[derive(Resource, Deserialize, Clone, Debug)]
#[resource(inherit = Pod)]
pub struct SlimPod {
    #[serde(deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
    pub spec: SlimPodSpec,
    #[serde(default)]
    pub status: SlimPodStatus,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPodSpec {
    pub node_name: Option<String>,
    pub node_selector: BTreeMap<String, String>,
    pub affinity: Option<Affinity>,
    pub tolerations: Vec<Toleration>,
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    pub containers: Vec<SlimContainer>,
    pub init_containers: Vec<SlimContainer>,
    pub overhead: BTreeMap<String, Quantity>,
    /// Requests of the pod as a whole; where given they replace the sum over its containers.
    pub resources: SlimResources,
    pub resource_claims: Vec<PodResourceClaim>,
    pub volumes: Vec<SlimVolume>,
    pub scheduling_gates: Vec<PodSchedulingGate>,
    pub scheduler_name: Option<String>,
    pub priority: Option<i32>,
    pub priority_class_name: Option<String>,
    pub preemption_policy: Option<String>,
    pub termination_grace_period_seconds: Option<i64>,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimContainer {
    pub name: String,
    pub resources: SlimResources,
    pub ports: Vec<SlimPort>,
    /// `Always` on an init container makes it a sidecar.
    pub restart_policy: Option<String>,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimResources {
    pub requests: BTreeMap<String, Quantity>,
    pub limits: BTreeMap<String, Quantity>,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPort {
    pub host_port: i32,
    #[serde(rename = "hostIP")]
    pub host_ip: String,
    pub protocol: String,
}

/// A volume, as far as it names a claim. `name` completes the claim's name for ephemeral volumes.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimVolume {
    pub name: String,
    pub persistent_volume_claim: Option<ClaimSource>,
    pub ephemeral: Option<EphemeralSource>,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSource {
    pub claim_name: String,
}

/// Present for a generic ephemeral volume; its claim is made by Kubernetes and read as such.
#[derive(Deserialize, Clone, Debug, Default)]
pub struct EphemeralSource {}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPodStatus {
    pub phase: String,
    pub conditions: Vec<PodCondition>,
    pub start_time: Option<Time>,
    pub nominated_node_name: Option<String>,
    pub container_statuses: Vec<SlimContainerStatus>,
    pub init_container_statuses: Vec<SlimContainerStatus>,
    /// What the pod as a whole really has, while it is being resized in place.
    pub allocated_resources: BTreeMap<String, Quantity>,
    pub resources: SlimResources,
}

/// What a container really has, which differs from its spec while it is being resized in place.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimContainerStatus {
    pub name: String,
    pub allocated_resources: BTreeMap<String, Quantity>,
    pub resources: SlimResources,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_as_the_api_server_sends_it_decodes() {
        let pod: SlimPod = serde_json::from_value(serde_json::json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "d", "uid": "u", "managedFields": [{"manager": "kubectl"}]},
            "spec": {
                "nodeSelector": {"kubernetes.io/arch": "arm64"},
                "containers": [{
                    "name": "c", "image": "app", "env": [{"name": "A", "value": "1"}],
                    "resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
                    "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.1", "protocol": "TCP"}],
                }],
                "initContainers": [{"name": "s", "restartPolicy": "Always"}],
                "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}},
                    {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
                    {"name": "config", "configMap": {"name": "x"}},
                ],
                "priority": 1000, "terminationGracePeriodSeconds": 30,
                "tolerations": [{"operator": "Exists"}],
            },
            "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]},
        }))
        .unwrap();
        assert_eq!(pod.spec.containers[0].resources.requests["cpu"].0, "1");
        assert_eq!(pod.spec.containers[0].ports[0].host_port, 8080);
        assert_eq!(pod.spec.init_containers[0].restart_policy.as_deref(), Some("Always"));
        assert_eq!(pod.spec.volumes[0].persistent_volume_claim.as_ref().unwrap().claim_name, "data-0");
        assert!(pod.spec.volumes[1].ephemeral.is_some() && pod.spec.volumes[2].ephemeral.is_none());
        assert_eq!(pod.status.conditions[0].type_, "PodScheduled");
        assert_eq!((pod.spec.priority, pod.metadata.managed_fields), (Some(1000), None));
    }
}
