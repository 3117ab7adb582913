//! Why a drain does not go on.

use std::fmt;

use jiff::Timestamp;
use kerf_model::cluster::ObjectName;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrainBlocker {
    /// By its do-not-disrupt annotation; for ever if no time is given.
    Protected { pod: ObjectName, until: Option<Timestamp> },
    /// A PodDisruptionBudget refuses the eviction, or several select the pod, which the API never evicts.
    Budget { pod: ObjectName, message: String },
    /// The API refuses the eviction for another reason.
    Refused { pod: ObjectName, message: String },
}

/// How many blockers a message names.
const NAMED: usize = 3;

impl DrainBlocker {
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Protected { .. } => "protected_pod",
            Self::Budget { .. } => "disruption_budget",
            Self::Refused { .. } => "eviction_refused",
        }
    }

    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Budget { .. } | Self::Refused { .. } => true,
            Self::Protected { .. } => false,
        }
    }
}

impl fmt::Display for DrainBlocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protected { pod, until: Some(until) } => write!(f, "pod {pod} is protected until {until}"),
            Self::Protected { pod, until: None } => write!(f, "pod {pod} is protected by karpenter.sh/do-not-disrupt"),
            Self::Budget { pod, message } => write!(f, "pod {pod} is held by a PodDisruptionBudget: {message}"),
            Self::Refused { pod, message } => write!(f, "pod {pod} cannot be evicted: {message}"),
        }
    }
}

/// The message of the `Drained` condition. It names no numbers that change while pods leave, so that it is written rarely.
pub(crate) fn message(blockers: &[DrainBlocker], deadline: Option<Timestamp>) -> String {
    let mut parts: Vec<String> = blockers.iter().take(NAMED).map(ToString::to_string).collect();
    match blockers.len() {
        0 => parts.push("pods are leaving the node".to_owned()),
        count if count > NAMED => parts.push(format!("and {} more", count - NAMED)),
        _ => {}
    }
    if let Some(deadline) = deadline {
        parts.push(format!("pods left at {deadline} are deleted"));
    }
    parts.join("; ")
}
