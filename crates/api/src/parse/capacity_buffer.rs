//! Capacity buffers.

use std::sync::Arc;

use kerf_model::cluster::{BufferShape, BufferSpec, BufferStatus, CapacityBuffer, WorkloadKind};

use crate::capacity_buffer::{CapacityBuffer as WireBuffer, CapacityBufferSpec, ScalableRef};

use super::metadata::{conditions, object_meta};
use super::{Collector, ParseError, Parsed};

/// What the schema fills in.
const DEFAULT_STRATEGY: &str = "buffer.x-k8s.io/active-capacity";

pub fn capacity_buffer(wire: &WireBuffer) -> Result<Parsed<CapacityBuffer>, ParseError> {
    let mut problems = Collector::default();
    let spec = &wire.spec;
    let count = |number: i32| u32::try_from(number).unwrap_or(0);
    let parsed = CapacityBuffer {
        meta: object_meta(&wire.metadata),
        spec: BufferSpec {
            strategy: Arc::from(spec.provisioning_strategy.as_deref().unwrap_or(DEFAULT_STRATEGY)),
            shape: shape(spec),
            replicas: spec.replicas.map(count),
            percentage: spec.percentage.map(count),
            limits: problems.resources("spec.limits", spec.limits.as_ref()),
        },
        status: wire.status.as_ref().map_or_else(BufferStatus::default, |status| BufferStatus {
            replicas: status.replicas.map(count),
            template: status.pod_template_ref.as_ref().map(|template| Arc::from(template.name.as_str())),
            template_generation: status.pod_template_generation,
            strategy: status.provisioning_strategy.as_deref().map(Arc::from),
            conditions: conditions(status.conditions.as_deref()),
        }),
    };
    problems.finish("CapacityBuffer", &parsed.meta.name.to_string(), Some(parsed))
}

fn shape(spec: &CapacityBufferSpec) -> BufferShape {
    match (&spec.pod_template_ref, &spec.scalable_ref) {
        (Some(template), _) => BufferShape::Template(Arc::from(template.name.as_str())),
        (None, Some(scalable)) => workload(scalable),
        (None, None) => BufferShape::Missing,
    }
}

/// No group means `apps`, as upstream reads it.
fn workload(scalable: &ScalableRef) -> BufferShape {
    let group = scalable.api_group.as_deref().filter(|group| !group.is_empty()).unwrap_or("apps");
    match WorkloadKind::find(&format!("{group}/v1"), &scalable.kind) {
        Some(kind) => BufferShape::Workload { kind, name: Arc::from(scalable.name.as_str()) },
        None => BufferShape::Unsupported { group: Arc::from(group), kind: Arc::from(scalable.kind.as_str()) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_buffer_takes_its_shape_from_a_template_or_a_workload() {
        let shape = |spec: Value| {
            let wire = json!({"metadata": {"name": "b", "namespace": "shop"}, "spec": spec});
            capacity_buffer(&serde_json::from_value(wire).unwrap()).unwrap().value.spec.shape
        };
        assert_eq!(shape(json!({"podTemplateRef": {"name": "t"}})), BufferShape::Template(Arc::from("t")));
        let web = BufferShape::Workload { kind: WorkloadKind::Deployment, name: Arc::from("web") };
        assert_eq!(shape(json!({"scalableRef": {"kind": "Deployment", "name": "web"}})), web);
        assert_eq!(shape(json!({"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}})), web);
        let job = BufferShape::Unsupported { group: Arc::from("batch"), kind: Arc::from("Job") };
        assert_eq!(shape(json!({"scalableRef": {"apiGroup": "batch", "kind": "Job", "name": "web"}})), job);
        assert_eq!(shape(json!({})), BufferShape::Missing);
    }
}
