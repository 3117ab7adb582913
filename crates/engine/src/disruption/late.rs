//! Replacements that came too late for their commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::NodeClaim;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::time::later;

use crate::commands::{Command, is_joining, orphans};

/// One that has joined may still become ready, and is then a node like any other. It is kept this long.
const KEPT: SignedDuration = SignedDuration::from_secs(30);

/// By claim: until when it is kept.
#[derive(Debug, Default)]
pub struct Late(BTreeMap<Arc<str>, Timestamp>);

impl Late {
    /// Those that nobody waits for any more.
    pub fn useless<'a>(
        &mut self,
        snapshot: &'a ClusterSnapshot,
        commands: &[Command],
        now: Timestamp,
    ) -> Vec<&'a NodeClaim> {
        let known = std::mem::take(&mut self.0);
        let mut useless = Vec::new();
        for claim in orphans(snapshot, commands) {
            let until = known.get(claim.name()).copied().unwrap_or(later(now, KEPT));
            match is_joining(claim) && now < until {
                true => drop(self.0.insert(claim.name().clone(), until)),
                false => useless.push(claim),
            }
        }
        useless
    }

    pub fn next_due(&self) -> Option<Timestamp> {
        self.0.values().min().copied()
    }
}
