//! What holds for every write: who is meant, which part is taken, what only the server sets.

use serde_json::{Value, json};

use super::object::{at, copy_field, field, list};
use super::{ApiError, Conflict, FieldProblem, Kind, Object, Part};

pub fn stamp_type(kind: Kind, body: &mut Value) -> Result<(), ApiError> {
    let facts = kind.facts();
    let api_version = facts.api_version();
    for (name, expected) in [("apiVersion", api_version.as_str()), ("kind", facts.kind)] {
        match at(body, &[name]).and_then(Value::as_str) {
            None => *field(body, name) = json!(expected),
            Some(found) if found == expected => {}
            Some(found) => {
                let message = format!("the {name} in the data ({found}) does not match the expected {expected}");
                return Err(ApiError::BadRequest { message });
            }
        }
    }
    Ok(())
}

/// A name is a DNS subdomain in every kind here.
pub fn check_name(kind: Kind, name: &str) -> Result<(), ApiError> {
    let invalid = |message: &str| {
        let causes = vec![FieldProblem::new("metadata.name", message)];
        Err(ApiError::Invalid { kind, name: name.to_owned(), causes })
    };
    if name.is_empty() {
        return invalid("Required value: name or generateName is required");
    }
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        matches!((bytes.first(), bytes.last()), (Some(&first), Some(&last)) if is_edge(first) && is_edge(last))
            && bytes.iter().all(|&byte| is_edge(byte) || byte == b'-')
    };
    match name.len() <= 253 && name.split('.').all(is_part) {
        true => Ok(()),
        false => invalid("Invalid value: a lowercase RFC 1123 subdomain is needed"),
    }
}

pub fn check_preconditions(old: &Object, body: &Value) -> Result<(), ApiError> {
    let conflict = |cause| Err(ApiError::Conflict { kind: old.kind, name: old.name.clone(), cause });
    let text = |name: &str| at(body, &["metadata", name]).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(uid) = text("uid")
        && uid != old.uid()
    {
        return conflict(Conflict::Uid { wanted: uid.to_owned(), actual: old.uid().to_owned() });
    }
    match text("resourceVersion") {
        Some(version) if version != old.version.to_string() => conflict(Conflict::Modified),
        Some(_) | None => Ok(()),
    }
}

/// What a write to one part leaves of the other.
pub fn take_part(old: &Object, part: Part, mut body: Value) -> Value {
    let facts = old.kind.facts();
    match part {
        Part::Main => {
            if facts.has_status {
                copy_field(old.body(), &mut body, "status");
            }
            body
        }
        Part::Status => {
            let mut written = old.body().clone();
            copy_field(&body, &mut written, "status");
            // Kubernetes lets the status of pods and nodes carry labels and annotations along; kubelets used to rely on it.
            if matches!(old.kind, Kind::Pod | Kind::Node) {
                for name in ["labels", "annotations"] {
                    copy_field(&body["metadata"], field(&mut written, "metadata"), name);
                }
            }
            written
        }
    }
}

/// Nobody but the server starts a deletion. Other fields that it owns are put back without a word.
pub fn check_server_metadata(old: &Object, body: &Value) -> Result<(), ApiError> {
    let is_new = |name: &&str| at(body, &["metadata", name]).is_some() && at(old.body(), &["metadata", name]).is_none();
    let causes: Vec<_> = ["deletionTimestamp", "deletionGracePeriodSeconds"]
        .into_iter()
        .filter(is_new)
        .map(|name| FieldProblem::new(format!("metadata.{name}"), "Invalid value: field is immutable"))
        .collect();
    match causes.is_empty() {
        true => Ok(()),
        false => Err(ApiError::Invalid { kind: old.kind, name: old.name.name.to_string(), causes }),
    }
}

/// What only the server writes stays as it was.
pub fn keep_server_metadata(old: &Object, body: &mut Value) {
    let metadata = field(body, "metadata");
    for name in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "generation",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    ] {
        copy_field(&old.body()["metadata"], metadata, name);
    }
}

/// An object on its way out cannot be held back by something new.
pub fn check_new_finalizers(old: &Object, body: &Value) -> Result<(), ApiError> {
    if !old.is_deleting() {
        return Ok(());
    }
    let added: Vec<_> = list(body, &["metadata", "finalizers"])
        .iter()
        .filter_map(Value::as_str)
        .filter(|finalizer| !old.finalizers().any(|known| known == *finalizer))
        .collect();
    if added.is_empty() {
        return Ok(());
    }
    let message = format!(
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers {added:?}"
    );
    let causes = vec![FieldProblem::new("metadata.finalizers", message)];
    Err(ApiError::Invalid { kind: old.kind, name: old.name.name.to_string(), causes })
}

/// The fields whose change counts as a new generation: all but metadata and status.
pub fn wanted(body: &Value) -> Vec<(&String, &Value)> {
    let fields = body.as_object().into_iter().flatten();
    fields.filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status")).collect()
}
