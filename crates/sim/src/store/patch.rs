//! Patches: three ways to say what should change of an object.

use serde_json::Value;

use super::object::{field, fields};
use super::{ApiError, Kind};

mod json;
mod strategic;

/// A change of an object, in the body of a PATCH request.
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// RFC 7386: objects are merged, null removes, lists are replaced.
    Merge(Value),
    /// RFC 6902: a list of operations, all or none.
    Json(Value),
    /// Kubernetes' own: like a merge patch, but some lists are merged by a key.
    Strategic(Value),
}

impl Patch {
    /// The patched object, not yet admitted.
    pub fn apply(&self, kind: Kind, object: &Value) -> Result<Value, ApiError> {
        let mut patched = object.clone();
        match self {
            Self::Merge(patch) => merge(&mut patched, patch),
            Self::Json(operations) => json::apply(&mut patched, operations)
                .map_err(|error| ApiError::PatchRefused { message: error.to_string() })?,
            Self::Strategic(patch) => {
                if kind.facts().origin == super::Origin::Custom {
                    // The server does not know the keys of a custom resource's lists.
                    return Err(ApiError::UnsupportedPatch { kind, patch: "strategic merge" });
                }
                strategic::merge(&mut patched, patch);
            }
        }
        Ok(patched)
    }
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    for (name, change) in changes {
        if change.is_null() {
            fields(target).remove(name);
        } else {
            merge(field(target, name), change);
        }
    }
    // An empty patch of something that is no object makes it one.
    fields(target);
}

#[cfg(test)]
mod tests;
