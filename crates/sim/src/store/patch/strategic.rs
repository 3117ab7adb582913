//! Strategic merge patch, for the lists that matter here.
//!
//! `$setElementOrder` is read and ignored: merged lists keep their order, new items come last.

use serde_json::Value;

use crate::store::object::{field, fields};

/// How a list is merged.
enum ListRule {
    /// Items with the same value of this field are the same item.
    ByKey(&'static str),
    /// A set of texts.
    Union,
    /// Taints and tolerations, for instance: the patch's list is the list.
    Replace,
}

/// From the `patchMergeKey` marks of Kubernetes' types. Field names mean the same wherever they stand, in the kinds that
/// this world has.
fn list_rule(name: &str) -> ListRule {
    match name {
        "finalizers" => ListRule::Union,
        "ownerReferences" => ListRule::ByKey("uid"),
        "conditions" | "addresses" => ListRule::ByKey("type"),
        "containers" | "initContainers" | "ephemeralContainers" | "volumes" | "env" | "imagePullSecrets" => {
            ListRule::ByKey("name")
        }
        "volumeMounts" => ListRule::ByKey("mountPath"),
        "topologySpreadConstraints" => ListRule::ByKey("topologyKey"),
        "hostAliases" | "podIPs" => ListRule::ByKey("ip"),
        _ => ListRule::Replace,
    }
}

pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if changes.get("$patch").and_then(Value::as_str) == Some("replace") {
        let kept = changes.iter().filter(|(name, _)| *name != "$patch");
        *target = Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect());
        return;
    }
    for (name, change) in changes {
        if name.starts_with('$') {
            if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
                remove_items(field(target, list), change);
            }
        } else if change.is_null() {
            fields(target).remove(name);
        } else if let Value::Array(items) = change {
            merge_list(field(target, name), items, &list_rule(name));
        } else {
            merge(field(target, name), change);
        }
    }
    // A list that lost its last item is absent, as it is after a real server has written it.
    fields(target).retain(|name, value| !(changes.contains_key(name) && value.as_array().is_some_and(Vec::is_empty)));
}

fn merge_list(target: &mut Value, items: &[Value], rule: &ListRule) {
    let directive = |item: &Value| item.get("$patch").and_then(Value::as_str).map(str::to_owned);
    let replaces = items.iter().any(|item| directive(item).as_deref() == Some("replace"));
    let existing = match target {
        Value::Array(existing) if !replaces => std::mem::take(existing),
        _ => Vec::new(),
    };
    let changes = items.iter().filter(|item| directive(item).as_deref() != Some("replace"));
    *target = Value::Array(match rule {
        ListRule::Replace => changes.cloned().collect(),
        ListRule::Union => {
            let mut merged = existing;
            for item in changes {
                if !merged.contains(item) {
                    merged.push(item.clone());
                }
            }
            merged
        }
        ListRule::ByKey(key) => {
            let mut merged = existing;
            for item in changes {
                let position = merged.iter().position(|known| known.get(key) == item.get(key));
                match (position, directive(item).as_deref()) {
                    (Some(position), Some("delete")) => {
                        merged.remove(position);
                    }
                    (None, Some("delete")) => {}
                    (Some(position), _) => merge(&mut merged[position], item),
                    (None, _) => merged.push(item.clone()),
                }
            }
            merged
        }
    });
}

fn remove_items(target: &mut Value, items: &Value) {
    let items = items.as_array().map_or(&[][..], Vec::as_slice);
    if let Value::Array(existing) = target {
        existing.retain(|item| !items.contains(item));
    }
}
