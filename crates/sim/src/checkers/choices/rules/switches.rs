//! What is switched off stays off.

use serde_json::Value;

use super::super::choice::Choice;
use crate::checkers::Broken;

pub(super) fn check(choice: &Choice<'_>) -> Option<Broken> {
    let is = |path: &[&str], value: Value| choice.pool_at(path) == Some(&value);
    let (pool, claim) = (choice.pool_name.to_owned(), choice.claim_name());
    let is_off = is(&["spec", "disabled"], true.into()) || is(&["spec", "disableDeprovisioning"], true.into());
    // A sick node is of no use to anybody.
    if is_off && choice.reason != "Unhealthy" {
        return Some(Broken::DisabledPoolDisrupted { pool, claim });
    }
    let disruption = |path: &[&str], value: Value| is(&[&["spec", "disruption"], path].concat(), value);
    let is_static = choice.pool_at(&["spec", "replicas"]).is_some();
    let is_switched_off = match (choice.reason, choice.method()) {
        ("Empty" | "Underutilized", _) => {
            disruption(&["consolidation", "enabled"], false.into())
                || disruption(&["consolidateAfter"], "Never".into())
                || choice.reason == "Underutilized" && disruption(&["consolidationPolicy"], "WhenEmpty".into())
                || is_static
        }
        ("Drifted", Some("rebalance")) => is_static,
        ("Drifted", _) => disruption(&["drift", "enabled"], false.into()) || !choice.settings.disruption.gates.drift,
        ("Unhealthy", _) => !choice.settings.disruption.gates.node_repair,
        (_, _) => false,
    };
    is_switched_off.then(|| Broken::SwitchedOff { pool, claim, reason: choice.reason.to_owned() })
}
