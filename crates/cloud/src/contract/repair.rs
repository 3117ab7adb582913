//! Repair policies as a set (sheet 08 D4).

use jiff::SignedDuration;
use kerf_model::cloud::{RepairAction, RepairPolicy};

use super::{Findings, Rule};

const HIGHEST_PRIORITY: u8 = 100;

pub(super) fn check(policies: &[RepairPolicy], found: &mut Findings) {
    let rule = Rule::RepairPoliciesAreValid;
    for policy in policies {
        let negative = |duration: SignedDuration| duration.is_negative();
        found.expect(rule, !policy.condition.is_empty(), || "a policy names no condition".to_owned());
        found.expect(rule, policy.priority <= HIGHEST_PRIORITY, || {
            format!("{}: priority {}", policy.condition, policy.priority)
        });
        let durations_fit = !negative(policy.toleration) && !policy.termination_grace_period.is_some_and(negative);
        found.expect(rule, durations_fit, || format!("{}: a duration is negative", policy.condition));
    }
    let fallbacks: Vec<_> = policies.iter().filter(|policy| policy.reason.is_none()).collect();
    match fallbacks[..] {
        [fallback] => found.expect(rule, fallback.action == RepairAction::ReplaceNode, || {
            "the policy for all other reasons does not replace the node".to_owned()
        }),
        [] if policies.is_empty() => {}
        _ => found.broken(rule, format!("{} policies are for all other reasons", fallbacks.len())),
    }
}
