//! Nodes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;

#[derive(Resource, Deserialize, Clone, Debug)]
#[resource(inherit = Node)]
pub struct SlimNode {
    #[serde(deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: SlimNodeSpec,
    #[serde(default)]
    pub status: SlimNodeStatus,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimNodeSpec {
    #[serde(rename = "providerID")]
    pub provider_id: String,
    pub unschedulable: bool,
    pub taints: Vec<Taint>,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimNodeStatus {
    pub capacity: BTreeMap<String, Quantity>,
    pub allocatable: BTreeMap<String, Quantity>,
    pub conditions: Vec<NodeCondition>,
    pub node_info: SlimNodeSystemInfo,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimNodeSystemInfo {
    /// Changes with every boot: how a reboot is seen to have happened.
    #[serde(rename = "bootID")]
    pub boot_id: String,
    pub kubelet_version: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_what_decisions_read_and_drops_managed_fields() {
        let node: SlimNode = serde_json::from_value(serde_json::json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": "a", "labels": {"karpenter.sh/nodepool": "default"}, "finalizers": ["karpenter.sh/termination"],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "kept"},
                "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}],
            },
            "spec": {"providerID": "kwok://a", "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]},
            "status": {
                "allocatable": {"cpu": "1900m"}, "images": [{"names": ["big"], "sizeBytes": 1}],
                "nodeInfo": {"bootID": "b1", "kubeletVersion": "v1.36.3"},
            },
        }))
        .unwrap();
        assert_eq!(node.spec.provider_id, "kwok://a");
        assert_eq!(node.spec.taints[0].effect, "NoExecute");
        assert_eq!(node.status.allocatable["cpu"].0, "1900m");
        assert_eq!(node.status.node_info.boot_id, "b1");
        assert_eq!(node.metadata.managed_fields, None);
        let annotations = node.metadata.annotations.unwrap();
        assert_eq!(annotations.keys().collect::<Vec<_>>(), ["note"]);
    }

    #[test]
    fn a_node_that_has_just_joined_has_no_status() {
        let node: SlimNode = serde_json::from_value(serde_json::json!({"metadata": {"name": "a"}})).unwrap();
        assert!(node.spec.provider_id.is_empty());
        assert!(node.status.conditions.is_empty());
        assert_eq!(SlimNode::kind(&()), "Node");
    }
}
