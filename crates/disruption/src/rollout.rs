//! Drift in waves: so many nodes of a pool, then a pause in which their replacements must prove themselves; and a halt
//! when they do not. Off unless an operator sets [`Waves`](crate::Waves).
//!
//! How far it has come is written on the pool, so that a restart neither shortens a pause nor ends a halt.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::budget::BudgetNodes;
use kerf_model::cluster::StoredPool;
use kerf_model::snapshot::ClusterSnapshot;

use crate::hash::fnv;
use crate::plan::Plan;
use crate::subject::Subject;
use crate::{KeepReason, Method, Waves};

/// A pool's drift in waves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rollout {
    /// What the nodes are rolled to; another edit is another roll-out.
    pub target: u64,
    /// How many nodes are chosen in the current wave.
    pub chosen: u32,
    /// Commands of the wave whose replacements did not become ready.
    pub failures: u32,
    /// When the last command of the wave was done, so that the bake time counts.
    pub done: Option<Timestamp>,
}

/// Whether the pool's roll-out may take this node now.
pub(crate) fn check(plan: &Plan<'_, '_>, subject: &Subject<'_>) -> Result<(), KeepReason> {
    let view = &plan.context.view;
    let (Some(waves), Some(stored), Some(pool)) = (view.settings.waves, subject.stored, &subject.pool_name) else {
        return Ok(());
    };
    let target = target(stored, view.snapshot);
    let known = view.memory.rollouts.get(pool).filter(|rollout| rollout.target == target);
    // Those that are being replaced count once: with their replacements a wave would grow while it rolls.
    let counts =
        |other: &&Subject<'_>| other.pool_name == subject.pool_name && view.memory.replaces_for(other.name()).is_none();
    let nodes = plan.context.subjects.iter().filter(counts).count();
    let size = BudgetNodes::Percent(waves.percent).of(u32::try_from(nodes).unwrap_or(u32::MAX)).max(1);
    let mine = |proposal: &&crate::Proposal| {
        matches!(proposal.method, Method::Drift | Method::StaticDrift)
            && proposal.candidates.iter().any(|candidate| candidate.pool == *pool)
    };
    let proposed = plan.proposals.iter().filter(mine).map(|proposal| proposal.candidates.len()).sum::<usize>();
    let Some(rollout) = known else {
        return if proposed < size as usize { Ok(()) } else { Err(baking(pool, None)) };
    };
    if rollout.failures >= waves.failures.max(1) {
        return Err(KeepReason::RolloutHalted { pool: Arc::clone(pool), failures: rollout.failures });
    }
    if rollout.in_wave(waves, view.now) as usize + proposed < size as usize {
        return Ok(());
    }
    Err(baking(pool, rollout.baked_at(waves)))
}

fn baking(pool: &Arc<str>, until: Option<Timestamp>) -> KeepReason {
    KeepReason::Baking { pool: Arc::clone(pool), until }
}

impl Rollout {
    pub(crate) fn to(target: u64) -> Self {
        Self { target, chosen: 0, failures: 0, done: None }
    }

    /// How many of the current wave are chosen. A wave that has baked is over, and the next is empty.
    fn in_wave(&self, waves: Waves, now: Timestamp) -> u32 {
        match self.baked_at(waves) {
            Some(at) if at <= now => 0,
            Some(_) | None => self.chosen,
        }
    }

    fn baked_at(&self, waves: Waves) -> Option<Timestamp> {
        self.done.map(|done| done.checked_add(waves.bake).unwrap_or(Timestamp::MAX))
    }

    /// With another node in the wave that is open now.
    pub(crate) fn with_one_more(self, waves: Waves, now: Timestamp) -> Self {
        match self.in_wave(waves, now) {
            0 => Self { chosen: 1, ..Self::to(self.target) },
            chosen => Self { chosen: chosen + 1, done: None, ..self },
        }
    }
}

/// `v1 TARGET CHOSEN FAILURES [DONE]`
impl fmt::Display for Rollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, chosen, failures, done } = self;
        write!(f, "v1 {target:016x} {chosen} {failures}")?;
        match done {
            Some(done) => write!(f, " {done:.0}"),
            None => Ok(()),
        }
    }
}

/// The text is none of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRollout;

impl FromStr for Rollout {
    type Err = NoRollout;

    fn from_str(text: &str) -> Result<Self, NoRollout> {
        let mut words = text.strip_prefix("v1 ").ok_or(NoRollout)?.split(' ');
        let mut next = || words.next().ok_or(NoRollout);
        let target = u64::from_str_radix(next()?, 16).map_err(|_| NoRollout)?;
        let mut count = || next()?.parse().map_err(|_| NoRollout);
        let (chosen, failures) = (count()?, count()?);
        let done = words.next().map(str::parse).transpose().map_err(|_| NoRollout)?;
        Ok(Self { target, chosen, failures, done })
    }
}

/// What the nodes are rolled to: another edit of the pool or its class is another roll-out.
pub(crate) fn target(pool: &StoredPool, snapshot: &ClusterSnapshot) -> u64 {
    let hash = pool.hash.as_ref().map_or("", |hash| &*hash.hash);
    let class = snapshot.class(&pool.class).map_or(0, |class| class.meta.generation);
    fnv([hash, &class.to_string(), &pool.meta.generation.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roll_out_is_read_back_as_it_was_written() {
        let done = Some("2026-11-18T12:00:00Z".parse().unwrap());
        let rollout = Rollout { target: u64::MAX, chosen: 3, failures: 1, done };
        assert_eq!(rollout.to_string(), "v1 ffffffffffffffff 3 1 2026-11-18T12:00:00Z");
        for rollout in [rollout, Rollout { done: None, ..rollout }] {
            assert_eq!(rollout.to_string().parse(), Ok(rollout));
        }
        for text in ["", "v1", "v1 x 1 1", "v1 0 1", "v1 0 1 1 noon", "v2 0 1 1"] {
            assert_eq!(text.parse::<Rollout>(), Err(NoRollout), "{text}");
        }
    }
}
