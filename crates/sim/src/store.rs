//! The Kubernetes API in memory, with Kubernetes' rules: what is kept, what every verb does, what it refuses.
//!
//! Synchronous and deterministic: time is passed in, uids and generated names come from the seed. Objects are JSON
//! values behind an `Arc`: an object, its log entries and its readers share one body. A small pod costs about 9.5 KiB this
//! way (`examples/throughput.rs`); as bytes it would cost a sixth, but every look of an actor would have to parse it.
//!
//! [`Store`] has the verbs. Beside them: [`Patch`], deletion (`delete.rs`), evictions (`eviction.rs`), garbage collection
//! ([`Store::collect`]), what is done to built-in kinds (`built_in.rs`). Custom kinds pass `kerf_api::admission`, so that
//! this store cannot accept what a real server refuses.
//!
//! Not modelled: managed fields and server-side apply, quota, service accounts, webhooks, the deletion of a namespace's
//! content, and most checks of built-in kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kerf_api::admission::{Admission, Outcome};
use kerf_model::cluster::ObjectName;
use serde_json::{Value, json};

mod binding;
mod built_in;
mod delete;
mod error;
mod eviction;
mod garbage;
mod kind;
mod log;
mod names;
pub mod object;
mod patch;
pub mod query;
#[cfg(test)]
mod tests;
mod write_rules;

pub use delete::{DeleteOptions, Deleted, Propagation};
pub use error::{ApiError, Conflict, EvictionRefusal, FieldProblem, Gone};
pub use kind::{Kind, KindFacts, Origin, Scope};
pub use log::{ChangeKind, Event};
pub use object::{LabelMap, Object, OwnerReference};
pub use patch::Patch;
pub use query::Query;

use garbage::Garbage;
use log::Log;
use names::Names;
use object::{at, field, fields, time_text};
use write_rules::{
    check_name, check_new_finalizers, check_preconditions, check_server_metadata, keep_server_metadata, stamp_type,
    take_part, wanted,
};

/// How often a generated name is tried before the clash is reported, as in Kubernetes.
const GENERATE_TRIES: usize = 8;

/// The classes that every cluster has.
const SYSTEM_PRIORITIES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

const SYSTEM_NAMESPACES: [&str; 2] = ["default", "kube-system"];

pub struct Store {
    kinds: BTreeMap<Kind, Collection>,
    version: u64,
    names: Names,
    admission: Arc<Admission>,
    garbage: Garbage,
    pods_by_node: BTreeMap<String, BTreeSet<ObjectName>>,
}

#[derive(Default)]
struct Collection {
    objects: BTreeMap<ObjectName, Object>,
    log: Log,
}

/// The answer to a list.
#[derive(Debug, Clone)]
pub struct List {
    /// Watch from here to miss nothing.
    pub version: u64,
    pub items: Vec<Object>,
}

/// Which endpoint of an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Everything but the status.
    Main,
    /// Nothing but the status.
    Status,
}

impl Store {
    /// A cluster with nothing but its system objects. Compiling the definitions takes longer than many a simulation, so
    /// stores share them.
    pub fn new(admission: Arc<Admission>, seed: u64, now: Timestamp) -> Self {
        let mut store = Self {
            kinds: Kind::ALL.into_iter().map(|kind| (kind, Collection::default())).collect(),
            version: 0,
            names: Names::new(seed),
            admission,
            garbage: Garbage::default(),
            pods_by_node: BTreeMap::new(),
        };
        for namespace in SYSTEM_NAMESPACES {
            let body = json!({"metadata": {"name": namespace}});
            store.create(Kind::Namespace, body, now).expect("a new store has no namespaces");
        }
        for (class, value) in SYSTEM_PRIORITIES {
            let body = json!({"metadata": {"name": class}, "value": value});
            store.create(Kind::PriorityClass, body, now).expect("a new store has no priority classes");
        }
        store
    }

    /// The version of the last change.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn get(&self, kind: Kind, name: &ObjectName) -> Result<&Object, ApiError> {
        self.objects(kind).get(name).ok_or_else(|| ApiError::NotFound { kind, name: name.clone() })
    }

    /// All objects of a kind, in the order of their names.
    pub fn all(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.objects(kind).values()
    }

    /// The objects of one namespace, in the order of their names.
    pub fn in_namespace<'s>(&'s self, kind: Kind, namespace: &'s str) -> impl Iterator<Item = &'s Object> {
        let start = ObjectName::new(namespace, "");
        let from_there = self.objects(kind).range(start..);
        from_there.take_while(move |(name, _)| *name.namespace == *namespace).map(|(_, object)| object)
    }

    /// The objects that name this uid as an owner.
    pub fn dependents<'s>(&'s self, uid: &str) -> impl Iterator<Item = &'s Object> {
        self.garbage.dependents(uid).filter_map(|(kind, name)| self.get(*kind, name).ok())
    }

    /// The pods that are bound to a node, whether it exists or not.
    pub fn pods_on<'s>(&'s self, node: &str) -> impl Iterator<Item = &'s Object> {
        let names = self.pods_by_node.get(node).into_iter().flatten();
        names.filter_map(|name| self.get(Kind::Pod, name).ok())
    }

    pub fn list(&self, kind: Kind, query: &Query) -> List {
        let items = match &query.namespace {
            Some(namespace) => {
                self.in_namespace(kind, namespace).filter(|object| query.matches(object)).cloned().collect()
            }
            None => self.all(kind).filter(|object| query.matches(object)).cloned().collect(),
        };
        List { version: self.version, items }
    }

    /// What happened to objects of a kind after a version.
    ///
    /// # Errors
    /// The log does not reach back that far: list again.
    pub fn events_after(&self, kind: Kind, version: u64) -> Result<&[Event], Gone> {
        self.kinds[&kind].log.after(version)
    }

    /// The objects of a kind as they were at a version, in the order of their names.
    ///
    /// # Errors
    /// The log does not reach back that far.
    pub fn as_of(&self, kind: Kind, version: u64) -> Result<Vec<Object>, Gone> {
        let mut objects = self.objects(kind).clone();
        for event in self.events_after(kind, version)?.iter().rev() {
            match &event.before {
                Some(before) => drop(objects.insert(before.name.clone(), before.clone())),
                None => drop(objects.remove(&event.object.name)),
            }
        }
        Ok(objects.into_values().collect())
    }

    /// Forgets what happened so far: every watch that has not caught up must list again. For faults.
    pub fn compact(&mut self) {
        self.kinds.values_mut().for_each(|collection| collection.log.compact());
    }

    pub fn create(&mut self, kind: Kind, body: Value, now: Timestamp) -> Result<Object, ApiError> {
        let mut body = body;
        stamp_type(kind, &mut body)?;
        let name = self.name_new(kind, &mut body)?;
        let metadata = field(&mut body, "metadata");
        for set_by_server in ["deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"] {
            fields(metadata).remove(set_by_server);
        }
        fields(metadata).remove("resourceVersion");
        *field(metadata, "uid") = json!(self.names.uid());
        *field(metadata, "creationTimestamp") = json!(time_text(now));
        match kind.facts().has_generation {
            true => *field(metadata, "generation") = json!(1),
            false => {
                fields(metadata).remove("generation");
            }
        }
        let body = self.admit_new(kind, &name, body)?;
        Ok(self.store(kind, name, body))
    }

    /// Replaces an object, or its status. A body with a resource version must name the current one.
    pub fn update(&mut self, kind: Kind, name: &ObjectName, part: Part, body: Value) -> Result<Object, ApiError> {
        let old = self.get(kind, name)?.clone();
        let mut body = body;
        stamp_type(kind, &mut body)?;
        check_preconditions(&old, &body)?;
        check_server_metadata(&old, &body)?;
        let mut body = take_part(&old, part, body);
        keep_server_metadata(&old, &mut body);
        check_new_finalizers(&old, &body)?;
        let mut body = self.admit_update(&old, part, body)?;
        if *old.body() == body {
            return Ok(old);
        }
        if kind.facts().has_generation && wanted(old.body()) != wanted(&body) {
            *field(field(&mut body, "metadata"), "generation") = json!(old.generation() + 1);
        }
        // The write that takes the last finalizer away is never stored: watches see one deletion, of the object as it was.
        if delete::is_finished(&body) {
            self.remove(&old);
            return Ok(Object::new(kind, name.clone(), old.version, body));
        }
        Ok(self.store(kind, name.clone(), body))
    }

    pub fn patch(&mut self, kind: Kind, name: &ObjectName, part: Part, patch: &Patch) -> Result<Object, ApiError> {
        let patched = patch.apply(kind, self.get(kind, name)?.body())?;
        self.update(kind, name, part, patched)
    }

    fn objects(&self, kind: Kind) -> &BTreeMap<ObjectName, Object> {
        &self.kinds[&kind].objects
    }

    fn collection(&mut self, kind: Kind) -> &mut Collection {
        self.kinds.entry(kind).or_default()
    }

    /// Finds or generates the name, and checks that it is free and its namespace there.
    fn name_new(&mut self, kind: Kind, body: &mut Value) -> Result<ObjectName, ApiError> {
        let metadata = field(body, "metadata");
        let text = |name: &str| at(metadata, &[name]).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (mut name, prefix, mut namespace) = (text("name"), text("generateName"), text("namespace"));
        if !kind.is_namespaced() {
            namespace.clear();
            fields(metadata).remove("namespace");
        } else if namespace.is_empty() {
            "default".clone_into(&mut namespace);
        }
        if kind.is_namespaced() {
            self.get(Kind::Namespace, &ObjectName::of_cluster(namespace.as_str()))?;
            *field(metadata, "namespace") = json!(namespace);
        }
        let namespace: Arc<str> = Arc::from(namespace);
        if name.is_empty() && !prefix.is_empty() {
            for _ in 0..GENERATE_TRIES {
                name = self.names.generate(&prefix);
                if !self.objects(kind).contains_key(&ObjectName::new(namespace.clone(), name.as_str())) {
                    break;
                }
            }
        }
        check_name(kind, &name)?;
        *field(field(body, "metadata"), "name") = json!(name);
        let name = ObjectName::new(namespace, name);
        match self.objects(kind).contains_key(&name) {
            true => Err(ApiError::AlreadyExists { kind, name }),
            false => Ok(name),
        }
    }

    fn admit_new(&self, kind: Kind, name: &ObjectName, mut body: Value) -> Result<Value, ApiError> {
        match kind.facts().origin {
            Origin::Custom => answer(kind, name, self.admission.create(&body)),
            Origin::BuiltIn => {
                if kind.facts().has_status && !status_comes_with_creation(kind) {
                    fields(&mut body).remove("status");
                }
                built_in::admit_new(self, kind, name, &mut body)?;
                built_in::drop_nulls(&mut body);
                Ok(body)
            }
        }
    }

    fn admit_update(&self, old: &Object, part: Part, mut body: Value) -> Result<Value, ApiError> {
        match (old.kind.facts().origin, part) {
            (Origin::Custom, Part::Main) => answer(old.kind, &old.name, self.admission.update(old.body(), &body)),
            (Origin::Custom, Part::Status) => {
                answer(old.kind, &old.name, self.admission.update_status(old.body(), &body))
            }
            (Origin::BuiltIn, _) => {
                built_in::admit_update(old.kind, &old.name, old, &mut body)?;
                built_in::drop_nulls(&mut body);
                Ok(body)
            }
        }
    }

    /// Writes the object down as the newest version of itself.
    fn store(&mut self, kind: Kind, name: ObjectName, mut body: Value) -> Object {
        self.version += 1;
        let version = self.version;
        *field(field(&mut body, "metadata"), "resourceVersion") = json!(version.to_string());
        let object = Object::new(kind, name.clone(), version, body);
        let collection = self.collection(kind);
        let before = collection.objects.insert(name, object.clone());
        let change = if before.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.garbage.see(before.as_ref(), &object);
        // A binding is never taken back, so the index only grows until the pod goes.
        if let Some(node) = node_of(&object) {
            self.pods_by_node.entry(node.to_owned()).or_default().insert(object.name.clone());
        }
        self.collection(kind).log.push(Event { version, change, object: object.clone(), before });
        object
    }

    /// Takes the object away for good.
    fn remove(&mut self, object: &Object) {
        let collection = self.kinds.entry(object.kind).or_default();
        let Some(before) = collection.objects.remove(&object.name) else { return };
        self.version += 1;
        let mut body = before.body().clone();
        *field(field(&mut body, "metadata"), "resourceVersion") = json!(self.version.to_string());
        let last = Object::new(before.kind, before.name.clone(), self.version, body);
        self.garbage.see_removal(&before);
        if let Some(node) = node_of(&before)
            && let Some(pods) = self.pods_by_node.get_mut(node)
        {
            pods.remove(&before.name);
            if pods.is_empty() {
                self.pods_by_node.remove(node);
            }
        }
        let event = Event { version: self.version, change: ChangeKind::Deleted, object: last, before: Some(before) };
        self.collection(object.kind).log.push(event);
    }
}

fn node_of(object: &Object) -> Option<&str> {
    if object.kind != Kind::Pod {
        return None;
    }
    object.text(&["spec", "nodeName"]).filter(|node| !node.is_empty())
}

fn answer(kind: Kind, name: &ObjectName, outcome: Outcome) -> Result<Value, ApiError> {
    match outcome {
        Outcome::Accepted(accepted) => Ok(accepted.object),
        Outcome::Rejected(rejections) => {
            let causes = rejections.into_iter().map(|found| FieldProblem::new(found.field, found.message)).collect();
            Err(ApiError::Invalid { kind, name: name.name.to_string(), causes })
        }
    }
}

/// Kinds whose create keeps a status. Nodes come with one because that is how kubelets and kwok register.
fn status_comes_with_creation(kind: Kind) -> bool {
    kind == Kind::Node
}

/// Used by the garbage collector and deletion to name an object across kinds.
type Key = (Kind, ObjectName);
type Keys = BTreeSet<Key>;
