//! Model values as the API writes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::{BufferStatus, Conditions, Owner, WindowStatus};
use kerf_model::effect::{ClaimStatusPatch, MetaPatch, OverlayPatch, PoolPatch};
use kerf_model::resources::ResourceList;
use kerf_model::taint::Taint;
use serde_json::{Map, Value, json};

pub fn metadata(patch: &MetaPatch) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut texts = |name: &str, texts: &BTreeMap<Arc<str>, Option<Arc<str>>>| {
        if !texts.is_empty() {
            fields.insert(name.to_owned(), json!(texts_of(texts)));
        }
    };
    texts("labels", &patch.labels);
    texts("annotations", &patch.annotations);
    if let Some(finalizers) = &patch.finalizers {
        fields.insert("finalizers".to_owned(), finalizers.iter().map(|name| json!(&**name)).collect());
    }
    if let Some(owners) = &patch.owners {
        fields.insert("ownerReferences".to_owned(), owners.iter().map(owner).collect());
    }
    fields
}

fn texts_of(texts: &BTreeMap<Arc<str>, Option<Arc<str>>>) -> BTreeMap<&str, Option<&str>> {
    texts.iter().map(|(key, value)| (&**key, value.as_deref())).collect()
}

pub fn owner(owner: &Owner) -> Value {
    let mut reference = json!({
        "apiVersion": &*owner.api_version, "kind": &*owner.kind, "name": &*owner.name, "uid": &*owner.uid,
    });
    if owner.blocks_deletion {
        reference["blockOwnerDeletion"] = json!(true);
    }
    if owner.controller {
        reference["controller"] = json!(true);
    }
    reference
}

pub fn taint(taint: &Taint) -> Value {
    let mut fields = json!({"key": &*taint.key, "effect": taint.effect.as_str()});
    if !taint.value.is_empty() {
        fields["value"] = json!(&*taint.value);
    }
    if let Some(added) = taint.added {
        fields["timeAdded"] = json!(time_text(added));
    }
    fields
}

pub fn claim_status(patch: &ClaimStatusPatch) -> Map<String, Value> {
    let text = |text: &Option<Arc<str>>| text.as_deref().map(Value::from);
    named([
        ("providerID", text(&patch.provider_id)),
        ("nodeName", text(&patch.node_name)),
        ("imageID", text(&patch.image_id)),
        ("capacity", patch.capacity.as_ref().map(amounts)),
        ("allocatable", patch.allocatable.as_ref().map(amounts)),
        ("lastPodEventTime", patch.last_pod_event.map(|time| time_text(time).into())),
        ("conditions", patch.conditions.as_ref().map(conditions)),
    ])
}

pub fn pool_status(patch: &PoolPatch) -> Map<String, Value> {
    let mut resources = patch.resources.as_ref().map(amounts);
    if !patch.gone_resources.is_empty() {
        let resources = resources.get_or_insert_with(|| json!({}));
        for name in &patch.gone_resources {
            resources[name.as_str()] = Value::Null;
        }
    }
    named([
        ("resources", resources),
        ("nodes", patch.nodes.map(Value::from)),
        ("nodeClassObservedGeneration", patch.class_observed_generation.map(Value::from)),
        ("conditions", patch.conditions.as_ref().map(conditions)),
    ])
}

pub fn overlay_status(patch: &OverlayPatch) -> Map<String, Value> {
    named([("conditions", Some(conditions(&patch.conditions)))])
}

/// All of it: what there is not is removed.
pub fn window_status(status: &WindowStatus) -> Map<String, Value> {
    let or_null = |value: Option<Value>| Some(value.unwrap_or(Value::Null));
    named([
        ("active", or_null(status.active.map(Value::from))),
        ("nextTransitionTime", or_null(status.next_transition.map(|at| Value::from(at.to_string())))),
        ("matchedNodes", or_null(status.matched_nodes.map(Value::from))),
        ("conditions", Some(conditions(&status.conditions))),
    ])
}

/// All of it: what there is not is removed.
pub fn buffer_status(status: &BufferStatus) -> Map<String, Value> {
    let or_null = |value: Option<Value>| Some(value.unwrap_or(Value::Null));
    named([
        ("replicas", or_null(status.replicas.map(Value::from))),
        ("podTemplateRef", or_null(status.template.as_ref().map(|name| json!({"name": &**name})))),
        ("podTemplateGeneration", or_null(status.template_generation.map(Value::from))),
        ("provisioningStrategy", or_null(status.strategy.as_deref().map(Value::from))),
        ("conditions", Some(conditions(&status.conditions))),
    ])
}

fn named<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn amounts(list: &ResourceList) -> Value {
    list.iter().map(|(name, amount)| (name.as_str().to_owned(), Value::from(amount.to_string()))).collect()
}

fn conditions(conditions: &Conditions) -> Value {
    let entries = conditions.0.iter().map(|condition| {
        let mut entry = json!({
            "type": &*condition.kind,
            "status": condition.status.as_str(),
            "lastTransitionTime": time_text(condition.since),
            "reason": &*condition.reason,
            "message": &*condition.message,
        });
        if condition.observed_generation != 0 {
            entry["observedGeneration"] = json!(condition.observed_generation);
        }
        entry
    });
    entries.collect()
}

/// RFC 3339 with whole seconds, as Kubernetes writes times. Cut, not rounded: nothing happens before it happened.
pub fn time_text(time: Timestamp) -> String {
    let secs = time.as_nanosecond().div_euclid(1_000_000_000);
    let whole = i64::try_from(secs).ok().and_then(|secs| Timestamp::from_second(secs).ok());
    whole.unwrap_or(time).to_string()
}
