//! Conditions: what an object's status says about it. How they are set and combined is `kerf-lifecycle`'s business.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;

/// The conditions that Karpenter's API knows (sheet 01 §8, sheet 08 A2).
pub mod kind {
    /// The root: what the others add up to.
    pub const READY: &str = "Ready";
    pub const LAUNCHED: &str = "Launched";
    pub const REGISTERED: &str = "Registered";
    pub const INITIALIZED: &str = "Initialized";
    pub const CONSOLIDATABLE: &str = "Consolidatable";
    pub const DRIFTED: &str = "Drifted";
    pub const DRAINED: &str = "Drained";
    pub const VOLUMES_DETACHED: &str = "VolumesDetached";
    pub const INSTANCE_TERMINATING: &str = "InstanceTerminating";
    pub const CONSISTENT_STATE_FOUND: &str = "ConsistentStateFound";
    pub const DISRUPTION_REASON: &str = "DisruptionReason";
    pub const REBOOTING: &str = "Rebooting";
    /// The reason of [`REBOOTING`] until the order is given: its pods are asked to leave.
    pub const REBOOT_REQUESTED: &str = "RebootRequested";
    pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
    pub const NODE_CLASS_READY: &str = "NodeClassReady";
    pub const NODE_REGISTRATION_HEALTHY: &str = "NodeRegistrationHealthy";
    pub const READY_FOR_PROVISIONING: &str = "ReadyForProvisioning";
    pub const PROVISIONING: &str = "Provisioning";

    /// Kerf's own: what was changed of a running node in place of a new one, and when.
    pub const IN_PLACE_UPDATED: &str = "InPlaceUpdated";

    const ALL: [&str; 18] = [
        READY,
        LAUNCHED,
        REGISTERED,
        INITIALIZED,
        CONSOLIDATABLE,
        DRIFTED,
        DRAINED,
        VOLUMES_DETACHED,
        INSTANCE_TERMINATING,
        CONSISTENT_STATE_FOUND,
        DISRUPTION_REASON,
        REBOOTING,
        VALIDATION_SUCCEEDED,
        NODE_CLASS_READY,
        NODE_REGISTRATION_HEALTHY,
        READY_FOR_PROVISIONING,
        PROVISIONING,
        IN_PLACE_UPDATED,
    ];

    /// The same text, if it is one of them.
    pub fn known(kind: &str) -> Option<&'static str> {
        ALL.into_iter().find(|known| *known == kind)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub kind: Arc<str>,
    pub status: ConditionStatus,
    pub reason: Arc<str>,
    pub message: Arc<str>,
    /// Since when the status is what it is.
    pub since: Timestamp,
    pub observed_generation: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionStatus {
    True,
    False,
    Unknown,
}

/// In the order of the object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions(pub Vec<Condition>);

impl Conditions {
    pub fn get(&self, kind: &str) -> Option<&Condition> {
        self.0.iter().find(|condition| &*condition.kind == kind)
    }

    pub fn is_true(&self, kind: &str) -> bool {
        self.get(kind).is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    /// Whether nothing is known yet: absent, or `Unknown`.
    pub fn is_open(&self, kind: &str) -> bool {
        self.get(kind).is_none_or(|condition| condition.status == ConditionStatus::Unknown)
    }
}

impl ConditionStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// Anything but `True` and `False` is `Unknown`, as everywhere in Kubernetes.
impl FromStr for ConditionStatus {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        })
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
