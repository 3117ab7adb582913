//! Changes: what was seen in the cluster, one object at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cloud::{
    CloudDrift, HookReport, Instance, Interruption, LaunchError, Launched, RebootAnswer, TerminateAnswer, UpdateAnswer,
};
use crate::cluster::{
    CapacityBuffer, CsiNode, DaemonSet, DisruptionBudget, InstanceType, Namespace, Node, NodeClaim, NodeClass,
    NodeOverlay, ObjectName, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate, Service, StorageClass,
    StoredPool, StoredWindow, VolumeAttachment, Workload, WorkloadKind,
};
use crate::effect::{Effect, Target, WriteError};
use crate::node_pool::NodeClassRef;

/// The object as it is now; `None` when it is gone. Seeing the same state twice changes nothing.
#[derive(Debug, Clone)]
pub enum Change {
    Pod(ObjectName, Option<Arc<Pod>>),
    Node(ObjectName, Option<Arc<Node>>),
    NodeClaim(ObjectName, Option<Arc<NodeClaim>>),
    NodePool(ObjectName, Option<Arc<StoredPool>>),
    NodeClass(NodeClassRef, Option<Arc<NodeClass>>),
    DaemonSet(ObjectName, Option<Arc<DaemonSet>>),
    DisruptionBudget(ObjectName, Option<Arc<DisruptionBudget>>),
    MaintenanceWindow(ObjectName, Option<Arc<StoredWindow>>),
    VolumeAttachment(ObjectName, Option<Arc<VolumeAttachment>>),
    PersistentVolumeClaim(ObjectName, Option<Arc<PersistentVolumeClaim>>),
    PersistentVolume(ObjectName, Option<Arc<PersistentVolume>>),
    StorageClass(ObjectName, Option<Arc<StorageClass>>),
    CsiNode(ObjectName, Option<Arc<CsiNode>>),
    Namespace(ObjectName, Option<Arc<Namespace>>),
    NodeOverlay(ObjectName, Option<Arc<NodeOverlay>>),
    CapacityBuffer(ObjectName, Option<Arc<CapacityBuffer>>),
    PodTemplate(ObjectName, Option<Arc<PodTemplate>>),
    Workload(WorkloadKind, ObjectName, Option<Arc<Workload>>),
    Service(ObjectName, Option<Arc<Service>>),
}

/// Everything the engine hears.
#[derive(Debug, Clone)]
pub enum Input {
    Change(Change),
    /// The first list of every kind is in: before this nothing is decided.
    Synced,
    /// What each pool may launch now, by the pool's name. Replaces what was known.
    Catalogue(BTreeMap<Arc<str>, Arc<[InstanceType]>>),
    Launched {
        claim: Target,
        answer: Result<Launched, LaunchError>,
    },
    Terminated {
        claim: Target,
        answer: TerminateAnswer,
    },
    Instances(Vec<Instance>),
    /// Whether the instance still exists.
    InstanceFound {
        provider_id: Arc<str>,
        exists: bool,
    },
    /// Whether the provider would make the claim's instance otherwise today.
    DriftFound {
        claim: Target,
        drift: Option<CloudDrift>,
    },
    /// Whether the provider lets the claim's node register.
    HooksRan {
        claim: Target,
        report: HookReport,
    },
    /// What came of changing the claim's instance as it runs.
    InstanceUpdated {
        claim: Target,
        answer: UpdateAnswer,
    },
    Rebooted {
        claim: Target,
        answer: RebootAnswer,
    },
    Interrupted(Interruption),
    /// A write to the API that did not happen. One that did is seen as a change.
    WriteFailed {
        effect: Box<Effect>,
        error: WriteError,
    },
}
