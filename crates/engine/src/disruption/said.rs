//! Events that were told: every look repeats what still holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::effect::Event;
use kerf_model::time::later;

/// By object, reason and what else tells events apart: until when it is not told again.
#[derive(Debug, Default)]
pub struct Said(BTreeMap<(Arc<str>, &'static str, String), Timestamp>);

impl Said {
    /// Whether it was not told within its interval. It counts as told from now on.
    pub fn is_news(&mut self, event: &Event, now: Timestamp) -> bool {
        let key = (event.about.target.uid.clone(), event.reason, event.dedupe.clone());
        if self.0.get(&key).is_some_and(|until| now < *until) {
            return false;
        }
        self.0.insert(key, later(now, event.interval));
        true
    }

    /// Forgets what may be told again.
    pub fn refresh(&mut self, now: Timestamp) {
        self.0.retain(|_, until| now < *until);
    }
}
