//! Nodes that were chosen and could not be marked.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::time::{doubled, later};

use crate::BackOff;

/// By claim: until when it is not chosen again. Others would wait for it each time, marked and of no use.
#[derive(Debug, Clone, Default)]
pub struct Unmarked(BTreeMap<Arc<str>, BackOff>);

/// Doubling from one minute to ten, as where replacements fail (sheet 03 §15.7).
const FIRST: SignedDuration = SignedDuration::from_mins(1);
const MOST: SignedDuration = SignedDuration::from_mins(10);

impl Unmarked {
    /// A command went on without it, or was given up because of it.
    pub fn add(&mut self, claim: Arc<str>, now: Timestamp) {
        let level = self.0.get(&claim).map_or(1, |known| known.level.saturating_add(1));
        self.0.insert(claim, BackOff { level, until: later(now, doubled(level, FIRST, MOST)) });
    }

    /// It is gone.
    pub fn remove(&mut self, claim: &str) {
        self.0.remove(claim);
    }

    pub(crate) fn until(&self, claim: &str, now: Timestamp) -> Option<Timestamp> {
        self.0.get(claim).map(|back_off| back_off.until).filter(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_cannot_be_marked_is_left_alone_ever_longer_and_no_longer_than_ten_minutes() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let (mut unmarked, mut now) = (Unmarked::default(), 0);
        for minutes in [1, 2, 4, 8, 10, 10] {
            unmarked.add(Arc::from("a"), at(now));
            assert_eq!(unmarked.until("a", at(now)), Some(at(now + minutes * 60)));
            assert_eq!(unmarked.until("b", at(now)), None);
            now += minutes * 60;
            assert_eq!(unmarked.until("a", at(now)), None);
        }
        unmarked.remove("a");
        unmarked.add(Arc::from("a"), at(now));
        assert_eq!(unmarked.until("a", at(now)), Some(at(now + 60)), "another claim of that name");
    }
}
