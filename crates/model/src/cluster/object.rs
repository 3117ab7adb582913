//! What every object has.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

/// Labels or annotations.
pub type Texts = BTreeMap<Arc<str>, Arc<str>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMeta {
    pub name: ObjectName,
    pub uid: Arc<str>,
    /// Opaque; goes back to the server with writes that must not overwrite what was not seen.
    pub resource_version: Arc<str>,
    pub generation: i64,
    pub created: Timestamp,
    /// When its deletion was asked for, plus the grace it was given. The object stays until its finalizers are gone.
    pub deleting: Option<Timestamp>,
    pub labels: Texts,
    pub annotations: Texts,
    pub finalizers: Vec<Arc<str>>,
    pub owners: Vec<Owner>,
}

/// Unique among the objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Empty for objects of the cluster.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    pub api_version: Arc<str>,
    pub kind: Arc<str>,
    pub name: Arc<str>,
    pub uid: Arc<str>,
    /// The one owner that manages the object.
    pub controller: bool,
    /// A foreground deletion of the owner waits for the object.
    pub blocks_deletion: bool,
}

impl ObjectMeta {
    pub fn is_deleting(&self) -> bool {
        self.deleting.is_some()
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(AsRef::as_ref)
    }

    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(AsRef::as_ref)
    }

    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| &**finalizer == name)
    }

    pub fn is_owned_by(&self, api_version: &str, kind: &str) -> bool {
        self.owners.iter().any(|owner| &*owner.api_version == api_version && &*owner.kind == kind)
    }
}

impl ObjectName {
    pub fn of_cluster(name: impl Into<Arc<str>>) -> Self {
        Self { namespace: Arc::from(""), name: name.into() }
    }

    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}
