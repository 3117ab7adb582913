//! The kinds that decisions look at.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kerf_model::change::Change;
use kerf_model::cluster::WorkloadKind;
use kerf_model::node_pool::NodeClassRef;

use crate::Provider;
use crate::api_kind::ApiKind;

/// A kind that is watched. Before the first list of each is in, nothing is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchedKind {
    Pod,
    Node,
    NodeClaim,
    NodePool,
    NodeClass(Provider),
    DaemonSet,
    DisruptionBudget,
    MaintenanceWindow,
    VolumeAttachment,
    PersistentVolumeClaim,
    PersistentVolume,
    StorageClass,
    CsiNode,
    Namespace,
    /// Where overlays are on.
    NodeOverlay,
    /// Where buffers are on, and so are pod templates and workloads.
    CapacityBuffer,
    PodTemplate,
    /// Where buffers or default spread are on.
    Workload(WorkloadKind),
    /// Where default spread is on.
    Service,
}

/// What is switched on that looks at more kinds than every controller does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    pub node_overlays: bool,
    pub capacity_buffers: bool,
    pub default_spread: bool,
}

impl Features {
    pub const ALL: Self = Self { node_overlays: true, capacity_buffers: true, default_spread: true };

    /// The kinds that they add, each once.
    pub fn kinds(self) -> Vec<WatchedKind> {
        use WorkloadKind::{Deployment, ReplicaSet, ReplicationController, StatefulSet};
        let overlays = self.node_overlays.then_some([WatchedKind::NodeOverlay]);
        let buffers = self.capacity_buffers.then_some([
            WatchedKind::CapacityBuffer,
            WatchedKind::PodTemplate,
            WatchedKind::Workload(Deployment),
        ]);
        let spread =
            self.default_spread.then_some([WatchedKind::Service, WatchedKind::Workload(ReplicationController)]);
        let both = (self.capacity_buffers || self.default_spread)
            .then_some([WatchedKind::Workload(StatefulSet), WatchedKind::Workload(ReplicaSet)]);
        let kinds = overlays.into_iter().flatten().chain(buffers.into_iter().flatten());
        kinds.chain(spread.into_iter().flatten()).chain(both.into_iter().flatten()).collect()
    }
}

impl WatchedKind {
    /// All that a controller with this provider watches. What others refer to comes before them, so that a pool finds its
    /// class and a pod its node when the lists are read in this order.
    pub const fn all(provider: Provider) -> [Self; 14] {
        [
            Self::Namespace,
            Self::NodeClass(provider),
            Self::NodePool,
            Self::MaintenanceWindow,
            Self::NodeClaim,
            Self::Node,
            Self::CsiNode,
            Self::StorageClass,
            Self::PersistentVolume,
            Self::PersistentVolumeClaim,
            Self::VolumeAttachment,
            Self::DaemonSet,
            Self::DisruptionBudget,
            Self::Pod,
        ]
    }

    /// The kind of an object in a file or a store; `None` if decisions do not look at it.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let mut all = Provider::ALL.into_iter().flat_map(Self::all).chain(Features::ALL.kinds());
        all.find(|watched| {
            let api = watched.api_kind();
            api.kind == kind && api.api_version() == api_version
        })
    }

    pub const fn api_kind(self) -> ApiKind {
        match self {
            Self::Pod => ApiKind::POD,
            Self::Node => ApiKind::NODE,
            Self::NodeClaim => ApiKind::NODE_CLAIM,
            Self::NodePool => ApiKind::NODE_POOL,
            Self::NodeClass(provider) => ApiKind::node_class(provider),
            Self::DaemonSet => ApiKind::DAEMON_SET,
            Self::DisruptionBudget => ApiKind::DISRUPTION_BUDGET,
            Self::MaintenanceWindow => ApiKind::MAINTENANCE_WINDOW,
            Self::VolumeAttachment => ApiKind::VOLUME_ATTACHMENT,
            Self::PersistentVolumeClaim => ApiKind::PERSISTENT_VOLUME_CLAIM,
            Self::PersistentVolume => ApiKind::PERSISTENT_VOLUME,
            Self::StorageClass => ApiKind::STORAGE_CLASS,
            Self::CsiNode => ApiKind::CSI_NODE,
            Self::Namespace => ApiKind::NAMESPACE,
            Self::NodeOverlay => ApiKind::NODE_OVERLAY,
            Self::CapacityBuffer => ApiKind::CAPACITY_BUFFER,
            Self::PodTemplate => ApiKind::POD_TEMPLATE,
            Self::Workload(kind) => ApiKind::workload(kind),
            Self::Service => ApiKind::SERVICE,
        }
    }

    /// The object is there no more. Only its name is needed, so this works for objects that cannot be read.
    pub fn gone(self, meta: &ObjectMeta) -> Change {
        let name = super::object_name(meta);
        match self {
            Self::Pod => Change::Pod(name, None),
            Self::Node => Change::Node(name, None),
            Self::NodeClaim => Change::NodeClaim(name, None),
            Self::NodePool => Change::NodePool(name, None),
            Self::NodeClass(provider) => {
                let api = ApiKind::node_class(provider);
                let class = NodeClassRef { group: Arc::from(api.group), kind: Arc::from(api.kind), name: name.name };
                Change::NodeClass(class, None)
            }
            Self::DaemonSet => Change::DaemonSet(name, None),
            Self::DisruptionBudget => Change::DisruptionBudget(name, None),
            Self::MaintenanceWindow => Change::MaintenanceWindow(name, None),
            Self::VolumeAttachment => Change::VolumeAttachment(name, None),
            Self::PersistentVolumeClaim => Change::PersistentVolumeClaim(name, None),
            Self::PersistentVolume => Change::PersistentVolume(name, None),
            Self::StorageClass => Change::StorageClass(name, None),
            Self::CsiNode => Change::CsiNode(name, None),
            Self::Namespace => Change::Namespace(name, None),
            Self::NodeOverlay => Change::NodeOverlay(name, None),
            Self::CapacityBuffer => Change::CapacityBuffer(name, None),
            Self::PodTemplate => Change::PodTemplate(name, None),
            Self::Workload(kind) => Change::Workload(kind, name, None),
            Self::Service => Change::Service(name, None),
        }
    }
}
