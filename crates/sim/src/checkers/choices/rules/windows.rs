//! Maintenance windows.

use jiff::Timestamp;
use kerf_model::maintenance::Action;

use super::super::choice::Choice;
use crate::checkers::Broken;
use crate::store::{Kind, LabelMap, Object};

pub(super) fn check(choice: &Choice<'_>) -> Vec<Broken> {
    let Some(action) = action(choice.reason, choice.method()) else { return Vec::new() };
    let labels = choice.node.as_ref().unwrap_or(choice.claim).labels();
    let windows = choice.heard(Kind::MaintenanceWindow);
    let denying = windows.iter().filter(|window| denies(window, action, &labels, choice.chosen_at));
    let broken = |window: &Object| Broken::WindowIgnored {
        window: window.name.to_string(),
        claim: choice.claim_name(),
        reason: choice.reason.to_owned(),
    };
    denying.map(broken).collect()
}

/// What a window calls it.
fn action(reason: &str, method: Option<&str>) -> Option<Action> {
    match (reason, method) {
        ("Empty", _) => Some(Action::EmptyConsolidation),
        ("Underutilized", _) => Some(Action::NonEmptyConsolidation),
        ("Drifted", Some("rebalance")) => Some(Action::Rebalance),
        ("Drifted", _) => Some(Action::Drift),
        ("Unhealthy", _) => Some(Action::Repair),
        (_, _) => None,
    }
}

pub(in crate::checkers) fn denies(window: &Object, action: Action, labels: &LabelMap<'_>, at: Timestamp) -> bool {
    let Ok(wire) = serde_json::from_value(window.body().clone()) else { return false };
    let parsed = kerf_api::parse::maintenance_window(&wire);
    parsed.is_ok_and(|parsed| parsed.value.denies(action, labels, at))
}
