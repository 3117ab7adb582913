//! What the executor remembers between rounds and hands in. All of it may be lost: the next rounds are then a little
//! less careful, never wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::time::{doubled, later};

use crate::hash::fnv;
use crate::rollout::{self, Rollout};
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
    /// By pool and reason: nothing is replaced until then.
    pub back_off: BTreeMap<(Arc<str>, Reason), BackOff>,
    /// By pool: the roll-out under way, where drift goes in waves.
    pub rollouts: BTreeMap<Arc<str>, Rollout>,
    /// By pool: for which reason the last command was started.
    pub last_reason: BTreeMap<Arc<str>, Reason>,
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
    /// Of these pools.
    pub pools: BTreeSet<Arc<str>>,
    /// Claims that were made for it.
    pub replacements: BTreeSet<Arc<str>>,
}

#[derive(Debug, Clone)]
pub struct Held {
    pub proposal: Proposal,
    /// When it may be validated.
    pub until: Timestamp,
}

/// A pool whose replacements fail is left alone for a while, and the others go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackOff {
    pub level: u32,
    pub until: Timestamp,
}

/// Doubling from one minute to ten (sheet 03 §15.7).
const BACK_OFF_FIRST: SignedDuration = SignedDuration::from_mins(1);
const BACK_OFF_MOST: SignedDuration = SignedDuration::from_mins(10);

/// How long reboots matter.
const REBOOTS_KEPT: SignedDuration = SignedDuration::from_hours(24);

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

    /// Until when the pool is left alone for this reason.
    pub fn backs_off_until(&self, pool: &Arc<str>, reason: Reason, now: Timestamp) -> Option<Timestamp> {
        let until = self.back_off.get(&(Arc::clone(pool), reason))?.until;
        (now < until).then_some(until)
    }

    /// A command of the pool failed. While the pool is backed off already, nothing changes: two failures of one attempt
    /// count once.
    pub fn failed(&mut self, pool: &Arc<str>, reason: Reason, now: Timestamp) {
        let key = (Arc::clone(pool), reason);
        let known = self.back_off.get(&key).copied();
        if known.is_some_and(|known| now < known.until) {
            return;
        }
        let level = known.map_or(1, |known| known.level.saturating_add(1));
        let wait = doubled(level, BACK_OFF_FIRST, BACK_OFF_MOST);
        // Between half of it and all of it, so that pools that failed together do not come back together.
        let share = i64::try_from(fnv([&**pool, &level.to_string()]) % 500).unwrap_or_default();
        let wait =
            SignedDuration::from_millis(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX) / 1000 * (500 + share));
        self.back_off.insert(key, BackOff { level, until: later(now, wait) });
    }

    /// A command came so far that its replacements are there.
    pub fn succeeded<'a>(&mut self, method: Method, pools: impl IntoIterator<Item = &'a Arc<str>>) {
        let Some(reason) = method.backs_off() else { return };
        for pool in pools {
            self.back_off.remove(&(Arc::clone(pool), reason));
        }
    }

    /// It is gone: another pool of that name begins anew.
    pub fn forget_pool(&mut self, pool: &str) {
        self.back_off.retain(|(of, _), _| **of != *pool);
        self.rollouts.remove(pool);
        self.last_reason.remove(pool);
    }

    /// A command was started: to be told once, before the next round.
    pub fn started(&mut self, proposal: &Proposal, view: &View<'_>) {
        let now = view.now;
        let pools = proposal.candidates.iter().map(|candidate| Arc::clone(&candidate.pool));
        self.last_reason.extend(pools.map(|pool| (pool, proposal.reason)));
        match (&proposal.action, proposal.method, view.settings.waves) {
            (Action::Reboot { .. }, _, _) => {
                for candidate in &proposal.candidates {
                    let times = self.reboots.entry(Arc::clone(&candidate.claim.uid)).or_default();
                    times.retain(|at| now.duration_since(*at) < REBOOTS_KEPT);
                    times.push(now);
                }
            }
            (_, Method::Drift | Method::StaticDrift, Some(waves)) => {
                for candidate in &proposal.candidates {
                    let Some(pool) = view.snapshot.pool(&candidate.pool) else { continue };
                    let target = rollout::target(pool, view.snapshot);
                    let known = self.rollouts.get(&candidate.pool).copied().filter(|known| known.target == target);
                    let known = known.unwrap_or_else(|| Rollout::to(target));
                    self.rollouts.insert(Arc::clone(&candidate.pool), known.with_one_more(waves, now));
                }
            }
            (Action::Delete | Action::Replace(_) | Action::TerminateFirst(_), _, _) => {}
        }
    }

    /// A command is over and does not stand in [`running`](Self::running) any more: its nodes are going, or it failed
    /// because replacements did not become ready.
    pub fn finished(&mut self, method: Method, pools: &BTreeSet<Arc<str>>, succeeded: bool, now: Timestamp) {
        let Some(reason) = method.backs_off() else { return };
        match succeeded {
            true => self.succeeded(method, pools),
            false => pools.iter().for_each(|pool| self.failed(pool, reason, now)),
        }
        for pool in pools.iter().filter(|_| method.is_drift()) {
            let of_wave = |running: &Running| running.method.is_drift() && running.pools.contains(pool);
            let is_done = !self.running.iter().any(of_wave);
            if let Some(rollout) = self.rollouts.get_mut(pool) {
                rollout.failures += u32::from(!succeeded);
                rollout.done = is_done.then_some(now);
            }
        }
    }
}
