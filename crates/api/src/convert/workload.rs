//! Documents of other kinds: pods, deployments, nodes. They pass unchanged, but legacy names in them stop working, so they
//! are pointed at, and renamed when asked.

use serde_json::{Map, Value};

use super::Options;
use super::metadata::{DO_NOT_DISRUPT, NODE_POOL_LABEL, PROVISIONER_LABEL};
use super::note::{Finding, Recorder};
use crate::manifest::Document;

/// A name of old, and what it is called in v1.
type Renamed = (&'static str, &'static str);

const ANNOTATIONS: [Renamed; 3] = [
    ("karpenter.sh/do-not-evict", DO_NOT_DISRUPT),
    ("karpenter.sh/do-not-consolidate", DO_NOT_DISRUPT),
    ("karpenter.sh/do-not-deprovision", DO_NOT_DISRUPT),
];
const LABELS: [Renamed; 1] = [(PROVISIONER_LABEL, NODE_POOL_LABEL)];
/// Keys of affinity terms, spread constraints and tolerations.
const KEYS: [Renamed; 2] =
    [(PROVISIONER_LABEL, NODE_POOL_LABEL), ("karpenter.sh/disruption", "karpenter.sh/disrupted")];

/// The object with its names changed, when there was something to change and the options ask for it.
pub(super) fn convert(document: &Document, options: &Options, recorder: &mut Recorder<'_>) -> Option<Value> {
    if document.kind() == "ConfigMap" && document.name() == "karpenter-global-settings" {
        recorder.add("data", Finding::SettingsConfigMap);
    }
    let mut object = Value::Object(document.object.clone());
    let found = rename(document, &mut object);
    for Found { path, renamed: (from, to) } in &found {
        recorder.add(path.as_str(), Finding::LegacyName { from, to, rewritten: options.rewrite_workloads });
    }
    (options.rewrite_workloads && !found.is_empty()).then_some(object)
}

pub(super) fn has_legacy_names(document: &Document) -> bool {
    !rename(document, &mut Value::Object(document.object.clone())).is_empty()
}

struct Found {
    path: String,
    renamed: Renamed,
}

fn rename(document: &Document, object: &mut Value) -> Vec<Found> {
    let mut found = Vec::new();
    // Karpenter's own objects are not workloads: legacy ones are converted, v1 ones pass as they are.
    if !document.api_version().starts_with("karpenter.") {
        walk(object, &mut String::new(), &mut found);
    }
    found
}

/// Looks for the maps and fields that carry names, wherever a pod template may stand. The reader's nesting limit bounds
/// the recursion.
fn walk(value: &mut Value, path: &mut String, found: &mut Vec<Found>) {
    match value {
        Value::Object(map) => {
            for (key, child) in map.iter_mut() {
                let length = path.len();
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
                match (key.as_str(), &mut *child) {
                    ("annotations", Value::Object(names)) => rename_keys(names, &ANNOTATIONS, path, found),
                    ("labels" | "matchLabels" | "nodeSelector", Value::Object(names)) => {
                        rename_keys(names, &LABELS, path, found);
                    }
                    ("key" | "topologyKey", Value::String(name)) => rename_text(name, path, found),
                    _ => walk(child, path, found),
                }
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let length = path.len();
                path.push_str(&format!("[{index}]"));
                walk(item, path, found);
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn rename_keys(names: &mut Map<String, Value>, table: &[Renamed], path: &str, found: &mut Vec<Found>) {
    for renamed in table {
        if let Some(value) = names.remove(renamed.0) {
            names.entry(renamed.1).or_insert(value);
            found.push(Found { path: path.to_owned(), renamed: *renamed });
        }
    }
}

fn rename_text(name: &mut String, path: &str, found: &mut Vec<Found>) {
    if let Some(renamed) = KEYS.into_iter().find(|(from, _)| from == name) {
        *name = renamed.1.to_owned();
        found.push(Found { path: path.to_owned(), renamed });
    }
}
