//! One stored object, and how its JSON is read.

use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::ObjectName;
use kerf_model::selector::Labels;
use serde_json::{Map, Value};

use super::Kind;

/// An object as it was at one version. Cloning shares the body.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    pub kind: Kind,
    pub name: ObjectName,
    pub version: u64,
    body: Arc<Value>,
}

/// An entry of `metadata.ownerReferences`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerReference<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
    pub controller: bool,
    pub block_owner_deletion: bool,
}

/// The labels of an object, for selectors.
#[derive(Debug, Clone, Copy)]
pub struct LabelMap<'a>(pub Option<&'a Map<String, Value>>);

impl Labels for LabelMap<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        self.0?.get(key)?.as_str()
    }
}

impl Object {
    pub(super) fn new(kind: Kind, name: ObjectName, version: u64, body: Value) -> Self {
        Self { kind, name, version, body: Arc::new(body) }
    }

    pub fn body(&self) -> &Value {
        &self.body
    }

    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        at(&self.body, path)
    }

    pub fn text(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.as_str()
    }

    pub fn number(&self, path: &[&str]) -> Option<i64> {
        self.at(path)?.as_i64()
    }

    pub fn list(&self, path: &[&str]) -> &[Value] {
        list(&self.body, path)
    }

    pub fn time(&self, path: &[&str]) -> Option<Timestamp> {
        self.text(path)?.parse().ok()
    }

    pub fn uid(&self) -> &str {
        self.text(&["metadata", "uid"]).unwrap_or_default()
    }

    pub fn generation(&self) -> i64 {
        self.number(&["metadata", "generation"]).unwrap_or(0)
    }

    pub fn created(&self) -> Option<Timestamp> {
        self.time(&["metadata", "creationTimestamp"])
    }

    pub fn labels(&self) -> LabelMap<'_> {
        LabelMap(self.at(&["metadata", "labels"]).and_then(Value::as_object))
    }

    pub fn is_deleting(&self) -> bool {
        self.at(&["metadata", "deletionTimestamp"]).is_some()
    }

    pub fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.list(&["metadata", "finalizers"]).iter().filter_map(Value::as_str)
    }

    pub fn owners(&self) -> impl Iterator<Item = OwnerReference<'_>> {
        self.list(&["metadata", "ownerReferences"]).iter().map(OwnerReference::read)
    }

    /// The owner that manages the object.
    pub fn controller(&self) -> Option<OwnerReference<'_>> {
        self.owners().find(|owner| owner.controller)
    }

    /// The status of a condition: `True`, `False`, `Unknown`.
    pub fn condition(&self, type_: &str) -> Option<&str> {
        let conditions = self.list(&["status", "conditions"]);
        conditions.iter().find(|condition| condition["type"] == type_)?.get("status")?.as_str()
    }

    pub fn is_condition_true(&self, type_: &str) -> bool {
        self.condition(type_) == Some("True")
    }
}

impl<'a> OwnerReference<'a> {
    fn read(reference: &'a Value) -> Self {
        let text = |name: &str| reference.get(name).and_then(Value::as_str).unwrap_or_default();
        let flag = |name: &str| reference.get(name).and_then(Value::as_bool).unwrap_or(false);
        Self {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
            controller: flag("controller"),
            block_owner_deletion: flag("blockOwnerDeletion"),
        }
    }
}

/// What stands at a path of field names. Nulls count as absent, as they do in the API.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, name| value.get(name)).filter(|value| !value.is_null())
}

/// The items at a path; none if there is no list.
pub fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A time as the API writes it: whole seconds.
pub fn time_text(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// The field of an object, made if it is absent or no object.
pub fn field<'a>(value: &'a mut Value, name: &str) -> &'a mut Value {
    fields(value).entry(name).or_insert(Value::Null)
}

/// The fields of an object; anything else becomes an empty one.
pub fn fields(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object above")
}

/// Sets a field unless it is there.
pub fn default_to(value: &mut Value, name: &str, default: impl Into<Value>) {
    let field = field(value, name);
    if field.is_null() {
        *field = default.into();
    }
}

/// Copies a field from one object to another; an absent one is removed.
pub fn copy_field(from: &Value, to: &mut Value, name: &str) {
    match from.get(name) {
        Some(value) => *field(to, name) = value.clone(),
        None => {
            fields(to).remove(name);
        }
    }
}
