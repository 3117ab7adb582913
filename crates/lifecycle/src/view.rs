//! What a step looks at.

use jiff::{SignedDuration, Timestamp};
use kerf_model::snapshot::ClusterSnapshot;

use crate::{Memory, Settings};

#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub snapshot: &'a ClusterSnapshot,
    pub memory: &'a Memory,
    pub settings: &'a Settings,
    pub now: Timestamp,
}

/// The end of time if the sum is beyond it: a wait that long is for ever.
pub(crate) fn later(start: Timestamp, wait: SignedDuration) -> Timestamp {
    start.checked_add(wait).unwrap_or(Timestamp::MAX)
}
