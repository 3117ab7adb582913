//! The kinds that the world knows.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Namespace,
    Node,
    Pod,
    ConfigMap,
    Service,
    PodTemplate,
    ReplicationController,
    Event,
    LimitRange,
    PersistentVolume,
    PersistentVolumeClaim,
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    PodDisruptionBudget,
    PriorityClass,
    StorageClass,
    CsiNode,
    VolumeAttachment,
    Lease,
    NodePool,
    NodeClaim,
    NodeOverlay,
    CapacityBuffer,
    MaintenanceWindow,
    KwokNodeClass,
    Ec2NodeClass,
}

/// How the API names a kind, and which of its general rules hold for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindFacts {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub scope: Scope,
    pub origin: Origin,
    /// Status is written through its own endpoint only.
    pub has_status: bool,
    /// `metadata.generation` counts the changes of what is wanted.
    pub has_generation: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Namespaced,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    BuiltIn,
    /// Described by a CRD, which says what is valid.
    Custom,
}

impl Kind {
    pub const ALL: [Self; 29] = [
        Self::Namespace,
        Self::Node,
        Self::Pod,
        Self::ConfigMap,
        Self::Service,
        Self::PodTemplate,
        Self::ReplicationController,
        Self::Event,
        Self::LimitRange,
        Self::PersistentVolume,
        Self::PersistentVolumeClaim,
        Self::Deployment,
        Self::ReplicaSet,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::Job,
        Self::PodDisruptionBudget,
        Self::PriorityClass,
        Self::StorageClass,
        Self::CsiNode,
        Self::VolumeAttachment,
        Self::Lease,
        Self::NodePool,
        Self::NodeClaim,
        Self::NodeOverlay,
        Self::CapacityBuffer,
        Self::MaintenanceWindow,
        Self::KwokNodeClass,
        Self::Ec2NodeClass,
    ];

    pub const fn facts(self) -> KindFacts {
        match self {
            Self::Namespace => built_in("", "Namespace", "namespaces").of_cluster().with_status(),
            // A node's spec has no generation in Kubernetes.
            Self::Node => built_in("", "Node", "nodes").of_cluster().with_status(),
            Self::Pod => built_in("", "Pod", "pods").with_status().with_generation(),
            Self::ConfigMap => built_in("", "ConfigMap", "configmaps"),
            Self::Service => built_in("", "Service", "services").with_status(),
            Self::PodTemplate => built_in("", "PodTemplate", "podtemplates").with_generation(),
            // Kept, but nothing here makes its pods.
            Self::ReplicationController => {
                built_in("", "ReplicationController", "replicationcontrollers").with_status().with_generation()
            }
            Self::Event => built_in("", "Event", "events"),
            Self::LimitRange => built_in("", "LimitRange", "limitranges"),
            Self::PersistentVolume => built_in("", "PersistentVolume", "persistentvolumes").of_cluster().with_status(),
            Self::PersistentVolumeClaim => {
                built_in("", "PersistentVolumeClaim", "persistentvolumeclaims").with_status()
            }
            Self::Deployment => built_in("apps", "Deployment", "deployments").with_status().with_generation(),
            Self::ReplicaSet => built_in("apps", "ReplicaSet", "replicasets").with_status().with_generation(),
            Self::StatefulSet => built_in("apps", "StatefulSet", "statefulsets").with_status().with_generation(),
            Self::DaemonSet => built_in("apps", "DaemonSet", "daemonsets").with_status().with_generation(),
            Self::Job => built_in("batch", "Job", "jobs").with_status().with_generation(),
            Self::PodDisruptionBudget => {
                built_in("policy", "PodDisruptionBudget", "poddisruptionbudgets").with_status().with_generation()
            }
            Self::PriorityClass => built_in("scheduling.k8s.io", "PriorityClass", "priorityclasses").of_cluster(),
            Self::StorageClass => built_in("storage.k8s.io", "StorageClass", "storageclasses").of_cluster(),
            Self::CsiNode => built_in("storage.k8s.io", "CSINode", "csinodes").of_cluster(),
            Self::VolumeAttachment => {
                built_in("storage.k8s.io", "VolumeAttachment", "volumeattachments").of_cluster().with_status()
            }
            Self::Lease => built_in("coordination.k8s.io", "Lease", "leases"),
            Self::NodePool => custom("karpenter.sh", "v1", "NodePool", "nodepools"),
            Self::NodeClaim => custom("karpenter.sh", "v1", "NodeClaim", "nodeclaims"),
            Self::NodeOverlay => custom("karpenter.sh", "v1alpha1", "NodeOverlay", "nodeoverlays"),
            Self::CapacityBuffer => {
                let facts = custom("autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer", "capacitybuffers");
                KindFacts { scope: Scope::Namespaced, ..facts }
            }
            Self::MaintenanceWindow => custom("karpenter.sh", "v1alpha1", "MaintenanceWindow", "maintenancewindows"),
            Self::KwokNodeClass => custom("karpenter.kwok.sh", "v1alpha1", "KWOKNodeClass", "kwoknodeclasses"),
            Self::Ec2NodeClass => custom("karpenter.k8s.aws", "v1", "EC2NodeClass", "ec2nodeclasses"),
        }
    }

    /// The kind that an object or an owner reference names.
    pub fn find(api_version: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| {
            let facts = known.facts();
            facts.kind == kind && facts.is_api_version(api_version)
        })
    }

    /// The kind behind a path of the API.
    pub fn of_resource(group: &str, version: &str, plural: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| {
            let facts = known.facts();
            (facts.group, facts.version, facts.plural) == (group, version, plural)
        })
    }

    pub fn is_namespaced(self) -> bool {
        self.facts().scope == Scope::Namespaced
    }
}

impl KindFacts {
    /// As objects write it: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// As error messages name it: `pods`, `deployments.apps`.
    pub fn resource(&self) -> String {
        match self.group {
            "" => self.plural.to_owned(),
            group => format!("{}.{group}", self.plural),
        }
    }

    fn is_api_version(&self, text: &str) -> bool {
        match text.split_once('/') {
            None => self.group.is_empty() && self.version == text,
            Some((group, version)) => self.group == group && self.version == version,
        }
    }

    const fn of_cluster(self) -> Self {
        Self { scope: Scope::Cluster, ..self }
    }

    const fn with_status(self) -> Self {
        Self { has_status: true, ..self }
    }

    const fn with_generation(self) -> Self {
        Self { has_generation: true, ..self }
    }
}

const fn built_in(group: &'static str, kind: &'static str, plural: &'static str) -> KindFacts {
    KindFacts {
        group,
        version: "v1",
        kind,
        plural,
        scope: Scope::Namespaced,
        origin: Origin::BuiltIn,
        has_status: false,
        has_generation: false,
    }
}

const fn custom(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> KindFacts {
    KindFacts {
        group,
        version,
        kind,
        plural,
        scope: Scope::Cluster,
        origin: Origin::Custom,
        has_status: true,
        has_generation: true,
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.facts().kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_the_definitions() {
        for crd in kerf_api::crds(None) {
            let version = &crd.spec.versions[0];
            let api_version = format!("{}/{}", crd.spec.group, version.name);
            let kind = Kind::find(&api_version, &crd.spec.names.kind).expect(&crd.spec.names.kind);
            let facts = kind.facts();
            assert_eq!(facts.plural, crd.spec.names.plural);
            assert_eq!(facts.scope == Scope::Namespaced, crd.spec.scope == "Namespaced", "{kind}");
            let subresources = version.subresources.as_ref();
            assert_eq!(facts.has_status, subresources.is_some_and(|sub| sub.status.is_some()), "{kind}");
        }
    }

    #[test]
    fn every_kind_is_found_by_its_names() {
        for kind in Kind::ALL {
            let facts = kind.facts();
            assert_eq!(Kind::find(&facts.api_version(), facts.kind), Some(kind));
            assert_eq!(Kind::of_resource(facts.group, facts.version, facts.plural), Some(kind));
        }
        assert_eq!(Kind::find("v1", "Deployment"), None);
    }
}
