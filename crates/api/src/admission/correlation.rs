//! Which old value a new value is compared with on update.
//!
//! Fields and map entries pair by name, items of a list of type map by their keys, and items of any other list not at all.

use serde_json::{Map, Value};

use super::schema::{ListKind, Schema};

/// The old item with the same keys as `item`, if the list can tell.
pub(super) fn old_item<'a>(schema: &Schema, old: Option<&'a Value>, item: &Value) -> Option<&'a Value> {
    let ListKind::Map { keys } = &schema.list else { return None };
    let identity = identity(item.as_object()?, keys);
    old?.as_array()?
        .iter()
        .find(|candidate| candidate.as_object().is_some_and(|candidate| self::identity(candidate, keys) == identity))
}

/// The keys of a list item; two items are the same when these are equal.
pub(super) fn identity<'a>(item: &'a Map<String, Value>, keys: &[String]) -> Vec<Option<&'a Value>> {
    keys.iter().map(|key| item.get(key)).collect()
}

/// Whether an update leaves a value alone. Items of a list of type map may change places.
pub(super) fn is_unchanged(schema: &Schema, old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            old.len() == new.len()
                && new.iter().all(|(name, value)| {
                    let field = schema.properties.get(name).or(schema.entries.as_deref());
                    match (old.get(name), field) {
                        (Some(old), Some(field)) => is_unchanged(field, old, value),
                        // The server pairs only what the schema describes, so unknown content counts as changed.
                        _ => false,
                    }
                })
        }
        (Value::Array(old_items), Value::Array(new_items)) => match (&schema.list, &schema.items) {
            (ListKind::Map { .. }, Some(items)) => {
                old_items.len() == new_items.len()
                    && new_items
                        .iter()
                        .all(|item| old_item(schema, Some(old), item).is_some_and(|old| is_unchanged(items, old, item)))
            }
            _ => old_items == new_items,
        },
        (old, new) => old == new,
    }
}
