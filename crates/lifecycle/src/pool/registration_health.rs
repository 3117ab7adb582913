//! Whether the nodes of a pool come up (sheet 04 §6.4). It informs; nothing is held back by it.

use kerf_model::cluster::condition_kind as kind;

use super::PoolDraft;
use crate::memory::Ring;
use crate::view::View;

pub(super) fn step(draft: &mut PoolDraft<'_>, view: View<'_>) {
    let pool = draft.pool;
    let Some(class) = view.snapshot.class(&pool.class) else { return };
    let condition = pool.status.conditions.get(kind::NODE_REGISTRATION_HEALTHY);
    let of_this_pool = condition.is_some_and(|condition| condition.observed_generation == pool.meta.generation);
    let of_this_class = pool.status.class_observed_generation == Some(class.meta.generation);
    if !of_this_pool || !of_this_class {
        // What failed before may have been mended by the edit.
        let (reason, message) = ("AwaitingReconciliation", "no node was launched since the last edit");
        draft.conditions.set_unknown(kind::NODE_REGISTRATION_HEALTHY, reason, message);
        draft.patch.class_observed_generation = Some(class.meta.generation);
        return;
    }
    let resumed;
    let ring = match view.memory.health(&pool.meta) {
        Some(health) => &health.ring,
        None => {
            resumed = Ring::resumed(pool);
            &resumed
        }
    };
    match ring.complaint() {
        Some((reason, message)) => draft.conditions.set_false(kind::NODE_REGISTRATION_HEALTHY, reason, message),
        None if ring.is_empty() => {}
        None => draft.conditions.set_true(kind::NODE_REGISTRATION_HEALTHY),
    }
}
