//! Virtual time: what is due when.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

/// One alarm per key. What is due at the same moment comes in the order of the keys.
#[derive(Debug)]
pub struct Alarms<K> {
    queue: BTreeSet<(Timestamp, K)>,
    times: BTreeMap<K, Timestamp>,
}

impl<K: Ord + Clone> Alarms<K> {
    pub fn new() -> Self {
        Self { queue: BTreeSet::new(), times: BTreeMap::new() }
    }

    /// Sets the key's alarm, in place of an earlier one.
    pub fn set(&mut self, key: K, at: Timestamp) {
        self.clear(&key);
        self.times.insert(key.clone(), at);
        self.queue.insert((at, key));
    }

    /// Sets the key's alarm unless it has one.
    pub fn set_if_absent(&mut self, key: &K, at: Timestamp) {
        if !self.times.contains_key(key) {
            self.set(key.clone(), at);
        }
    }

    /// Sets the key's alarm unless it has an earlier one.
    pub fn set_if_earlier(&mut self, key: &K, at: Timestamp) {
        if self.times.get(key).is_none_or(|known| at < *known) {
            self.set(key.clone(), at);
        }
    }

    pub fn clear(&mut self, key: &K) {
        if let Some(at) = self.times.remove(key) {
            self.queue.remove(&(at, key.clone()));
        }
    }

    /// Takes out what is due.
    pub fn ring(&mut self, now: Timestamp) -> Vec<K> {
        let mut due = Vec::new();
        while self.queue.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, key)) = self.queue.pop_first() {
                self.times.remove(&key);
                due.push(key);
            }
        }
        due
    }

    pub fn next(&self) -> Option<Timestamp> {
        self.queue.first().map(|(at, _)| *at)
    }
}

impl<K: Ord + Clone> Default for Alarms<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_ring_in_order_of_time_then_key_and_can_be_moved() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut alarms = Alarms::new();
        for (key, second) in [("c", 5), ("b", 3), ("a", 5), ("d", 9)] {
            alarms.set(key, at(second));
        }
        alarms.set("d", at(4));
        alarms.set_if_absent(&"b", at(1));
        alarms.clear(&"c");
        assert_eq!(alarms.next(), Some(at(3)));
        assert_eq!(alarms.ring(at(5)), ["b", "d", "a"]);
        assert_eq!((alarms.ring(at(99)), alarms.next()), (vec![], None));
    }
}
