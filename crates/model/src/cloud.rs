//! What the engine and a cloud say to each other. The trait that providers implement is `kerf-cloud`'s.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::cluster::{ConditionStatus, Texts};
use crate::resources::ResourceList;

/// An instance that a launch made, or found already made for the claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Launched {
    pub provider_id: Arc<str>,
    pub image_id: Option<Arc<str>>,
    /// What the node will have, as far as the provider can tell.
    pub capacity: ResourceList,
    pub allocatable: ResourceList,
    /// Go under the labels that the claim has already.
    pub labels: Texts,
    /// Go over the annotations of the claim.
    pub annotations: Texts,
}

/// Why there is no instance, and with it what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The claim is given up at once: its pods are scheduled anew, without the offerings that failed.
    #[error("no capacity: {message}")]
    InsufficientCapacity { message: Arc<str> },
    /// The claim is given up at once: nothing can be launched for its class.
    #[error("the node class is not ready: {message}")]
    ClassNotReady { message: Arc<str> },
    /// Tried again, with the reason shown on the claim.
    #[error("{message}")]
    Failed { reason: Arc<str>, message: Arc<str> },
}

/// The answer to asking for an instance's end. Asked again until it is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminateAnswer {
    Accepted,
    Gone,
    Failed { message: Arc<str> },
}

/// Why a provider would make a claim's instance otherwise today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudDrift {
    /// Stable, like `AMIDrift`: the reason of the condition.
    pub reason: Arc<str>,
    /// What differs, with both values.
    pub message: Arc<str>,
    /// Whether the provider can change the instance as it runs: all that differs is of that kind (tags, monitoring).
    pub in_place: bool,
}

/// The answer to asking for a change of a running instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateAnswer {
    /// The claim gets these annotations: it is as one that was launched today.
    Done { annotations: Texts },
    /// May work when it is asked for again.
    Failed { message: Arc<str> },
    /// Will not work, however often it is asked for: a resource has all the tags that it can have.
    Impossible { message: Arc<str> },
}

/// What a provider's registration hook says of a claim whose node has joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookAnswer {
    /// The node may register; the claim, and with it the node, gets these labels.
    Done { labels: Texts },
    /// Not yet; asked again after this.
    Pending { again: SignedDuration },
}

/// What all of a provider's registration hooks say of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookReport {
    /// Names of hooks that are pending or failed, in the provider's order. The node waits while there are any.
    pub pending: Vec<Arc<str>>,
    /// When to ask again while some are pending.
    pub again: SignedDuration,
    /// Of those that are done.
    pub labels: Texts,
}

impl HookReport {
    /// In the provider's order. Asks again as soon as the most impatient hook wants it.
    pub fn of(answers: impl IntoIterator<Item = (Arc<str>, HookAnswer)>) -> Self {
        let mut report = Self::default();
        for (hook, answer) in answers {
            match answer {
                HookAnswer::Done { labels } => report.labels.extend(labels),
                HookAnswer::Pending { again } => {
                    report.again = if report.pending.is_empty() { again } else { report.again.min(again) };
                    report.pending.push(hook);
                }
            }
        }
        report
    }
}

/// One of our instances, as the cloud lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    pub provider_id: Arc<str>,
    pub launched: Timestamp,
    pub is_terminating: bool,
}

/// Something the cloud will do to an instance, whatever we want.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interruption {
    pub provider_id: Arc<str>,
    pub cause: InterruptionCause,
    pub notice: SignedDuration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InterruptionCause {
    SpotReclaimed,
    RebalanceRecommended,
    Maintenance,
    Stopping,
    Terminating,
}

impl InterruptionCause {
    pub const ALL: [Self; 5] =
        [Self::SpotReclaimed, Self::RebalanceRecommended, Self::Maintenance, Self::Stopping, Self::Terminating];

    pub fn named(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.label() == label)
    }

    /// The reference's name of the message, as metrics have it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::SpotReclaimed => "spot_interrupted",
            Self::RebalanceRecommended => "rebalance_recommendation",
            Self::Maintenance => "scheduled_change",
            Self::Stopping => "instance_stopped",
            Self::Terminating => "instance_terminated",
        }
    }
}

/// The answer to asking for a reboot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RebootAnswer {
    Accepted,
    Failed { message: Arc<str> },
}

/// When a sick node is repaired, and how (sheet 08 D4).
///
/// A provider's policies are a set: exactly one has no `reason`, and it stands in for every condition of the set whose
/// reason no other policy knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairPolicy {
    /// The node condition looked at.
    pub condition: Arc<str>,
    pub status: ConditionStatus,
    /// A regular expression, found anywhere in the condition's reason.
    pub reason: Option<Arc<str>>,
    /// How long the condition may last before it counts.
    pub toleration: SignedDuration,
    /// How long the drain may take; `None` is for ever.
    pub termination_grace_period: Option<SignedDuration>,
    /// Up to 100; of several policies the higher one names the cause.
    pub priority: u8,
    pub action: RepairAction,
}

/// What a repair knows of the node that it takes away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The node's condition that is acted on.
    pub condition: Arc<str>,
    /// How long the drain may take, counted from the deletion; the deadline is only ever tightened.
    pub bound: Option<SignedDuration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepairAction {
    ReplaceNode,
    RebootNode,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_that_wait_are_named_and_the_most_impatient_sets_the_time() {
        let pending = |secs| HookAnswer::Pending { again: SignedDuration::from_secs(secs) };
        let done = HookAnswer::Done { labels: Texts::from_iter([("rack".into(), "7".into())]) };
        let answers = [("a", pending(10)), ("b", done), ("c", pending(5)), ("d", pending(20))];
        let report = HookReport::of(answers.map(|(hook, answer)| (hook.into(), answer)));
        assert_eq!(report.pending, ["a".into(), "c".into(), "d".into()]);
        assert_eq!(report.again, SignedDuration::from_secs(5));
        assert_eq!(report.labels.get("rack").map(|value| &**value), Some("7"));
    }
}
