//! What a look at an object wants done.

use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::budget::DisruptionReason;
use kerf_model::cloud::{InterruptionCause, Repair};
use kerf_model::effect::{Effect, Target};
use kerf_model::node_pool::ConsolidationPolicy;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Steps {
    pub effects: Vec<Effect>,
    /// What the effects mean, for metrics, logs and the health of pools.
    pub notes: Vec<Note>,
    /// When to look again if nothing changes before.
    pub wake: Option<Timestamp>,
}

/// Repeated as long as its effect is: whoever counts, counts one per object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The claim has its node.
    Registered {
        claim: Target,
    },
    Initialized {
        claim: Target,
    },
    /// The claim is deleted by us.
    GivenUp {
        claim: Target,
        cause: Cause,
    },
    /// Its time is over, and a maintenance window lets it wait.
    Postponed {
        claim: Target,
        window: Arc<str>,
    },
}

/// Why we delete a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    InsufficientCapacity {
        message: Arc<str>,
    },
    ClassNotReady {
        message: Arc<str>,
    },
    LaunchTimeout,
    RegistrationTimeout,
    Expired,
    InstanceGone,
    /// Its node was deleted.
    NodeDeleted,
    /// Its static pool wants fewer nodes.
    ScaledDown,
    /// By choice, as a command says.
    Disrupted {
        reason: DisruptionReason,
        /// Of its pool, where the choice was a consolidation.
        consolidation_policy: Option<ConsolidationPolicy>,
        /// Where its node was sick.
        repair: Option<Repair>,
    },
    /// By the cloud, which takes the instance whatever we want.
    Interrupted {
        cause: InterruptionCause,
    },
    /// Its node was sick for too long, and repair is done the old way.
    Unhealthy {
        condition: Arc<str>,
    },
    /// The reboot that should have cured its node did not.
    RebootFailed,
    /// It was made to replace a node that stays after all.
    ReplacementUnneeded,
    /// Its pool has reached its limits without it.
    OverLimit,
}

impl Steps {
    pub(crate) fn of(effect: Effect) -> Self {
        Self { effects: vec![effect], ..Self::default() }
    }

    /// Asks for something whose answer may get lost: looked at again then.
    pub(crate) fn asking(effect: Effect, answer_by: Timestamp) -> Self {
        Self { effects: vec![effect], wake: Some(answer_by), ..Self::default() }
    }

    pub(crate) fn waiting_until(at: Timestamp) -> Self {
        Self { wake: Some(at), ..Self::default() }
    }

    pub(crate) fn act(&mut self, effect: impl IntoIterator<Item = Effect>) {
        self.effects.extend(effect);
    }

    pub(crate) fn look_again(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }

    /// Both; looks again at the earlier of the two.
    pub fn merge(&mut self, other: Self) {
        self.effects.extend(other.effects);
        self.notes.extend(other.notes);
        if let Some(at) = other.wake {
            self.look_again(at);
        }
    }
}

impl Cause {
    /// The metric label `reason`.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::InsufficientCapacity { .. } => "insufficient_capacity",
            Self::ClassNotReady { .. } => "nodeclass_not_ready",
            Self::LaunchTimeout => "launch_timeout",
            Self::RegistrationTimeout => "registration_timeout",
            Self::Expired => "expired",
            Self::InstanceGone => "garbage_collected",
            Self::NodeDeleted => "node_deleted",
            Self::ScaledDown => "scaled_down",
            Self::Disrupted { reason, .. } => reason.metric(),
            Self::ReplacementUnneeded => "replacement_unneeded",
            Self::Interrupted { cause } => cause.label(),
            Self::RebootFailed | Self::Unhealthy { .. } => "unhealthy",
            Self::OverLimit => "over_limit",
        }
    }
}
