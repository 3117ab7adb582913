//! `pods/binding`: how a scheduler places a pod.

use jiff::Timestamp;
use kerf_model::cluster::ObjectName;
use serde_json::json;

use super::object::{field, list, time_text};
use super::{ApiError, Conflict, Kind, Object, Store};

impl Store {
    /// Assigns a pod to a node, once and for all. Nobody checks that the node exists.
    pub fn bind(&mut self, name: &ObjectName, node: &str, now: Timestamp) -> Result<Object, ApiError> {
        let old = self.get(Kind::Pod, name)?.clone();
        let pod = name.name.to_string();
        let cause = if old.is_deleting() {
            Some(Conflict::PodIsDeleting { pod })
        } else if let Some(node) = old.text(&["spec", "nodeName"]).filter(|node| !node.is_empty()) {
            Some(Conflict::PodIsBound { pod, node: node.to_owned() })
        } else if !list(old.body(), &["spec", "schedulingGates"]).is_empty() {
            Some(Conflict::PodIsGated { pod })
        } else {
            None
        };
        if let Some(cause) = cause {
            return Err(ApiError::Conflict { kind: Kind::Pod, name: name.clone(), cause });
        }
        let mut body = old.body().clone();
        *field(field(&mut body, "spec"), "nodeName") = json!(node);
        let mut conditions = old.list(&["status", "conditions"]).to_vec();
        conditions.retain(|condition| condition["type"] != "PodScheduled");
        conditions.push(json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": time_text(now)}));
        *field(field(&mut body, "status"), "conditions") = json!(conditions);
        Ok(self.store(Kind::Pod, name.clone(), body))
    }
}
