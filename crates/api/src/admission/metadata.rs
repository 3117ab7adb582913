//! `metadata`, which no CRD describes: the server decodes it into its own type and checks names, labels and the rest.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Rejection, Rule};

/// All annotations together, keys and values (`TotalAnnotationSizeLimitB`).
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;
const MAX_SUBDOMAIN: usize = 253;
const MAX_LABEL_PART: usize = 63;

/// What the server knows of `metadata`; other fields are dropped. Null means "not set" everywhere.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub name: Option<String>,
    generate_name: Option<String>,
    pub namespace: Option<String>,
    labels: Option<BTreeMap<String, Option<String>>>,
    annotations: Option<BTreeMap<String, Option<String>>>,
    finalizers: Option<Vec<Option<String>>>,
    owner_references: Option<Vec<Option<OwnerReference>>>,
    generation: Option<i64>,
    // Read for their type only: a wrong one fails the request.
    #[serde(rename = "uid")]
    _uid: Option<String>,
    #[serde(rename = "resourceVersion")]
    _resource_version: Option<String>,
    #[serde(rename = "selfLink")]
    _self_link: Option<String>,
    #[serde(rename = "creationTimestamp")]
    _creation_timestamp: Option<jiff::Timestamp>,
    #[serde(rename = "deletionTimestamp")]
    _deletion_timestamp: Option<jiff::Timestamp>,
    #[serde(rename = "deletionGracePeriodSeconds")]
    _deletion_grace_period_seconds: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OwnerReference {
    api_version: Option<String>,
    kind: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    controller: Option<bool>,
}

const FIELDS: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Decodes an object's metadata and drops what the server does not know, adding the paths to `dropped`.
pub(super) fn decode(object: &mut Map<String, Value>, dropped: &mut Vec<String>) -> Result<Metadata, Rejection> {
    let Some(raw) = object.get_mut("metadata") else { return Ok(Metadata::default()) };
    let decoded = Option::<Metadata>::deserialize(&*raw)
        .map_err(|error| rejection("metadata", Rule::Metadata, error.to_string()))?;
    if let Value::Object(fields) = raw {
        fields.retain(|name, _| {
            let is_known = FIELDS.contains(&name.as_str());
            if !is_known {
                dropped.push(format!("metadata.{name}"));
            }
            is_known
        });
    }
    Ok(decoded.unwrap_or_default())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Cluster,
    Namespaced,
}

impl Metadata {
    pub fn check_create(&self, scope: Scope) -> Vec<Rejection> {
        let mut found = Vec::new();
        let generate_name = self.generate_name.as_deref().unwrap_or_default();
        if !generate_name.is_empty() && !is_subdomain(&with_last_dash_masked(generate_name)) {
            found.push(rejection("metadata.generateName", Rule::Metadata, subdomain_message(generate_name)));
        }
        match self.name.as_deref().unwrap_or_default() {
            "" if generate_name.is_empty() => {
                let message = "a name or generateName is needed".to_owned();
                found.push(rejection("metadata.name", Rule::Required, message));
            }
            // The server makes one up.
            "" => {}
            name if is_subdomain(name) => {}
            name => found.push(rejection("metadata.name", Rule::Metadata, subdomain_message(name))),
        }
        self.check_namespace(scope, &mut found);
        self.check_finalizers(&mut found);
        if self.generation.is_some_and(|generation| generation < 0) {
            let message = "must not be negative".to_owned();
            found.push(rejection("metadata.generation", Rule::Metadata, message));
        }
        self.check_common(&mut found);
        found
    }

    pub fn check_update(&self, old: &Self) -> Vec<Rejection> {
        let mut found = Vec::new();
        for (field, old, new) in
            [("metadata.name", &old.name, &self.name), ("metadata.namespace", &old.namespace, &self.namespace)]
        {
            if old != new {
                found.push(rejection(field, Rule::Metadata, "cannot be changed".to_owned()));
            }
        }
        self.check_common(&mut found);
        found
    }

    /// A namespaced object without a namespace gets that of the request, so its absence is no error.
    fn check_namespace(&self, scope: Scope, found: &mut Vec<Rejection>) {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        let message = match scope {
            _ if namespace.is_empty() => return,
            Scope::Namespaced if is_dns_label(namespace) && namespace.len() <= MAX_LABEL_PART => return,
            Scope::Namespaced => format!("`{namespace}` is not a DNS label"),
            Scope::Cluster => "objects of this kind live outside namespaces".to_owned(),
        };
        found.push(rejection("metadata.namespace", Rule::Metadata, message));
    }

    fn check_finalizers(&self, found: &mut Vec<Rejection>) {
        for finalizer in self.finalizers.iter().flatten().map(|name| name.as_deref().unwrap_or_default()) {
            if !is_qualified_name(finalizer) {
                let message = format!("`{finalizer}` is not a qualified name");
                found.push(rejection("metadata.finalizers", Rule::Metadata, message));
            }
        }
    }

    fn check_common(&self, found: &mut Vec<Rejection>) {
        for (key, value) in self.labels.iter().flatten() {
            if !is_qualified_name(key) {
                found.push(rejection("metadata.labels", Rule::Metadata, format!("`{key}` is not a label key")));
            }
            let value = value.as_deref().unwrap_or_default();
            if !is_label_value(value) {
                found.push(rejection("metadata.labels", Rule::Metadata, format!("`{value}` is not a label value")));
            }
        }
        for key in self.annotations.iter().flatten().map(|(key, _)| key) {
            // Case does not matter here, unlike in label keys.
            if !is_qualified_name(&key.to_lowercase()) {
                let message = format!("`{key}` is not an annotation key");
                found.push(rejection("metadata.annotations", Rule::Metadata, message));
            }
        }
        let size: usize = self
            .annotations
            .iter()
            .flatten()
            .map(|(key, value)| key.len() + value.as_deref().unwrap_or_default().len())
            .sum();
        if size > MAX_ANNOTATION_BYTES {
            let message = format!("has {size} bytes, at most {MAX_ANNOTATION_BYTES} are allowed");
            found.push(rejection("metadata.annotations", Rule::MaxLength, message));
        }
        self.check_owners(found);
    }

    fn check_owners(&self, found: &mut Vec<Rejection>) {
        let owners = || self.owner_references.iter().flatten().flatten();
        for owner in owners() {
            for (field, value) in
                [("apiVersion", &owner.api_version), ("kind", &owner.kind), ("name", &owner.name), ("uid", &owner.uid)]
            {
                if value.as_deref().unwrap_or_default().is_empty() {
                    let field = format!("metadata.ownerReferences.{field}");
                    found.push(rejection(&field, Rule::Metadata, "must not be empty".to_owned()));
                }
            }
        }
        if owners().filter(|owner| owner.controller == Some(true)).count() > 1 {
            let message = "only one owner can be the controller".to_owned();
            found.push(rejection("metadata.ownerReferences", Rule::Metadata, message));
        }
    }
}

fn rejection(field: &str, rule: Rule, message: String) -> Rejection {
    Rejection { field: field.to_owned(), rule, message }
}

fn subdomain_message(name: &str) -> String {
    format!("`{name}` is not a DNS subdomain (lower case letters, digits, `-` and `.`, at most 253 characters)")
}

/// A prefix may end with a dash, because characters will follow it.
fn with_last_dash_masked(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            // The server replaces the dash and the character before it, so `a--` passes.
            let kept = rest.char_indices().next_back().map_or(0, |(at, _)| at);
            format!("{}a", &rest[..kept])
        }
        _ => prefix.to_owned(),
    }
}

fn is_dns_label(text: &str) -> bool {
    is_bounded_by(text, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(), |byte| byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= MAX_SUBDOMAIN && text.split('.').all(is_dns_label)
}

/// `[prefix/]name`: a DNS subdomain, then up to 63 letters, digits, `-`, `_` and `.`.
fn is_qualified_name(text: &str) -> bool {
    let name = match text.split_once('/') {
        Some((prefix, name)) if is_subdomain(prefix) => name,
        Some(_) => return false,
        None => text,
    };
    !name.is_empty() && is_label_value(name)
}

fn is_label_value(text: &str) -> bool {
    let inner = |byte: u8| matches!(byte, b'-' | b'_' | b'.');
    text.is_empty() || (text.len() <= MAX_LABEL_PART && is_bounded_by(text, |byte| byte.is_ascii_alphanumeric(), inner))
}

/// Whether a text starts and ends with `outer` bytes and has only `outer` and `inner` ones between.
fn is_bounded_by(text: &str, outer: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            outer(*first) && outer(*last) && bytes.iter().all(|byte| outer(*byte) || inner(*byte))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(metadata: Value) -> Vec<String> {
        let mut object = Map::from_iter([("metadata".to_owned(), metadata)]);
        match decode(&mut object, &mut Vec::new()) {
            Ok(metadata) => metadata.check_create(Scope::Cluster).into_iter().map(|found| found.field).collect(),
            Err(rejection) => vec![format!("decode {}", rejection.field)],
        }
    }

    #[test]
    fn names_are_dns_subdomains() {
        for good in ["a", "a-b.c", "0", &"a".repeat(253)] {
            assert_eq!(check(json!({"name": good})), [""; 0], "{good}");
        }
        for bad in ["A", "a_b", "-a", "a.", "a..b", "ä", &"a".repeat(254)] {
            assert_eq!(check(json!({"name": bad})), ["metadata.name"], "{bad}");
        }
    }

    #[test]
    fn a_name_is_needed_unless_one_is_generated() {
        assert_eq!(check(json!({})), ["metadata.name"]);
        assert_eq!(check(Value::Null), ["metadata.name"]);
        assert_eq!(check(json!({"generateName": "pool-"})), [""; 0]);
        assert_eq!(check(json!({"generateName": "Pool-"})), ["metadata.generateName"]);
    }

    #[test]
    fn labels_have_keys_and_values_of_63() {
        let ok = json!({"name": "a", "labels": {"a.b/C_d": "x".repeat(63), "e": "", "f": null}});
        assert_eq!(check(ok), [""; 0]);
        for (key, value) in [("a/b/c", "v"), ("A.b/c", "v"), ("", "v"), ("k", "-v"), ("k", &"x".repeat(64))] {
            assert_eq!(check(json!({"name": "a", "labels": {key: value}})), ["metadata.labels"], "{key}={value}");
        }
    }

    #[test]
    fn annotations_end_at_256_kib_and_their_keys_ignore_case() {
        let room = MAX_ANNOTATION_BYTES - 1;
        assert_eq!(check(json!({"name": "a", "annotations": {"k": "x".repeat(room)}})), [""; 0]);
        assert_eq!(check(json!({"name": "a", "annotations": {"k": "x".repeat(room + 1)}})), ["metadata.annotations"]);
        assert_eq!(check(json!({"name": "a", "annotations": {"Example.COM/x": ""}})), [""; 0]);
    }

    #[test]
    fn a_wrong_type_fails_the_request() {
        assert_eq!(check(json!({"name": 5})), ["decode metadata"]);
        assert_eq!(check(json!({"name": "a", "labels": {"a": 1}})), ["decode metadata"]);
        assert_eq!(check(json!("x")), ["decode metadata"]);
    }
}
