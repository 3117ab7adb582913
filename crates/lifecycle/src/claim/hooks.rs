//! Registration hooks: what a provider wants done before pods may run on a node (sheet 04 §2.2).

use kerf_model::cluster::condition_kind as kind;
use kerf_model::effect::{Effect, Target};
use kerf_model::time::later;

use super::ClaimDraft;
use crate::memory::ANSWER_WITHIN;
use crate::steps::Steps;
use crate::view::View;

/// What a claim whose node has joined does about its hooks. `None` if it waits for none.
pub fn step(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Option<Steps> {
    if !view.settings.registration_hooks {
        return None;
    }
    let claim = draft.claim;
    let known = view.memory.hooks(claim);
    let answer = known.and_then(|known| known.answer.as_ref());
    if let Some((_, report)) = answer.filter(|(_, report)| report.pending.is_empty()) {
        // On the claim before the node registers: a crash in between must not lose them, as nobody asks twice.
        let is_done = report.labels.iter().all(|(key, value)| claim.meta.label(key) == Some(value));
        report.labels.iter().for_each(|(key, value)| draft.set_label(key, value));
        return (!is_done).then(Steps::default);
    }
    if let Some((_, report)) = answer {
        draft.conditions.set_unknown(kind::REGISTERED, "RegistrationHookPending", &report.pending.join(", "));
    }
    let under_way = known.and_then(|known| known.asked).map(|at| later(at, ANSWER_WITHIN));
    let pending = answer.map(|(at, report)| later(*at, report.again));
    Some(match under_way.or(pending) {
        Some(at) if view.now < at => Steps::waiting_until(at),
        Some(_) | None => {
            Steps::asking(Effect::RunHooks { claim: Target::from(&claim.meta) }, later(view.now, ANSWER_WITHIN))
        }
    })
}
