//! Metadata and conditions, which every object has.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta as WireMeta, Time};
use kerf_model::cluster::{Condition, ConditionStatus, Conditions, ObjectMeta, ObjectName, Owner, Texts};

use crate::schema::Condition as WireCondition;

/// What the server leaves out of an object that it has not stored yet is empty; its times are the start of time.
pub fn object_meta(wire: &WireMeta) -> ObjectMeta {
    object_meta_sharing(wire, |_| true, &mut |text| Arc::from(text))
}

/// The same, with `share` for the texts that many objects have in common, and those annotations that `keep` says.
pub fn object_meta_sharing(
    wire: &WireMeta,
    keep: fn(&str) -> bool,
    share: &mut dyn FnMut(&str) -> Arc<str>,
) -> ObjectMeta {
    let own = |text: &Option<String>| -> Arc<str> { Arc::from(text.as_deref().unwrap_or_default()) };
    let owners = wire.owner_references.iter().flatten().map(|owner| Owner {
        api_version: share(&owner.api_version),
        kind: share(&owner.kind),
        name: share(&owner.name),
        uid: share(&owner.uid),
        blocks_deletion: owner.block_owner_deletion.unwrap_or_default(),
        controller: owner.controller.unwrap_or(false),
    });
    let owners = owners.collect();
    let labels = wire.labels.iter().flatten().map(|(key, value)| (share(key), share(value))).collect();
    let annotations = wire.annotations.iter().flatten().filter(|(key, _)| keep(key));
    let annotations = annotations.map(|(key, value)| (share(key), Arc::from(value.as_str()))).collect();
    ObjectMeta {
        name: ObjectName { namespace: share(wire.namespace.as_deref().unwrap_or_default()), name: own(&wire.name) },
        uid: own(&wire.uid),
        resource_version: own(&wire.resource_version),
        generation: wire.generation.unwrap_or(0),
        created: wire.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |Time(time)| *time),
        deleting: wire.deletion_timestamp.as_ref().map(|Time(time)| *time),
        labels,
        annotations,
        finalizers: wire.finalizers.iter().flatten().map(|name| share(name)).collect(),
        owners,
    }
}

pub fn texts(map: Option<&std::collections::BTreeMap<String, String>>) -> Texts {
    map.into_iter().flatten().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
}

pub fn conditions(wire: Option<&[WireCondition]>) -> Conditions {
    let conditions = wire.unwrap_or_default().iter().map(|wire| {
        let Ok(status) = wire.status.parse::<ConditionStatus>();
        Condition {
            kind: wire.type_.as_str().into(),
            status,
            reason: wire.reason.as_str().into(),
            message: wire.message.as_str().into(),
            since: wire.last_transition_time.parse().unwrap_or(Timestamp::UNIX_EPOCH),
            observed_generation: wire.observed_generation.unwrap_or(0),
        }
    });
    Conditions(conditions.collect())
}
