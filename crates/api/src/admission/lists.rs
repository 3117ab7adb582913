//! Lists of type set have no equal items; lists of type map have no two items with the same keys.

use serde_json::Value;

use super::{
    Rejection, Rule, correlation, field_path,
    schema::{ListKind, Schema},
};

pub(super) fn check(schema: &Schema, value: &Value, path: &str, found: &mut Vec<Rejection>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(property) = schema.properties.get(name) {
                    check(property, value, &field_path::child(path, name), found);
                } else if let Some(entries) = schema.entries.as_deref() {
                    check(entries, value, &field_path::entry(path, name), found);
                }
            }
        }
        Value::Array(items) => {
            check_unique(schema, items, path, found);
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    check(schema, item, &field_path::item(path, index), found);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_unique(schema: &Schema, items: &[Value], path: &str, found: &mut Vec<Rejection>) {
    let repeats: Vec<usize> = match &schema.list {
        ListKind::Atomic => return,
        ListKind::Set => second_appearances(items.iter().collect()),
        ListKind::Map { keys } => {
            if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
                let message = "must be an object, because the list is keyed by fields of its items".to_owned();
                found.push(Rejection { field: field_path::item(path, index), rule: Rule::Duplicate, message });
                return;
            }
            let unset = vec![None; keys.len()];
            let identity = |item: &Value| {
                item.as_object().map_or(unset.clone(), |item| {
                    correlation::identity(item, keys).into_iter().map(Option::<&Value>::cloned).collect()
                })
            };
            second_appearances(items.iter().map(identity).collect::<Vec<Vec<Option<Value>>>>())
        }
    };
    found.extend(repeats.into_iter().map(|index| Rejection {
        field: field_path::item(path, index),
        rule: Rule::Duplicate,
        message: format!("duplicate value: {}", items[index]),
    }));
}

/// Each value that appears more than once is reported at its second place only, however often it comes back.
fn second_appearances<T: PartialEq>(values: Vec<T>) -> Vec<usize> {
    (0..values.len())
        .filter(|&index| values[..index].iter().filter(|earlier| **earlier == values[index]).count() == 1)
        .collect()
}
