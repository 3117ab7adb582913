//! What the cloud charged and what Kerf did to pods, as it happened.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::price::Price;

const SECONDS_PER_HOUR: i128 = 3600;

/// One book with several readers: the cloud and the autoscaler write into it, whoever made the world reads it. Cloning
/// shares the book.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Rc<RefCell<Book>>);

#[derive(Debug, Default)]
struct Book {
    running: BTreeMap<Arc<str>, Rented>,
    /// What instances that have ended cost, in micro-dollars times seconds: rounding happens once, at the end.
    spent: i128,
    launched: usize,
    /// Instances that were told to end, by us or by the cloud itself.
    ending: BTreeSet<Arc<str>>,
    /// By uid: an eviction that is asked for twice happens once.
    evicted: BTreeSet<Arc<str>>,
}

#[derive(Debug, Clone, Copy)]
struct Rented {
    price: Price,
    since: Timestamp,
}

impl Rented {
    fn cost(self, until: Timestamp) -> i128 {
        let seconds = until.duration_since(self.since).as_secs().max(0);
        i128::from(self.price.micros()) * i128::from(seconds)
    }
}

impl Ledger {
    pub(super) fn launched(&self, instance: Arc<str>, price: Price, now: Timestamp) {
        let mut book = self.0.borrow_mut();
        book.launched += 1;
        book.running.insert(instance, Rented { price, since: now });
    }

    pub(super) fn ended(&self, instance: &str, now: Timestamp) {
        let mut book = self.0.borrow_mut();
        if let Some(rented) = book.running.remove(instance) {
            book.spent += rented.cost(now);
        }
    }

    pub(super) fn ending(&self, instance: Arc<str>) {
        self.0.borrow_mut().ending.insert(instance);
    }

    pub(super) fn evicted(&self, pod_uid: Arc<str>) {
        self.0.borrow_mut().evicted.insert(pod_uid);
    }

    /// Pods that Kerf evicted.
    pub fn evictions(&self) -> usize {
        self.0.borrow().evicted.len()
    }

    pub fn is_evicted(&self, pod_uid: &str) -> bool {
        self.0.borrow().evicted.contains(pod_uid)
    }

    /// Instances that were ever launched.
    pub fn launches(&self) -> usize {
        self.0.borrow().launched
    }

    /// Instances that run now.
    pub fn instances(&self) -> usize {
        self.0.borrow().running.len()
    }

    pub fn is_ending(&self, instance: &str) -> bool {
        self.0.borrow().ending.contains(instance)
    }

    /// What an instance costs per hour; `None` once it has ended.
    pub fn price(&self, instance: &str) -> Option<Price> {
        self.0.borrow().running.get(instance).map(|rented| rented.price)
    }

    /// What everything that runs costs per hour.
    pub fn hourly(&self) -> Price {
        Price::from_micros(self.0.borrow().running.values().map(|rented| rented.price.micros()).sum())
    }

    /// What was spent so far, by the second.
    pub fn spent(&self, now: Timestamp) -> Price {
        let book = self.0.borrow();
        let open: i128 = book.running.values().map(|rented| rented.cost(now)).sum();
        let micros = (book.spent + open) / SECONDS_PER_HOUR;
        Price::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn costs_run_from_the_launch_to_the_end_of_each_instance() {
        let start: Timestamp = "2026-01-05T09:00:00Z".parse().unwrap();
        let after = |minutes| start + SignedDuration::from_mins(minutes);
        let ledger = Ledger::default();
        ledger.launched("a".into(), Price::from_micros(1_000_000), start);
        ledger.launched("b".into(), Price::from_micros(500_000), after(30));
        assert_eq!(ledger.hourly().micros(), 1_500_000);
        ledger.ended("a", after(60));
        assert_eq!(ledger.hourly().micros(), 500_000);
        assert_eq!(ledger.spent(after(90)).micros(), 1_500_000, "an hour of a, an hour of b");
        assert_eq!((ledger.launches(), ledger.instances()), (2, 1));
    }

    #[test]
    fn a_repeated_eviction_counts_once() {
        let ledger = Ledger::default();
        ledger.evicted("pod".into());
        ledger.evicted("pod".into());
        assert_eq!(ledger.evictions(), 1);
    }
}
