//! What a pool says about itself, and the nodes of static pools (sheet 04 §6, §7).

use kerf_model::cluster::{PoolHash, StoredPool};
use kerf_model::effect::{Effect, PoolPatch, Target};
use kerf_model::label::annotation;

use std::sync::Arc;

use crate::conditions::ConditionEditor;
use crate::steps::Steps;
use crate::view::View;

mod counter;
pub(crate) mod hash;
mod readiness;
mod registration_health;
mod replicas;
mod template;
mod validation;

pub use counter::{Totals, Usage};
pub use template::claim_from;

/// What one look wants written about a pool.
#[derive(Debug)]
struct PoolDraft<'a> {
    pool: &'a StoredPool,
    patch: PoolPatch,
    conditions: ConditionEditor<'a>,
}

/// What a pool wants next. `totals` are those of the view's snapshot: they are made once for all pools.
pub fn next(pool: &StoredPool, totals: &Totals, view: View<'_>) -> Steps {
    if !view.settings.manages(&pool.class) {
        return Steps::default();
    }
    let conditions = ConditionEditor::of_pool(pool, view.now);
    let mut draft = PoolDraft { pool, patch: PoolPatch::default(), conditions };
    counter::step(&mut draft, totals);
    validation::step(&mut draft);
    readiness::step(&mut draft, view);
    registration_health::step(&mut draft, view);
    draft.set_rollout(view);
    let mut steps = hash::step(&mut draft, view);
    steps.act(draft.finish());
    steps.merge(replicas::step(pool, view));
    steps
}

/// The annotations in which a pool's hash stands, on the pool and on its claims.
pub fn stamp(hash: &PoolHash) -> impl Iterator<Item = (&'static str, &Arc<str>)> {
    let fields = hash.fields.as_ref().map(|fields| (annotation::NODEPOOL_FIELD_HASHES, fields));
    let both = [(annotation::NODEPOOL_HASH, &hash.hash), (annotation::NODEPOOL_HASH_VERSION, &hash.version)];
    both.into_iter().chain(fields)
}

impl PoolDraft<'_> {
    /// So that a restart goes on with the roll-out where it was.
    fn set_rollout(&mut self, view: View<'_>) {
        let wanted = view.marks.rollout(&self.pool.meta.name.name);
        if let Some(wanted) = wanted.filter(|wanted| self.pool.meta.annotation(annotation::ROLLOUT) != Some(wanted)) {
            self.patch.meta.annotations.insert(Arc::from(annotation::ROLLOUT), Some(Arc::clone(wanted)));
        }
    }

    fn finish(mut self) -> Option<Effect> {
        self.patch.conditions = self.conditions.finish();
        if self.patch == PoolPatch::default() {
            return None;
        }
        self.patch.meta.resource_version = Some(self.pool.meta.resource_version.clone());
        Some(Effect::PatchPool(Target::from(&self.pool.meta), Box::new(self.patch)))
    }
}
