//! Kinds of the API as a request needs them: where their objects are found.

use kerf_model::cluster::{ObjectName, WorkloadKind};
use kube::core::ApiResource;

use crate::Provider;

/// A kind and the path to its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiKind {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
}

impl ApiKind {
    pub const POD: Self = Self::namespaced("", "v1", "Pod", "pods");
    pub const NODE: Self = Self::of_cluster("", "v1", "Node", "nodes");
    pub const NAMESPACE: Self = Self::of_cluster("", "v1", "Namespace", "namespaces");
    pub const EVENT: Self = Self::namespaced("", "v1", "Event", "events");
    pub const PERSISTENT_VOLUME: Self = Self::of_cluster("", "v1", "PersistentVolume", "persistentvolumes");
    pub const PERSISTENT_VOLUME_CLAIM: Self =
        Self::namespaced("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
    pub const DAEMON_SET: Self = Self::namespaced("apps", "v1", "DaemonSet", "daemonsets");
    pub const DISRUPTION_BUDGET: Self = Self::namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
    pub const STORAGE_CLASS: Self = Self::of_cluster("storage.k8s.io", "v1", "StorageClass", "storageclasses");
    pub const CSI_NODE: Self = Self::of_cluster("storage.k8s.io", "v1", "CSINode", "csinodes");
    pub const VOLUME_ATTACHMENT: Self =
        Self::of_cluster("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments");
    pub const NODE_POOL: Self = Self::of_cluster("karpenter.sh", "v1", "NodePool", "nodepools");
    pub const NODE_CLAIM: Self = Self::of_cluster("karpenter.sh", "v1", "NodeClaim", "nodeclaims");
    pub const MAINTENANCE_WINDOW: Self =
        Self::of_cluster("karpenter.sh", "v1alpha1", "MaintenanceWindow", "maintenancewindows");

    pub const NODE_OVERLAY: Self = Self::of_cluster("karpenter.sh", "v1alpha1", "NodeOverlay", "nodeoverlays");
    pub const CAPACITY_BUFFER: Self =
        Self::namespaced("autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer", "capacitybuffers");
    pub const POD_TEMPLATE: Self = Self::namespaced("", "v1", "PodTemplate", "podtemplates");
    pub const SERVICE: Self = Self::namespaced("", "v1", "Service", "services");

    pub const fn workload(kind: WorkloadKind) -> Self {
        match kind {
            WorkloadKind::Deployment => Self::namespaced("apps", "v1", "Deployment", "deployments"),
            WorkloadKind::StatefulSet => Self::namespaced("apps", "v1", "StatefulSet", "statefulsets"),
            WorkloadKind::ReplicaSet => Self::namespaced("apps", "v1", "ReplicaSet", "replicasets"),
            WorkloadKind::ReplicationController => {
                Self::namespaced("", "v1", "ReplicationController", "replicationcontrollers")
            }
        }
    }

    pub const fn node_class(provider: Provider) -> Self {
        match provider {
            Provider::Kwok => Self::of_cluster("karpenter.kwok.sh", "v1alpha1", "KWOKNodeClass", "kwoknodeclasses"),
            Provider::Aws => Self::of_cluster("karpenter.k8s.aws", "v1", "EC2NodeClass", "ec2nodeclasses"),
        }
    }

    const fn of_cluster(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self { group, version, kind, plural, namespaced: false }
    }

    const fn namespaced(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self { namespaced: true, ..Self::of_cluster(group, version, kind, plural) }
    }

    /// As objects write it: `v1`, `karpenter.sh/v1`.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Where all objects of the kind are: `/apis/karpenter.sh/v1/nodeclaims`. In one namespace, if one is given.
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let api_version = self.api_version();
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/{api_version}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{api_version}/{}", self.plural),
        }
    }

    /// Where one object is.
    pub fn object_path(&self, name: &ObjectName) -> String {
        format!("{}/{}", self.collection_path(Some(&name.namespace)), name.name)
    }
}

impl From<ApiKind> for ApiResource {
    fn from(kind: ApiKind) -> Self {
        Self {
            group: kind.group.to_owned(),
            version: kind.version.to_owned(),
            api_version: kind.api_version(),
            kind: kind.kind.to_owned(),
            plural: kind.plural.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api_server() {
        assert_eq!(ApiKind::NODE.object_path(&ObjectName::of_cluster("a")), "/api/v1/nodes/a");
        assert_eq!(ApiKind::POD.object_path(&ObjectName::new("shop", "web")), "/api/v1/namespaces/shop/pods/web");
        assert_eq!(ApiKind::POD.collection_path(None), "/api/v1/pods");
        let claims = ApiKind::NODE_CLAIM.collection_path(None);
        assert_eq!(claims, "/apis/karpenter.sh/v1/nodeclaims");
    }
}
