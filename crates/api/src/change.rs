//! From what a watch yields to what the engine hears: one place for all kinds.
//!
//! A [`Reader`] turns objects into [`Change`]s. What cannot be read stays with its object: it never ends the watch. What
//! it means instead is decided per kind, on the side of holding back:
//! - a pool keeps its identity and says why it is not usable; a window counts as active, always and everywhere;
//! - a claim stays known, with its node and instance, and cannot be launched for;
//! - anything else is [`Unreadable`], to be reported: the engine keeps the last state that could be read. As long as that
//!   is so for a claim (it would have to break its own schema), no instance may be collected as a leak.

mod kind;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta as WireMeta;
use kerf_model::change::Change;
use kerf_model::cluster::{ObjectName, PoolStatus, StoredPool, WorkloadKind};
use kerf_model::label::LabelRules;
use kerf_model::node_pool::NodeClassRef;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::capacity_buffer::CapacityBuffer;
use crate::lenient::{Lenient, Undecodable};
use crate::maintenance_window::MaintenanceWindow;
use crate::node_claim::NodeClaim;
use crate::node_overlay::NodeOverlay;
use crate::node_pool::NodePool;
use crate::parse::{self, ParseError, Parsed, Problem, Shapes, Violation};
use crate::provider::{Provider, label_rules};
use crate::slim::{
    SlimCsiNode, SlimDaemonSet, SlimNamespace, SlimNode, SlimNodeClass, SlimPersistentVolume,
    SlimPersistentVolumeClaim, SlimPod, SlimPodDisruptionBudget, SlimPodTemplateObject, SlimService, SlimStorageClass,
    SlimVolumeAttachment, SlimWorkload,
};

pub use kind::{Features, WatchedKind};

/// Reads objects of all kinds, and keeps once what they have in common. Watches that run apart may have one each.
#[derive(Debug)]
pub struct Reader {
    rules: LabelRules,
    shapes: Shapes,
}

/// An object as it is now.
#[derive(Debug)]
pub struct Seen {
    pub change: Change,
    /// What is wrong with it all the same.
    pub warnings: Vec<Problem>,
}

/// An object of which nothing can be said but that it is there.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("{kind} {name} does not decode")]
    Undecodable {
        kind: &'static str,
        name: ObjectName,
        #[source]
        error: crate::lenient::DecodeError,
    },
    #[error(transparent)]
    Invalid(#[from] ParseError),
}

/// A type that watches yield.
pub trait Watched {
    /// The change that the object's current state is. `kind` must be the one that is being watched.
    fn read(&self, kind: WatchedKind, reader: &mut Reader) -> Result<Seen, Unreadable>;
}

impl Reader {
    /// With the label rules of one provider, or of all.
    pub fn new(provider: Option<Provider>) -> Self {
        Self { rules: label_rules(provider), shapes: Shapes::default() }
    }

    /// An object that was listed, added or modified.
    pub fn seen(&mut self, kind: WatchedKind, object: &impl Watched) -> Result<Seen, Unreadable> {
        object.read(kind, self)
    }

    /// The same from JSON, as files and a store in memory hold it. Watches of many objects decode to a [`Watched`] type
    /// straight from the wire, which costs a tenth of the memory.
    pub fn seen_json(&mut self, kind: WatchedKind, object: &Value) -> Result<Seen, Unreadable> {
        match kind {
            WatchedKind::Pod => self.decoded::<SlimPod>(kind, object),
            WatchedKind::Node => self.decoded::<SlimNode>(kind, object),
            WatchedKind::NodeClaim => self.decoded::<NodeClaim>(kind, object),
            WatchedKind::NodePool => self.decoded::<NodePool>(kind, object),
            WatchedKind::NodeClass(_) => self.decoded::<SlimNodeClass>(kind, object),
            WatchedKind::DaemonSet => self.decoded::<SlimDaemonSet>(kind, object),
            WatchedKind::DisruptionBudget => self.decoded::<SlimPodDisruptionBudget>(kind, object),
            WatchedKind::MaintenanceWindow => self.decoded::<MaintenanceWindow>(kind, object),
            WatchedKind::VolumeAttachment => self.decoded::<SlimVolumeAttachment>(kind, object),
            WatchedKind::PersistentVolumeClaim => self.decoded::<SlimPersistentVolumeClaim>(kind, object),
            WatchedKind::PersistentVolume => self.decoded::<SlimPersistentVolume>(kind, object),
            WatchedKind::StorageClass => self.decoded::<SlimStorageClass>(kind, object),
            WatchedKind::CsiNode => self.decoded::<SlimCsiNode>(kind, object),
            WatchedKind::Namespace => self.decoded::<SlimNamespace>(kind, object),
            WatchedKind::NodeOverlay => self.decoded::<NodeOverlay>(kind, object),
            WatchedKind::CapacityBuffer => self.decoded::<CapacityBuffer>(kind, object),
            WatchedKind::PodTemplate => self.decoded::<SlimPodTemplateObject>(kind, object),
            WatchedKind::Workload(_) => self.decoded::<SlimWorkload>(kind, object),
            WatchedKind::Service => self.decoded::<SlimService>(kind, object),
        }
    }

    fn decoded<T: Watched + DeserializeOwned>(
        &mut self,
        kind: WatchedKind,
        object: &Value,
    ) -> Result<Seen, Unreadable> {
        Lenient::<T>::from_value(object).read(kind, self)
    }
}

/// What an object that does not decode counts as.
fn undecodable(object: &Undecodable, kind: WatchedKind) -> Result<Seen, Unreadable> {
    let name = object_name(&object.metadata);
    let warned = |change| {
        let violation = Violation::Undecodable(object.error.problem.clone());
        Ok(Seen { change, warnings: vec![Problem { field: object.error.path.clone(), violation }] })
    };
    match kind {
        WatchedKind::NodePool => {
            // Its class is not known, so that nobody takes the pool for theirs to write to.
            let class = NodeClassRef { group: Arc::from(""), kind: Arc::from(""), name: Arc::from("") };
            let spec = Err(Arc::from(object.error.to_string()));
            let meta = parse::object_meta(&object.metadata);
            let pool = StoredPool { meta, spec, class, hash: None, status: PoolStatus::default() };
            warned(Change::NodePool(name, Some(Arc::new(pool))))
        }
        WatchedKind::MaintenanceWindow => {
            let window = parse::unreadable_window(parse::object_meta(&object.metadata), &object.error.to_string());
            warned(Change::MaintenanceWindow(name, Some(Arc::new(window))))
        }
        WatchedKind::Pod
        | WatchedKind::Node
        | WatchedKind::NodeClaim
        | WatchedKind::NodeClass(_)
        | WatchedKind::DaemonSet
        | WatchedKind::DisruptionBudget
        | WatchedKind::VolumeAttachment
        | WatchedKind::PersistentVolumeClaim
        | WatchedKind::PersistentVolume
        | WatchedKind::StorageClass
        | WatchedKind::CsiNode
        | WatchedKind::Namespace
        | WatchedKind::NodeOverlay
        | WatchedKind::CapacityBuffer
        | WatchedKind::PodTemplate
        | WatchedKind::Workload(_)
        | WatchedKind::Service => {
            Err(Unreadable::Undecodable { kind: kind.api_kind().kind, name, error: object.error.clone() })
        }
    }
}

fn object_name(meta: &WireMeta) -> ObjectName {
    ObjectName::new(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

fn seen<T>(wire: &WireMeta, parsed: Parsed<T>, change: fn(ObjectName, Option<Arc<T>>) -> Change) -> Seen {
    Seen { change: change(object_name(wire), Some(Arc::new(parsed.value))), warnings: parsed.warnings }
}

impl<T: Watched> Watched for Lenient<T> {
    fn read(&self, kind: WatchedKind, reader: &mut Reader) -> Result<Seen, Unreadable> {
        match self {
            Self::Decoded(object) => object.read(kind, reader),
            Self::Undecodable(object) => undecodable(object, kind),
        }
    }
}

/// `parse` may fail, and takes the parts of the reader that it needs.
macro_rules! watched {
    ($wire:ty, $change:path, |$object:ident, $reader:ident| $parse:expr) => {
        impl Watched for $wire {
            fn read(&self, _: WatchedKind, $reader: &mut Reader) -> Result<Seen, Unreadable> {
                let $object = self;
                Ok(seen(&self.metadata, $parse, $change))
            }
        }
    };
}

fn certain<T>(value: T) -> Parsed<T> {
    Parsed { value, warnings: Vec::new() }
}

watched!(SlimPod, Change::Pod, |wire, reader| parse::pod(wire, &mut reader.shapes)?);
watched!(SlimNode, Change::Node, |wire, reader| parse::node(wire, &mut reader.shapes)?);
watched!(SlimDaemonSet, Change::DaemonSet, |wire, reader| parse::daemon_set(wire, &mut reader.shapes)?);
watched!(SlimPodDisruptionBudget, Change::DisruptionBudget, |wire, _reader| parse::disruption_budget(wire)?);
watched!(SlimPersistentVolume, Change::PersistentVolume, |wire, _reader| parse::persistent_volume(wire)?);
watched!(SlimPersistentVolumeClaim, Change::PersistentVolumeClaim, |wire, _reader| certain(
    parse::persistent_volume_claim(wire)
));
watched!(SlimStorageClass, Change::StorageClass, |wire, _reader| certain(parse::storage_class(wire)));
watched!(SlimCsiNode, Change::CsiNode, |wire, _reader| certain(parse::csi_node(wire)));
watched!(SlimVolumeAttachment, Change::VolumeAttachment, |wire, _reader| certain(parse::volume_attachment(wire)));
watched!(SlimNamespace, Change::Namespace, |wire, _reader| certain(parse::namespace(wire)));
watched!(NodePool, Change::NodePool, |wire, reader| parse::stored_pool(wire, &reader.rules));
watched!(NodeClaim, Change::NodeClaim, |wire, reader| match parse::node_claim(wire, &reader.rules) {
    Ok(parsed) => parsed,
    Err(error) => Parsed { value: parse::unlaunchable_claim(wire), warnings: error.problems },
});
watched!(MaintenanceWindow, Change::MaintenanceWindow, |wire, _reader| parse::stored_window(wire));

watched!(NodeOverlay, Change::NodeOverlay, |wire, reader| parse::node_overlay(wire, &reader.rules));
watched!(CapacityBuffer, Change::CapacityBuffer, |wire, _reader| parse::capacity_buffer(wire)?);
watched!(SlimPodTemplateObject, Change::PodTemplate, |wire, reader| parse::pod_template(wire, &mut reader.shapes)?);
watched!(SlimService, Change::Service, |wire, _reader| certain(parse::service(wire)));

impl Watched for SlimWorkload {
    fn read(&self, kind: WatchedKind, reader: &mut Reader) -> Result<Seen, Unreadable> {
        let api = kind.api_kind();
        let Some(kind) = WorkloadKind::find(&api.api_version(), api.kind) else {
            // The caller watches another kind than it says.
            let problem = Problem { field: "kind".to_owned(), violation: Violation::Unknown(api.kind.to_owned()) };
            let name = object_name(&self.metadata).to_string();
            return Err(ParseError { kind: "Workload", name, problems: vec![problem] }.into());
        };
        let parsed = parse::workload(self, kind, &mut reader.shapes)?;
        let name = object_name(&self.metadata);
        Ok(Seen { change: Change::Workload(kind, name, Some(Arc::new(parsed.value))), warnings: parsed.warnings })
    }
}

impl Watched for SlimNodeClass {
    fn read(&self, kind: WatchedKind, _: &mut Reader) -> Result<Seen, Unreadable> {
        let api = kind.api_kind();
        let class = parse::node_class(self, api.group, api.kind);
        Ok(Seen { change: Change::NodeClass(class.class.clone(), Some(Arc::new(class))), warnings: Vec::new() })
    }
}
