//! Defaults, as the server fills them in: outer ones first, then into what they brought.

use serde_json::Value;

use super::schema::Schema;

/// Follows the apiextensions server's `Default`. kube-cel's own defaulting is not used: it neither replaces nulls
/// nor looks into a default that it has just inserted, so `disruption: {consolidateAfter: 0s}` would miss its budgets.
pub(super) fn fill(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                let Some(default) = &property.default else { continue };
                if fields.get(name).is_none_or(|present| present.is_null() && !property.nullable) {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields.iter_mut() {
                if let Some(property) = schema.properties.get(name) {
                    fill(value, property);
                } else if let Some(entries) = schema.entries.as_deref() {
                    replace_null(value, entries);
                    fill(value, entries);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    replace_null(item, schema);
                    fill(item, schema);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn replace_null(value: &mut Value, schema: &Schema) {
    if let (Value::Null, false, Some(default)) = (&*value, schema.nullable, &schema.default) {
        *value = default.clone();
    }
}
