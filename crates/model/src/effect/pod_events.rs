//! What people read on pods, wherever it comes from: the drain of a node, or a look at nodes that nobody deletes.

use jiff::{SignedDuration, Timestamp};

use super::{Effect, Event, EventKind, EventSeverity, EventTarget, Target};
use crate::cluster::{DoNotDisrupt, Pod};

/// Equal events are sent once per this time, as in the reference.
const INTERVAL: SignedDuration = SignedDuration::from_mins(2);

impl Effect {
    /// What is told of it once the server has said yes. Shells publish it then: what was only asked for has not happened.
    pub fn told_when_done(&self) -> Option<Event> {
        match self {
            Self::EvictPod(pod, why) => {
                let text = because("evicted because its node is going", why);
                Some(event(pod.clone(), "Evicted", text))
            }
            Self::DeletePod(pod, grace, why) => {
                let seconds = grace.as_secs();
                let text = format!("deleted with {seconds} s of grace because its node's time is up");
                Some(event(pod.clone(), "Disrupted", because(&text, why)))
            }
            Self::CreateClaim(_)
            | Self::PatchClaim(..)
            | Self::DeleteClaim(_)
            | Self::PatchNode(..)
            | Self::DeleteNode(_)
            | Self::PatchPool(..)
            | Self::PatchOverlay(..)
            | Self::PatchBuffer(..)
            | Self::PatchWindow(..)
            | Self::PatchPod(..)
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

/// What the pod's `do-not-disrupt` means now, if that is not plain to see: it protects nothing, or only for a time.
pub fn of_protection(pod: &Pod, now: Timestamp) -> Option<Event> {
    let target = || Target::from(&pod.meta);
    match &pod.do_not_disrupt {
        DoNotDisrupt::No | DoNotDisrupt::Always => None,
        DoNotDisrupt::Invalid(value) => {
            let text = format!(
                "karpenter.sh/do-not-disrupt={value:?} protects nothing: it is \"true\" or a positive duration"
            );
            let event = event(target(), "InvalidDoNotDisruptAnnotation", text);
            Some(Event { severity: EventSeverity::Warning, ..event })
        }
        DoNotDisrupt::For(_) => match pod.protected_until(now) {
            // Its time has not begun.
            Some(until) if until == Timestamp::MAX => None,
            Some(until) => Some(event(target(), "DoNotDisruptUntil", format!("protected until {until}"))),
            None => {
                let text = "the time of karpenter.sh/do-not-disrupt is over".to_owned();
                Some(event(target(), "DoNotDisruptGracePeriodElapsed", text))
            }
        },
    }
}

/// Nobody knows why a node goes whose claim is not known.
fn because(text: &str, why: &str) -> String {
    if why.is_empty() { text.to_owned() } else { format!("{text}: {why}") }
}

fn event(pod: Target, reason: &'static str, message: String) -> Event {
    Event {
        about: EventTarget { kind: EventKind::Pod, target: pod },
        severity: EventSeverity::Normal,
        reason,
        dedupe: message.clone(),
        message,
        interval: INTERVAL,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cluster::ObjectName;

    /// It was told only if a look saw the pod on its way out: not if it went at once.
    #[test]
    fn a_pod_that_leaves_is_told_why_when_that_is_done() {
        let pod = || Target { name: ObjectName::new("shop", "web"), uid: Arc::from("u") };
        let told = |effect: Effect| effect.told_when_done().map(|event| (event.reason, event.message));
        let evicted = told(Effect::EvictPod(pod(), Arc::from("Drifted"))).unwrap();
        assert_eq!(evicted, ("Evicted", "evicted because its node is going: Drifted".to_owned()));
        let unknown = told(Effect::EvictPod(pod(), Arc::from(""))).unwrap();
        assert_eq!(unknown.1, "evicted because its node is going");
        let (reason, text) = told(Effect::DeletePod(pod(), SignedDuration::from_secs(7), Arc::from("Empty"))).unwrap();
        assert_eq!(reason, "Disrupted");
        assert!(text.contains("7 s") && text.ends_with("Empty"), "{text}");
        assert_eq!(told(Effect::DeleteNode(pod())), None);
    }
}
