//! What the executor remembers between rounds and hands in. All of it may be lost: the next rounds are then a little
//! less careful, never wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::hash::fnv;
use crate::rollout;
use crate::{Action, Method, Proposal, ProposalId, Reason, Unmarked, View};

#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// By node or unjoined claim: until when it is promised to a pending pod.
    pub nominations: BTreeMap<Arc<str>, Timestamp>,
    /// Claims that are to be deleted although the snapshot does not show it yet (an interruption, an expiry, a repair
    /// of the old kind whose write is under way).
    pub marked: BTreeSet<Arc<str>>,
    /// Commands under way. Their nodes are taken, and their replacements belong to them.
    pub running: Vec<Running>,
    /// Proposals that wait out their hold. Their nodes are taken; what they land on is spoken for.
    pub held: Vec<Held>,
    /// By pool: no drift until then.
    pub drift_back_off: BTreeMap<Arc<str>, BackOff>,
    /// By pool: the roll-out under way, where drift goes in waves.
    pub rollouts: BTreeMap<Arc<str>, Rollout>,
    /// Commands that were started, oldest first. See [`Memory::started`].
    pub moves: Vec<Move>,
    /// By claim uid: when reboots were started.
    pub reboots: BTreeMap<Arc<str>, Vec<Timestamp>>,
    /// Claims (by name) whose spot instance the cloud advises to leave.
    pub rebalance: BTreeSet<Arc<str>>,
    /// Claims that could not be marked.
    pub unmarked: Unmarked,
}

/// A command under way, as far as decisions need to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub id: ProposalId,
    pub method: Method,
    pub reason: Reason,
    /// Claims that go.
    pub candidates: BTreeSet<Arc<str>>,
    /// Claims that were made for it.
    pub replacements: BTreeSet<Arc<str>>,
}

#[derive(Debug, Clone)]
pub struct Held {
    pub proposal: Proposal,
    /// When it may be validated.
    pub until: Timestamp,
}

/// A pool whose drift fails is left alone for a while, and the others go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackOff {
    pub level: u32,
    pub until: Timestamp,
}

/// A pool's drift in waves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Claims chosen in the current wave.
    pub wave: BTreeSet<Arc<str>>,
    /// When the last command of the wave was done, so that the bake time counts.
    pub done: Option<Timestamp>,
    /// What the nodes are rolled to; another edit is another roll-out.
    pub target: u64,
    /// Commands of the wave whose replacements did not become ready.
    pub failures: u32,
}

/// A command that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    pub at: Timestamp,
    pub method: Method,
    pub reason: Reason,
    pub pools: BTreeSet<Arc<str>>,
    /// Claims that went.
    pub removed: BTreeSet<Arc<str>>,
    /// Claims that were launched for it.
    pub replacements: BTreeSet<Arc<str>>,
}

/// Doubling from one minute to ten (sheet 03 §15.7).
const BACK_OFF_FIRST: SignedDuration = SignedDuration::from_mins(1);
const BACK_OFF_MOST: SignedDuration = SignedDuration::from_mins(10);

/// How long moves and reboots matter at most: a day, which is longer than any window that is sane to set.
const MOVES_KEPT: SignedDuration = SignedDuration::from_hours(24);

impl Memory {
    /// Whether a command or a held proposal has this claim among the nodes that go.
    pub(crate) fn command_of(&self, claim: &str) -> Option<(&ProposalId, Method, Reason)> {
        let running = self.running.iter().find(|running| running.candidates.contains(claim));
        running.map(|running| (&running.id, running.method, running.reason))
    }

    pub(crate) fn held_of(&self, claim: &str) -> Option<&Held> {
        self.held.iter().find(|held| held.proposal.claims().any(|own| &**own == claim))
    }

    /// The command that launched this claim and is not done yet.
    pub(crate) fn replaces_for(&self, claim: &str) -> Option<&Running> {
        self.running.iter().find(|running| running.replacements.contains(claim))
    }

    /// A drift command of the pool failed. While the pool is backed off already, nothing changes: two failures of one
    /// attempt count once.
    pub fn drift_failed(&mut self, pool: &Arc<str>, now: Timestamp) {
        let known = self.drift_back_off.get(pool).copied();
        if known.is_some_and(|known| now < known.until) {
            return;
        }
        let level = known.map_or(1, |known| known.level + 1);
        let factor = 1_i32.checked_shl(level - 1).filter(|factor| *factor > 0).unwrap_or(i32::MAX);
        let wait = BACK_OFF_FIRST.checked_mul(factor).unwrap_or(BACK_OFF_MOST).min(BACK_OFF_MOST);
        // Between half of it and all of it, so that pools that failed together do not come back together.
        let share = i64::try_from(fnv([&**pool, &level.to_string()]) % 500).unwrap_or_default();
        let wait =
            SignedDuration::from_millis(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX) / 1000 * (500 + share));
        let until = now.checked_add(wait).unwrap_or(Timestamp::MAX);
        self.drift_back_off.insert(Arc::clone(pool), BackOff { level, until });
    }

    /// A drift command of the pool was done.
    pub fn drift_succeeded(&mut self, pool: &str) {
        self.drift_back_off.remove(pool);
    }

    /// A command was started: to be told once, before the next round.
    pub fn started(&mut self, proposal: &Proposal, replacements: BTreeSet<Arc<str>>, view: &View<'_>) {
        let now = view.now;
        self.moves.retain(|known| now.duration_since(known.at) < MOVES_KEPT);
        self.moves.push(Move {
            at: now,
            method: proposal.method,
            reason: proposal.reason,
            pools: proposal.candidates.iter().map(|candidate| Arc::clone(&candidate.pool)).collect(),
            removed: proposal.claims().cloned().collect(),
            replacements,
        });
        match (&proposal.action, proposal.method, view.settings.waves) {
            (Action::Reboot { .. }, _, _) => {
                for candidate in &proposal.candidates {
                    let times = self.reboots.entry(Arc::clone(&candidate.claim.uid)).or_default();
                    times.retain(|at| now.duration_since(*at) < MOVES_KEPT);
                    times.push(now);
                }
            }
            (_, Method::Drift | Method::StaticDrift, Some(waves)) => {
                for candidate in &proposal.candidates {
                    let Some(pool) = view.snapshot.pool(&candidate.pool) else { continue };
                    let target = rollout::target(pool, view.snapshot);
                    let known = self.rollouts.entry(Arc::clone(&candidate.pool)).or_default();
                    if known.target != target {
                        *known = Rollout { target, ..Rollout::default() };
                    }
                    known.take([Arc::clone(&candidate.claim.name.name)].into_iter(), waves, now);
                }
            }
            (Action::Delete | Action::Replace(_) | Action::TerminateFirst(_), _, _) => {}
        }
    }

    /// A command is over and does not stand in [`running`](Self::running) any more: its nodes are going, or it failed
    /// because replacements did not become ready.
    pub fn finished(&mut self, method: Method, pools: &BTreeSet<Arc<str>>, succeeded: bool, now: Timestamp) {
        if !matches!(method, Method::Drift | Method::StaticDrift) {
            return;
        }
        for pool in pools {
            match succeeded {
                true => self.drift_succeeded(pool),
                false => self.drift_failed(pool, now),
            }
            let busy = |claim: &Arc<str>| self.running.iter().any(|running| running.candidates.contains(claim));
            let is_done = self.rollouts.get(pool).is_some_and(|rollout| !rollout.wave.iter().any(busy));
            if let Some(rollout) = self.rollouts.get_mut(pool) {
                rollout.failures += u32::from(!succeeded);
                rollout.done = is_done.then_some(now);
            }
        }
    }
}
