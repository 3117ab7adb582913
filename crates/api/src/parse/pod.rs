//! Pods.

mod constraints;
mod requests;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kerf_model::cluster::{DoNotDisrupt, ObjectMeta, Pod, PodPhase, PodVolume, Texts};
use kerf_model::label::annotation;
use kube::ResourceExt;

use crate::slim::{SlimPod, SlimPodStatus, SlimVolume};

use super::metadata::object_meta_sharing;
use super::shapes::Shapes;
use super::{Collector, ParseError, Parsed};

pub(super) use constraints::constraints;
pub(super) use requests::{amounts, requests};

/// What older APIs called `do-not-disrupt`; it knows only `true`.
const DO_NOT_EVICT: &str = "karpenter.sh/do-not-evict";
/// Whose annotations a decision may read on a pod. Others hold network state and the like, which only costs memory.
const ANNOTATION_DOMAIN: &str = "karpenter.sh/";

/// A pod of which a part cannot be read is refused as a whole: nobody could say where it fits.
pub fn pod(wire: &SlimPod, shapes: &mut Shapes) -> Result<Parsed<Pod>, ParseError> {
    let mut problems = Collector::default();
    let (spec, status) = (&wire.spec, &wire.status);
    let requests = requests(spec, status, &mut problems);
    let constraints = constraints(spec, wire.metadata.labels.as_ref(), &mut problems);
    let meta = object_meta_sharing(&wire.metadata, is_read, &mut |text| shapes.text(text));
    let mut share = |text: Option<&String>| text.filter(|text| !text.is_empty()).map(|text| shapes.text(text));
    let node_name = share(spec.node_name.as_ref());
    let priority_class = share(spec.priority_class_name.as_ref());
    let nominated_node = share(status.nominated_node_name.as_ref());
    let parsed = Pod {
        do_not_disrupt: do_not_disrupt(&meta.annotations),
        volumes: spec.volumes.iter().filter_map(|volume| pod_volume(volume, &meta)).collect(),
        meta,
        node_name,
        phase: phase(&status.phase),
        requests,
        constraints: shapes.constraints(constraints),
        priority: spec.priority.unwrap_or(0),
        priority_class,
        unschedulable: is_unschedulable(status),
        is_unready: is_unready(status),
        nominated_node,
        started: status.start_time.as_ref().map(|Time(time)| *time),
        termination_grace: spec.termination_grace_period_seconds.map(SignedDuration::from_secs),
        uses_resource_claims: !spec.resource_claims.is_empty(),
    };
    problems.finish("Pod", &format!("{}/{}", parsed.meta.name.namespace, wire.name_any()), Some(parsed))
}

fn is_read(annotation: &str) -> bool {
    annotation.starts_with(ANNOTATION_DOMAIN)
        || [annotation::POD_DELETION_COST, annotation::OUR_COST].contains(&annotation)
}

/// Anything else than the known phases is one that a newer Kubernetes knows.
fn phase(text: &str) -> PodPhase {
    match text {
        // Not yet set on a pod that was made this moment.
        "" | "Pending" => PodPhase::Pending,
        "Running" => PodPhase::Running,
        "Succeeded" => PodPhase::Succeeded,
        "Failed" => PodPhase::Failed,
        _ => PodPhase::Unknown,
    }
}

/// The reason alone counts, as upstream (sheet 02 §2); gated pods carry another one.
fn is_unschedulable(status: &SlimPodStatus) -> bool {
    let mut conditions = status.conditions.iter();
    conditions
        .any(|condition| condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("Unschedulable"))
}

fn is_unready(status: &SlimPodStatus) -> bool {
    status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "False")
}

/// The stronger of the annotation and its older name (sheet 03 §15.3).
fn do_not_disrupt(annotations: &Texts) -> DoNotDisrupt {
    let value = |key: &str| annotations.get(key).map(AsRef::as_ref);
    match value(DO_NOT_EVICT) {
        Some("true") => DoNotDisrupt::Always,
        Some(_) | None => DoNotDisrupt::read(value(annotation::DO_NOT_DISRUPT)),
    }
}

/// The claim behind a volume. Kubernetes makes the claim of an ephemeral one, named after pod and volume.
fn pod_volume(volume: &SlimVolume, meta: &ObjectMeta) -> Option<PodVolume> {
    let claim: Arc<str> = match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(source), _) => Arc::from(source.claim_name.as_str()),
        (None, Some(_)) => Arc::from(format!("{}-{}", meta.name.name, volume.name)),
        (None, None) => return None,
    };
    Some(PodVolume { claim })
}
