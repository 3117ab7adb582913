//! What a round looks at: the objects of the cluster, parsed and cut down to what decisions read.
//!
//! Records are made once per change, at the border, and shared behind `Arc` from then on: a snapshot points at them and
//! copies none. Names are `Arc<str>`; quantities, times and constraints are values.

mod buffer;
mod claim;
mod condition;
mod disruption_budgets;
mod disruption_cost;
mod instance_type;
mod node;
mod object;
mod overlay;
mod pod;
mod pool;
mod storage;
mod window;
mod workload;

pub use buffer::{BufferShape, BufferSpec, BufferStatus, CapacityBuffer, PodTemplate};
pub use claim::{ClaimStatus, NodeClaim};
pub use condition::{Condition, ConditionStatus, Conditions, kind as condition_kind};
pub use disruption_budgets::DisruptionBudgets;
pub use disruption_cost::{disruption_cost, lifetime_left, reschedule_cost};
pub use instance_type::{InstanceType, Offering, OfferingName, Overhead, Overrides};
pub use node::{Node, NodeCondition};
pub use object::{ObjectMeta, ObjectName, Owner, Texts};
pub use overlay::{NodeOverlay, OverlaySpec, PriceChange};
pub use pod::{
    DoNotDisrupt, HostPort, Pod, PodAffinityTerm, PodConstraints, PodPhase, PodVolume, PreferredNodeTerm, Protocol,
    SpreadConstraint, WeightedPodAffinityTerm, WhenUnsatisfiable,
};
pub use pool::{ClassReadiness, NodeClass, PoolHash, PoolStatus, StoredPool};
pub use storage::{CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment};
pub use window::{StoredWindow, WindowStatus};
pub use workload::{DaemonSet, DisruptionBudget, Namespace, PodShape, Service, Workload, WorkloadKind};
