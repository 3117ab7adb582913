//! When a node without a machine counts as sick.

use std::sync::Arc;

use jiff::SignedDuration;
use kerf_model::cloud::{RepairAction, RepairPolicy};
use kerf_model::cluster::ConditionStatus;

const ANY_REASON: Option<&str> = Some(".*");

/// Sheet 08 L7. The last two conditions exist for tests: whoever wants to see a repair sets them.
pub fn policies() -> Vec<RepairPolicy> {
    let mins = SignedDuration::from_mins;
    let secs = SignedDuration::from_secs;
    let rows = [
        ("Ready", ConditionStatus::False, None, mins(10), mins(0), RepairAction::ReplaceNode),
        ("Ready", ConditionStatus::Unknown, ANY_REASON, mins(10), mins(0), RepairAction::ReplaceNode),
        ("KWOKUnhealthy", ConditionStatus::True, ANY_REASON, secs(30), secs(45), RepairAction::ReplaceNode),
        ("KWOKRebootRequired", ConditionStatus::True, ANY_REASON, secs(30), mins(1), RepairAction::RebootNode),
    ];
    let policy = |(condition, status, reason, toleration, grace, action): (_, _, Option<&str>, _, _, _)| RepairPolicy {
        condition: Arc::from(condition),
        status,
        reason: reason.map(Arc::from),
        toleration,
        termination_grace_period: Some(grace),
        priority: 0,
        action,
    };
    rows.map(policy).into()
}
