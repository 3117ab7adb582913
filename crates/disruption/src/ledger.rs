//! Against churn: a node that replaced a replacement is not replaced yet again so soon.
//!
//! What led to a node stands on its claim: when it was launched to save money, and when each of those before it was. So
//! a restart forgets nothing, and a node is judged by itself.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::NodeClaim;
use kerf_model::label::annotation;

use crate::plan::Plan;
use crate::subject::Subject;
use crate::{KeepReason, Method};

/// A day, which is longer than any window that is sane to set.
const KEPT: SignedDuration = SignedDuration::from_hours(24);
/// More than any limit that is sane to set.
const MOST: usize = 16;

/// Whether the nodes may be replaced by new ones. Deleting them is never churn.
pub(crate) fn check(plan: &Plan<'_, '_>, subjects: &[&Subject<'_>]) -> Result<(), KeepReason> {
    let rules = plan.context.view.settings.ledger;
    if rules.moves == 0 {
        return Ok(());
    }
    for subject in subjects {
        let recent = moves(subject.claim, rules.window, plan.now());
        let count = u32::try_from(recent.len()).unwrap_or(u32::MAX);
        if let Some(oldest) = recent.first().filter(|_| count >= rules.moves) {
            let until = oldest.checked_add(rules.window).unwrap_or(Timestamp::MAX);
            return Err(KeepReason::RecentlyMoved { moves: count, until });
        }
    }
    Ok(())
}

/// What a claim that is launched for these says of how it came about, oldest move first. `None` if it was not to save
/// money: such a node starts anew.
pub fn entry<'a>(
    method: Method,
    candidates: impl IntoIterator<Item = &'a NodeClaim>,
    now: Timestamp,
) -> Option<Arc<str>> {
    if !method.is_consolidation() {
        return None;
    }
    let longest = candidates.into_iter().map(|claim| moves(claim, KEPT, now)).max_by_key(Vec::len);
    let mut all = longest.unwrap_or_default();
    all.push(now);
    let skipped = all.len().saturating_sub(MOST);
    let texts: Vec<String> = all[skipped..].iter().map(|at| format!("{at:.0}")).collect();
    Some(Arc::from(texts.join(",")))
}

/// Consolidations in a row that led to this claim and are no longer ago than this, oldest first.
fn moves(claim: &NodeClaim, window: SignedDuration, now: Timestamp) -> Vec<Timestamp> {
    let since = now.checked_sub(window).unwrap_or(Timestamp::MIN);
    let text = claim.meta.annotation(annotation::CONSOLIDATIONS).unwrap_or_default();
    text.split(',').filter_map(|time| time.parse().ok()).filter(|at| *at >= since).collect()
}
