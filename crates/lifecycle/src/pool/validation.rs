//! Whether a pool can be used at all (sheet 04 §6.3). The checks are the parser's; here they become a condition.

use kerf_model::cluster::condition_kind as kind;

use super::PoolDraft;

/// Kerf's own: the pool's owner has switched it off.
const DISABLED: &str = "Disabled";

pub(super) fn step(draft: &mut PoolDraft<'_>) {
    match &draft.pool.spec {
        Err(problems) => {
            draft.conditions.set_false(kind::VALIDATION_SUCCEEDED, "NodePoolValidationFailed", problems);
        }
        Ok(spec) => {
            draft.conditions.set_true(kind::VALIDATION_SUCCEEDED);
            if spec.disabled {
                draft.conditions.set_true(DISABLED);
            } else if draft.conditions.get(DISABLED).is_some() {
                draft.conditions.set_false(DISABLED, "Enabled", "");
            }
        }
    }
}
