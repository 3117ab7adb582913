//! What a command does, how it ended, and why it could not go on.

use std::fmt;
use std::sync::Arc;

use kerf_disruption::{Action, TerminateFirst};

/// What is done, as metrics name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    Delete,
    Replace,
    TerminateFirst(TerminateFirst),
    Reboot,
}

/// Why a command cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    ReplacementGone {
        name: Arc<str>,
    },
    /// The server refuses it for what it says.
    ReplacementRefused {
        name: Arc<str>,
        message: String,
    },
    NotReadyInTime {
        names: Vec<Arc<str>>,
    },
    NotMarkedInTime,
    /// The process that decided it is gone, and it had not come far enough to be taken up.
    Interrupted,
    /// The process that decided it is gone, and the cluster is another by now.
    Overtaken {
        claim: Arc<str>,
        /// The reason to stay, as it is told.
        why: String,
    },
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Done,
    RolledBack(Failure),
}

impl Decision {
    pub const ALL: [Self; 5] = [
        Self::Delete,
        Self::Replace,
        Self::TerminateFirst(TerminateFirst::NoReservedCapacity),
        Self::TerminateFirst(TerminateFirst::StaticAtLimit),
        Self::Reboot,
    ];

    pub fn of(action: &Action) -> Self {
        match action {
            Action::Delete => Self::Delete,
            Action::Replace(_) => Self::Replace,
            Action::TerminateFirst(why) => Self::TerminateFirst(*why),
            Action::Reboot { .. } => Self::Reboot,
        }
    }

    /// In records, where the reason of a terminate-first stands with it.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Replace => "replace",
            Self::TerminateFirst(TerminateFirst::NoReservedCapacity) => "terminate-first/no-reserved-capacity",
            Self::TerminateFirst(TerminateFirst::StaticAtLimit) => "terminate-first/static-at-limit",
            Self::Reboot => "reboot",
        }
    }

    /// The metric label `decision`.
    pub fn metric(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Replace => "replace",
            Self::TerminateFirst(_) => "terminate-first",
            Self::Reboot => "reboot",
        }
    }
}

impl Failure {
    pub const fn label(&self) -> &'static str {
        match self {
            Self::ReplacementGone { .. } => "replacement_gone",
            Self::ReplacementRefused { .. } => "replacement_refused",
            Self::NotReadyInTime { .. } => "not_ready_in_time",
            Self::NotMarkedInTime => "not_marked_in_time",
            Self::Interrupted => "interrupted",
            Self::Overtaken { .. } => "overtaken",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReplacementGone { name } => write!(f, "its replacement {name} is gone"),
            Self::ReplacementRefused { name, message } => write!(f, "its replacement {name} was refused: {message}"),
            Self::NotReadyInTime { names } => write!(f, "not ready in time: {}", names.join(", ")),
            Self::NotMarkedInTime => f.write_str("it could not be marked in time"),
            Self::Interrupted => f.write_str("the decision was lost before it had come far enough to be taken up"),
            Self::Overtaken { claim, why } => write!(f, "it was decided a while ago, and by now {claim} {why}"),
        }
    }
}
