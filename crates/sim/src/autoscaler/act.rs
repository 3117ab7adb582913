//! What the autoscaler did, with what it knew: so that a decision is judged by what could be seen when it was made.

use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::effect::Effect;

use super::ears::Heard;
use crate::store::Kind;

/// A write that was carried out.
#[derive(Debug, Clone)]
pub struct Act {
    pub effect: Effect,
    /// By the clock of the engine.
    pub decided: Timestamp,
    pub(crate) heard: Arc<Heard>,
}

impl Act {
    /// The version of the store up to which objects of this kind were known.
    pub fn heard(&self, kind: Kind) -> u64 {
        self.heard.get(&kind).copied().unwrap_or(0)
    }
}
