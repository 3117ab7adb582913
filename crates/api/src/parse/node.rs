//! Nodes.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{NodeCondition as WireCondition, Taint as WireTaint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kerf_model::cluster::{ConditionStatus, Node, NodeCondition};
use kerf_model::taint::Taint;
use kube::ResourceExt;

use crate::slim::SlimNode;

use super::metadata::object_meta_sharing;
use super::pod::amounts;
use super::problem::Violation;
use super::shapes::Shapes;
use super::{Collector, ParseError, Parsed};

pub fn node(wire: &SlimNode, shapes: &mut Shapes) -> Result<Parsed<Node>, ParseError> {
    let mut problems = Collector::default();
    let text = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
    let parsed = Node {
        meta: object_meta_sharing(&wire.metadata, |_| true, &mut |text| shapes.text(text)),
        provider_id: text(&wire.spec.provider_id),
        taints: taints(&wire.spec.taints, &mut problems),
        unschedulable: wire.spec.unschedulable,
        capacity: amounts(|| "status.capacity".to_owned(), &wire.status.capacity, &mut problems),
        allocatable: amounts(|| "status.allocatable".to_owned(), &wire.status.allocatable, &mut problems),
        conditions: wire.status.conditions.iter().map(|wire| condition(wire, shapes)).collect(),
        boot_id: text(&wire.status.node_info.boot_id),
    };
    problems.finish("Node", &wire.name_any(), Some(parsed))
}

/// An effect that is not known has none on the scheduler we plan for: the node stays usable without the taint.
fn taints(wire: &[WireTaint], problems: &mut Collector) -> Vec<Taint> {
    let mut taints = Vec::new();
    for (index, wire) in wire.iter().enumerate() {
        match wire.effect.parse() {
            Ok(effect) => {
                let added = wire.time_added.as_ref().map(|Time(time)| *time);
                taints.push(Taint::new(&wire.key, wire.value.as_deref().unwrap_or_default(), effect).with_added(added));
            }
            Err(_) => problems.warn(format!("spec.taints[{index}].effect"), Violation::Effect(wire.effect.clone())),
        }
    }
    taints
}

fn condition(wire: &WireCondition, shapes: &mut Shapes) -> NodeCondition {
    let Ok(status) = wire.status.parse::<ConditionStatus>();
    NodeCondition {
        kind: shapes.text(&wire.type_),
        status,
        reason: shapes.text(wire.reason.as_deref().unwrap_or_default()),
        since: wire.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |Time(time)| *time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: serde_json::Value) -> Result<Parsed<Node>, ParseError> {
        node(&serde_json::from_value(value).unwrap(), &mut Shapes::default())
    }

    #[test]
    fn a_node_becomes_a_record() {
        let parsed = parse(serde_json::json!({
            "metadata": {"name": "a", "uid": "u", "labels": {"x": "y"}, "finalizers": ["karpenter.sh/termination"]},
            "spec": {
                "providerID": "kwok://a", "unschedulable": true,
                "taints": [
                    {"key": "a", "value": "1", "effect": "NoSchedule", "timeAdded": "2026-11-17T09:00:00Z"},
                    {"key": "b", "effect": "Later"},
                ],
            },
            "status": {
                "capacity": {"cpu": "2", "memory": "4Gi"}, "allocatable": {"cpu": "1900m"},
                "conditions": [
                    {"type": "Ready", "status": "True", "reason": "R", "lastTransitionTime": "2026-11-17T10:00:00Z"},
                ],
                "nodeInfo": {"bootID": "b1"},
            },
        }))
        .unwrap();
        let node = parsed.value;
        assert_eq!((node.provider_id.as_deref(), node.boot_id.as_deref()), (Some("kwok://a"), Some("b1")));
        assert_eq!(node.capacity.to_string(), "cpu=2 memory=4Gi");
        assert_eq!(node.taints, ["a=1:NoSchedule".parse().unwrap()]);
        assert_eq!(node.taints[0].added.map(|added| added.to_string()).as_deref(), Some("2026-11-17T09:00:00Z"));
        assert!(node.unschedulable && node.is_ready());
        assert_eq!(node.condition("Ready").unwrap().since.to_string(), "2026-11-17T10:00:00Z");
        assert_eq!(parsed.warnings[0].field, "spec.taints[1].effect");
    }

    #[test]
    fn a_node_that_has_just_joined_has_no_provider_id() {
        let node = parse(serde_json::json!({"metadata": {"name": "a"}, "spec": {"providerID": ""}})).unwrap().value;
        assert_eq!((node.provider_id, node.boot_id, node.meta.generation), (None, None, 0));
    }

    #[test]
    fn an_amount_that_is_none_makes_the_node_unusable_and_is_named() {
        let error = parse(serde_json::json!({"metadata": {"name": "a"}, "status": {"capacity": {"cpu": "two"}}}));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("Node a is not usable: status.capacity[cpu]: "), "{error}");
    }
}
