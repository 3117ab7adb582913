//! Nodes in memory, a class, and a world that ticks.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use jiff::{SignedDuration, Timestamp};
use kerf_cloud::contract::World;
use kerf_cloud_kwok::class::CLASS_KIND;
use kerf_cloud_kwok::{KwokClass, NodeApi};
use kerf_model::cluster::{ClassReadiness, Node, NodeClass, ObjectMeta, ObjectName, Texts};
use kerf_model::effect::{Target, WriteError};
use kerf_model::node_pool::NodeClassRef;
use kerf_model::resources::{ResourceList, ResourceName};
use serde_json::Value;

/// A store of Nodes with Kubernetes' rules on deletion.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Store>>);

#[derive(Default)]
struct Store {
    nodes: BTreeMap<String, (Value, Node)>,
    posts: u32,
    refuses_posts: bool,
}

impl Memory {
    pub fn refuse_posts(&self, refuse: bool) {
        self.store().refuses_posts = refuse;
    }

    pub fn names(&self) -> Vec<String> {
        self.store().nodes.keys().cloned().collect()
    }

    pub fn posted(&self, name: &str) -> Option<Value> {
        self.store().nodes.get(name).map(|(posted, _)| posted.clone())
    }

    pub fn posts(&self) -> u32 {
        self.store().posts
    }

    /// Changes a node by hand; one that is being deleted goes with its last finalizer.
    pub fn change(&self, name: &str, change: impl FnOnce(&mut Node)) {
        let mut store = self.store();
        let node = store.nodes.get_mut(name).map(|(_, node)| node);
        if let Some(node) = node {
            change(node);
            if node.meta.is_deleting() && node.meta.finalizers.is_empty() {
                store.nodes.remove(name);
            }
        }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NodeApi for Memory {
    async fn create(&self, node: Value) -> Result<(), WriteError> {
        let mut store = self.store();
        if store.refuses_posts {
            return Err(WriteError::Invalid { message: "denied by a webhook".to_owned() });
        }
        let parsed = parse(&node);
        let name = parsed.name().to_string();
        if store.nodes.contains_key(&name) {
            return Err(WriteError::Conflict);
        }
        store.posts += 1;
        store.nodes.insert(name, (node, parsed));
        Ok(())
    }

    async fn get(&self, name: &str) -> Result<Option<Node>, WriteError> {
        Ok(self.store().nodes.get(name).map(|(_, node)| node.clone()))
    }

    async fn list(&self) -> Result<Vec<Node>, WriteError> {
        Ok(self.store().nodes.values().map(|(_, node)| node.clone()).collect())
    }

    async fn set_boot_id(&self, node: &str, boot_id: &str) -> Result<(), WriteError> {
        if !self.store().nodes.contains_key(node) {
            return Err(WriteError::NotFound);
        }
        self.change(node, |node| node.boot_id = Some(boot_id.into()));
        Ok(())
    }

    async fn delete(&self, target: &Target) -> Result<(), WriteError> {
        let same = self.store().nodes.get(&*target.name.name).is_some_and(|(_, node)| node.meta.uid == target.uid);
        if !same {
            return Err(WriteError::NotFound);
        }
        self.change(&target.name.name, |node| node.meta.deleting = Some(Timestamp::UNIX_EPOCH));
        Ok(())
    }
}

fn parse(node: &Value) -> Node {
    let text = |pointer: &str| node.pointer(pointer).and_then(Value::as_str).map(Arc::<str>::from);
    let object = |pointer: &str| node.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default();
    let texts = |pointer: &str| -> Texts {
        object(pointer).iter().filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into()))).collect()
    };
    let amounts = |pointer: &str| -> ResourceList {
        let fields = object(pointer);
        let amounts = fields
            .iter()
            .filter_map(|(name, value)| Some((ResourceName::from(name.as_str()), value.as_str()?.parse().ok()?)));
        amounts.collect()
    };
    let name = text("/metadata/name").unwrap_or_default();
    let meta = ObjectMeta {
        labels: texts("/metadata/labels"),
        annotations: texts("/metadata/annotations"),
        ..object_meta(&name)
    };
    Node {
        meta,
        provider_id: text("/spec/providerID"),
        taints: Vec::new(),
        unschedulable: false,
        capacity: amounts("/status/capacity"),
        allocatable: amounts("/status/allocatable"),
        conditions: Vec::new(),
        boot_id: None,
    }
}

fn object_meta(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: ObjectName::of_cluster(name),
        uid: format!("uid-of-{name}").into(),
        resource_version: Arc::from("1"),
        generation: 1,
        created: Timestamp::UNIX_EPOCH,
        deleting: None,
        labels: Texts::new(),
        annotations: Texts::new(),
        finalizers: Vec::new(),
        owners: Vec::new(),
    }
}

pub fn class_ref() -> NodeClassRef {
    NodeClassRef { group: CLASS_KIND.group.into(), kind: CLASS_KIND.kind.into(), name: Arc::from("default") }
}

pub fn class(delay_secs: i64) -> KwokClass {
    let common = NodeClass { meta: object_meta("default"), class: class_ref(), readiness: ClassReadiness::Ready };
    let delay = (delay_secs > 0).then(|| format!("{delay_secs}s"));
    KwokClass::new(common, delay.as_deref()).unwrap()
}

pub struct Ticking {
    pub class: KwokClass,
    pub now: Timestamp,
}

impl World<KwokClass> for Ticking {
    fn class(&self) -> &KwokClass {
        &self.class
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    async fn wait(&mut self) {
        self.now += SignedDuration::from_secs(1);
    }
}

/// Nothing in memory waits.
pub fn now_or_never<T>(future: impl Future<Output = T>) -> T {
    let Poll::Ready(value) = pin!(future).poll(&mut Context::from_waker(Waker::noop())) else {
        unreachable!("a call in memory waited")
    };
    value
}
