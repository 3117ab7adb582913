//! Commands that another process began.
//!
//! The record on a claim is the first of three writes: the condition and the taint come after it. Only a node that has all
//! of them was out of reach for new pods, so that what was decided about it still holds. And a record may be old: its
//! process may have stood still for hours, or another autoscaler may have had the cluster meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_disruption::{KeepReason, ProposalId};
use kerf_lifecycle::claim::disruption::is_marked;
use kerf_model::cluster::NodeClaim;
use kerf_model::effect::Target;
use kerf_model::label::annotation;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::time::later;

use super::{Command, Failure, Going, Phase, Record, Replacement};

/// How a command was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct TakenUp {
    /// All its nodes were marked, or are going.
    is_whole: bool,
    /// Some claim was going already: the nodes had been allowed to go.
    is_deleting: bool,
}

/// A process is followed by another within seconds, or a minute or two on a bad day. What was decided before that is asked
/// once more.
const FRESH: SignedDuration = SignedDuration::from_mins(3);

impl Command {
    /// All commands that the claims tell of. A deletion goes on with the nodes that were marked; the others are chosen anew
    /// if they are to go.
    pub fn resume(snapshot: &ClusterSnapshot) -> Vec<Self> {
        let mut commands: BTreeMap<ProposalId, (Self, Vec<bool>)> = BTreeMap::new();
        for claim in snapshot.claims() {
            let Some(text) = claim.meta.annotation(annotation::COMMAND) else { continue };
            let Ok(record) = text.parse::<Record>() else { continue };
            let going = Going {
                claim: Target::from(&claim.meta),
                pool: Arc::from(claim.pool().unwrap_or_default()),
                repair: record.repair.clone(),
                policy: record.policy,
            };
            let is_out_of_reach = claim.meta.is_deleting() || is_marked(claim, text, snapshot);
            let start = || (Self::of_record(record.clone(), snapshot), Vec::new());
            let (command, are_out_of_reach) = commands.entry(record.id.clone()).or_insert_with(start);
            command.candidates.push(going);
            are_out_of_reach.push(is_out_of_reach);
        }
        commands
            .into_values()
            .map(|(command, are_out_of_reach)| command.taken_up(&are_out_of_reach, snapshot))
            .collect()
    }

    fn of_record(record: Record, snapshot: &ClusterSnapshot) -> Self {
        let replacement = |name: Arc<str>| {
            let is_seen = snapshot.claim(&name).is_some();
            Replacement { is_seen, ..Replacement::new(name, None) }
        };
        Self {
            id: record.id,
            method: record.method,
            reason: record.reason,
            decision: record.decision,
            candidates: Vec::new(),
            replacements: record.replacements.into_iter().map(replacement).collect(),
            started: record.started,
            phase: Phase::Marking,
            marking: None,
            taken_up: None,
        }
    }

    /// By candidate: whether it was marked, or is going.
    fn taken_up(mut self, are_out_of_reach: &[bool], snapshot: &ClusterSnapshot) -> Self {
        let mut is_whole = are_out_of_reach.iter().all(|is_out_of_reach| *is_out_of_reach);
        // Replacements are made only when all marks are seen: before that, a replacement is decided anew.
        let has_come_far = match self.replacements.is_empty() {
            true => are_out_of_reach.contains(&true),
            false => self.replacements.iter().any(|replacement| replacement.is_seen),
        };
        if !has_come_far {
            self.phase = Phase::RollingBack(Failure::Interrupted);
        } else if self.replacements.is_empty() {
            let mut marked = are_out_of_reach.iter();
            self.candidates.retain(|_| marked.next() == Some(&true));
            is_whole = true;
        }
        let is_deleting = |going: &Going| going.find(snapshot).is_some_and(|claim| claim.meta.is_deleting());
        self.taken_up = Some(TakenUp { is_whole, is_deleting: self.candidates.iter().any(is_deleting) });
        self
    }

    /// Whether it has to be asked once more if its nodes may go: pods may have come to them, or it was decided long ago.
    pub(super) fn is_in_doubt(&self, now: Timestamp) -> bool {
        let is_old = now >= later(self.started, FRESH);
        self.taken_up.is_some_and(|taken| !taken.is_whole || (is_old && !taken.is_deleting))
    }

    /// Whether its marks were gone when it was found, and it was decided long ago. Somebody took them off: another autoscaler
    /// had the cluster, which does not know the record and has done as it saw fit.
    pub(super) fn is_void(&self, now: Timestamp) -> bool {
        let is_old = now >= later(self.started, FRESH);
        is_old && self.taken_up.is_some_and(|taken| !taken.is_whole && !taken.is_deleting)
    }

    /// The claims that would still have to be deleted.
    pub fn staying<'a>(&'a self, snapshot: &'a ClusterSnapshot) -> impl Iterator<Item = &'a NodeClaim> {
        self.candidates.iter().filter_map(|going| going.find(snapshot)).filter(|claim| !claim.meta.is_deleting())
    }

    /// What holds its nodes back now, by claim. A deletion goes on with the others; a replacement stands or falls as a
    /// whole.
    pub fn heard(&mut self, objections: &BTreeMap<Arc<str>, KeepReason>) {
        self.taken_up = None;
        let Some((claim, reason)) = objections.first_key_value() else { return };
        let may_go = |going: &Going| !objections.contains_key(&going.claim.name.name);
        if self.replacements.is_empty() && self.candidates.iter().any(may_go) {
            return self.candidates.retain(may_go);
        }
        self.phase = Phase::RollingBack(Failure::Overtaken { claim: claim.clone(), why: reason.to_string() });
    }
}
