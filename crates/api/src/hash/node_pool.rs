//! The hash of a NodePool: its `spec.template`, without the requirements, which are compared by meaning.

use serde_json::Value;

use super::Hash;
use super::error::{Expected, HashError, HashProblem};
use super::fields::{FieldChange, FieldHashes, changes_between};
use super::layout::{Kind, Leaf, StructLayout, nillable, plain};
use super::stamp::Seal;

/// Unchanged since Karpenter 1.0.
pub const NODE_POOL_HASH_VERSION: &str = "v3";

/// A kind of node class, as a NodePool refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeClassKind {
    pub group: &'static str,
    pub kind: &'static str,
}

impl NodeClassKind {
    pub fn is_used_by(self, pool: &Value) -> bool {
        let reference = &pool["spec"]["template"]["spec"]["nodeClassRef"];
        reference["group"] == self.group && reference["kind"] == self.kind
    }
}

/// Upstream: `NodePool.Hash`.
pub fn node_pool_hash(pool: &Value) -> Result<Hash, HashError> {
    let template = TEMPLATE.read(template(pool)?).map_err(|error| error.inside("spec.template"))?;
    Ok(Hash(template.hash()))
}

/// Hash and field hashes together: what a NodePool and its new claims carry.
pub fn node_pool_seal(pool: &Value) -> Result<Seal, HashError> {
    let hash = node_pool_hash(pool)?;
    Ok(Seal { hash, version: NODE_POOL_HASH_VERSION, fields: FieldHashes::new(hash, &leaves(pool)?) })
}

/// The fields that drift, with both values.
pub fn node_pool_changes(old: &Value, new: &Value) -> Result<Vec<FieldChange>, HashError> {
    Ok(changes_between(&leaves(old)?, &leaves(new)?))
}

fn leaves(pool: &Value) -> Result<Vec<Leaf<'_>>, HashError> {
    TEMPLATE.leaves(template(pool)?, "spec.template")
}

fn template(pool: &Value) -> Result<&Value, HashError> {
    match &pool["spec"] {
        spec @ (Value::Object(_) | Value::Null) => Ok(&spec["template"]),
        _ => Err(HashError::here(HashProblem::WrongType(Expected::Object)).inside("spec")),
    }
}

static TEMPLATE: StructLayout = StructLayout {
    type_name: "NodeClaimTemplate",
    fields: &[
        plain("metadata", "ObjectMeta", Kind::Struct(&METADATA)),
        plain("spec", "Spec", Kind::Struct(&TEMPLATE_SPEC)),
    ],
};

static METADATA: StructLayout = StructLayout {
    type_name: "ObjectMeta",
    fields: &[
        nillable("labels", "Labels", Kind::Map(&Kind::Text)),
        nillable("annotations", "Annotations", Kind::Map(&Kind::Text)),
    ],
};

static TEMPLATE_SPEC: StructLayout = StructLayout {
    type_name: "NodeClaimTemplateSpec",
    fields: &[
        nillable("taints", "Taints", Kind::Set(&Kind::Struct(&TAINT))),
        nillable("startupTaints", "StartupTaints", Kind::Set(&Kind::Struct(&TAINT))),
        nillable("nodeClassRef", "NodeClassRef", Kind::Struct(&NODE_CLASS_REF)),
        nillable("terminationGracePeriod", "TerminationGracePeriod", Kind::Duration),
        plain("expireAfter", "ExpireAfter", Kind::NillableDuration),
    ],
};

static TAINT: StructLayout = StructLayout {
    type_name: "Taint",
    fields: &[
        plain("key", "Key", Kind::Text),
        plain("value", "Value", Kind::Text),
        plain("effect", "Effect", Kind::Text),
        nillable("timeAdded", "TimeAdded", Kind::Time),
    ],
};

static NODE_CLASS_REF: StructLayout = StructLayout {
    type_name: "NodeClassReference",
    fields: &[
        plain("kind", "Kind", Kind::Text),
        plain("name", "Name", Kind::Text),
        plain("group", "Group", Kind::Text),
    ],
};
