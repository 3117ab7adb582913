//! What the server drops before it looks: fields the schema does not know, and nulls that mean "not set".
//!
//! Follows `structural-schema pruning` and `PruneNonNullableNullsWithoutDefaults` of the apiextensions API server.

use serde_json::{Map, Value};

use super::{field_path, schema::Schema};

/// Part of every object whatever the schema says.
const TYPE_AND_META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes what the schema of a whole object does not know and returns the paths, sorted.
pub(super) fn unknown_fields(object: &mut Map<String, Value>, schema: &Schema) -> Vec<String> {
    let mut dropped = Vec::new();
    object.retain(|name, value| {
        if TYPE_AND_META.contains(&name.as_str()) {
            return true;
        }
        match schema.properties.get(name) {
            Some(property) => {
                prune(value, property, name, &mut dropped);
                true
            }
            None if schema.preserves_unknown => true,
            None => {
                dropped.push(name.clone());
                false
            }
        }
    });
    dropped.sort();
    dropped
}

fn prune(value: &mut Value, schema: &Schema, path: &str, dropped: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let path = field_path::child(path, name);
            match schema.properties.get(name).or(schema.entries.as_deref()) {
                Some(field) => {
                    prune(value, field, &path, dropped);
                    true
                }
                None if schema.preserves_unknown => true,
                None => {
                    dropped.push(path);
                    false
                }
            }
        }),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let path = field_path::item(path, index);
                match &schema.items {
                    Some(schema) => prune(item, schema, &path, dropped),
                    None if schema.preserves_unknown => {}
                    None => empty(item, &path, dropped),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A list item no schema speaks of keeps its shape and loses its fields.
fn empty(value: &mut Value, path: &str, dropped: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            dropped.extend(fields.keys().map(|name| field_path::child(path, name)));
            fields.clear();
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                empty(item, &field_path::item(path, index), dropped);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A null where null is not allowed and no default would replace it counts as absent. Null list items stay, and fail later.
pub(super) fn meaningless_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let Some(field) = schema.properties.get(name).or(schema.entries.as_deref()) else {
                return true;
            };
            if value.is_null() && !field.nullable && field.default.is_none() {
                return false;
            }
            meaningless_nulls(value, field);
            true
        }),
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| meaningless_nulls(item, schema));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
