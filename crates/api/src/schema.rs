//! Pieces of schema that several kinds share: patterns, rules, and the items of their lists.
//!
//! Patterns, limits and rules are the published API, letter for letter; the texts beside them are ours.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::text::{QuantityText, TimeText};

/// Resource amounts by resource name.
pub type Quantities = BTreeMap<String, QuantityText>;

pub const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
pub const PLAIN_DURATION: &str = "^([0-9]+(s|m|h))+$";
pub const NILLABLE_DURATION: &str = "^(([0-9]+(s|m|h))+|Never)$";
/// A label or taint key with an optional DNS prefix.
pub const QUALIFIED_KEY: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
pub const LABEL_VALUE: &str = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
/// An IANA time zone name: `UTC`, `Europe/Paris`, `America/Argentina/Buenos_Aires`, `Etc/GMT+5`.
pub const TIME_ZONE: &str = "^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z][A-Za-z0-9_+-]*){0,2}$";
const GROUP: &str = "^[^/]*$";
const CONDITION_TYPE: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
const CONDITION_REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
const CONDITION_REASON_OR_EMPTY: &str = "^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$";

/// A rule of the API server's expression language, with what to say when it fails.
pub type CelRule = (&'static str, &'static str);

/// Requirement keys outside Karpenter's own domain. Also the mark by which providers' domain rules find their place.
pub const KEY_DOMAIN: CelRule = (
    r#"self in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"] || !self.find("^([^/]+)").endsWith("karpenter.sh")"#,
    "keys of the domain karpenter.sh are reserved",
);
/// The same for the keys of a label map.
pub const LABEL_DOMAIN: CelRule = (
    r#"self.all(x, x in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"] || !x.find("^([^/]+)").endsWith("karpenter.sh"))"#,
    "labels of the domain karpenter.sh are reserved",
);
pub const NOT_EMPTY: CelRule = ("self != ''", "must not be empty");

/// Which class of nodes to make: the provider's object with the machine settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct NodeClassRef {
    /// API group of the node class.
    #[schemars(regex(pattern = GROUP))]
    #[x_kube(validation = NOT_EMPTY)]
    pub group: String,
    /// Kind of the node class.
    #[x_kube(validation = NOT_EMPTY)]
    pub kind: String,
    /// Name of the node class.
    #[x_kube(validation = NOT_EMPTY)]
    pub name: String,
}

/// A taint put on nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Taint {
    /// What happens to pods that do not tolerate the taint.
    #[schemars(extend("enum" = ["NoSchedule", "PreferNoSchedule", "NoExecute"]))]
    pub effect: String,
    /// Key of the taint.
    #[schemars(length(min = 1), regex(pattern = QUALIFIED_KEY))]
    pub key: String,
    /// When the taint was added; meaningful for NoExecute only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<TimeText>,
    /// Value of the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = QUALIFIED_KEY))]
    pub value: Option<String>,
}

/// A condition of an object's status.
///
/// Reason and message may be missing on old NodeClaims, which must stay readable; everywhere else the schema asks for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub type_: String,
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    pub last_transition_time: String,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub message: String,
}

/// Conditions merged by type under server-side apply.
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    keyed_by_type(condition_list(strict_condition()))
}

/// Conditions of NodeClaims, where reason and message are optional.
pub fn lax_conditions(_: &mut SchemaGenerator) -> Schema {
    let reason = json_schema!({ "type": "string", "maxLength": 1024, "pattern": CONDITION_REASON_OR_EMPTY });
    keyed_by_type(condition_list(condition(reason, &["lastTransitionTime", "status", "type"])))
}

/// Conditions of node classes, a plain list.
pub fn atomic_conditions(_: &mut SchemaGenerator) -> Schema {
    condition_list(strict_condition())
}

fn strict_condition() -> Schema {
    let reason = json_schema!({ "type": "string", "minLength": 1, "maxLength": 1024, "pattern": CONDITION_REASON });
    condition(reason, &["lastTransitionTime", "message", "reason", "status", "type"])
}

fn condition(mut reason: Schema, required: &[&str]) -> Schema {
    reason.insert("description".into(), "Why the condition has this status, as one word.".into());
    json_schema!({
        "type": "object",
        "description": "One aspect of the object's state.",
        "required": required,
        "properties": {
            "type": { "type": "string", "maxLength": 316, "pattern": CONDITION_TYPE, "description": "What the condition is about." },
            "status": { "type": "string", "enum": ["True", "False", "Unknown"], "description": "Whether it holds." },
            "observedGeneration": {
                "type": "integer", "format": "int64", "minimum": 0,
                "description": "The metadata.generation the condition was computed for.",
            },
            "lastTransitionTime": { "type": "string", "format": "date-time", "description": "When the status last changed." },
            "reason": reason,
            "message": { "type": "string", "maxLength": 32768, "description": "Details for people." },
        },
    })
}

fn condition_list(items: Schema) -> Schema {
    json_schema!({ "type": "array", "items": items })
}

fn keyed_by_type(mut list: Schema) -> Schema {
    list.insert("x-kubernetes-list-type".into(), "map".into());
    list.insert("x-kubernetes-list-map-keys".into(), serde_json::json!(["type"]));
    list
}
