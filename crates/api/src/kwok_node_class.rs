//! KWOKNodeClass: nodes without machines.

#![allow(dead_code, reason = "derive describes the spec through copies of it that nothing reads, see optional_spec")]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::optional_spec::optional_spec;
use crate::schema::{Condition, atomic_conditions};
use crate::text::DurationText;

/// How the nodes behave.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "karpenter.kwok.sh",
    version = "v1alpha1",
    kind = "KWOKNodeClass",
    root = "KwokNodeClass",
    plural = "kwoknodeclasses",
    shortname = "kwoknc",
    shortname = "kwokncs",
    doc = "KWOKNodeClass describes nodes without machines, for trying things out.",
    derive = "PartialEq",
    category = "karpenter",
    status = "KwokNodeClassStatus"
)]
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct KwokNodeClassSpec {
    /// How long after the launch the Node object appears.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_registration_delay: Option<DurationText>,
}

optional_spec!(KwokNodeClassSpec);

/// Whether the class is usable. Always, so the schema's default says so and no controller needs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(
    inline,
    extend("default" = {
        "conditions": [{
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": "2024-01-01T01:01:01Z",
            "reason": "Ready",
            "message": "",
        }],
    })
)]
pub struct KwokNodeClassStatus {
    /// Always Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "atomic_conditions")]
    pub conditions: Option<Vec<Condition>>,
}
