//! The batch window: pods that come together get their nodes together.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::time::later;

/// Opens with the first pod. Closes when no new pod has come for a while, or at the latest after the longest wait.
#[derive(Debug, Default)]
pub struct Batch {
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    since: Timestamp,
    last_new: Timestamp,
    seen: BTreeSet<Arc<str>>,
}

impl Batch {
    /// Something needs a place. Only what this batch has not seen yet keeps it open.
    pub fn add(&mut self, uid: &Arc<str>, now: Timestamp) {
        let open = self.open.get_or_insert_with(|| Open { since: now, last_new: now, seen: BTreeSet::new() });
        if open.seen.insert(uid.clone()) {
            open.last_new = now;
        }
    }

    /// When to look for places: when the batch closes, or without one when another look is wanted. That waits for an open
    /// batch: a pool that is applied together with its pods must not cut them in two.
    pub fn look_at(&self, retry: Option<Timestamp>, idle: SignedDuration, max: SignedDuration) -> Option<Timestamp> {
        self.closes_at(idle, max).or(retry)
    }

    fn closes_at(&self, idle: SignedDuration, max: SignedDuration) -> Option<Timestamp> {
        let open = self.open.as_ref()?;
        Some(later(open.last_new, idle).min(later(open.since, max)))
    }

    pub fn close(&mut self) {
        self.open = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: SignedDuration = SignedDuration::from_secs(1);
    const MAX: SignedDuration = SignedDuration::from_secs(10);

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(milliseconds).unwrap()
    }

    /// Sheet 02 §1, case 13.
    #[test]
    fn only_new_pods_keep_a_batch_open_and_not_beyond_the_longest_wait() {
        let mut batch = Batch::default();
        assert_eq!(batch.closes_at(IDLE, MAX), None);
        batch.add(&Arc::from("a"), at(0));
        assert_eq!(batch.closes_at(IDLE, MAX), Some(at(1_000)));
        batch.add(&Arc::from("b"), at(900));
        batch.add(&Arc::from("a"), at(1_500));
        assert_eq!(batch.closes_at(IDLE, MAX), Some(at(1_900)));
        batch.add(&Arc::from("c"), at(9_800));
        assert_eq!(batch.closes_at(IDLE, MAX), Some(at(10_000)));
        batch.close();
        assert_eq!(batch.closes_at(IDLE, MAX), None);
    }

    /// Seen with a pool and four pods in one file: three of them got a node, and the fourth another.
    #[test]
    fn a_pool_that_came_with_its_pods_cut_their_batch_in_two() {
        let mut batch = Batch::default();
        assert_eq!(batch.look_at(Some(at(5)), IDLE, MAX), Some(at(5)), "nobody else is expected");
        batch.add(&Arc::from("a"), at(0));
        assert_eq!(batch.look_at(Some(at(5)), IDLE, MAX), Some(at(1_000)));
        batch.close();
        assert_eq!(batch.look_at(None, IDLE, MAX), None);
    }
}
