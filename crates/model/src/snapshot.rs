//! The cluster as it is known: what every decision looks at.
//!
//! One value, kept current by [`ClusterSnapshot::apply`] and lent to decisions; records are shared behind `Arc`, so a
//! clone (for a what-if, a plan, a test) copies pointers only. All maps are ordered: the same changes give the same
//! snapshot, and the same snapshot the same answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::change::Change;
use crate::cluster::{
    CapacityBuffer, CsiNode, DaemonSet, DisruptionBudget, Namespace, Node, NodeClaim, NodeClass, NodeOverlay,
    ObjectName, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate, Service, StorageClass, StoredPool,
    StoredWindow, VolumeAttachment, Workload, WorkloadKind,
};
use crate::maintenance::MaintenanceWindow;
use crate::node_pool::NodeClassRef;

#[derive(Debug, Clone, Default)]
pub struct ClusterSnapshot {
    pods: BTreeMap<ObjectName, Arc<Pod>>,
    nodes: BTreeMap<Arc<str>, Arc<Node>>,
    claims: BTreeMap<Arc<str>, Arc<NodeClaim>>,
    pools: BTreeMap<Arc<str>, Arc<StoredPool>>,
    classes: BTreeMap<NodeClassRef, Arc<NodeClass>>,
    daemon_sets: BTreeMap<ObjectName, Arc<DaemonSet>>,
    disruption_budgets: BTreeMap<ObjectName, Arc<DisruptionBudget>>,
    windows: BTreeMap<Arc<str>, Arc<StoredWindow>>,
    attachments: BTreeMap<Arc<str>, Arc<VolumeAttachment>>,
    volume_claims: BTreeMap<ObjectName, Arc<PersistentVolumeClaim>>,
    volumes: BTreeMap<Arc<str>, Arc<PersistentVolume>>,
    storage_classes: BTreeMap<Arc<str>, Arc<StorageClass>>,
    csi_nodes: BTreeMap<Arc<str>, Arc<CsiNode>>,
    namespaces: BTreeMap<Arc<str>, Arc<Namespace>>,
    overlays: BTreeMap<Arc<str>, Arc<NodeOverlay>>,
    buffers: BTreeMap<ObjectName, Arc<CapacityBuffer>>,
    pod_templates: BTreeMap<ObjectName, Arc<PodTemplate>>,
    workloads: BTreeMap<(WorkloadKind, ObjectName), Arc<Workload>>,
    services: BTreeMap<ObjectName, Arc<Service>>,
    pods_by_node: Index<Arc<str>, ObjectName>,
    nodes_by_provider_id: Index<Arc<str>, Arc<str>>,
    claims_by_provider_id: Index<Arc<str>, Arc<str>>,
    attachments_by_node: Index<Arc<str>, Arc<str>>,
}

/// From a property of objects to their names.
#[derive(Debug, Clone)]
struct Index<K, N>(BTreeMap<K, BTreeSet<N>>);

impl ClusterSnapshot {
    /// Takes in one change. O(log n), plus the size of the index entries touched.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Pod(name, pod) => {
                let node = |pod: &Arc<Pod>| pod.node_name.clone();
                let old = set(&mut self.pods, name.clone(), pod.clone());
                self.pods_by_node.moved(&name, old.as_ref().and_then(node), pod.as_ref().and_then(node));
            }
            Change::Node(name, node) => {
                let id = |node: &Arc<Node>| node.provider_id.clone();
                let old = set(&mut self.nodes, name.name.clone(), node.clone());
                self.nodes_by_provider_id.moved(&name.name, old.as_ref().and_then(id), node.as_ref().and_then(id));
            }
            Change::NodeClaim(name, claim) => {
                let id = |claim: &Arc<NodeClaim>| claim.status.provider_id.clone();
                let old = set(&mut self.claims, name.name.clone(), claim.clone());
                self.claims_by_provider_id.moved(&name.name, old.as_ref().and_then(id), claim.as_ref().and_then(id));
            }
            Change::VolumeAttachment(name, attachment) => {
                let node = |attachment: &Arc<VolumeAttachment>| Some(attachment.node.clone());
                let old = set(&mut self.attachments, name.name.clone(), attachment.clone());
                let (old, new) = (old.as_ref().and_then(node), attachment.as_ref().and_then(node));
                self.attachments_by_node.moved(&name.name, old, new);
            }
            Change::NodePool(name, pool) => drop(set(&mut self.pools, name.name, pool)),
            Change::NodeClass(class, object) => drop(set(&mut self.classes, class, object)),
            Change::DaemonSet(name, object) => drop(set(&mut self.daemon_sets, name, object)),
            Change::DisruptionBudget(name, object) => drop(set(&mut self.disruption_budgets, name, object)),
            Change::MaintenanceWindow(name, object) => drop(set(&mut self.windows, name.name, object)),
            Change::PersistentVolumeClaim(name, object) => drop(set(&mut self.volume_claims, name, object)),
            Change::PersistentVolume(name, object) => drop(set(&mut self.volumes, name.name, object)),
            Change::StorageClass(name, object) => drop(set(&mut self.storage_classes, name.name, object)),
            Change::CsiNode(name, object) => drop(set(&mut self.csi_nodes, name.name, object)),
            Change::Namespace(name, object) => drop(set(&mut self.namespaces, name.name, object)),
            Change::NodeOverlay(name, object) => drop(set(&mut self.overlays, name.name, object)),
            Change::CapacityBuffer(name, object) => drop(set(&mut self.buffers, name, object)),
            Change::PodTemplate(name, object) => drop(set(&mut self.pod_templates, name, object)),
            Change::Workload(kind, name, object) => drop(set(&mut self.workloads, (kind, name), object)),
            Change::Service(name, object) => drop(set(&mut self.services, name, object)),
        }
    }

    pub fn pod(&self, name: &ObjectName) -> Option<&Arc<Pod>> {
        self.pods.get(name)
    }

    pub fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods.values()
    }

    /// Pods bound to a node, whether the node is known or not.
    pub fn pods_on(&self, node: &str) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods_by_node.get(node).filter_map(|name| self.pods.get(name))
    }

    pub fn node(&self, name: &str) -> Option<&Arc<Node>> {
        self.nodes.get(name)
    }

    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    pub fn claim(&self, name: &str) -> Option<&Arc<NodeClaim>> {
        self.claims.get(name)
    }

    pub fn claims(&self) -> impl Iterator<Item = &Arc<NodeClaim>> {
        self.claims.values()
    }

    /// The nodes of a claim: none before it joins, one as a rule, several if something is wrong.
    pub fn nodes_of<'a>(&'a self, claim: &'a NodeClaim) -> impl Iterator<Item = &'a Arc<Node>> {
        let id = claim.status.provider_id.as_deref();
        id.into_iter().flat_map(|id| self.nodes_by_provider_id.get(id)).filter_map(|name| self.nodes.get(name))
    }

    pub fn nodes_with_id(&self, provider_id: &str) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes_by_provider_id.get(provider_id).filter_map(|name| self.nodes.get(name))
    }

    pub fn claims_with_id(&self, provider_id: &str) -> impl Iterator<Item = &Arc<NodeClaim>> {
        self.claims_by_provider_id.get(provider_id).filter_map(|name| self.claims.get(name))
    }

    pub fn claims_of<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a Arc<NodeClaim>> {
        let id = node.provider_id.as_deref();
        id.into_iter().flat_map(|id| self.claims_by_provider_id.get(id)).filter_map(|name| self.claims.get(name))
    }

    pub fn pool(&self, name: &str) -> Option<&Arc<StoredPool>> {
        self.pools.get(name)
    }

    pub fn pools(&self) -> impl Iterator<Item = &Arc<StoredPool>> {
        self.pools.values()
    }

    pub fn class(&self, class: &NodeClassRef) -> Option<&Arc<NodeClass>> {
        self.classes.get(class)
    }

    pub fn classes(&self) -> impl Iterator<Item = &Arc<NodeClass>> {
        self.classes.values()
    }

    pub fn daemon_sets(&self) -> impl Iterator<Item = &Arc<DaemonSet>> {
        self.daemon_sets.values()
    }

    pub fn disruption_budgets(&self) -> impl Iterator<Item = &Arc<DisruptionBudget>> {
        self.disruption_budgets.values()
    }

    pub fn maintenance_windows(&self) -> impl Iterator<Item = &MaintenanceWindow> {
        self.windows.values().map(|window| &window.spec)
    }

    pub fn window(&self, name: &str) -> Option<&Arc<StoredWindow>> {
        self.windows.get(name)
    }

    pub fn attachments_on(&self, node: &str) -> impl Iterator<Item = &Arc<VolumeAttachment>> {
        self.attachments_by_node.get(node).filter_map(|name| self.attachments.get(name))
    }

    pub fn volume_claim(&self, name: &ObjectName) -> Option<&Arc<PersistentVolumeClaim>> {
        self.volume_claims.get(name)
    }

    pub fn volume(&self, name: &str) -> Option<&Arc<PersistentVolume>> {
        self.volumes.get(name)
    }

    pub fn storage_class(&self, name: &str) -> Option<&Arc<StorageClass>> {
        self.storage_classes.get(name)
    }

    pub fn csi_node(&self, name: &str) -> Option<&Arc<CsiNode>> {
        self.csi_nodes.get(name)
    }

    pub fn namespace(&self, name: &str) -> Option<&Arc<Namespace>> {
        self.namespaces.get(name)
    }

    pub fn overlay(&self, name: &str) -> Option<&Arc<NodeOverlay>> {
        self.overlays.get(name)
    }

    pub fn overlays(&self) -> impl Iterator<Item = &Arc<NodeOverlay>> {
        self.overlays.values()
    }

    pub fn buffer(&self, name: &ObjectName) -> Option<&Arc<CapacityBuffer>> {
        self.buffers.get(name)
    }

    pub fn buffers(&self) -> impl Iterator<Item = &Arc<CapacityBuffer>> {
        self.buffers.values()
    }

    pub fn pod_template(&self, name: &ObjectName) -> Option<&Arc<PodTemplate>> {
        self.pod_templates.get(name)
    }

    pub fn workload(&self, kind: WorkloadKind, name: ObjectName) -> Option<&Arc<Workload>> {
        self.workloads.get(&(kind, name))
    }

    pub fn services_in(&self, namespace: &Arc<str>) -> impl Iterator<Item = &Arc<Service>> {
        let first = ObjectName { namespace: Arc::clone(namespace), name: Arc::from("") };
        let within = self.services.range(first..).take_while(move |(name, _)| name.namespace == *namespace);
        within.map(|(_, service)| service)
    }
}

fn set<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) -> Option<V> {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    }
}

impl<K, N> Default for Index<K, N> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<N: Ord + Clone> Index<Arc<str>, N> {
    fn get(&self, key: &str) -> impl Iterator<Item = &N> {
        self.0.get(key).into_iter().flatten()
    }

    /// The object's property was `old` and is `new`.
    fn moved(&mut self, name: &N, old: Option<Arc<str>>, new: Option<Arc<str>>) {
        if old == new {
            return;
        }
        if let Some(old) = old
            && let Some(names) = self.0.get_mut(&old)
        {
            names.remove(name);
            if names.is_empty() {
                self.0.remove(&old);
            }
        }
        if let Some(new) = new {
            self.0.entry(new).or_default().insert(name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ObjectMeta;
    use jiff::Timestamp;

    fn node(name: &str, provider_id: Option<&str>) -> Change {
        let meta = ObjectMeta {
            name: ObjectName::of_cluster(name),
            uid: Arc::from(name),
            resource_version: Arc::from("1"),
            generation: 1,
            created: Timestamp::UNIX_EPOCH,
            deleting: None,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            finalizers: Vec::new(),
            owners: Vec::new(),
        };
        let node = Node {
            meta,
            provider_id: provider_id.map(Arc::from),
            taints: Vec::new(),
            unschedulable: false,
            capacity: Default::default(),
            allocatable: Default::default(),
            conditions: Vec::new(),
            boot_id: None,
        };
        Change::Node(ObjectName::of_cluster(name), Some(Arc::new(node)))
    }

    fn by_id(snapshot: &ClusterSnapshot, id: &str) -> Vec<String> {
        snapshot.nodes_by_provider_id.get(id).map(ToString::to_string).collect()
    }

    #[test]
    fn an_index_follows_the_object_when_its_property_changes_and_when_it_goes() {
        let mut snapshot = ClusterSnapshot::default();
        snapshot.apply(node("a", None));
        snapshot.apply(node("a", Some("x")));
        snapshot.apply(node("b", Some("x")));
        snapshot.apply(node("b", Some("x")));
        assert_eq!(by_id(&snapshot, "x"), ["a", "b"]);
        snapshot.apply(node("a", Some("y")));
        assert_eq!((by_id(&snapshot, "x"), by_id(&snapshot, "y")), (vec!["b".into()], vec!["a".to_string()]));
        snapshot.apply(Change::Node(ObjectName::of_cluster("b"), None));
        assert!(by_id(&snapshot, "x").is_empty() && snapshot.node("b").is_none());
    }
}
