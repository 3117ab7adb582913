//! What stands around pods: DaemonSets and other workloads, PodDisruptionBudgets, Services, namespaces.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kerf_model::cluster::{
    DaemonSet, DisruptionBudget, Namespace, PodShape, PodTemplate, Service, Workload, WorkloadKind,
};
use kerf_model::requirement::Expression;
use kube::ResourceExt;

use crate::slim::{
    SlimDaemonSet, SlimNamespace, SlimPodDisruptionBudget, SlimPodSpec, SlimPodStatus, SlimPodTemplate,
    SlimPodTemplateObject, SlimService, SlimWorkload, WorkloadSelector,
};

use super::labels::selector;
use super::metadata::{object_meta_sharing, texts};
use super::pod::{constraints, requests};
use super::shapes::Shapes;
use super::{Collector, ParseError, Parsed, Violation};

/// The pod that the set would put on a node.
pub fn daemon_set(wire: &SlimDaemonSet, shapes: &mut Shapes) -> Result<Parsed<DaemonSet>, ParseError> {
    let mut problems = Collector::default();
    let template = &wire.spec.template;
    let labels = template.metadata.labels.as_ref();
    let requests = requests(&with_limits_as_requests(&template.spec), &SlimPodStatus::default(), &mut problems);
    let constraints = constraints(&template.spec, labels, &mut problems);
    let parsed = DaemonSet {
        meta: object_meta_sharing(&wire.metadata, |_| true, &mut |text| shapes.text(text)),
        pod_labels: texts(labels),
        requests,
        constraints: shapes.constraints(constraints),
    };
    problems.finish("DaemonSet", &wire.name_any(), Some(parsed))
}

/// The API server does this to pods when they are made; a template is still as it was written.
fn with_limits_as_requests(spec: &SlimPodSpec) -> SlimPodSpec {
    let mut spec = spec.clone();
    let containers = spec.containers.iter_mut().chain(&mut spec.init_containers);
    for resources in containers.map(|container| &mut container.resources) {
        let missing: BTreeMap<String, Quantity> = resources.limits.clone();
        for (name, limit) in missing {
            resources.requests.entry(name).or_insert(limit);
        }
    }
    spec
}

pub fn disruption_budget(wire: &SlimPodDisruptionBudget) -> Result<Parsed<DisruptionBudget>, ParseError> {
    let mut problems = Collector::default();
    let parsed = DisruptionBudget {
        meta: super::metadata::object_meta(&wire.metadata),
        selector: wire.spec.selector.as_ref().and_then(|wire| selector("spec.selector", wire, &mut problems)),
        // Less than none is none.
        disruptions_allowed: u32::try_from(wire.status.disruptions_allowed).unwrap_or(0),
        never_allows: never_allows(wire),
        always_allows_unhealthy: wire.spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow"),
    };
    problems.finish("PodDisruptionBudget", &wire.name_any(), Some(parsed))
}

/// Upstream does not see an integer `minAvailable` that is as large as the workload; here it counts too.
fn never_allows(wire: &SlimPodDisruptionBudget) -> bool {
    let none_may_go = match &wire.spec.max_unavailable {
        Some(IntOrString::Int(0)) => true,
        Some(IntOrString::String(text)) => text == "0%",
        Some(IntOrString::Int(_)) | None => false,
    };
    let all_must_stay = match &wire.spec.min_available {
        Some(IntOrString::Int(wanted)) => *wanted >= wire.status.expected_pods && wire.status.expected_pods > 0,
        Some(IntOrString::String(text)) => text == "100%",
        None => false,
    };
    none_may_go || all_must_stay
}

/// A Deployment, StatefulSet, ReplicaSet or ReplicationController.
pub fn workload(wire: &SlimWorkload, kind: WorkloadKind, shapes: &mut Shapes) -> Result<Parsed<Workload>, ParseError> {
    let mut problems = Collector::default();
    let WorkloadSelector { match_labels, match_expressions, plain } = &wire.spec.selector;
    let expressions = match_expressions.iter().enumerate().filter_map(|(index, wire)| {
        let field = format!("spec.selector.matchExpressions[{index}].operator");
        let operator = problems.take(&field, wire.operator.parse(), Violation::Operator)?;
        Some(Expression::new(&wire.key, operator, wire.values.as_deref().unwrap_or_default()))
    });
    let match_expressions = expressions.collect();
    let parsed = Workload {
        meta: object_meta_sharing(&wire.metadata, |_| false, &mut |text| shapes.text(text)),
        kind,
        replicas: u32::try_from(wire.spec.replicas.unwrap_or(1)).unwrap_or(0),
        match_labels: texts(Some(match_labels)).into_iter().chain(texts(Some(plain))).collect(),
        match_expressions,
        pod: pod_shape(&wire.spec.template, shapes, &mut problems),
    };
    problems.finish(kind.as_str(), &wire.metadata.name.clone().unwrap_or_default(), Some(parsed))
}

pub fn pod_template(wire: &SlimPodTemplateObject, shapes: &mut Shapes) -> Result<Parsed<PodTemplate>, ParseError> {
    let mut problems = Collector::default();
    let parsed = PodTemplate {
        meta: super::metadata::object_meta(&wire.metadata),
        pod: pod_shape(&wire.template, shapes, &mut problems),
    };
    problems.finish("PodTemplate", &wire.name_any(), Some(parsed))
}

fn pod_shape(template: &SlimPodTemplate, shapes: &mut Shapes, problems: &mut Collector) -> PodShape {
    let labels = template.metadata.labels.as_ref();
    let constraints = constraints(&template.spec, labels, problems);
    PodShape {
        labels: texts(labels),
        requests: requests(&with_limits_as_requests(&template.spec), &SlimPodStatus::default(), problems),
        constraints: shapes.constraints(constraints),
        uses_resource_claims: !template.spec.resource_claims.is_empty(),
    }
}

pub fn service(wire: &SlimService) -> Service {
    let selector = wire.spec.selector.as_ref().map(|labels| texts(Some(labels)));
    Service { meta: super::metadata::object_meta(&wire.metadata), selector }
}

pub fn namespace(wire: &SlimNamespace) -> Namespace {
    Namespace { meta: super::metadata::object_meta(&wire.metadata) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Sheet 02 §5: limits stand in for missing requests, in containers and init containers.
    #[test]
    fn a_daemon_set_without_requests_is_counted_by_its_limits() {
        let wire = json!({
            "metadata": {"name": "d", "namespace": "kube-system"},
            "spec": {"template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {
                    "containers": [{"name": "c", "resources": {
                        "requests": {"cpu": "50m"}, "limits": {"cpu": "100m", "memory": "64Mi"},
                    }}],
                    "initContainers": [{"name": "i", "resources": {"limits": {"cpu": "200m"}}}],
                    "tolerations": [{"operator": "Exists"}],
                },
            }},
        });
        let set = daemon_set(&serde_json::from_value(wire).unwrap(), &mut Shapes::default()).unwrap().value;
        assert_eq!(set.requests.to_string(), "cpu=200m memory=64Mi pods=1");
        assert_eq!(set.pod_labels.len(), 1);
        assert_eq!(set.constraints.tolerations.len(), 1);
    }

    /// Sheet 02 §20: a workload that does not say how many has one.
    #[test]
    fn a_workload_brings_its_number_its_selector_and_its_pods() {
        let read = |spec: serde_json::Value, kind| {
            let wire = json!({"metadata": {"name": "w", "namespace": "shop"}, "spec": spec});
            workload(&serde_json::from_value(wire).unwrap(), kind, &mut Shapes::default()).unwrap().value
        };
        let template = json!({"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [
            {"name": "c", "resources": {"limits": {"cpu": "2"}}}]}});
        let set = read(
            json!({"selector": {"matchLabels": {"app": "w"},
                   "matchExpressions": [{"key": "tier", "operator": "Exists"}]}, "template": template}),
            WorkloadKind::ReplicaSet,
        );
        assert_eq!((set.replicas, set.match_labels.len(), set.match_expressions.len()), (1, 1, 1));
        assert_eq!(set.pod.requests.to_string(), "cpu=2 pods=1");
        let controller = read(json!({"replicas": 3, "selector": {"app": "w"}}), WorkloadKind::ReplicationController);
        assert_eq!((controller.replicas, controller.match_labels.get("app").map(|v| &**v)), (3, Some("w")));
    }

    #[test]
    fn a_budget_keeps_the_difference_between_no_selector_and_one_that_selects_all() {
        let parse = |spec, allowed: i32| {
            let wire = json!({"metadata": {"name": "b"}, "spec": spec, "status": {"disruptionsAllowed": allowed}});
            disruption_budget(&serde_json::from_value(wire).unwrap()).unwrap().value
        };
        let none = parse(json!({}), -1);
        assert_eq!((none.selector.is_none(), none.disruptions_allowed), (true, 0));
        let all = parse(json!({"selector": {}, "unhealthyPodEvictionPolicy": "AlwaysAllow"}), 2);
        assert!(all.selector.unwrap().matches(&BTreeMap::<String, String>::new()) && all.always_allows_unhealthy);
        assert_eq!(all.disruptions_allowed, 2);
    }

    /// Sheet 03 §4, and "do better" 14 for the integer.
    #[test]
    fn a_budget_that_can_never_allow_an_eviction_is_told_from_one_that_is_spent() {
        let never = |spec, expected: i32| {
            let wire = json!({"metadata": {"name": "b"}, "spec": spec, "status": {"expectedPods": expected}});
            disruption_budget(&serde_json::from_value(wire).unwrap()).unwrap().value.never_allows
        };
        assert!(never(json!({"maxUnavailable": 0}), 3) && never(json!({"maxUnavailable": "0%"}), 3));
        assert!(never(json!({"minAvailable": "100%"}), 3) && never(json!({"minAvailable": 3}), 3));
        assert!(!never(json!({"maxUnavailable": 1}), 3) && !never(json!({"maxUnavailable": "10%"}), 3));
        assert!(!never(json!({"minAvailable": 2}), 3) && !never(json!({"minAvailable": "99%"}), 3));
        // Not counted yet.
        assert!(!never(json!({"minAvailable": 2}), 0) && !never(json!({}), 0));
    }
}
