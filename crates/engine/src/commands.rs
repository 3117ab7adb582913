//! Commands: approved disruptions on their way from a decision to the last pod moved.
//!
//! A command never acts from memory alone. With every look it asks what the cluster shows (which marks are there, which
//! replacements are ready, which claims are going) and wants the next step, so a lost effect, a repeat or a late one does
//! no harm. What it must know and the cluster would not show is written on the claims it touches ([`Record`]), so that a
//! new process takes it up where the old one left it.
//!
//! The order is the promise: the nodes that go are marked first, so that nothing new comes to them; then the
//! replacements are made; only when all of them can take pods do the old ones go. Until the first is deleted, a command
//! that cannot go on is rolled back: replacements that nobody uses go again, and the marks come off.

mod events;
mod orphans;
mod outcome;
mod record;
mod resume;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_disruption::{Approved, Method, ProposalId, Reason, Running, ledger_entry};
use kerf_lifecycle::claim::disruption::{is_marked, written_deadline};
use kerf_lifecycle::{Cause, Mark, Marks, Note, Order};
use kerf_model::cloud::Repair;
use kerf_model::cluster::{ConditionStatus, NodeClaim, Texts, condition_kind as kind};
use kerf_model::effect::{Effect, EventKind, NewClaim, Target};
use kerf_model::label::annotation;
use kerf_model::node_pool::ConsolidationPolicy;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::time::{doubled, later, whole_seconds};

use crate::names::claim_name;
use crate::overlays::Overlays;
use crate::pool_stamp::pool_stamp;

use orphans::hosts_nothing;
pub use orphans::{is_joining, orphans};
pub use outcome::{Decision, Failure, Outcome};
pub use record::{Record, Replaces};
use resume::TakenUp;

/// An approved disruption under way.
#[derive(Debug, Clone)]
pub struct Command {
    pub id: ProposalId,
    pub method: Method,
    pub reason: Reason,
    pub decision: Decision,
    pub candidates: Vec<Going>,
    pub replacements: Vec<Replacement>,
    pub started: Timestamp,
    pub phase: Phase,
    /// How many nodes were not marked when one was marked last, and since when it is so.
    marking: Option<(usize, Timestamp)>,
    /// If another process began it, and it was not asked yet whether it may go on.
    taken_up: Option<TakenUp>,
}

/// A claim that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Going {
    pub claim: Target,
    pub pool: Arc<str>,
    /// If it goes because it is sick.
    pub repair: Option<Repair>,
    /// Of its pool, if it is consolidated.
    pub policy: Option<ConsolidationPolicy>,
}

/// A claim that comes first.
#[derive(Debug, Clone)]
pub struct Replacement {
    pub name: Arc<str>,
    /// As it is to be made; a process that took the command up does not know it any more.
    order: Option<Box<NewClaim>>,
    /// When it was asked for last, if that may still come to something.
    asked: Option<Timestamp>,
    /// How often it could not be created, and when it is asked for again.
    refusals: u32,
    repeat_at: Option<Timestamp>,
    /// Once it was there, its absence means that it is gone.
    is_seen: bool,
    /// For good: what happens to the node later is no reason to wait again.
    is_ready: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Until every mark is seen.
    Marking,
    /// Until every replacement can take pods.
    Replacing,
    /// From here there is no way back: until the claims are gone.
    Deleting {
        since: Timestamp,
    },
    RollingBack(Failure),
}

/// What one look at a command came to.
#[derive(Debug, Default)]
pub struct Advance {
    pub effects: Vec<Effect>,
    pub notes: Vec<Note>,
    pub ended: Option<Outcome>,
    pub wake: Option<Timestamp>,
    /// The phase is another: what was just decided has to be written.
    pub is_moved: bool,
    /// Claims that could not be marked. It goes on without them, or not at all.
    pub unmarked: Vec<Arc<str>>,
    /// It goes on when it has been asked whether it may: [`Command::heard`].
    pub is_in_doubt: bool,
}

/// Of the reference: so much per node that is being disrupted, within these bounds (sheet 03 §11).
const TIME_PER_NODE: SignedDuration = SignedDuration::from_millis(80);
const LEAST_TIME: SignedDuration = SignedDuration::from_mins(10);
const MOST_TIME: SignedDuration = SignedDuration::from_hours(1);
/// A replacement is ready for pods this long after its node is initialised: what runs on every node comes up too, and
/// whoever watches sees both nodes before the old one goes.
const PROVES_ITSELF: SignedDuration = SignedDuration::from_secs(3);
/// Longer than the server is busy, and than a webhook takes that comes back.
const MARKED_WITHIN: SignedDuration = SignedDuration::from_secs(30);
/// A claim that is not seen by then was not created, and is asked for again.
const LOST_AFTER: SignedDuration = SignedDuration::from_secs(10);
/// A creation that failed is asked for again after this, at first.
const RETRY_AFTER: SignedDuration = SignedDuration::from_secs(1);

/// How long commands may take until their replacements are ready, by how many nodes wait for that at once.
pub fn time_limit(nodes: usize) -> SignedDuration {
    let nodes = i32::try_from(nodes).unwrap_or(i32::MAX);
    TIME_PER_NODE.checked_mul(nodes).unwrap_or(MOST_TIME).clamp(LEAST_TIME, MOST_TIME)
}

impl Command {
    /// The names of its replacements are settled here, so that the same decision made again makes the same claims.
    pub(crate) fn start(approved: Approved, snapshot: &ClusterSnapshot, overlays: &Overlays, now: Timestamp) -> Self {
        let proposal = approved.into_proposal();
        let uids: Vec<Arc<str>> = proposal.candidates.iter().map(|candidate| candidate.claim.uid.clone()).collect();
        let replaces = Replaces { id: proposal.id.clone(), candidates: uids };
        let going = proposal.claims().filter_map(|claim| snapshot.claim(claim)).map(AsRef::as_ref);
        let ledger = ledger_entry(proposal.method, going, now);
        let mut replacements: Vec<Replacement> = Vec::new();
        for (index, planned) in proposal.replacements().iter().enumerate() {
            let seed = Arc::from(format!("{}/{index}", proposal.id));
            let is_taken =
                |name: &str| snapshot.claim(name).is_some() || replacements.iter().any(|known| &*known.name == name);
            let name = claim_name(&planned.pool, &planned.owner.uid, &[seed], is_taken);
            let mut annotations: Texts = overlays.annotations(&planned.pool, &planned.options);
            annotations.extend(pool_stamp(&planned.pool, snapshot));
            annotations.extend(ledger.iter().map(|entry| (Arc::from(annotation::CONSOLIDATIONS), entry.clone())));
            annotations.insert(Arc::from(annotation::REPLACES), Arc::from(replaces.to_string()));
            let order = planned.to_new_claim(name.clone(), annotations);
            let order = Some(Box::new(NewClaim { replaces_for: Some(proposal.reason), ..order }));
            replacements.push(Replacement::new(name, order));
        }
        let going = |candidate: &kerf_disruption::Candidate| Going {
            claim: candidate.claim.clone(),
            pool: candidate.pool.clone(),
            repair: candidate.repair.clone(),
            policy: candidate.consolidation_policy,
        };
        Self {
            decision: Decision::of(&proposal.action),
            candidates: proposal.candidates.iter().map(going).collect(),
            id: proposal.id,
            method: proposal.method,
            reason: proposal.reason,
            replacements,
            started: whole_seconds(now),
            phase: Phase::Marking,
            marking: None,
            taken_up: None,
        }
    }

    /// What a running command wants next. Asked on every look, so a lost or repeated effect does no harm.
    pub fn advance(&mut self, snapshot: &ClusterSnapshot, limit: SignedDuration, now: Timestamp) -> Advance {
        let mut advance = Advance::default();
        let before = self.phase.clone();
        let claims: Vec<Option<&NodeClaim>> = self.candidates.iter().map(|going| going.find(snapshot)).collect();
        if claims.iter().all(Option::is_none) {
            advance.ended = Some(match &self.phase {
                Phase::RollingBack(failure) => Outcome::RolledBack(failure.clone()),
                Phase::Marking | Phase::Replacing | Phase::Deleting { .. } => Outcome::Done,
            });
            return advance;
        }
        let staying: Vec<&NodeClaim> = claims.into_iter().flatten().filter(|claim| !claim.meta.is_deleting()).collect();
        let deadline = later(self.started, limit);
        match self.phase.clone() {
            Phase::Marking if self.is_void(now) => {
                // Its new nodes may long be somebody else's.
                self.replacements.clear();
                self.phase = Phase::RollingBack(Failure::Interrupted);
            }
            Phase::Marking => {
                let is_open = |claim: &&&NodeClaim| !is_marked(claim, &self.record_of(claim), snapshot);
                let unmarked: Vec<_> = staying.iter().filter(is_open).map(|claim| claim.name().clone()).collect();
                let end = self.marking_ends(unmarked.len(), now).min(deadline);
                if !unmarked.is_empty() && now < end {
                    advance.wake = Some(end);
                } else if !unmarked.is_empty() && (unmarked.len() == staying.len() || !self.replacements.is_empty()) {
                    self.phase = Phase::RollingBack(Failure::NotMarkedInTime);
                    advance.unmarked = unmarked;
                } else {
                    self.candidates.retain(|going| !unmarked.contains(&going.claim.name.name));
                    advance.unmarked = unmarked;
                    // Nothing new comes to its nodes any more: what is said of them now will be true.
                    match self.is_in_doubt(now) {
                        true => advance.is_in_doubt = true,
                        false => self.phase = Phase::Replacing,
                    }
                }
            }
            Phase::Replacing => match self.replace(snapshot, now, &mut advance) {
                Err(failure) => self.phase = Phase::RollingBack(failure),
                Ok(()) if self.replacements.iter().all(|replacement| replacement.is_ready) => {
                    self.phase = Phase::Deleting { since: now };
                }
                Ok(()) if now >= deadline => {
                    let late = self.replacements.iter().filter(|replacement| !replacement.is_ready);
                    let names = late.map(|replacement| replacement.name.clone()).collect();
                    self.phase = Phase::RollingBack(Failure::NotReadyInTime { names });
                }
                Ok(()) => advance.look_again(deadline),
            },
            Phase::Deleting { .. } => {
                for claim in &staying {
                    self.delete(claim, snapshot, &mut advance);
                }
                if !staying.is_empty() {
                    advance.look_again(later(now, LOST_AFTER));
                }
            }
            Phase::RollingBack(failure) => {
                // Somebody's pods are on their way to the replacements if one of the nodes goes after all.
                let is_needed = staying.len() < self.candidates.len() && !self.replacements.is_empty();
                let unused = if is_needed { Vec::new() } else { self.unused_replacements(snapshot) };
                if unused.is_empty() {
                    let told = staying.iter().map(|claim| events::rolled_back(self, claim, &failure));
                    advance.effects.extend(told);
                    advance.ended = Some(Outcome::RolledBack(failure));
                } else {
                    for claim in unused {
                        advance.give_up(claim, Cause::ReplacementUnneeded);
                    }
                    advance.look_again(later(now, LOST_AFTER));
                }
            }
        }
        advance.is_moved = self.phase != before;
        advance
    }

    /// Until when marks are waited for: of a deletion those that can be marked do not wait for long for the others, unless
    /// there are more of them with every look (sheet 03 §11). A replacement stands or falls as a whole.
    fn marking_ends(&mut self, unmarked: usize, now: Timestamp) -> Timestamp {
        if !self.replacements.is_empty() {
            return Timestamp::MAX;
        }
        let (_, since) = *match &mut self.marking {
            Some(known) if known.0 <= unmarked => known,
            marking => marking.insert((unmarked, now)),
        };
        later(since, MARKED_WITHIN)
    }

    /// Asks for replacements that are not there, and looks at those that are.
    fn replace(&mut self, snapshot: &ClusterSnapshot, now: Timestamp, advance: &mut Advance) -> Result<(), Failure> {
        let mut told = Vec::new();
        for at in 0..self.replacements.len() {
            let replacement = &mut self.replacements[at];
            match snapshot.claim(&replacement.name) {
                _ if replacement.is_ready => {}
                Some(claim) if claim.meta.is_deleting() => {
                    return Err(Failure::ReplacementGone { name: replacement.name.clone() });
                }
                Some(claim) => {
                    replacement.is_seen = true;
                    let ready_at = ready_at(claim);
                    replacement.is_ready = ready_at.is_some_and(|at| at <= now);
                    if let Some(at) = ready_at.filter(|at| now < *at) {
                        advance.look_again(at);
                    }
                    told.push((claim, replacement.is_ready));
                }
                None => match &replacement.order {
                    Some(order) if !replacement.is_seen => {
                        let repeat_at = match replacement.repeat_at {
                            Some(at) if now < at => at,
                            Some(_) | None => {
                                replacement.asked = Some(now);
                                advance.effects.push(Effect::CreateClaim(order.clone()));
                                later(now, LOST_AFTER)
                            }
                        };
                        replacement.repeat_at = Some(repeat_at);
                        advance.look_again(repeat_at);
                    }
                    Some(_) | None => return Err(Failure::ReplacementGone { name: replacement.name.clone() }),
                },
            }
        }
        for (claim, _) in told.into_iter().filter(|(_, is_ready)| !is_ready) {
            let launched = claim.status.conditions.is_true(kind::LAUNCHED);
            advance.effects.push(match launched {
                false => events::launching(self, claim),
                true => events::waiting(self, claim),
            });
        }
        Ok(())
    }

    /// The deadline of its drain stands on the claim before it goes.
    fn delete(&self, claim: &NodeClaim, snapshot: &ClusterSnapshot, advance: &mut Advance) {
        let wanted = self.deadline_of(claim);
        if wanted.is_some_and(|wanted| written_deadline(claim).is_none_or(|written| written > wanted)) {
            return;
        }
        let going = self.going(claim);
        let repair = going.and_then(|going| going.repair.clone());
        let consolidation_policy = going.and_then(|going| going.policy);
        let reason = Cause::Disrupted { reason: self.reason, consolidation_policy, repair };
        advance.effects.push(events::terminating(self, EventKind::NodeClaim, &claim.meta));
        let nodes = snapshot.nodes_of(claim);
        advance.effects.extend(nodes.map(|node| events::terminating(self, EventKind::Node, &node.meta)));
        advance.give_up(claim, reason);
    }

    /// Replacements that no pod runs on and none is going to. Those that have joined and may still become ready are left
    /// to [`orphans`].
    fn unused_replacements<'a>(&self, snapshot: &'a ClusterSnapshot) -> Vec<&'a NodeClaim> {
        let there = self.replacements.iter().filter_map(|replacement| snapshot.claim(&replacement.name));
        let there = there.filter(|claim| self.is_ours(claim) && !claim.meta.is_deleting() && !is_joining(claim));
        there.filter(|claim| hosts_nothing(claim, snapshot)).map(AsRef::as_ref).collect()
    }

    /// Not another claim that has taken the name.
    fn is_ours(&self, replacement: &NodeClaim) -> bool {
        let replaces = replacement.meta.annotation(annotation::REPLACES).map(str::parse::<Replaces>);
        matches!(replaces, Some(Ok(replaces)) if replaces.id == self.id)
    }

    fn deadline_of(&self, claim: &NodeClaim) -> Option<Timestamp> {
        let Phase::Deleting { since } = self.phase else { return None };
        self.going(claim)?.bound().map(|bound| whole_seconds(later(since, bound)))
    }

    fn going(&self, claim: &NodeClaim) -> Option<&Going> {
        self.candidates.iter().find(|going| going.claim.uid == claim.meta.uid)
    }

    fn record_of(&self, claim: &NodeClaim) -> String {
        self.going(claim).map(|going| self.record(going).to_string()).unwrap_or_default()
    }

    fn record(&self, going: &Going) -> Record {
        Record {
            id: self.id.clone(),
            method: self.method,
            decision: self.decision,
            reason: self.reason,
            started: self.started,
            replacements: self.replacements.iter().map(|replacement| replacement.name.clone()).collect(),
            repair: going.repair.clone(),
            policy: going.policy,
        }
    }

    /// What is to stand on the claims while it runs.
    pub fn mark(&self, marks: &mut Marks) {
        for going in &self.candidates {
            let deadline = match self.phase {
                Phase::Deleting { since } => going.bound().map(|bound| later(since, bound)),
                Phase::Marking | Phase::Replacing | Phase::RollingBack(_) => None,
            };
            let record = Arc::from(self.record(going).to_string());
            let order = Order::Leave { record, deadline };
            let mark = Mark { claim_uid: going.claim.uid.clone(), reason: self.reason, order };
            marks.insert(going.claim.name.name.clone(), mark);
        }
    }

    /// A claim could not be created, and will not be.
    pub fn refused(&mut self, name: &str, message: &str) {
        let is_ours = self.replacements.iter().any(|replacement| &*replacement.name == name);
        if is_ours && matches!(self.phase, Phase::Marking | Phase::Replacing) {
            let (name, message) = (Arc::from(name), message.to_owned());
            self.phase = Phase::RollingBack(Failure::ReplacementRefused { name, message });
        }
    }

    /// The creation may be asked for again soon, and ever later: what refuses it may do so for minutes.
    pub fn create_failed(&mut self, name: &str, now: Timestamp) {
        for replacement in self.replacements.iter_mut().filter(|replacement| &*replacement.name == name) {
            replacement.asked = None;
            replacement.refusals = replacement.refusals.saturating_add(1);
            // No longer than what is lost is waited for.
            replacement.repeat_at = Some(later(now, doubled(replacement.refusals, RETRY_AFTER, LOST_AFTER)));
        }
    }

    /// Until when its replacements may come that were asked for and are not seen.
    pub fn hold(&self, snapshot: &ClusterSnapshot) -> Option<Timestamp> {
        let unseen = self.replacements.iter().filter(|known| !known.is_seen && snapshot.claim(&known.name).is_none());
        unseen.filter_map(|known| known.asked).map(|asked| later(asked, LOST_AFTER)).max()
    }

    /// How many of its replacements have not become ready.
    pub fn missing(&self) -> usize {
        self.replacements.iter().filter(|replacement| !replacement.is_ready).count()
    }

    /// Whether it still waits for its replacements.
    pub fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Marking | Phase::Replacing)
    }

    /// Whether something about the claim matters to it.
    pub fn concerns(&self, claim: &str) -> bool {
        self.candidates.iter().any(|going| &*going.claim.name.name == claim)
            || self.replacements.iter().any(|replacement| &*replacement.name == claim)
    }

    pub fn running(&self) -> Running {
        Running {
            id: self.id.clone(),
            method: self.method,
            reason: self.reason,
            candidates: self.candidates.iter().map(|going| going.claim.name.name.clone()).collect(),
            pools: self.candidates.iter().map(|going| going.pool.clone()).collect(),
            replacements: self.replacements.iter().map(|replacement| replacement.name.clone()).collect(),
        }
    }

    fn names(&self) -> String {
        const SHOWN: usize = 3;
        let mut names: Vec<&str> = self.candidates.iter().take(SHOWN).map(|going| &*going.claim.name.name).collect();
        let more = self.candidates.len().saturating_sub(SHOWN);
        let others = format!("{more} more");
        if more > 0 {
            names.push(&others);
        }
        names.join(", ")
    }
}

/// When pods may be sent to its node, if it is initialised.
fn ready_at(claim: &NodeClaim) -> Option<Timestamp> {
    let initialized = claim.status.conditions.get(kind::INITIALIZED)?;
    (initialized.status == ConditionStatus::True).then(|| later(initialized.since, PROVES_ITSELF))
}

impl Replacement {
    fn new(name: Arc<str>, order: Option<Box<NewClaim>>) -> Self {
        Self { name, order, asked: None, refusals: 0, repeat_at: None, is_seen: false, is_ready: false }
    }
}

impl Going {
    fn bound(&self) -> Option<SignedDuration> {
        self.repair.as_ref()?.bound
    }

    fn find<'a>(&self, snapshot: &'a ClusterSnapshot) -> Option<&'a NodeClaim> {
        let claim = snapshot.claim(&self.claim.name.name)?;
        (claim.meta.uid == self.claim.uid).then_some(&**claim)
    }
}

impl Advance {
    fn look_again(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }

    fn give_up(&mut self, claim: &NodeClaim, cause: Cause) {
        let target = Target::from(&claim.meta);
        self.effects.push(Effect::DeleteClaim(target.clone()));
        self.notes.push(Note::GivenUp { claim: target, cause });
    }
}

#[cfg(test)]
mod tests;
