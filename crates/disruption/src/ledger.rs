//! Against churn: a node that replaced a replacement is not replaced yet again so soon.

use std::sync::Arc;

use jiff::Timestamp;

use crate::plan::Plan;
use crate::subject::Subject;
use crate::{KeepReason, Move};

/// Whether the nodes may be replaced by new ones. Deleting them is never churn.
pub(crate) fn check(plan: &Plan<'_, '_>, subjects: &[&Subject<'_>]) -> Result<(), KeepReason> {
    let rules = plan.context.view.settings.ledger;
    if rules.moves == 0 {
        return Ok(());
    }
    let since = plan.now().checked_sub(rules.window).unwrap_or(Timestamp::MIN);
    for subject in subjects {
        let (moves, oldest) = chain(&plan.context.view.memory.moves, subject.name(), since);
        if moves >= rules.moves {
            let until = oldest.checked_add(rules.window).unwrap_or(Timestamp::MAX);
            return Err(KeepReason::RecentlyMoved { moves, until });
        }
    }
    Ok(())
}

/// How many consolidations in a row led to this claim, and when the first of them was.
fn chain(moves: &[Move], claim: &Arc<str>, since: Timestamp) -> (u32, Timestamp) {
    let (mut length, mut oldest) = (0, Timestamp::MAX);
    let mut ends = vec![claim];
    // Newest first: what led to a move was before it.
    for step in moves.iter().rev().filter(|step| step.at >= since && step.method.is_consolidation()) {
        if ends.iter().any(|end| step.replacements.contains(*end)) {
            length += 1;
            oldest = step.at;
            ends = step.removed.iter().collect();
        }
    }
    (length, oldest)
}
