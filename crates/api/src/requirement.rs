//! Requirements on node labels, as NodePool, NodeClaim and NodeOverlay write them.
//!
//! One type on the wire; the three kinds differ only in what their schemas refuse.

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::schema::{CelRule, KEY_DOMAIN, LABEL_VALUE, QUALIFIED_KEY};

/// What one label of a node must satisfy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// The label's key.
    #[schemars(length(max = 316), regex(pattern = QUALIFIED_KEY))]
    #[x_kube(
        validation = KEY_DOMAIN,
        validation = (r#"self != "kubernetes.io/hostname""#, "kubernetes.io/hostname cannot be chosen")
    )]
    pub key: String,
    /// How many different values the choice must keep open. Alpha.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub min_values: Option<u8>,
    /// How the label relates to the values.
    #[schemars(extend("enum" = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]))]
    pub operator: String,
    /// The values: some for In, one number for the comparisons, none for Exists and DoesNotExist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "values")]
    pub values: Option<Vec<String>>,
}

// The limits sit on the list, where they have no effect: that is the published schema.
fn values(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "type": "string" },
        "maxLength": 63,
        "pattern": LABEL_VALUE,
        "x-kubernetes-list-type": "atomic",
    })
}

const KEY_IS_NOT_NODEPOOL: CelRule =
    (r#"self != "karpenter.sh/nodepool""#, "karpenter.sh/nodepool is set by the controller");
const IN_NEEDS_VALUES: CelRule =
    ("self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)", "operator In needs at least one value");
const NOT_IN_NEEDS_VALUES: CelRule =
    ("self.all(x, x.operator == 'NotIn' ? x.values.size() != 0 : true)", "operator NotIn needs at least one value");
const COMPARISON_NEEDS_ONE_INTEGER: CelRule = (
    "self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)",
    "operators Gt, Lt, Gte and Lte need exactly one value, an integer of at least 0",
);
const MIN_VALUES_NEEDS_VALUES: CelRule = (
    "self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)",
    "operator In needs at least minValues values",
);

/// Schema of a NodePool's requirements.
pub fn pool_requirements(generate: &mut SchemaGenerator) -> Schema {
    let mut item = Requirement::json_schema(generate);
    if let Some(rules) = item.pointer_mut("/properties/key/x-kubernetes-validations").and_then(Value::as_array_mut) {
        rules.push(rule(KEY_IS_NOT_NODEPOOL));
    }
    list(item, &[IN_NEEDS_VALUES, COMPARISON_NEEDS_ONE_INTEGER, MIN_VALUES_NEEDS_VALUES])
}

/// Schema of a NodeClaim's requirements: the key may be `karpenter.sh/nodepool`.
pub fn claim_requirements(generate: &mut SchemaGenerator) -> Schema {
    list(Requirement::json_schema(generate), &[IN_NEEDS_VALUES, COMPARISON_NEEDS_ONE_INTEGER, MIN_VALUES_NEEDS_VALUES])
}

/// Schema of a NodeOverlay's requirements: no minValues, and NotIn needs values too.
pub fn overlay_requirements(generate: &mut SchemaGenerator) -> Schema {
    let mut item = Requirement::json_schema(generate);
    if let Some(properties) = item.get_mut("properties").and_then(Value::as_object_mut) {
        properties.remove("minValues");
    }
    list(item, &[NOT_IN_NEEDS_VALUES, IN_NEEDS_VALUES, COMPARISON_NEEDS_ONE_INTEGER])
}

/// Schema of requirements that a status reports: nothing is checked.
pub fn reported_requirements(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["key", "operator"],
            "properties": {
                "key": { "type": "string", "description": "The label's key." },
                "operator": { "type": "string", "description": "How the label relates to the values." },
                "values": {
                    "type": "array",
                    "items": { "type": "string" },
                    "x-kubernetes-list-type": "atomic",
                    "description": "The values.",
                },
            },
        },
    })
}

fn list(item: Schema, rules: &[CelRule]) -> Schema {
    let rules: Vec<Value> = rules.iter().map(|&pair| rule(pair)).collect();
    json_schema!({
        "type": "array",
        "items": item,
        "maxItems": 100,
        "x-kubernetes-list-type": "atomic",
        "x-kubernetes-validations": rules,
    })
}

fn rule((rule, message): CelRule) -> Value {
    Value::Object(Map::from_iter([("rule".to_owned(), json!(rule)), ("message".to_owned(), json!(message))]))
}
