//! Slim types for watches: the fields of Kubernetes' own objects that decisions read, and nothing else.
//!
//! A typed `Pod` costs 20-60 KB of heap, most of it managed fields, container details and status that nobody here
//! looks at; a slim one about 4 KB. Parts that are small and read whole (affinity, tolerations, spread constraints,
//! selectors) are Kubernetes' own types. Quantities stay text; they are parsed behind the border.
//!
//! Slim objects are for reading. Writes go out as patches of the fields we own, never as a whole slim object.

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
    DaemonSetSpec, DisruptionBudgetSpec, DisruptionBudgetStatus, SlimDaemonSet, SlimNamespace, SlimPodDisruptionBudget,
    SlimPodTemplate,
};
