//! The kinds that decisions look at.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kerf_model::change::Change;
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
        let all = Provider::ALL.into_iter().flat_map(Self::all);
        all.into_iter().find(|watched| {
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
        }
    }
}
