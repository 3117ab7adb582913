//! Effects that were asked for and whose result is not seen yet.
//!
//! An object that is looked at again before its last patch has come back wants the same patch again, on the same version
//! of the object: sending it would only give a conflict. What is lost is asked for again after a while.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kerf_model::effect::Effect;

use crate::agenda::Item;

/// Longer than a write and its way back through the watch take on a busy server.
const LOST_AFTER: SignedDuration = SignedDuration::from_secs(10);
/// A refused write is tried again when the object changes, or after this.
const RETRY_AFTER: SignedDuration = SignedDuration::from_secs(1);

#[derive(Debug, Default)]
pub struct Outstanding {
    asked: BTreeMap<Item, Asked>,
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

    /// A write did not happen: it need not be waited for.
    pub fn failed(&mut self, effect: &Effect, now: Timestamp) {
        for asked in self.asked.values_mut().filter(|asked| asked.effects.contains(effect)) {
            asked.repeat_at = asked.repeat_at.min(later(now, RETRY_AFTER));
        }
    }
}

fn later(start: Timestamp, wait: SignedDuration) -> Timestamp {
    start.checked_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
