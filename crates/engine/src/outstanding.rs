//! Effects that were asked for and whose result is not seen yet.
//!
//! An object that is looked at again before its last patch has come back wants the same patch again, on the same version
//! of the object: sending it would only give a conflict. What is lost is asked for again after a while.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::effect::{Effect, Target, WriteError};

use crate::agenda::Item;

/// Longer than a write and its way back through the watch take on a busy server.
const LOST_AFTER: SignedDuration = SignedDuration::from_secs(10);
/// A write that failed is tried again when the object changes, or after this.
const RETRY_AFTER: SignedDuration = SignedDuration::from_secs(1);

#[derive(Debug, Default)]
pub struct Outstanding {
    asked: BTreeMap<Item, Asked>,
    /// Deletions under way, by whomever they were asked for.
    deletions: BTreeMap<Deleted, Timestamp>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Deleted {
    Claim(Target),
    Node(Target),
}

#[derive(Debug)]
struct Asked {
    effects: Vec<Effect>,
    repeat_at: Timestamp,
}

impl Outstanding {
    /// Whether exactly this was asked for and may still come; then when to ask again.
    pub fn pending(&self, item: &Item, effects: &[Effect], now: Timestamp) -> Option<Timestamp> {
        let asked = self.asked.get(item)?;
        (asked.effects == effects && now < asked.repeat_at).then_some(asked.repeat_at)
    }

    /// When to look at the item again if nothing is heard of it: an effect may be lost without a word.
    pub fn asked(&mut self, item: Item, effects: Vec<Effect>, now: Timestamp) -> Option<Timestamp> {
        let repeat_at = later(now, LOST_AFTER);
        // What only tells something may be lost.
        let matters = effects.iter().any(|effect| !matches!(effect, Effect::Publish(_)));
        match effects.is_empty() {
            true => drop(self.asked.remove(&item)),
            false => drop(self.asked.insert(item, Asked { effects, repeat_at })),
        }
        matters.then_some(repeat_at)
    }

    /// Whether the effect is to be sent. A deletion is not while the same one is on its way: several objects may want one
    /// object gone, each for its reason.
    pub fn is_new(&mut self, effect: &Effect, now: Timestamp) -> bool {
        let Some(deleted) = Deleted::by(effect) else { return true };
        if self.deletions.get(&deleted).is_some_and(|repeat_at| now < *repeat_at) {
            return false;
        }
        self.deletions.retain(|_, repeat_at| now < *repeat_at);
        self.deletions.insert(deleted, later(now, LOST_AFTER));
        true
    }

    /// Claims whose deletion was asked for and may not be seen yet.
    pub fn deleted_claims(&self, now: Timestamp) -> impl Iterator<Item = Arc<str>> {
        let under_way = self.deletions.iter().filter(move |(_, repeat_at)| now < **repeat_at);
        under_way.filter_map(|(deleted, _)| match deleted {
            Deleted::Claim(target) => Some(target.name.name.clone()),
            Deleted::Node(_) => None,
        })
    }

    /// A write did not happen: it need not be waited for. One on a version that is past is left until the object changes,
    /// which it has already: the same write again could only come too early. A server that is behind with its watches
    /// would have one per object and second to refuse.
    pub fn failed(&mut self, effect: &Effect, error: &WriteError, now: Timestamp) {
        if let Some(deleted) = Deleted::by(effect) {
            self.deletions.remove(&deleted);
        }
        if *error == WriteError::Conflict {
            return;
        }
        for asked in self.asked.values_mut().filter(|asked| asked.effects.contains(effect)) {
            asked.repeat_at = asked.repeat_at.min(later(now, RETRY_AFTER));
        }
    }
}

impl Deleted {
    fn by(effect: &Effect) -> Option<Self> {
        match effect {
            Effect::DeleteClaim(target) => Some(Self::Claim(target.clone())),
            Effect::DeleteNode(target) => Some(Self::Node(target.clone())),
            Effect::CreateClaim(_)
            | Effect::PatchClaim(..)
            | Effect::PatchNode(..)
            | Effect::PatchPod(..)
            | Effect::PatchPool(..)
            | Effect::EvictPod(_)
            | Effect::DeletePod(..)
            | Effect::Publish(_)
            | Effect::Launch { .. }
            | Effect::Terminate { .. }
            | Effect::TerminateOrphan { .. }
            | Effect::ListInstances
            | Effect::FindInstance { .. }
            | Effect::CheckDrift { .. }
            | Effect::RunHooks { .. }
            | Effect::UpdateInstance { .. }
            | Effect::Reboot { .. }
            | Effect::PatchOverlay(..)
            | Effect::PatchBuffer(..)
            | Effect::PatchWindow(..) => None,
        }
    }
}

fn later(start: Timestamp, wait: SignedDuration) -> Timestamp {
    start.checked_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerf_model::cluster::ObjectName;

    /// A claim that its node and the expiry both wanted gone was deleted twice within a tenth of a second.
    #[test]
    fn an_object_is_deleted_once_by_whomever_it_is_wanted_and_again_when_that_failed_or_was_lost() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let target = |uid: &str| Target { name: ObjectName::of_cluster("a"), uid: Arc::from(uid) };
        let mut outstanding = Outstanding::default();
        assert!(outstanding.is_new(&Effect::DeleteClaim(target("1")), at(0)));
        assert!(!outstanding.is_new(&Effect::DeleteClaim(target("1")), at(1)));
        assert!(outstanding.is_new(&Effect::DeleteClaim(target("2")), at(1)), "another claim of that name");
        assert!(outstanding.is_new(&Effect::DeleteNode(target("1")), at(1)));
        outstanding.failed(&Effect::DeleteClaim(target("1")), &WriteError::NotFound, at(2));
        assert!(outstanding.is_new(&Effect::DeleteClaim(target("1")), at(3)));
        assert!(outstanding.is_new(&Effect::DeleteClaim(target("1")), at(13)));
    }

    /// A claim whose first patch was dropped on its way was never looked at again.
    #[test]
    fn what_was_asked_for_is_looked_at_again_though_nothing_is_heard_of_it() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut outstanding = Outstanding::default();
        assert_eq!(outstanding.asked(Item::Garbage, vec![Effect::ListInstances], at(0)), Some(at(10)));
        assert_eq!(outstanding.pending(&Item::Garbage, &[Effect::ListInstances], at(9)), Some(at(10)));
        assert_eq!(outstanding.pending(&Item::Garbage, &[Effect::ListInstances], at(10)), None);
        assert_eq!(outstanding.asked(Item::Garbage, vec![], at(10)), None);
    }

    #[test]
    fn a_write_on_a_version_that_is_past_was_sent_again_every_second_until_the_watch_came() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let asks = vec![Effect::ListInstances];
        let retried = |error: &WriteError| {
            let mut outstanding = Outstanding::default();
            outstanding.asked(Item::Garbage, asks.clone(), at(0));
            outstanding.failed(&asks[0], error, at(1));
            outstanding.pending(&Item::Garbage, &asks, at(1))
        };
        assert_eq!(retried(&WriteError::Conflict), Some(at(10)));
        assert_eq!(retried(&WriteError::NotFound), Some(at(2)));
    }
}
