//! Repair is for nodes that are sick for long enough, and not where so many are sick that the cause must be elsewhere.

use jiff::Timestamp;
use kerf_model::cloud::RepairPolicy;
use kerf_model::cluster::ConditionStatus;
use kerf_model::label;
use serde_json::Value;

use super::super::choice::Choice;
use super::super::reboot_since;
use crate::checkers::Broken;
use crate::store::{Kind, Object};

pub(super) fn check(choice: &Choice<'_>) -> Option<Broken> {
    let node = choice.node.as_ref().filter(|_| choice.reason == "Unhealthy")?;
    let policies = &choice.settings.disruption.repair_policies;
    let claims = choice.heard(Kind::NodeClaim);
    let known = claims.iter().find(|claim| claim.uid() == choice.claim.uid());
    // After a reboot the toleration starts anew.
    let rebooted = known.and_then(|claim| reboot_since(claim, "False")).unwrap_or(Timestamp::UNIX_EPOCH);
    if !policies.iter().any(|policy| is_overdue(node, policy, rebooted, choice.chosen_at)) {
        return Some(Broken::HealthyRepaired { claim: choice.claim_name() });
    }
    let nodes = choice.heard(Kind::Node);
    let pool = node.text(&["metadata", "labels", label::NODEPOOL]);
    let of_pool = nodes.iter().filter(|node| node.text(&["metadata", "labels", label::NODEPOOL]) == pool);
    let (sick, all) = of_pool.fold((0, 0), |(sick, all), node| (sick + usize::from(is_sick(node, policies)), all + 1));
    // A fifth, rounded up.
    let allowed = (all * 20_usize).div_ceil(100);
    (sick > allowed).then(|| Broken::BreakerIgnored { pool: choice.pool_name.to_owned(), sick, nodes: all })
}

/// However long.
pub(in crate::checkers) fn is_sick(node: &Object, policies: &[RepairPolicy]) -> bool {
    policies.iter().any(|policy| since(node, policy).is_some())
}

fn is_overdue(node: &Object, policy: &RepairPolicy, rebooted: Timestamp, at: Timestamp) -> bool {
    since(node, policy).is_some_and(|since| at >= since.max(rebooted) + policy.toleration)
}

/// Reasons are not looked at: those of the histories are all about the same.
fn since(node: &Object, policy: &RepairPolicy) -> Option<Timestamp> {
    let status = match policy.status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    };
    let is_it = |known: &&Value| known["type"] == *policy.condition && known["status"] == status;
    let condition = node.list(&["status", "conditions"]).iter().find(is_it)?;
    let since: Option<Timestamp> = condition["lastTransitionTime"].as_str().and_then(|text| text.parse().ok());
    Some(since.unwrap_or(Timestamp::UNIX_EPOCH).max(node.created().unwrap_or(Timestamp::UNIX_EPOCH)))
}
