//! Events that were sent. What is said again within its interval is not sent; after it, the event that is there already is
//! counted up, as Kubernetes' own recorders do. A cluster full of nodes that cannot go keeps one event of each, not one
//! more every few minutes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use kerf_api::write::{ApiWrite, api_writes, event_repeated};
use kerf_model::cluster::ObjectName;
use kerf_model::effect::{Effect, Event};

/// The server keeps an event this long after its last write.
const KEPT: SignedDuration = SignedDuration::from_hours(1);
/// More than a large drain says within an interval; then what is over is forgotten.
const MANY: usize = 10_000;

#[derive(Debug, Default)]
pub struct Said(Mutex<Events>);

#[derive(Debug, Default)]
struct Events {
    sent: BTreeMap<Key, Sent>,
    /// How many there may be before those that are over are forgotten.
    most: usize,
}

/// The object's uid, the reason, and what else tells events apart.
type Key = (Arc<str>, &'static str, String);

#[derive(Debug)]
struct Sent {
    name: ObjectName,
    message: String,
    count: u32,
    at: Timestamp,
    interval: SignedDuration,
}

impl Said {
    /// What to send for an event: nothing, a new one, or one more of the same.
    pub fn say(&self, event: &Event, now: Timestamp) -> Option<ApiWrite> {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(event);
        if let Some(sent) = said.sent.get_mut(&key) {
            let age = now.duration_since(sent.at);
            if age < sent.interval {
                return None;
            }
            if age < KEPT && sent.message == event.message {
                sent.count += 1;
                sent.at = now;
                return Some(event_repeated(&sent.name, sent.count, now));
            }
        }
        said.make_room(now);
        let write = api_writes(&Effect::Publish(Box::new(event.clone())), now)?.pop()?;
        let name = write.name.clone();
        said.sent
            .insert(key, Sent { name, message: event.message.clone(), count: 1, at: now, interval: event.interval });
        Some(write)
    }

    /// The event that was to be counted up has gone: what is said next is new.
    pub fn forget(&self, event: &Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).sent.remove(&key(event));
    }
}

impl Events {
    /// Not with every event: where there are many, most of them hold.
    fn make_room(&mut self, now: Timestamp) {
        if self.sent.len() >= self.most.max(MANY) {
            self.sent.retain(|_, sent| now.duration_since(sent.at) < sent.interval);
            self.most = self.sent.len() * 2;
        }
    }
}

fn key(event: &Event) -> Key {
    (Arc::clone(&event.about.target.uid), event.reason, event.dedupe.clone())
}

#[cfg(test)]
mod tests {
    use kerf_api::write::Request;
    use kerf_model::effect::{EventKind, EventSeverity, EventTarget, Target};

    use super::*;

    fn blocked(message: &str) -> Event {
        blocked_at("1", message)
    }

    fn blocked_at(uid: &str, message: &str) -> Event {
        let target = Target { name: ObjectName::of_cluster("node-a"), uid: Arc::from(uid) };
        Event {
            about: EventTarget { kind: EventKind::Node, target },
            severity: EventSeverity::Normal,
            reason: "DisruptionBlocked",
            message: message.to_owned(),
            dedupe: String::new(),
            interval: SignedDuration::from_mins(5),
        }
    }

    /// Sheet 04, case 67.
    #[test]
    fn the_same_event_is_told_once_within_its_time_and_of_another_object_on_its_own() {
        let said = Said::default();
        let start = Timestamp::UNIX_EPOCH;
        let two_minutes = SignedDuration::from_mins(2);
        let event = |uid| Event { interval: two_minutes, ..blocked_at(uid, "a PDB") };
        assert!(said.say(&event("1"), start).is_some());
        let almost = two_minutes - SignedDuration::from_nanos(1);
        assert_eq!(said.say(&event("1"), start + almost), None);
        assert!(said.say(&event("2"), start + almost).is_some());
        assert!(said.say(&event("1"), start + two_minutes).is_some());
        let other = Event { reason: "Unconsolidatable", ..event("1") };
        assert!(said.say(&other, start + two_minutes).is_some());
    }

    #[test]
    fn a_node_that_stayed_blocked_got_one_event_more_every_five_minutes() {
        let said = Said::default();
        let at = |text: &str| format!("2026-11-18T{text}Z").parse::<Timestamp>().unwrap();
        let say = |message: &str, time: &str| said.say(&blocked(message), at(time));
        let first = say("a PDB", "07:00:00").expect("new");
        assert!(matches!(first.request, Request::Create(_)));
        assert_eq!(say("a PDB", "07:04:59"), None);
        let again = say("a PDB", "07:05:00").expect("the interval is over");
        assert_eq!(again.name, first.name);
        let Request::MergePatch { body, .. } = &again.request else { panic!("{again:?}") };
        assert_eq!((&body["count"], &body["lastTimestamp"]), (&2.into(), &"2026-11-18T07:05:00Z".into()));
        let other = say("a pod", "07:10:00").expect("something else");
        assert!(matches!(other.request, Request::Create(_)));
        assert!(matches!(say("a pod", "08:10:00").unwrap().request, Request::Create(_)), "the server has dropped it");
        said.forget(&blocked("a pod"));
        assert!(matches!(say("a pod", "08:10:01").unwrap().request, Request::Create(_)));
    }
}
