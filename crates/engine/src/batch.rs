//! The batch window: pods that come together get their nodes together.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::time::later;

/// Opens with the first pod. Closes when no new pod has come for a while, or at the latest after the longest wait.
#[derive(Debug)]
pub struct Batch {
    idle: SignedDuration,
    max: SignedDuration,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    since: Timestamp,
    last_new: Timestamp,
    seen: BTreeSet<Arc<str>>,
}

impl Batch {
    pub fn new(idle: SignedDuration, max: SignedDuration) -> Self {
        Self { idle, max, open: None }
    }

    /// Something needs a place. Only what this batch has not seen yet keeps it open, and nothing does after the longest
    /// wait: while nothing is decided, pods may come for hours.
    pub fn add(&mut self, uid: &Arc<str>, now: Timestamp) {
        let open = self.open.get_or_insert_with(|| Open { since: now, last_new: now, seen: BTreeSet::new() });
        if now <= later(open.since, self.max) && open.seen.insert(uid.clone()) {
            open.last_new = now;
        }
    }

    /// When to look for places: when the batch closes, or without one when another look is wanted. That waits for an open
    /// batch: a pool that is applied together with its pods must not cut them in two.
    pub fn look_at(&self, retry: Option<Timestamp>) -> Option<Timestamp> {
        self.closes_at().or(retry)
    }

    fn closes_at(&self) -> Option<Timestamp> {
        let open = self.open.as_ref()?;
        Some(later(open.last_new, self.idle).min(later(open.since, self.max)))
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
        let mut batch = Batch::new(IDLE, MAX);
        assert_eq!(batch.closes_at(), None);
        batch.add(&Arc::from("a"), at(0));
        assert_eq!(batch.closes_at(), Some(at(1_000)));
        batch.add(&Arc::from("b"), at(900));
        batch.add(&Arc::from("a"), at(1_500));
        assert_eq!(batch.closes_at(), Some(at(1_900)));
        batch.add(&Arc::from("c"), at(9_800));
        assert_eq!(batch.closes_at(), Some(at(10_000)));
        batch.close();
        assert_eq!(batch.closes_at(), None);
    }

    /// While a kind cannot be listed nothing is decided, and each pod that came was remembered until it could.
    #[test]
    fn a_batch_that_nobody_closed_grew_with_every_pod() {
        let mut batch = Batch::new(IDLE, MAX);
        for second in 0..10_000 {
            batch.add(&Arc::from(second.to_string()), at(second * 1_000));
        }
        assert_eq!(batch.closes_at(), Some(at(10_000)));
        assert!(batch.open.is_some_and(|open| open.seen.len() < 20));
    }

    /// Seen with a pool and four pods in one file: three of them got a node, and the fourth another.
    #[test]
    fn a_pool_that_came_with_its_pods_cut_their_batch_in_two() {
        let mut batch = Batch::new(IDLE, MAX);
        assert_eq!(batch.look_at(Some(at(5))), Some(at(5)), "nobody else is expected");
        batch.add(&Arc::from("a"), at(0));
        assert_eq!(batch.look_at(Some(at(5))), Some(at(1_000)));
        batch.close();
        assert_eq!(batch.look_at(None), None);
    }
}
