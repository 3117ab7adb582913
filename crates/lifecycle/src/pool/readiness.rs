//! Whether a pool's node class can be used (sheet 04 §6.2).

use kerf_model::cluster::{ClassReadiness, condition_kind as kind};

use super::PoolDraft;
use crate::view::View;

pub(super) fn step(draft: &mut PoolDraft<'_>, view: View<'_>) {
    let class = &draft.pool.class;
    let (reason, message) = match view.snapshot.class(class) {
        None => ("NodeClassNotFound", format!("there is no {class}")),
        Some(object) if object.meta.is_deleting() => ("NodeClassTerminating", format!("{class} is being deleted")),
        Some(object) => match &object.readiness {
            ClassReadiness::Ready => {
                draft.conditions.set_true(kind::NODE_CLASS_READY);
                return;
            }
            ClassReadiness::Unknown => {
                ("NodeClassReadinessUnknown", format!("{class} does not say whether it is ready"))
            }
            ClassReadiness::NotReady { reason, message } => (&**reason, message.to_string()),
        },
    };
    draft.conditions.set_false(kind::NODE_CLASS_READY, reason, &message);
}
