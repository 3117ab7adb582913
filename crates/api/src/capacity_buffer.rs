//! CapacityBuffer: room kept free for pods that are not there yet.
//!
//! The kind is shared with other autoscalers, hence its own API group.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{Condition, Quantities, conditions};

/// How much room to keep, and for pods of which shape.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "autoscaling.x-k8s.io",
    version = "v1beta1",
    kind = "CapacityBuffer",
    plural = "capacitybuffers",
    shortname = "cb",
    namespaced,
    doc = "CapacityBuffer keeps room free in the cluster for pods that are not there yet.",
    derive = "PartialEq",
    category = "autoscaling",
    status = "CapacityBufferStatus",
    printcolumn(name = "Strategy", type_ = "string", json_path = ".spec.provisioningStrategy"),
    printcolumn(name = "PodTemplate", type_ = "string", json_path = ".status.podTemplateRef.name"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(name = "ConditionsType", type_ = "string", json_path = ".status.conditions[*].type"),
    printcolumn(name = "ConditionsStatus", type_ = "string", json_path = ".status.conditions[*].status"),
    printcolumn(name = "ConditionsReason", type_ = "string", json_path = ".status.conditions[*].reason"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)", "podTemplateRef needs replicas or limits"),
    validation = ("!(has(self.podTemplateRef) && has(self.scalableRef))", "podTemplateRef and scalableRef exclude each other")
)]
pub struct CapacityBufferSpec {
    /// Upper bounds on the buffer's total requests, by resource name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Quantities>,
    /// Size of the buffer as a percentage of the workload's replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub percentage: Option<i32>,
    /// The pod template that gives the shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<PodTemplateRef>,
    /// How the room is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "buffer.x-k8s.io/active-capacity"))]
    pub provisioning_strategy: Option<String>,
    /// Size of the buffer in pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// The workload whose pods give the shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scalable_ref: Option<ScalableRef>,
}

/// A PodTemplate of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct PodTemplateRef {
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// A workload of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ScalableRef {
    /// Its API group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Its kind.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// What the controller reports about the buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct CapacityBufferStatus {
    /// Whether the buffer is understood and whether its room exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// Generation of the pod template the numbers were computed from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_generation: Option<i64>,
    /// The pod template in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<PodTemplateRef>,
    /// The strategy in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<String>,
    /// Size of the buffer in pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}
