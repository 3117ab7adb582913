//! Volumes, as far as they tie a pod to a place or count against a node's limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ObjectMeta, ObjectName};
use crate::requirement::Expression;

#[derive(Debug, Clone, PartialEq)]
pub struct PersistentVolumeClaim {
    pub meta: ObjectMeta,
    pub volume: Option<Arc<str>>,
    pub storage_class: Option<Arc<str>>,
    /// The volume controller has said so.
    pub is_bound: bool,
    pub is_lost: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PersistentVolume {
    pub meta: ObjectMeta,
    /// One of the terms must hold; none means anywhere.
    pub node_terms: Vec<Vec<Expression>>,
    pub driver: Option<Arc<str>>,
    /// On the disk of one node: another node may have one of the same name.
    pub is_local: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StorageClass {
    pub meta: ObjectMeta,
    pub provisioner: Arc<str>,
    pub binds_immediately: bool,
    /// One of the terms must hold; none means anywhere.
    pub topologies: Vec<Vec<Expression>>,
}

/// How many volumes of each driver a node takes. A driver without a limit is not in the map.
#[derive(Debug, Clone, PartialEq)]
pub struct CsiNode {
    pub meta: ObjectMeta,
    pub limits: BTreeMap<Arc<str>, u32>,
    pub drivers: Vec<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct VolumeAttachment {
    pub name: ObjectName,
    pub node: Arc<str>,
    pub volume: Option<Arc<str>>,
}
