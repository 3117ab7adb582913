//! The few calls on Nodes that a shell lends: a Kubernetes client in the controller, the store in the simulator.

use kerf_model::cluster::Node;
use kerf_model::effect::{Target, WriteError};
use serde_json::Value;

pub trait NodeApi: Send + Sync {
    /// Posts a Node. [`WriteError::Conflict`] if there is one of this name.
    fn create(&self, node: Value) -> impl Future<Output = Result<(), WriteError>> + Send;

    /// Reads a Node from the server and not from a cache, which may not have seen the last one yet.
    fn get(&self, name: &str) -> impl Future<Output = Result<Option<Node>, WriteError>> + Send;

    fn list(&self) -> impl Future<Output = Result<Vec<Node>, WriteError>> + Send;

    /// Those that carry the label, whatever its value.
    fn list_labelled(&self, key: &str) -> impl Future<Output = Result<Vec<Node>, WriteError>> + Send {
        async move {
            let nodes = self.list().await?;
            Ok(nodes.into_iter().filter(|node| node.meta.label(key).is_some()).collect())
        }
    }

    /// Writes the boot id into the Node's status, as its kubelet would after a boot.
    fn set_boot_id(&self, node: &str, boot_id: &str) -> impl Future<Output = Result<(), WriteError>> + Send;

    /// [`WriteError::NotFound`] if it is gone, or if another has taken its name.
    fn delete(&self, node: &Target) -> impl Future<Output = Result<(), WriteError>> + Send;
}
