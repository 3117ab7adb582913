//! Events, in the form of the core group: that is what `kubectl describe` shows and what dashboards read.

use jiff::Timestamp;
use kerf_model::cluster::ObjectName;
use kerf_model::effect::{Event, EventKind, EventSeverity, shortened};
use serde_json::json;

use crate::api_kind::ApiKind;

use super::{ApiWrite, Request, Subresource, Version, fields::time_text};

/// Whom dashboards know events to come from.
const COMPONENT: &str = "karpenter";
/// Events on objects of the cluster live here.
const CLUSTER_NAMESPACE: &str = "default";
/// Of the 253 characters that a name may have, without the dot and 16 digits.
const LONGEST_STEM: usize = 236;

pub fn create(event: &Event, now: Timestamp) -> ApiWrite {
    let about = api_kind(event.about.kind);
    let target = &event.about.target;
    let namespace = if target.name.namespace.is_empty() { CLUSTER_NAMESPACE } else { &target.name.namespace };
    let name = ObjectName::new(namespace, name(event, now));
    let mut involved = json!({
        "apiVersion": about.api_version(), "kind": about.kind, "name": &*target.name.name, "uid": &*target.uid,
    });
    if about.namespaced {
        involved["namespace"] = json!(namespace);
    }
    let severity = match event.severity {
        EventSeverity::Normal => "Normal",
        EventSeverity::Warning => "Warning",
    };
    let object = json!({
        "apiVersion": ApiKind::EVENT.api_version(),
        "kind": ApiKind::EVENT.kind,
        "metadata": {"name": &*name.name, "namespace": namespace},
        "involvedObject": involved,
        "type": severity,
        "reason": event.reason,
        "message": shortened(&event.message),
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": "",
        "firstTimestamp": time_text(now),
        "lastTimestamp": time_text(now),
        "count": 1,
    });
    ApiWrite { kind: ApiKind::EVENT, name, request: Request::Create(object) }
}

/// The same event once more: the one that is there is counted up.
pub fn repeated(name: &ObjectName, count: u32, now: Timestamp) -> ApiWrite {
    let body = json!({"count": count, "lastTimestamp": time_text(now)});
    let request = Request::MergePatch { subresource: Subresource::None, version: Version::Any, body };
    ApiWrite { kind: ApiKind::EVENT, name: name.clone(), request }
}

const fn api_kind(kind: EventKind) -> ApiKind {
    match kind {
        EventKind::Pod => ApiKind::POD,
        EventKind::Node => ApiKind::NODE,
        EventKind::NodeClaim => ApiKind::NODE_CLAIM,
        EventKind::NodePool => ApiKind::NODE_POOL,
        EventKind::MaintenanceWindow => ApiKind::MAINTENANCE_WINDOW,
    }
}

/// The same event within the same interval has the same name: a controller that has just restarted and says it again
/// finds it there.
fn name(event: &Event, now: Timestamp) -> String {
    let target = &event.about.target;
    let interval = event.interval.as_nanos();
    let slot = if interval > 0 { now.as_nanosecond().div_euclid(interval) } else { now.as_nanosecond() };
    let slot = slot.to_string();
    let digits = fnv1a([&*target.uid, event.reason, &event.dedupe, &slot]);
    let stem: String = target.name.name.chars().take(LONGEST_STEM).collect();
    format!("{}.{digits:016x}", stem.trim_end_matches(['.', '-']))
}

/// FNV-1a of 64 bits, with an end after each part so that `ab, c` differs from `a, bc`.
fn fnv1a<const N: usize>(parts: [&str; N]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
