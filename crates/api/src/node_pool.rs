//! NodePool: which nodes may be made, how many, and when they may be replaced.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::requirement::{Requirement, pool_requirements};
use crate::schema::{Condition, LABEL_DOMAIN, LABEL_VALUE, NodeClassRef, Quantities, TIME_ZONE, Taint, conditions};
use crate::text::{DurationText, NillableDurationText};

const BUDGET_NODES: &str = "^((100|[0-9]{1,2})%|[0-9]+)$";
const BUDGET_SCHEDULE: &str =
    r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$";
const BUDGET_DURATION: &str = "^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$";

/// What the user wants of the pool.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    plural = "nodepools",
    doc = "NodePool says which nodes may be made, how many, and when they may be replaced.",
    derive = "PartialEq",
    category = "karpenter",
    status = "NodePoolStatus",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.nodes"),
    printcolumn(name = "NodeClass", type_ = "string", json_path = ".spec.template.spec.nodeClassRef.name"),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".status.nodes"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Weight", type_ = "integer", json_path = ".spec.weight", priority = 1),
    printcolumn(name = "CPU", type_ = "string", json_path = ".status.resources.cpu", priority = 1),
    printcolumn(name = "Memory", type_ = "string", json_path = ".status.resources.memory", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("has(self.replicas) == has(oldSelf.replicas)", "a pool cannot change between static and dynamic: replicas may not be added or removed"),
    validation = ("!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits))", "with replicas, limits may only name nodes"),
    validation = ("!has(self.replicas) || !has(self.weight)", "replicas and weight exclude each other")
)]
pub struct NodePoolSpec {
    /// Stops all automatic removal of this pool's nodes; provisioning goes on. A Kerf extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_deprovisioning: Option<bool>,
    /// Takes the pool out of provisioning and of every voluntary disruption; its nodes keep running. A Kerf extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// When and how fast nodes of this pool may be removed or replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = { "consolidateAfter": "0s" }))]
    pub disruption: Option<Disruption>,
    /// Upper bounds on the pool's total resources, by resource name; `nodes` counts nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Quantities>,
    /// Makes the pool static: exactly this many nodes, whatever the pods ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i64>,
    /// What each node of the pool looks like.
    pub template: NodeClaimTemplate,
    /// Pools of higher weight are tried first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
}

/// When and how fast nodes may be removed or replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// Limits on how many nodes may be disrupted at once. The tightest active one counts; an empty list means no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 50),
        extend("default" = [{ "nodes": "10%" }], "x-kubernetes-list-type" = "atomic")
    )]
    #[x_kube(
        validation = ("self.all(x, has(x.schedule) == has(x.duration))", "schedule and duration belong together"),
        validation = ("self.all(x, !has(x.timeZone) || has(x.schedule))", "timeZone needs a schedule")
    )]
    pub budgets: Option<Vec<Budget>>,
    /// How long a node must have seen no pod come or go before it may be consolidated; `Never` switches consolidation off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "0s"))]
    pub consolidate_after: Option<NillableDurationText>,
    /// Switches consolidation off without losing its settings. A Kerf extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consolidation: Option<ConsolidationToggle>,
    /// Which nodes consolidation may touch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "default" = "WhenEmptyOrUnderutilized",
        "enum" = ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"]
    ))]
    pub consolidation_policy: Option<String>,
    /// Switches the replacement of drifted nodes off, or makes it insist. A Kerf extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftToggle>,
    /// Switches expiration off without the roll that a changed expireAfter causes. A Kerf extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration: Option<ExpirationToggle>,
}

/// Whether consolidation runs for the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ConsolidationToggle {
    /// False behaves like `consolidateAfter: Never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// Whether drifted nodes are replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct DriftToggle {
    /// False still shows drift but replaces nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// True lets drift choose nodes whose pods block eviction, as if terminationGracePeriod were set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_evict: Option<bool>,
}

/// Whether nodes of the pool expire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ExpirationToggle {
    /// False ignores the expiry of the pool's nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// A limit on disruption, always or during a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Budget {
    /// How long the budget stays active after each time the schedule fires.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = BUDGET_DURATION))]
    pub duration: Option<String>,
    /// How many nodes may be disrupted at once: a number, or a percentage of the pool, rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required, regex(pattern = BUDGET_NODES), extend("default" = "10%"))]
    pub nodes: Option<String>,
    /// Which kinds of disruption the budget limits; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "budget_reasons")]
    pub reasons: Option<Vec<String>>,
    /// When the budget becomes active, in cron form; absent means always.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = BUDGET_SCHEDULE))]
    pub schedule: Option<String>,
    /// The IANA time zone of the schedule, UTC if absent. A Kerf extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = TIME_ZONE))]
    pub time_zone: Option<String>,
}

fn budget_reasons(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "type": "string", "enum": ["Underutilized", "Empty", "Drifted", "Unhealthy"] },
        "maxItems": 50,
        "x-kubernetes-list-type": "set",
    })
}

/// What each node of a pool looks like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct NodeClaimTemplate {
    /// Labels and annotations for the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// The nodes' properties.
    pub spec: NodeClaimTemplateSpec,
}

/// Labels and annotations for the nodes of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct TemplateMetadata {
    /// Annotations put on each node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "granular"))]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Labels put on each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "template_labels")]
    #[x_kube(
        validation = LABEL_DOMAIN,
        validation = (r#"self.all(x, x != "karpenter.sh/nodepool")"#, "karpenter.sh/nodepool is set by the controller"),
        validation = (r#"self.all(x, x != "kubernetes.io/hostname")"#, "kubernetes.io/hostname cannot be chosen")
    )]
    pub labels: Option<BTreeMap<String, String>>,
}

fn template_labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "type": "string", "maxLength": 63, "pattern": LABEL_VALUE },
        "maxProperties": 100,
        "x-kubernetes-map-type": "atomic",
    })
}

/// Properties of a pool's nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplateSpec {
    /// How long a node may live before it is removed; `Never` keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "720h"))]
    pub expire_after: Option<NillableDurationText>,
    /// The node class to make nodes from.
    #[x_kube(
        validation = ("self.group == oldSelf.group", "the group of nodeClassRef cannot be changed"),
        validation = ("self.kind == oldSelf.kind", "the kind of nodeClassRef cannot be changed")
    )]
    pub node_class_ref: NodeClassRef,
    /// What the nodes' labels must satisfy: instance type, zone, architecture and the like.
    #[schemars(schema_with = "pool_requirements")]
    pub requirements: Vec<Requirement>,
    /// Taints that something on the node removes once it is ready; pods need not tolerate them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub startup_taints: Option<Vec<Taint>>,
    /// Taints of the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub taints: Option<Vec<Taint>>,
    /// How long a node may take to drain before its pods are removed by force; absent waits for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<DurationText>,
}

/// What the controller reports about the pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct NodePoolStatus {
    /// Whether the pool is usable, and why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// Generation of the node class when registration health was last reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// Number of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub nodes: Option<i64>,
    /// Total resources of the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Quantities>,
}
