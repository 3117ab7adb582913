//! MaintenanceWindow: when some nodes must be left alone. A kind of Kerf's own.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::schema::{Condition, LABEL_VALUE, QUALIFIED_KEY, TIME_ZONE, conditions};
use crate::text::TimeText;

mod cron;

/// Hours, minutes, seconds, in that order; six digits each stay far from overflow.
const WINDOW_DURATION: &str = "^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$";

/// What must not start, on which nodes, and when.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "karpenter.sh",
    version = "v1alpha1",
    kind = "MaintenanceWindow",
    plural = "maintenancewindows",
    shortname = "mw",
    shortname = "mws",
    doc = "MaintenanceWindow keeps the listed actions from starting on some nodes while it is active.",
    derive = "PartialEq",
    category = "karpenter",
    status = "MaintenanceWindowStatus",
    printcolumn(name = "Active", type_ = "boolean", json_path = ".status.active"),
    printcolumn(name = "Next", type_ = "string", json_path = ".status.nextTransitionTime"),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.matchedNodes"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceWindowSpec {
    /// What may not start while the window is active. Consolidation stands for both of its halves.
    #[schemars(schema_with = "actions")]
    pub actions: Vec<String>,
    /// Turns the window inside out: active whenever no schedule is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside_schedules: Option<bool>,
    /// When the window is active; none means always.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "atomic"))]
    pub schedules: Option<Vec<WindowSchedule>>,
    /// Which nodes, by their labels; absent means every managed node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<NodeSelector>,
    /// What the window does. It can only deny.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Deny"]))]
    pub type_: Option<String>,
}

fn actions(_: &mut SchemaGenerator) -> Schema {
    let all =
        ["Consolidation", "EmptyConsolidation", "NonEmptyConsolidation", "Drift", "Expiration", "Rebalance", "Repair"];
    json_schema!({
        "type": "array",
        "items": { "type": "string", "enum": all },
        "minItems": 1,
        "maxItems": all.len(),
        "x-kubernetes-list-type": "set",
    })
}

/// A recurring stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.schedule) != has(self.cron)", "give either schedule or its alias cron"))]
pub struct WindowSchedule {
    /// Another name for schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "cron::schedule")]
    pub cron: Option<String>,
    /// How long the window stays active after each start, such as `8h` or `1h30m`.
    #[schemars(length(max = 21), regex(pattern = WINDOW_DURATION))]
    #[x_kube(validation = ("self.matches('[1-9]')", "the duration must be longer than zero"))]
    pub duration: String,
    /// When the window starts, in cron form: minute, hour, day of month, month, day of week.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "cron::schedule")]
    pub schedule: Option<String>,
    /// The IANA time zone of the schedule, UTC if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = TIME_ZONE))]
    pub time_zone: Option<String>,
}

impl WindowSchedule {
    /// The cron text, by whichever name it was given. The schema asks for exactly one.
    pub fn expression(&self) -> Option<&str> {
        self.schedule.as_deref().or(self.cron.as_deref())
    }
}

/// Selects nodes by their labels. All parts must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelector {
    /// Conditions on labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Option<Vec<NodeSelectorExpression>>,
    /// Labels and the values they must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "match_labels")]
    pub match_labels: Option<BTreeMap<String, String>>,
}

fn match_labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "type": "string", "maxLength": 63, "pattern": LABEL_VALUE },
        "maxProperties": 50,
    })
}

/// A condition on one label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = ("!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() != 0)", "operators In and NotIn need at least one value"),
    validation = ("!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0", "operators Exists and DoesNotExist take no values"),
    validation = ("!(self.operator in ['Gt', 'Lt']) || (has(self.values) && self.values.size() == 1 && self.values[0].matches('^[0-9]{1,18}$'))", "operators Gt and Lt need exactly one value, an integer of at least 0")
)]
pub struct NodeSelectorExpression {
    /// The label's key.
    #[schemars(length(max = 316), regex(pattern = QUALIFIED_KEY))]
    pub key: String,
    /// How the label relates to the values.
    #[schemars(extend("enum" = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]))]
    pub operator: String,
    /// The values: some for In and NotIn, one number for Gt and Lt, none otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "expression_values")]
    pub values: Option<Vec<String>>,
}

fn expression_values(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "type": "string", "maxLength": 63, "pattern": LABEL_VALUE },
        "maxItems": 100,
        "x-kubernetes-list-type": "atomic",
    })
}

/// What the controller reports about the window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct MaintenanceWindowStatus {
    /// Whether the window holds actions back now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// Whether the window is understood, and why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// How many nodes it covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched_nodes: Option<i64>,
    /// When active changes next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_transition_time: Option<TimeText>,
}
