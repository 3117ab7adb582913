//! What stands around pods: DaemonSets, PodDisruptionBudgets, namespaces.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kerf_model::cluster::{DaemonSet, DisruptionBudget, Namespace};
use kube::ResourceExt;

use crate::slim::{SlimDaemonSet, SlimNamespace, SlimPodDisruptionBudget, SlimPodSpec, SlimPodStatus};

use super::labels::selector;
use super::metadata::{object_meta_sharing, texts};
use super::pod::{constraints, requests};
use super::shapes::Shapes;
use super::{Collector, ParseError, Parsed};

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
        always_allows_unhealthy: wire.spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow"),
    };
    problems.finish("PodDisruptionBudget", &wire.name_any(), Some(parsed))
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
}
