//! What to look at next: objects that something happened to, and objects whose time has come.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::change::{Change, Input};
use kerf_model::cluster::{Node, NodeClaim, ObjectName, Pod};
use kerf_model::label;
use kerf_model::snapshot::ClusterSnapshot;

/// In the order in which they are looked at. Claims before nodes: a claim that ends deletes its node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    Pool(Arc<str>),
    Claim(Arc<str>),
    Node(Arc<str>),
    Overlay(Arc<str>),
    Buffer(ObjectName),
    Window(Arc<str>),
    /// Instances without claims, and claims without instances.
    Garbage,
}

#[derive(Debug, Default)]
pub struct Agenda {
    touched: BTreeSet<Item>,
    due: BTreeMap<Item, Timestamp>,
    by_time: BTreeSet<(Timestamp, Item)>,
}

impl Agenda {
    pub fn touch(&mut self, item: Item) {
        self.touched.insert(item);
    }

    /// Replaces when the item wants to be looked at by itself.
    pub fn wake(&mut self, item: Item, at: Option<Timestamp>) {
        if let Some(old) = self.due.remove(&item) {
            self.by_time.remove(&(old, item.clone()));
        }
        if let Some(at) = at {
            self.due.insert(item.clone(), at);
            self.by_time.insert((at, item));
        }
    }

    /// Takes everything that is to be looked at now. O(k log n) for k items.
    pub fn take(&mut self, now: Timestamp) -> BTreeSet<Item> {
        let mut items = std::mem::take(&mut self.touched);
        while let Some((at, item)) = self.by_time.first().cloned().filter(|(at, _)| *at <= now) {
            self.by_time.remove(&(at, item.clone()));
            self.due.remove(&item);
            items.insert(item);
        }
        items
    }

    /// Buffers that are to be looked at, whatever else is.
    pub fn take_buffers(&mut self) -> BTreeSet<Item> {
        let is_buffer = |item: &Item| matches!(item, Item::Buffer(_));
        let (buffers, others) = std::mem::take(&mut self.touched).into_iter().partition(is_buffer);
        self.touched = others;
        buffers
    }

    pub fn next_due(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Everything there is; for the first look.
    pub fn touch_all(&mut self, snapshot: &ClusterSnapshot) {
        self.touched.extend(snapshot.pools().map(|pool| Item::Pool(pool.meta.name.name.clone())));
        self.touched.extend(snapshot.claims().map(|claim| Item::Claim(claim.name().clone())));
        self.touched.extend(snapshot.nodes().map(|node| Item::Node(node.name().clone())));
        self.touched.insert(Item::Garbage);
    }

    /// Touches what an input is about. Called before and after the snapshot takes a change in, so that both the old and
    /// the new relations count: a pod that moves concerns two nodes.
    pub fn hear(&mut self, input: &Input, snapshot: &ClusterSnapshot) {
        match input {
            Input::Change(change) => self.see(change, snapshot),
            Input::Launched { claim, .. }
            | Input::Terminated { claim, .. }
            | Input::DriftFound { claim, .. }
            | Input::HooksRan { claim, .. }
            | Input::InstanceUpdated { claim, .. }
            | Input::Rebooted { claim, .. } => {
                self.claim_by_name(&claim.name.name, snapshot);
            }
            Input::Instances(_) => self.touch(Item::Garbage),
            Input::InstanceFound { provider_id, .. } => self.instance(provider_id, snapshot),
            Input::Interrupted(interruption) => self.instance(&interruption.provider_id, snapshot),
            Input::WriteFailed { effect, .. } => self.failed(effect, snapshot),
            Input::Synced | Input::Catalogue(_) => {}
        }
    }

    fn see(&mut self, change: &Change, snapshot: &ClusterSnapshot) {
        match change {
            Change::Pod(name, new) => {
                self.pod(new.as_deref(), snapshot);
                self.pod(snapshot.pod(name).map(|pod| &**pod), snapshot);
            }
            Change::Node(name, new) => {
                self.node(name, new.as_deref(), snapshot);
                self.node(name, snapshot.node(&name.name).map(|node| &**node), snapshot);
            }
            Change::NodeClaim(name, new) => {
                self.touch(Item::Claim(name.name.clone()));
                self.claim(new.as_deref(), snapshot);
                self.claim(snapshot.claim(&name.name).map(|claim| &**claim), snapshot);
            }
            Change::NodePool(name, _) => {
                self.touch(Item::Pool(name.name.clone()));
                let claims = snapshot.claims().filter(|claim| claim.pool() == Some(&*name.name));
                self.touched.extend(claims.map(|claim| Item::Claim(claim.name().clone())));
            }
            Change::NodeClass(class, _) => {
                let pools = snapshot.pools().filter(|pool| pool.class == *class);
                self.touched.extend(pools.map(|pool| Item::Pool(pool.meta.name.name.clone())));
                let claims = snapshot.claims().filter(|claim| claim.node.class == *class);
                self.touched.extend(claims.map(|claim| Item::Claim(claim.name().clone())));
            }
            Change::VolumeAttachment(name, new) => {
                let _ = name;
                if let Some(attachment) = new {
                    self.touch(Item::Node(attachment.node.clone()));
                }
                self.deleting_nodes(snapshot);
            }
            Change::DisruptionBudget(..) => self.deleting_nodes(snapshot),
            Change::MaintenanceWindow(name, new) => {
                self.touch(Item::Window(name.name.clone()));
                // What we write into its status ourselves concerns nobody.
                if new.as_ref().map(|new| &new.spec) != snapshot.window(&name.name).map(|old| &old.spec) {
                    self.touched.extend(snapshot.claims().map(|claim| Item::Claim(claim.name().clone())));
                }
            }
            Change::NodeOverlay(name, _) => self.touch(Item::Overlay(name.name.clone())),
            Change::CapacityBuffer(name, _) => self.touch(Item::Buffer(name.clone())),
            Change::DaemonSet(..)
            | Change::PersistentVolumeClaim(..)
            | Change::PersistentVolume(..)
            | Change::StorageClass(..)
            | Change::CsiNode(..)
            | Change::Namespace(..)
            | Change::PodTemplate(..)
            | Change::Workload(..)
            | Change::Service(..) => {}
        }
    }

    fn pod(&mut self, pod: Option<&Pod>, snapshot: &ClusterSnapshot) {
        let Some(name) = pod.and_then(|pod| pod.node_name.as_ref()) else { return };
        self.touch(Item::Node(name.clone()));
        if let Some(node) = snapshot.node(name) {
            self.touched.extend(snapshot.claims_of(node).map(|claim| Item::Claim(claim.name().clone())));
        }
    }

    fn node(&mut self, name: &ObjectName, node: Option<&Node>, snapshot: &ClusterSnapshot) {
        self.touch(Item::Node(name.name.clone()));
        let Some(node) = node else { return };
        self.touched.extend(snapshot.claims_of(node).map(|claim| Item::Claim(claim.name().clone())));
        if let Some(pool) = node.meta.labels.get(label::NODEPOOL) {
            self.touch(Item::Pool(pool.clone()));
        }
    }

    fn claim(&mut self, claim: Option<&NodeClaim>, snapshot: &ClusterSnapshot) {
        let Some(claim) = claim else { return };
        self.touched.extend(snapshot.nodes_of(claim).map(|node| Item::Node(node.name().clone())));
        if let Some(pool) = claim.pool() {
            self.touch(Item::Pool(Arc::from(pool)));
        }
    }

    /// The claim and its nodes: both ask about the instance.
    fn claim_by_name(&mut self, name: &Arc<str>, snapshot: &ClusterSnapshot) {
        self.touch(Item::Claim(name.clone()));
        self.claim(snapshot.claim(name).map(|claim| &**claim), snapshot);
    }

    fn instance(&mut self, provider_id: &str, snapshot: &ClusterSnapshot) {
        let claims: Vec<Arc<str>> = snapshot.claims_with_id(provider_id).map(|claim| claim.name().clone()).collect();
        for name in claims {
            self.claim_by_name(&name, snapshot);
        }
        self.touched.extend(snapshot.nodes_with_id(provider_id).map(|node| Item::Node(node.name().clone())));
    }

    /// Whoever wanted the effect decides anew.
    fn failed(&mut self, effect: &kerf_model::effect::Effect, snapshot: &ClusterSnapshot) {
        use kerf_model::effect::Effect;
        match effect {
            Effect::PatchClaim(target, _)
            | Effect::DeleteClaim(target)
            | Effect::Launch { claim: target }
            | Effect::CheckDrift { claim: target }
            | Effect::RunHooks { claim: target }
            | Effect::UpdateInstance { claim: target }
            | Effect::Reboot { claim: target, .. } => {
                self.claim_by_name(&target.name.name, snapshot);
            }
            Effect::Terminate { claim, .. } => self.claim_by_name(&claim.name.name, snapshot),
            Effect::PatchNode(target, _) | Effect::DeleteNode(target) => {
                self.touch(Item::Node(target.name.name.clone()));
                if let Some(node) = snapshot.node(&target.name.name) {
                    self.touched.extend(snapshot.claims_of(node).map(|claim| Item::Claim(claim.name().clone())));
                }
            }
            Effect::PatchPool(target, _) => self.touch(Item::Pool(target.name.name.clone())),
            Effect::EvictPod(target, _) | Effect::DeletePod(target, ..) => {
                self.pod(snapshot.pod(&target.name).map(|pod| &**pod), snapshot);
            }
            Effect::FindInstance { provider_id } => self.instance(provider_id, snapshot),
            Effect::ListInstances | Effect::TerminateOrphan { .. } => self.touch(Item::Garbage),
            Effect::PatchOverlay(target, _) => self.touch(Item::Overlay(target.name.name.clone())),
            Effect::PatchBuffer(target, _) => self.touch(Item::Buffer(target.name.clone())),
            Effect::PatchWindow(target, _) => self.touch(Item::Window(target.name.name.clone())),
            Effect::CreateClaim(_) | Effect::PatchPod(..) | Effect::Publish(_) => {}
        }
    }

    /// What the cloud offers has changed: claims of those pools may have drifted.
    pub fn offers_changed(&mut self, pools: &BTreeSet<Arc<str>>, snapshot: &ClusterSnapshot) {
        let claims = snapshot.claims().filter(|claim| claim.pool().is_some_and(|pool| pools.contains(pool)));
        self.touched.extend(claims.map(|claim| Item::Claim(claim.name().clone())));
    }

    fn deleting_nodes(&mut self, snapshot: &ClusterSnapshot) {
        let deleting = snapshot.nodes().filter(|node| node.meta.is_deleting());
        self.touched.extend(deleting.map(|node| Item::Node(node.name().clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn item(name: &str) -> Item {
        Item::Claim(Arc::from(name))
    }

    #[test]
    fn an_item_comes_up_once_when_its_time_has_come_or_it_is_touched() {
        let mut agenda = Agenda::default();
        agenda.wake(item("a"), Some(at(10)));
        agenda.wake(item("b"), Some(at(20)));
        agenda.wake(item("a"), Some(at(15)));
        assert_eq!(agenda.next_due(), Some(at(15)));
        assert!(agenda.take(at(14)).is_empty());
        agenda.touch(item("c"));
        assert_eq!(agenda.take(at(15)).into_iter().collect::<Vec<_>>(), [item("a"), item("c")]);
        assert!(agenda.take(at(15)).is_empty());
        agenda.wake(item("b"), None);
        assert_eq!(agenda.next_due(), None);
    }
}
