//! Effects: single writes to the API or the cloud. They are all the engine can do to the world.
//!
//! Every effect may be executed twice, late or not at all: names are deterministic, objects are named with their uid, and
//! what must not overwrite unseen changes carries the version it was decided on. The next round looks at what the
//! cluster shows then and asks again for what is still missing.

pub mod pod_events;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::budget::DisruptionReason;
use crate::cluster::{BufferStatus, Conditions, ObjectMeta, ObjectName, Owner, Texts, WindowStatus};
use crate::node_pool::NodeSpec;
use crate::resources::{ResourceList, ResourceName};
use crate::taint::Taint;

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    CreateClaim(Box<NewClaim>),
    PatchClaim(Target, Box<ClaimPatch>),
    DeleteClaim(Target),
    PatchNode(Target, Box<NodePatch>),
    DeleteNode(Target),
    PatchPool(Target, Box<PoolPatch>),
    PatchOverlay(Target, Box<OverlayPatch>),
    PatchBuffer(Target, Box<BufferPatch>),
    PatchWindow(Target, Box<WindowPatch>),
    /// Through the eviction API: a PodDisruptionBudget may refuse it. With why its node goes.
    EvictPod(Target, Arc<str>),
    /// Past the budgets, because a deadline was given. With the grace that is left, and why its node goes.
    DeletePod(Target, SignedDuration, Arc<str>),
    /// Metadata of a pod; nothing else of it is ours to write.
    PatchPod(Target, Box<MetaPatch>),
    Publish(Box<Event>),
    /// Makes an instance for a claim, or finds the one made before. The answer comes back as an input.
    Launch {
        claim: Target,
    },
    /// Asks for the end of a claim's instance. The answer comes back as an input.
    Terminate {
        claim: Target,
        provider_id: Arc<str>,
    },
    /// Ends an instance that no claim owns. Nobody waits for an answer: it is listed again if it is still there.
    TerminateOrphan {
        provider_id: Arc<str>,
    },
    /// Asks for all our instances. The answer comes back as an input.
    ListInstances,
    /// Asks whether an instance still exists. The answer comes back as an input.
    FindInstance {
        provider_id: Arc<str>,
    },
    /// Boots an instance again. The same operation asked for twice is done once. The answer comes back as an input.
    Reboot {
        claim: Target,
        provider_id: Arc<str>,
        operation: Arc<str>,
    },
    /// Asks the provider whether it would make the claim's instance otherwise today. The answer comes back as an input.
    CheckDrift {
        claim: Target,
    },
    /// Asks the provider's registration hooks whether the claim's node may register. The answer comes back as an input.
    RunHooks {
        claim: Target,
    },
    /// Makes a running instance as it would be made today, where that needs no new one. The answer comes back as an input.
    UpdateInstance {
        claim: Target,
    },
}

/// One object of a kind, and not another that has taken its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    pub name: ObjectName,
    pub uid: Arc<str>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewClaim {
    /// Deterministic: the same decision made again names the same claim, and the second create finds the first.
    pub name: Arc<str>,
    pub labels: Texts,
    pub annotations: Texts,
    pub owner: Option<Owner>,
    pub node: NodeSpec,
    pub requests: ResourceList,
    /// Why nodes go that it comes for; `None` if it comes for pods that wait, or for its pool.
    pub replaces_for: Option<DisruptionReason>,
}

/// What to change of an object's metadata. `None` as a value removes the key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetaPatch {
    /// Refuse the write if the object is not at this version any more. Required wherever a whole list is written.
    pub resource_version: Option<Arc<str>>,
    pub labels: BTreeMap<Arc<str>, Option<Arc<str>>>,
    pub annotations: BTreeMap<Arc<str>, Option<Arc<str>>>,
    /// The whole list.
    pub finalizers: Option<Vec<Arc<str>>>,
    /// The whole list.
    pub owners: Option<Vec<Owner>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClaimPatch {
    pub meta: MetaPatch,
    pub status: ClaimStatusPatch,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClaimStatusPatch {
    pub provider_id: Option<Arc<str>>,
    pub node_name: Option<Arc<str>>,
    pub image_id: Option<Arc<str>>,
    pub capacity: Option<ResourceList>,
    pub allocatable: Option<ResourceList>,
    pub last_pod_event: Option<Timestamp>,
    /// The whole list.
    pub conditions: Option<Conditions>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodePatch {
    pub meta: MetaPatch,
    /// The whole list.
    pub taints: Option<Vec<Taint>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct PoolPatch {
    pub meta: MetaPatch,
    /// New totals. What the pool has no more of must be named in `gone_resources`: the API merges maps.
    pub resources: Option<ResourceList>,
    /// Names to remove from the totals.
    pub gone_resources: Vec<ResourceName>,
    pub nodes: Option<i64>,
    pub class_observed_generation: Option<i64>,
    /// The whole list.
    pub conditions: Option<Conditions>,
}

/// What to change of an overlay's status.
#[derive(Debug, Clone, PartialEq)]
pub struct OverlayPatch {
    /// Refuse the write if the object is not at this version any more.
    pub resource_version: Arc<str>,
    /// The whole list.
    pub conditions: Conditions,
}

/// The status of a maintenance window, as a whole: what is `None` is removed.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowPatch {
    /// Refuse the write if the object is not at this version any more.
    pub resource_version: Arc<str>,
    pub status: WindowStatus,
}

/// The status of a capacity buffer, as a whole: what is `None` is removed.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferPatch {
    /// Refuse the write if the object is not at this version any more.
    pub resource_version: Arc<str>,
    pub status: BufferStatus,
}

/// A Kubernetes event on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub about: EventTarget,
    pub severity: EventSeverity,
    /// Stable; dashboards filter by it.
    pub reason: &'static str,
    pub message: String,
    /// Events equal in object, reason and this are sent once per interval.
    pub dedupe: String,
    pub interval: SignedDuration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTarget {
    pub kind: EventKind,
    pub target: Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    Pod,
    Node,
    NodeClaim,
    NodePool,
    MaintenanceWindow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventSeverity {
    Normal,
    Warning,
}

/// Why a write to the API did not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The object has changed since it was read. The next snapshot decides anew.
    #[error("the object has changed meanwhile")]
    Conflict,
    #[error("the object is gone")]
    NotFound,
    /// A PodDisruptionBudget does not allow the eviction now.
    #[error("a disruption budget does not allow it now: {message}")]
    BudgetRefused { message: String },
    /// The object is refused for what it says; trying again is no use.
    #[error("refused: {message}")]
    Invalid { message: String },
    /// The server did not answer, or is busy.
    #[error("not done: {message}")]
    Unavailable { message: String },
}

/// How much of a text goes into a condition or an event, in bytes.
const LONGEST_TEXT: usize = 1024;

/// A text that somebody else has made, cut to what an event or a condition takes.
pub fn shortened(text: &str) -> String {
    if text.len() <= LONGEST_TEXT {
        return text.to_owned();
    }
    format!("{}...", &text[..text.floor_char_boundary(LONGEST_TEXT - 3)])
}

impl Effect {
    /// The version of its object without which a patch is refused. Of several on one version only the first can succeed.
    pub fn insists_on(&self) -> Option<&Arc<str>> {
        match self {
            Self::PatchClaim(_, patch) => patch.meta.resource_version.as_ref(),
            Self::PatchNode(_, patch) => patch.meta.resource_version.as_ref(),
            Self::PatchPool(_, patch) => patch.meta.resource_version.as_ref(),
            Self::PatchPod(_, meta) => meta.resource_version.as_ref(),
            Self::PatchOverlay(_, patch) => Some(&patch.resource_version),
            Self::PatchBuffer(_, patch) => Some(&patch.resource_version),
            Self::PatchWindow(_, patch) => Some(&patch.resource_version),
            Self::CreateClaim(_)
            | Self::DeleteClaim(_)
            | Self::DeleteNode(_)
            | Self::EvictPod(..)
            | Self::DeletePod(..)
            | Self::Publish(_)
            | Self::Launch { .. }
            | Self::Terminate { .. }
            | Self::TerminateOrphan { .. }
            | Self::ListInstances
            | Self::FindInstance { .. }
            | Self::Reboot { .. }
            | Self::CheckDrift { .. }
            | Self::RunHooks { .. }
            | Self::UpdateInstance { .. } => None,
        }
    }
}

impl MetaPatch {
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty() && self.finalizers.is_none() && self.owners.is_none()
    }
}

impl ClaimStatusPatch {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl From<&ObjectMeta> for Target {
    fn from(meta: &ObjectMeta) -> Self {
        Self { name: meta.name.clone(), uid: meta.uid.clone() }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sheet 04, case 6, with the limit of sheet 08 L5.
    #[test]
    fn a_long_message_is_cut_at_1024_bytes_and_never_inside_a_letter() {
        assert_eq!(shortened(&"x".repeat(1024)).len(), 1024);
        let cut = shortened(&"x".repeat(1025));
        assert_eq!((cut.len(), cut.ends_with("x...")), (1024, true));
        assert!(shortened(&"ü".repeat(1000)).len() <= 1024);
    }
}
