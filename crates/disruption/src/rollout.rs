//! Drift in waves: so many nodes of a pool, then a pause in which their replacements must prove themselves; and a halt
//! when they do not. Off unless an operator sets [`Waves`](crate::Waves).

use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::budget::BudgetNodes;
use kerf_model::cluster::StoredPool;
use kerf_model::snapshot::ClusterSnapshot;

use crate::hash::fnv;
use crate::plan::Plan;
use crate::subject::Subject;
use crate::{KeepReason, Method, Rollout, Waves};

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
    if rollout.in_wave(waves, view.now) + proposed < size as usize {
        return Ok(());
    }
    Err(baking(pool, rollout.baked_at(waves)))
}

fn baking(pool: &Arc<str>, until: Option<Timestamp>) -> KeepReason {
    KeepReason::Baking { pool: Arc::clone(pool), until }
}

impl Rollout {
    /// How many of the current wave are chosen. A wave that has baked is over, and the next is empty.
    fn in_wave(&self, waves: Waves, now: Timestamp) -> usize {
        match self.baked_at(waves) {
            Some(at) if at <= now => 0,
            Some(_) | None => self.wave.len(),
        }
    }

    fn baked_at(&self, waves: Waves) -> Option<Timestamp> {
        self.done.map(|done| done.checked_add(waves.bake).unwrap_or(Timestamp::MAX))
    }

    /// Takes the claims into the wave that is open now.
    pub(crate) fn take(&mut self, claims: impl Iterator<Item = Arc<str>>, waves: Waves, now: Timestamp) {
        if self.in_wave(waves, now) == 0 {
            self.wave.clear();
            self.failures = 0;
        }
        self.done = None;
        self.wave.extend(claims);
    }
}

/// What the nodes are rolled to: another edit of the pool or its class is another roll-out.
pub(crate) fn target(pool: &StoredPool, snapshot: &ClusterSnapshot) -> u64 {
    let hash = pool.hash.as_ref().map_or("", |hash| &*hash.hash);
    let class = snapshot.class(&pool.class).map_or(0, |class| class.meta.generation);
    fnv([hash, &class.to_string(), &pool.meta.generation.to_string()])
}
