//! What the API server lets pass and a person would want to know: settings that will be refused later, that mean less
//! than they seem to, or that nothing reads any more.

use jiff::{SignedDuration, Timestamp};
use kerf_model::budget::{BudgetList, DisruptionReason};
use kerf_model::label::LabelRules;
use kerf_model::node_pool::NodePool as Pool;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::maintenance_window::MaintenanceWindow;
use crate::node_claim::NodeClaim;
use crate::node_pool::NodePool;
use crate::parse::{self, ParseError, Parsed, Problem, Violation};
use crate::rule_book::RuleId;

/// One thing worth a look.
#[derive(Debug)]
pub struct Warning {
    /// Empty for the object as a whole.
    pub field: String,
    pub advice: Advice,
}

#[derive(Debug, thiserror::Error)]
pub enum Advice {
    /// The object will be stored and then not used, with this in its `ValidationSucceeded` condition.
    #[error("{0} (accepted by the API server, refused by the controller)")]
    Refused(Violation),
    /// The object will be used, but not this part of it.
    #[error("{0}")]
    Degraded(Violation),
    #[error("the object does not decode: {0}")]
    Undecodable(String),
    #[error(
        "every budget for {} has a schedule: outside of it there is no limit at all. \
         Add a budget without schedule for the rest of the time",
        listed(.reasons)
    )]
    UnlimitedOutsideWindow { reasons: Vec<DisruptionReason> },
}

impl Advice {
    pub fn id(&self) -> RuleId {
        match self {
            Self::Refused(violation) | Self::Degraded(violation) => violation.id(),
            Self::Undecodable(_) => RuleId::Undecodable,
            Self::UnlimitedOutsideWindow { .. } => RuleId::UnlimitedOutsideWindow,
        }
    }
}

/// Looks at an object that the API server accepts. Kinds without anything to say about give no warnings.
pub fn lint(object: &Value, rules: &LabelRules) -> Vec<Warning> {
    match object.get("kind").and_then(Value::as_str) {
        Some("NodePool") => look(object, |pool: &NodePool| parse::node_pool(pool, rules), pool_advice),
        Some("NodeClaim") => look(object, |claim: &NodeClaim| parse::node_claim(claim, rules), |_| Vec::new()),
        Some("MaintenanceWindow") => {
            look(object, |window: &MaintenanceWindow| parse::maintenance_window(window), |_| Vec::new())
        }
        Some(_) | None => Vec::new(),
    }
}

fn look<Wire: DeserializeOwned, T>(
    object: &Value,
    parse: impl FnOnce(&Wire) -> Result<Parsed<T>, ParseError>,
    advice: impl FnOnce(&T) -> Vec<Warning>,
) -> Vec<Warning> {
    let wire = match Wire::deserialize(object) {
        Ok(wire) => wire,
        Err(error) => {
            return vec![Warning { field: String::new(), advice: Advice::Undecodable(error.to_string()) }];
        }
    };
    let warn = |problem: Problem, advice: fn(Violation) -> Advice| Warning {
        field: problem.field,
        advice: advice(problem.violation),
    };
    match parse(&wire) {
        Err(error) => error.problems.into_iter().map(|problem| warn(problem, Advice::Refused)).collect(),
        Ok(Parsed { value, warnings }) => {
            let mut found: Vec<Warning> = warnings.into_iter().map(|problem| warn(problem, Advice::Degraded)).collect();
            found.extend(advice(&value));
            found
        }
    }
}

fn pool_advice(pool: &Pool) -> Vec<Warning> {
    let budgets = &pool.disruption.budgets;
    let reasons: Vec<_> =
        DisruptionReason::ALL.into_iter().filter(|reason| is_unlimited_at_times(budgets, *reason)).collect();
    match reasons.is_empty() {
        true => Vec::new(),
        false => vec![Warning {
            field: "spec.disruption.budgets".into(),
            advice: Advice::UnlimitedOutsideWindow { reasons },
        }],
    }
}

/// Whether there are budgets for a reason, and hours in which none of them is active. A year of transitions is enough to
/// see every pattern that cron can make but leap days.
fn is_unlimited_at_times(budgets: &BudgetList, reason: DisruptionReason) -> bool {
    const STEPS: usize = 2_000;
    let mut windows = Vec::new();
    for budget in budgets.usable().filter(|budget| budget.reasons.include(reason)) {
        match &budget.window {
            None => return false,
            // One that never comes is reported for itself.
            Some(window) if !window.schedule.is_possible() => {}
            Some(window) => windows.push(window),
        }
    }
    if windows.is_empty() || budgets.broken().any(|broken| broken.reasons.include(reason)) {
        return false;
    }
    let start = Timestamp::UNIX_EPOCH;
    let end = start + SignedDuration::from_hours(366 * 24);
    let mut now = start;
    for _ in 0..STEPS {
        if !windows.iter().any(|window| window.is_active(now)) {
            return true;
        }
        match windows.iter().filter_map(|window| window.next_transition(now)).min() {
            Some(next) if next < end => now = next,
            Some(_) | None => return false,
        }
    }
    false
}

fn listed(reasons: &[DisruptionReason]) -> String {
    if reasons.len() == DisruptionReason::ALL.len() {
        return "any reason".into();
    }
    reasons.iter().map(|reason| reason.label()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pool(patch: Value) -> Value {
        let mut pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
            "spec": {
                "disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "10%"}]},
                "template": {"spec": {
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                    "requirements": [], "expireAfter": "720h",
                }},
            },
        });
        merge(&mut pool["spec"], patch);
        pool
    }

    fn merge(target: &mut Value, patch: Value) {
        match (target, patch) {
            (Value::Object(target), Value::Object(patch)) => {
                for (key, value) in patch {
                    merge(target.entry(key).or_insert(Value::Null), value);
                }
            }
            (target, patch) => *target = patch,
        }
    }

    /// Each line is `id field`.
    fn check(patch: Value, expected: &[&str]) {
        let found: Vec<String> = lint(&pool(patch), &LabelRules::core())
            .iter()
            .map(|warning| format!("{} {}", warning.advice.id(), warning.field))
            .collect();
        assert_eq!(found, expected);
    }

    fn budgets(budgets: Value) -> Value {
        json!({"disruption": {"budgets": budgets}})
    }

    fn node(fields: Value) -> Value {
        json!({"template": {"spec": fields}})
    }

    #[test]
    fn a_plain_pool_has_nothing_to_say_about() {
        check(json!({}), &[]);
        check(budgets(json!([])), &[]);
    }

    #[test]
    fn a_scheduled_budget_alone_leaves_the_rest_of_the_day_without_limit() {
        let field = ["unlimited_outside_window spec.disruption.budgets"];
        check(budgets(json!([{"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}])), &field);
        let with_a_floor = json!([{"nodes": "0", "schedule": "@daily", "duration": "8h"}, {"nodes": "10%"}]);
        check(budgets(with_a_floor), &[]);
        let drift_only = json!([{"nodes": "1", "reasons": ["Drifted"], "schedule": "@daily", "duration": "8h"},
                                {"nodes": "10%", "reasons": ["Empty", "Underutilized", "Unhealthy"]}]);
        check(budgets(drift_only), &field);
    }

    #[test]
    fn windows_that_leave_no_gap_are_a_limit_at_all_times() {
        check(budgets(json!([{"nodes": "1", "schedule": "@daily", "duration": "24h"}])), &[]);
        let day_and_night = json!([{"nodes": "1", "schedule": "0 8 * * *", "duration": "12h"},
                                   {"nodes": "5", "schedule": "0 20 * * *", "duration": "12h"}]);
        check(budgets(day_and_night), &[]);
    }

    /// Sheet 01 §13.3.
    #[test]
    fn schedules_that_cannot_be_read_or_never_come_are_named() {
        let broken = json!([{"nodes": "1", "schedule": "@dailyX", "duration": "1h"}, {"nodes": "1"}]);
        check(budgets(broken), &["budget spec.disruption.budgets[0]"]);
        let never = json!([{"nodes": "1", "schedule": "0 0 31 2 *", "duration": "1h"}, {"nodes": "1"}]);
        check(budgets(never), &["budget_never_active spec.disruption.budgets[0].schedule"]);
        check(budgets(json!([{"nodes": "1", "reasons": []}])), &["empty_reasons spec.disruption.budgets[0].reasons"]);
        let zone = json!([{"nodes": "1", "schedule": "@daily", "duration": "1h", "timeZone": "Mars/Base"},
                          {"nodes": "1"}]);
        check(budgets(zone), &["budget spec.disruption.budgets[0]"]);
    }

    /// Sheet 01 §14, cases 20, 23, 24 and 25; §13.1 and §13.15.
    #[test]
    fn what_the_controller_will_refuse_is_named_with_its_field() {
        let spaces = json!({"template": {"metadata": {"labels": {"spaces are not allowed": "x"}}}});
        check(spaces, &["label_key spec.template.metadata.labels[spaces are not allowed]"]);
        let prefix = format!("{}/x", "a".repeat(254));
        check(
            node(json!({"requirements": [{"key": prefix, "operator": "Exists"}]})),
            &["label_key spec.template.spec.requirements[0].key"],
        );
        let capacity = |values: Value| {
            node(json!({"requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": values}]}))
        };
        check(capacity(json!(["xspot"])), &["no_known_value spec.template.spec.requirements[0].values"]);
        check(capacity(json!(["on-demand", "xspot"])), &["unknown_values spec.template.spec.requirements[0].values"]);
        let taint = json!([{"key": "a", "effect": "NoSchedule"}]);
        check(node(json!({"taints": taint, "startupTaints": taint})), &["duplicate_taint spec.template.spec.taints"]);
        check(node(json!({"expireAfter": "9999999999h"})), &["duration spec.template.spec.expireAfter"]);
        let many: serde_json::Map<String, Value> = (0..90).map(|n| (format!("l{n}"), json!("x"))).collect();
        let requirements: Vec<Value> = (0..11).map(|n| json!({"key": format!("k{n}"), "operator": "Exists"})).collect();
        check(
            json!({"template": {"metadata": {"labels": many}, "spec": {"requirements": requirements}}}),
            &["too_many_requirements spec.template.spec.requirements"],
        );
    }
}
