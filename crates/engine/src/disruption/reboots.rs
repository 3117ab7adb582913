//! Reboots that were asked for and that the claims do not show yet. From then on the claim knows by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_lifecycle::{Mark, Marks};
use kerf_model::cluster::condition_kind as kind;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::time::later;

/// A reboot that the claim does not show by then is decided anew.
const SEEN_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// By claim: what is to stand on it, and since when that is wanted.
#[derive(Debug, Default)]
pub struct Reboots(BTreeMap<Arc<str>, (Mark, Timestamp)>);

impl Reboots {
    pub fn ask(&mut self, claim: Arc<str>, mark: Mark, now: Timestamp) {
        self.0.insert(claim, (mark, now));
    }

    /// Forgets those that are seen, whose claims are gone, or that did not come in time.
    pub fn refresh(&mut self, snapshot: &ClusterSnapshot, now: Timestamp) {
        self.0.retain(|name, (mark, asked)| {
            let claim = snapshot.claim(name).filter(|claim| claim.meta.uid == mark.claim_uid);
            let is_seen = claim.is_none_or(|claim| claim.status.conditions.is_true(kind::REBOOTING));
            !is_seen && now < later(*asked, SEEN_WITHIN)
        });
    }

    /// Whether something about the claim matters to one.
    pub fn concern(&self, claim: &str) -> bool {
        self.0.contains_key(claim)
    }

    /// When the first one counts as lost.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.0.values().map(|(_, asked)| later(*asked, SEEN_WITHIN)).min()
    }

    pub fn mark(&self, marks: &mut Marks) {
        for (name, (mark, _)) in &self.0 {
            marks.insert(name.clone(), mark.clone());
        }
    }
}
