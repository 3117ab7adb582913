//! Nodes without machines, as kwok plays them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ObjectMeta;

/// A node of 4 cpu and 16Gi that kwok takes for its own. The label `kubernetes.io/hostname` is its name.
pub fn fake_node(name: &str) -> Node {
    let text = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let size = |key: &str, value: &str| (key.to_owned(), Quantity(value.to_owned()));
    let room = BTreeMap::from([size("cpu", "4"), size("memory", "16Gi"), size("pods", "110")]);
    Node {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([text("kwok-partition", "a"), text("kubernetes.io/hostname", name)].into()),
            annotations: Some([text("kwok.x-k8s.io/node", "fake")].into()),
            ..ObjectMeta::default()
        },
        status: Some(NodeStatus { capacity: Some(room.clone()), allocatable: Some(room), ..NodeStatus::default() }),
        ..Node::default()
    }
}

pub fn condition<'a>(node: &'a Node, kind: &str) -> Option<&'a NodeCondition> {
    node.status.as_ref()?.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}
