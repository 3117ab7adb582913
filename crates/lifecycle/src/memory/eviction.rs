//! What was asked of a pod.
//!
//! No queue stands beside the pods: who is to be evicted is decided anew each time, and this only says how recently it was
//! tried. An eviction whose fate is unknown is tried again (upstream's queue could forget one for good).

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::effect::WriteError;
use kerf_model::time::{doubled, later};

/// Of the reference: 100 ms to 10 s per pod.
const FIRST_RETRY: SignedDuration = SignedDuration::from_millis(100);
const LAST_RETRY: SignedDuration = SignedDuration::from_secs(10);
/// A pod that still shows nothing after this did not get the request.
pub(crate) const SEEN_WITHIN: SignedDuration = SignedDuration::from_secs(10);

#[derive(Debug, Clone)]
pub(crate) struct PodMemory {
    pub uid: Arc<str>,
    eviction: Option<Eviction>,
    pub forced: Option<Timestamp>,
}

#[derive(Debug, Clone)]
struct Eviction {
    retry_at: Timestamp,
    /// The last answer, shown until the next one.
    refusal: Option<Refusal>,
    failures: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    Budget(String),
    Api(String),
}

impl PodMemory {
    pub fn new(uid: Arc<str>) -> Self {
        Self { uid, eviction: None, forced: None }
    }

    pub fn evicted(&mut self, now: Timestamp) {
        let (refusal, failures) = match self.eviction.take() {
            Some(Eviction { refusal, failures, .. }) => (refusal, failures),
            None => (None, 0),
        };
        self.eviction = Some(Eviction { retry_at: later(now, SEEN_WITHIN), refusal, failures });
    }

    pub fn evict_failed(&mut self, error: &WriteError, now: Timestamp) {
        let refusal = match error {
            // Another pod of that name, or none: the change that shows it is on its way.
            WriteError::NotFound | WriteError::Conflict => return,
            WriteError::BudgetRefused { message } => Refusal::Budget(message.clone()),
            WriteError::Invalid { message } | WriteError::Unavailable { message } => Refusal::Api(message.clone()),
        };
        let failures = self.eviction.as_ref().map_or(0, |eviction| eviction.failures).saturating_add(1);
        let retry_at = later(now, doubled(failures, FIRST_RETRY, LAST_RETRY));
        self.eviction = Some(Eviction { retry_at, refusal: Some(refusal), failures });
    }

    pub fn refusal(&self) -> Option<&Refusal> {
        self.eviction.as_ref()?.refusal.as_ref()
    }

    /// When to ask (again) for the eviction of a pod that shows no sign of going.
    pub fn evict_at(&self) -> Option<Timestamp> {
        self.eviction.as_ref().map(|eviction| eviction.retry_at)
    }

    /// When to delete (again) a pod that shows no sign of the first time.
    pub fn force_at(&self) -> Option<Timestamp> {
        self.forced.map(|at| later(at, SEEN_WITHIN))
    }
}
