//! What disruption did, for metrics and logs (sheet 03 §14, sheet 08 L8).

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_disruption::{Method, ObjectionKind, ProposalId, Reason};

use crate::commands::{Decision, Failure};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DisruptionNote {
    /// A round was made: [`Engine::round`](crate::Engine::round) tells what it saw.
    Looked,
    /// A command was started, or a reboot asked for.
    Started {
        command: ProposalId,
        method: Method,
        reason: Reason,
        decision: Decision,
        /// How many nodes of each pool.
        nodes: BTreeMap<Arc<str>, u32>,
        replacements: usize,
    },
    /// A proposal did not stand up to the second look.
    Withdrawn { command: ProposalId, method: Method, objection: ObjectionKind, nodes: usize },
    /// The replacements are ready and the old nodes go.
    Replaced { command: ProposalId, method: Method, reason: Reason, decision: Decision, pools: Vec<Arc<str>> },
    /// A command was rolled back.
    Failed {
        command: ProposalId,
        method: Method,
        reason: Reason,
        decision: Decision,
        failure: Failure,
        /// Replacements that had not become ready.
        missing: usize,
    },
    /// Its nodes are gone.
    Done { command: ProposalId },
    /// The pool's drift is left alone for a while.
    BackedOff { pool: Arc<str>, seconds: i64 },
}
