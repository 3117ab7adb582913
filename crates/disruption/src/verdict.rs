//! The answer for one node.

use std::fmt;

use jiff::Timestamp;

use crate::{KeepReason, ProposalId, Reason};

#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It stays.
    Keep(KeepReason),
    /// It should go: proposed in this round, or held until then.
    Go { proposal: ProposalId, reason: Reason, held_until: Option<Timestamp> },
    /// A command that removes it is under way.
    UnderWay { command: ProposalId, reason: Reason },
    /// It is going already, for whatever reason.
    Leaving,
}

impl Verdict {
    /// Stable; for metrics, JSON and the CLI.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Keep(reason) => reason.label(),
            Self::Go { .. } => "go",
            Self::UnderWay { .. } => "under_way",
            Self::Leaving => "leaving",
        }
    }

    pub fn is_keep(&self) -> bool {
        matches!(self, Self::Keep(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep(reason) => write!(f, "stays: {reason}"),
            Self::Go { reason, held_until: None, .. } => write!(f, "goes: {reason}"),
            Self::Go { reason, held_until: Some(until), .. } => write!(f, "goes: {reason}, looked at again at {until}"),
            Self::UnderWay { reason, command } => write!(f, "is being disrupted: {reason} (command {command})"),
            Self::Leaving => f.write_str("is being deleted"),
        }
    }
}
