//! Capacity buffers: room kept free, as pods that nobody runs (sheet 02 §20).
//!
//! A buffer says how many pods of a shape should find a place at once. [`resolve`] makes those pods; they are scheduled
//! after all real ones and run nowhere. What they would need is launched, and a node that has room for one of them is
//! not empty.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kerf_model::cluster::{
    BufferShape, CapacityBuffer, DoNotDisrupt, ObjectMeta, ObjectName, Pod, PodPhase, PodShape, Texts, WorkloadKind,
};
use kerf_model::label::annotation;
use kerf_model::quantity::Quantity;
use kerf_model::resources::ResourceList;
use kerf_model::snapshot::ClusterSnapshot;

use crate::Schedule;

/// More pods than this are not made for one buffer: a limit with a tiny request would ask for millions.
const MAX_PODS: u32 = 10_000;

/// Below everything that is real.
const PRIORITY: i32 = i32::MIN;

/// A buffer whose pods are known.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedBuffer {
    pub replicas: u32,
    /// The name and generation of its PodTemplate, if it has one.
    pub template: Option<(Arc<str>, i64)>,
    pub pods: Vec<Arc<Pod>>,
}

/// Why a buffer has no pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BufferProblem {
    TemplateNotFound { name: Arc<str> },
    WorkloadNotFound { kind: WorkloadKind, name: Arc<str> },
    Unsupported { group: Arc<str>, kind: Arc<str> },
    NoShape,
}

/// The pods of a buffer, as far as it can be told.
///
/// # Errors
/// What it refers to is not there, or has no pods.
pub fn resolve(buffer: &CapacityBuffer, cluster: &ClusterSnapshot) -> Result<ResolvedBuffer, BufferProblem> {
    let of_namespace = |name: &Arc<str>| ObjectName::new(Arc::clone(&buffer.meta.name.namespace), Arc::clone(name));
    match &buffer.spec.shape {
        BufferShape::Template(name) => {
            let template = cluster.pod_template(&of_namespace(name));
            let template = template.ok_or_else(|| BufferProblem::TemplateNotFound { name: Arc::clone(name) })?;
            let replicas = size(buffer, None, &template.pod.requests);
            let reference = (Arc::clone(name), template.meta.generation);
            Ok(ResolvedBuffer { replicas, template: Some(reference), pods: pods(buffer, &template.pod, replicas) })
        }
        BufferShape::Workload { kind, name } => {
            let workload = cluster.workload(*kind, of_namespace(name));
            let not_found = || BufferProblem::WorkloadNotFound { kind: *kind, name: Arc::clone(name) };
            let workload = workload.ok_or_else(not_found)?;
            let replicas = size(buffer, Some(workload.replicas), &workload.pod.requests);
            Ok(ResolvedBuffer { replicas, template: None, pods: pods(buffer, &workload.pod, replicas) })
        }
        BufferShape::Unsupported { group, kind } => {
            Err(BufferProblem::Unsupported { group: Arc::clone(group), kind: Arc::clone(kind) })
        }
        BufferShape::Missing => Err(BufferProblem::NoShape),
    }
}

/// The larger of the number and the percentage, as far as the limits allow; the limits alone if there is neither.
fn size(buffer: &CapacityBuffer, workload: Option<u32>, requests: &ResourceList) -> u32 {
    let spec = &buffer.spec;
    let share = spec.percentage.zip(workload).map(|(percentage, replicas)| {
        let share = (u64::from(percentage) * u64::from(replicas)).div_ceil(100);
        u32::try_from(share).unwrap_or(u32::MAX)
    });
    let wanted = spec.replicas.max(share);
    let allowed = most_within(&spec.limits, requests);
    let size = match (wanted, allowed) {
        (Some(wanted), Some(allowed)) => wanted.min(allowed),
        (Some(wanted), None) => wanted,
        (None, Some(allowed)) => allowed,
        (None, None) => 0,
    };
    size.min(MAX_PODS)
}

/// How many such pods fit into the limits; `None` if the limits name nothing that the pods ask for.
fn most_within(limits: &ResourceList, requests: &ResourceList) -> Option<u32> {
    let bounds = limits.iter().filter_map(|(name, limit)| {
        let each = requests.get(name.as_str()).filter(|amount| *amount > Quantity::ZERO)?;
        Some(limit.times(each).unwrap_or(i64::MAX).max(0))
    });
    bounds.min().map(|count| u32::try_from(count).unwrap_or(u32::MAX))
}

fn pods(buffer: &CapacityBuffer, shape: &PodShape, count: u32) -> Vec<Arc<Pod>> {
    (1..=count).map(|number| Arc::new(pod(buffer, shape, number))).collect()
}

/// Volumes are left out: their claims belong to pods that exist.
fn pod(buffer: &CapacityBuffer, shape: &PodShape, number: u32) -> Pod {
    let ObjectMeta { name, uid, created, .. } = &buffer.meta;
    let annotations = [
        (annotation::BUFFER_POD, Arc::from("true")),
        (annotation::BUFFER_NAME, Arc::clone(&name.name)),
        (annotation::BUFFER_NAMESPACE, Arc::clone(&name.namespace)),
    ];
    let meta = ObjectMeta {
        name: ObjectName::new(Arc::clone(&name.namespace), format!("capacity-buffer-{}-{number}", name.name)),
        uid: Arc::from(format!("{uid}-{number}")),
        resource_version: Arc::from(""),
        generation: 0,
        created: *created,
        deleting: None,
        labels: shape.labels.clone(),
        annotations: annotations.into_iter().map(|(key, value)| (Arc::from(key), value)).collect::<Texts>(),
        finalizers: Vec::new(),
        owners: Vec::new(),
    };
    Pod {
        meta,
        node_name: None,
        phase: PodPhase::Pending,
        requests: shape.requests.clone(),
        constraints: Arc::clone(&shape.constraints),
        volumes: Vec::new(),
        priority: PRIORITY,
        priority_class: None,
        unschedulable: true,
        is_unready: false,
        nominated_node: None,
        do_not_disrupt: DoNotDisrupt::No,
        started: None,
        termination_grace: None,
        uses_resource_claims: shape.uses_resource_claims,
    }
}

/// Whether the pod is one of a buffer: it exists nowhere but in a schedule.
pub fn is_virtual(pod: &Pod) -> bool {
    pod.meta.annotation(annotation::BUFFER_POD).is_some()
}

/// The buffer that a virtual pod belongs to.
pub fn buffer_of(pod: &Pod) -> Option<ObjectName> {
    let text = |key| pod.meta.annotations.get(key).cloned();
    Some(ObjectName::new(text(annotation::BUFFER_NAMESPACE)?, text(annotation::BUFFER_NAME)?))
}

/// By node, or claim without one: how many virtual pods it has room for. Such a node is not empty.
pub fn virtual_pods_on_hosts(schedule: &Schedule) -> BTreeMap<Arc<str>, u32> {
    let counted = schedule.on_existing.iter().map(|on| {
        let count = on.pods.iter().filter(|pod| is_virtual(pod)).count();
        (Arc::clone(on.host.name()), u32::try_from(count).unwrap_or(u32::MAX))
    });
    counted.filter(|(_, count)| *count > 0).collect()
}

/// How many of these pods are virtual, by the buffer they belong to.
pub fn count_by_buffer<'a>(pods: impl IntoIterator<Item = &'a Arc<Pod>>) -> BTreeMap<ObjectName, u32> {
    let mut counts = BTreeMap::new();
    for buffer in pods.into_iter().filter_map(|pod| buffer_of(pod)) {
        *counts.entry(buffer).or_default() += 1;
    }
    counts
}

impl BufferProblem {
    /// The reason of the condition `ReadyForProvisioning`.
    pub fn id(&self) -> &'static str {
        match self {
            Self::TemplateNotFound { .. } => "PodTemplateNotFound",
            Self::WorkloadNotFound { .. } => "ScalableRefNotFound",
            Self::Unsupported { .. } | Self::NoShape => "ResolutionFailed",
        }
    }
}

impl fmt::Display for BufferProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TemplateNotFound { name } => write!(f, "there is no PodTemplate {name}"),
            Self::WorkloadNotFound { kind, name } => write!(f, "there is no {} {name}", kind.as_str()),
            Self::Unsupported { group, kind } => {
                write!(f, "{kind} of {group} has no pods to keep room for: use a Deployment, StatefulSet or ReplicaSet")
            }
            Self::NoShape => f.write_str("neither podTemplateRef nor scalableRef is given"),
        }
    }
}
