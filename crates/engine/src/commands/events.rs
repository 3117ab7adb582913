//! What a command tells on the objects it touches (sheet 03 §14).

use jiff::SignedDuration;
use kerf_model::cluster::{NodeClaim, ObjectMeta};
use kerf_model::effect::{Effect, Event, EventKind, EventSeverity, EventTarget};

use super::{Command, Failure};

const INTERVAL: SignedDuration = SignedDuration::from_mins(2);

pub fn launching(command: &Command, replacement: &NodeClaim) -> Effect {
    let message = format!("launching to replace {}: {}", command.names(), command.reason);
    normal(EventKind::NodeClaim, &replacement.meta, "DisruptionLaunching", message)
}

pub fn waiting(command: &Command, replacement: &NodeClaim) -> Effect {
    let message = format!("not ready to replace {} yet", command.names());
    normal(EventKind::NodeClaim, &replacement.meta, "DisruptionWaitingReadiness", message)
}

pub fn terminating(command: &Command, kind: EventKind, object: &ObjectMeta) -> Effect {
    normal(kind, object, "DisruptionTerminating", format!("disrupting the node: {}", command.reason))
}

pub fn rolled_back(command: &Command, claim: &NodeClaim, failure: &Failure) -> Effect {
    let message = format!("the node stays: {failure}; it was to go because it is {}", command.reason);
    let event = event(EventKind::NodeClaim, &claim.meta, EventSeverity::Warning, "DisruptionFailed", message);
    Effect::Publish(Box::new(event))
}

fn normal(kind: EventKind, about: &ObjectMeta, reason: &'static str, message: String) -> Effect {
    Effect::Publish(Box::new(event(kind, about, EventSeverity::Normal, reason, message)))
}

fn event(kind: EventKind, about: &ObjectMeta, severity: EventSeverity, reason: &'static str, message: String) -> Event {
    let (about, dedupe) = (EventTarget { kind, target: about.into() }, message.clone());
    Event { about, severity, reason, message, dedupe, interval: INTERVAL }
}
