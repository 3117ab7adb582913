//! What people read in `kubectl describe`: every reason and text of this crate's events (sheet 04 §10).

use jiff::{SignedDuration, Timestamp};
use kerf_model::cloud::InterruptionCause;
use kerf_model::cluster::{Node, NodeClaim, ObjectMeta, Pod, StoredWindow};
use kerf_model::effect::{Effect, Event, EventKind, EventSeverity, EventTarget};
use kerf_model::snapshot::ClusterSnapshot;

use crate::claim::Hold;
use crate::claim::health::TooManySick;
use crate::claim::reboot::RebootFailure;
use crate::claim::reparenting::Obstacle;
use crate::drain::DrainBlocker;

/// Equal events are sent once per this time, as in the reference.
const INTERVAL: SignedDuration = SignedDuration::from_mins(2);
const REPAIR_INTERVAL: SignedDuration = SignedDuration::from_mins(15);
const REBOOT_INTERVAL: SignedDuration = SignedDuration::from_mins(30);

pub fn insufficient_capacity(claim: &NodeClaim, message: &str) -> Effect {
    let text = format!("no capacity for {}: {message}", claim.name());
    warning(EventKind::NodeClaim, &claim.meta, "InsufficientCapacityError", text)
}

/// To a pod that was to land there.
pub fn no_capacity_for_pod(pod: &Pod, claim: &str, message: &str) -> Effect {
    let text = format!("no capacity for {claim}, which was to bring it a node: {message}");
    warning(EventKind::Pod, &pod.meta, "InsufficientCapacityError", text)
}

/// The reference defines it and never sends it.
pub fn class_not_ready(claim: &NodeClaim, message: &str) -> Effect {
    let text = format!("the node class of {} is not ready: {message}", claim.name());
    warning(EventKind::NodeClaim, &claim.meta, "NodeClassNotReady", text)
}

pub fn unregistered_taint_missing(claim: &NodeClaim, node: &Node) -> Effect {
    let text = format!(
        "node {} joined without the taint karpenter.sh/unregistered: pods may have been bound before it was set up",
        node.name()
    );
    warning(EventKind::NodeClaim, &claim.meta, "UnregisteredTaintMissing", text)
}

pub fn window_unreadable(window: &StoredWindow, problem: &str) -> Effect {
    let text = format!("counts as active always and everywhere, because it cannot be read: {problem}");
    warning(EventKind::MaintenanceWindow, &window.meta, "WindowUnreadable", text)
}

pub fn inconsistent(claim: &NodeClaim, message: &str) -> Effect {
    warning(EventKind::NodeClaim, &claim.meta, "FailedConsistencyCheck", message.to_owned())
}

pub fn claim_deadline(claim: &NodeClaim, deadline: Timestamp) -> Effect {
    let text = format!("pods that are left at {deadline} are deleted");
    warning(EventKind::NodeClaim, &claim.meta, "TerminationGracePeriodExpiring", text)
}

pub fn node_deadline(node: &Node, deadline: Timestamp) -> Effect {
    let text = format!("pods that are left at {deadline} are deleted");
    warning(EventKind::Node, &node.meta, "TerminationGracePeriodExpiring", text)
}

pub fn draining(node: &Node, waiting: usize) -> Effect {
    let pods = if waiting == 1 { "1 pod is" } else { &format!("{waiting} pods are") };
    let message = format!("{pods} still on the node");
    let event = event(EventKind::Node, &node.meta, EventSeverity::Warning, "FailedDraining", message);
    // The number changes all the time: that makes no new event.
    Effect::Publish(Box::new(Event { dedupe: "waiting".to_owned(), ..event }))
}

pub fn drain_blocked(node: &Node, blocker: &DrainBlocker) -> Effect {
    warning(EventKind::Node, &node.meta, "FailedDraining", blocker.to_string())
}

pub fn awaiting_volumes(node: &Node, attachments: &str) -> Effect {
    let text = format!("volumes are still attached: {attachments}");
    normal(EventKind::Node, &node.meta, "AwaitingVolumeDetachment", text)
}

pub fn expiration_held(claim: &NodeClaim, hold: &Hold) -> Effect {
    let text = format!("expired, and held back: {hold}");
    normal(EventKind::NodeClaim, &claim.meta, "DisruptionBlocked", text)
}

pub fn reparented(claim: &NodeClaim, from: &str, to: &str) -> Effect {
    normal(EventKind::NodeClaim, &claim.meta, "Reparented", format!("moved from pool {from} to pool {to}"))
}

pub fn reparent_blocked(claim: &NodeClaim, target: &str, obstacle: &Obstacle) -> Effect {
    let text = format!("cannot move to pool {target}: {obstacle}");
    warning(EventKind::NodeClaim, &claim.meta, "ReparentBlocked", text)
}

/// On the node, the claim and the pool: the reference puts all three on the node.
pub fn repair_blocked(claim: &NodeClaim, why: &TooManySick, snapshot: &ClusterSnapshot) -> Vec<Effect> {
    let nodes = snapshot.nodes_of(claim).map(|node| (EventKind::Node, &node.meta));
    let pool = why.pool.as_ref().and_then(|name| snapshot.pool(name)).map(|pool| (EventKind::NodePool, &pool.meta));
    let about = nodes.chain([(EventKind::NodeClaim, &claim.meta)]).chain(pool);
    let event = |(kind, meta)| {
        let event = event(kind, meta, EventSeverity::Warning, "NodeRepairBlocked", why.to_string());
        Effect::Publish(Box::new(Event { dedupe: String::new(), interval: REPAIR_INTERVAL, ..event }))
    };
    about.map(event).collect()
}

pub fn in_place_failed(claim: &NodeClaim, message: &str) -> Effect {
    let text = format!("the instance cannot be changed as it runs, and is replaced: {message}");
    warning(EventKind::NodeClaim, &claim.meta, "InPlaceUpdateFailed", text)
}

/// On the claim and its node.
pub fn interrupted(claim: &NodeClaim, cause: InterruptionCause, snapshot: &ClusterSnapshot) -> Vec<Effect> {
    let (reason, text) = match cause {
        InterruptionCause::SpotReclaimed => ("SpotInterrupted", "the cloud takes the spot instance back"),
        InterruptionCause::RebalanceRecommended => {
            ("SpotRebalanceRecommendation", "the cloud may soon take the spot instance back")
        }
        InterruptionCause::Maintenance => ("InstanceUnhealthy", "the cloud will maintain the machine"),
        InterruptionCause::Stopping => ("InstanceStopping", "the instance is stopping"),
        InterruptionCause::Terminating => ("InstanceTerminating", "the instance is terminating"),
    };
    let about = |kind, meta: &ObjectMeta| {
        let severity = match cause {
            InterruptionCause::RebalanceRecommended => EventSeverity::Normal,
            InterruptionCause::SpotReclaimed
            | InterruptionCause::Maintenance
            | InterruptionCause::Stopping
            | InterruptionCause::Terminating => EventSeverity::Warning,
        };
        let told = event(kind, meta, severity, reason, text.to_owned());
        let goes = event(kind, meta, severity, "TerminatingOnInterruption", format!("the node goes: {text}"));
        let goes = (cause != InterruptionCause::RebalanceRecommended).then_some(goes);
        [Some(told), goes].into_iter().flatten().map(|event| Effect::Publish(Box::new(event))).collect::<Vec<_>>()
    };
    let nodes = snapshot.nodes_of(claim).flat_map(|node| about(EventKind::Node, &node.meta));
    about(EventKind::NodeClaim, &claim.meta).into_iter().chain(nodes).collect()
}

pub fn reboot_observed(claim: &NodeClaim) -> Effect {
    let text = "the node has booted again".to_owned();
    let event = event(EventKind::NodeClaim, &claim.meta, EventSeverity::Normal, "RebootObserved", text);
    Effect::Publish(Box::new(Event { interval: REBOOT_INTERVAL, ..event }))
}

pub fn reboot_failed(claim: &NodeClaim, failure: RebootFailure) -> Effect {
    let text = format!("the reboot did not cure the node, and it is replaced: {failure}");
    let event = event(EventKind::NodeClaim, &claim.meta, EventSeverity::Warning, "RebootFailed", text);
    Effect::Publish(Box::new(Event { interval: REBOOT_INTERVAL, ..event }))
}

fn warning(kind: EventKind, about: &ObjectMeta, reason: &'static str, message: String) -> Effect {
    Effect::Publish(Box::new(event(kind, about, EventSeverity::Warning, reason, message)))
}

fn normal(kind: EventKind, about: &ObjectMeta, reason: &'static str, message: String) -> Effect {
    Effect::Publish(Box::new(event(kind, about, EventSeverity::Normal, reason, message)))
}

fn event(kind: EventKind, about: &ObjectMeta, severity: EventSeverity, reason: &'static str, message: String) -> Event {
    let (about, dedupe) = (EventTarget { kind, target: about.into() }, message.clone());
    Event { about, severity, reason, message, dedupe, interval: INTERVAL }
}
