//! What an operator can set.

use jiff::SignedDuration;
use kerf_model::cluster::Node;
use kerf_model::node_pool::{ClassKind, NodeClassRef};

use crate::claim::health::LegacyRepair;

#[derive(Debug, Clone)]
pub struct Settings {
    /// The node classes of our provider. Claims, nodes and pools of other kinds belong to other controllers and are
    /// never touched.
    pub classes: Vec<ClassKind>,
    /// From a claim's creation.
    pub launch_timeout: SignedDuration,
    /// From the launch. The reference counts from the claim's creation, and has no such setting.
    pub registration_timeout: SignedDuration,
    /// The scheduler may bind a pod just after the taint: no node counts as drained before this.
    pub minimum_drain: SignedDuration,
    /// How often instances and claims are compared.
    pub collect_every: SignedDuration,
    /// Younger instances may belong to a claim that has not been written yet.
    pub collect_older_than: SignedDuration,
    /// Feature gate `StaticCapacity`.
    pub static_capacity: bool,
    /// Feature gate `Drift`: off takes back what was seen of it.
    pub drift: bool,
    /// Feature gate `InPlaceDrift`: nodes are changed as they run where that is as good as a new one.
    pub in_place_drift: bool,
    /// Sick nodes are repaired the old way (`--legacy-node-repair` with the gate `NodeRepair`).
    pub legacy_repair: Option<LegacyRepair>,
    /// Nothing new goes onto nodes that the cloud advises to leave (`--rebalance-action Cordon`).
    pub rebalance_cordons: bool,
    /// Feature gate `PodDeletionCostManagement`: what stands in pods' deletion costs is ours.
    pub manages_deletion_cost: bool,
    /// Whether the provider has reasons of its own to call a claim drifted; then it is asked.
    pub provider_drift: bool,
    /// Whether the provider has registration hooks; then nodes wait for them.
    pub registration_hooks: bool,
}

impl Settings {
    /// The reference's numbers.
    pub fn for_classes(classes: Vec<ClassKind>) -> Self {
        Self {
            classes,
            launch_timeout: SignedDuration::from_mins(5),
            registration_timeout: SignedDuration::from_mins(15),
            minimum_drain: SignedDuration::from_secs(5),
            collect_every: SignedDuration::from_mins(2),
            collect_older_than: SignedDuration::from_secs(30),
            static_capacity: false,
            drift: true,
            in_place_drift: false,
            legacy_repair: None,
            rebalance_cordons: false,
            manages_deletion_cost: false,
            provider_drift: false,
            registration_hooks: false,
        }
    }

    pub fn manages(&self, class: &NodeClassRef) -> bool {
        self.classes.iter().any(|known| known.is_of(class))
    }

    /// A node is recognised by the label of its class, whatever the value.
    pub fn manages_node(&self, node: &Node) -> bool {
        self.classes.iter().any(|class| node.meta.labels.contains_key(&*class.label_key()))
    }
}
