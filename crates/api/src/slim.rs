//! Slim types for watches: the fields of Kubernetes' own objects that decisions read, and nothing else.
//!
//! A typed `Pod` costs 20-60 KB of heap, most of it managed fields, container details and status that nobody here
//! looks at; a slim one about 4 KB. Parts that are small and read whole (affinity, tolerations, spread constraints,
//! selectors) are Kubernetes' own types. Quantities stay text; they are parsed behind the border.
//!
//! Slim objects are for reading. Writes go out as patches of the fields we own, never as a whole slim object.

/// For a type that stands for several kinds: which one is said where it is watched.
macro_rules! resource_of_any_kind {
    ($type:ty, $scope:ty) => {
        impl kube::Resource for $type {
            type DynamicType = kube::core::ApiResource;
            type Scope = $scope;

            fn kind(resource: &kube::core::ApiResource) -> std::borrow::Cow<'_, str> {
                resource.kind.as_str().into()
            }

            fn group(resource: &kube::core::ApiResource) -> std::borrow::Cow<'_, str> {
                resource.group.as_str().into()
            }

            fn version(resource: &kube::core::ApiResource) -> std::borrow::Cow<'_, str> {
                resource.version.as_str().into()
            }

            fn plural(resource: &kube::core::ApiResource) -> std::borrow::Cow<'_, str> {
                resource.plural.as_str().into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
use resource_of_any_kind;

mod metadata;
mod node;
mod node_class;
mod pod;
mod storage;
mod workload;

pub use node::{SlimNode, SlimNodeSpec, SlimNodeStatus, SlimNodeSystemInfo};
pub use node_class::{NodeClassStatus, SlimNodeClass};
pub use pod::{
    ClaimSource, EphemeralSource, SlimContainer, SlimContainerStatus, SlimPod, SlimPodSpec, SlimPodStatus, SlimPort,
    SlimResources, SlimVolume,
};
pub use storage::{
    AttachmentSpec, ClaimSpec, ClaimStatus, CsiNodeSpec, Present, SlimCsiNode, SlimPersistentVolume,
    SlimPersistentVolumeClaim, SlimStorageClass, SlimVolumeAttachment, VolumeSpec,
};
pub use workload::{
    DaemonSetSpec, DisruptionBudgetSpec, DisruptionBudgetStatus, ServiceSpec, SlimDaemonSet, SlimNamespace,
    SlimPodDisruptionBudget, SlimPodTemplate, SlimPodTemplateObject, SlimService, SlimWorkload, WorkloadSelector,
    WorkloadSpec,
};
