//! NodeClaim: one node, from the request for it to its removal.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::requirement::{Requirement, claim_requirements};
use crate::schema::{Condition, NodeClassRef, Quantities, Taint, lax_conditions};
use crate::text::{DurationText, NillableDurationText, TimeText};

/// What the node must be. Fixed at creation.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodeClaim",
    plural = "nodeclaims",
    doc = "NodeClaim is one node: the request for it, the machine behind it, and its progress.",
    derive = "PartialEq",
    category = "karpenter",
    status = "NodeClaimStatus",
    printcolumn(name = "Type", type_ = "string", json_path = r".metadata.labels.node\.kubernetes\.io/instance-type"),
    printcolumn(name = "Capacity", type_ = "string", json_path = r".metadata.labels.karpenter\.sh/capacity-type"),
    printcolumn(name = "Zone", type_ = "string", json_path = r".metadata.labels.topology\.kubernetes\.io/zone"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeName"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "ImageID", type_ = "string", json_path = ".status.imageID", priority = 1),
    printcolumn(name = "ID", type_ = "string", json_path = ".status.providerID", priority = 1),
    printcolumn(
        name = "NodePool",
        type_ = "string",
        json_path = r".metadata.labels.karpenter\.sh/nodepool",
        priority = 1
    ),
    printcolumn(name = "NodeClass", type_ = "string", json_path = ".spec.nodeClassRef.name", priority = 1),
    printcolumn(
        name = "Drifted",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Drifted")].status"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("self == oldSelf", "the spec of a NodeClaim cannot be changed"))]
pub struct NodeClaimSpec {
    /// How long the node may live before it is removed; `Never` keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "720h"))]
    pub expire_after: Option<NillableDurationText>,
    /// The node class to make the node from.
    pub node_class_ref: NodeClassRef,
    /// What the node's labels must satisfy.
    #[schemars(schema_with = "claim_requirements")]
    pub requirements: Vec<Requirement>,
    /// What the node must be able to hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequests>,
    /// Taints that something on the node removes once it is ready; pods need not tolerate them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub startup_taints: Option<Vec<Taint>>,
    /// Taints of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub taints: Option<Vec<Taint>>,
    /// How long the node may take to drain before its pods are removed by force; absent waits for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<DurationText>,
}

/// What the node must be able to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ResourceRequests {
    /// Least amounts by resource name: the pods the node was made for, and the daemons it will run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Quantities>,
}

/// What the controller reports about the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct NodeClaimStatus {
    /// What pods can use of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocatable: Option<Quantities>,
    /// What the machine has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Quantities>,
    /// How far the node has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "lax_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// The machine image.
    #[serde(rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// When a pod last came to or left the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_pod_event_time: Option<TimeText>,
    /// Name of the Node object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The provider's name for the machine.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}
