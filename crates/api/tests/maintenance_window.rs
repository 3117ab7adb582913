//! Admission of MaintenanceWindows, through the rules of their definition.
#![cfg(feature = "admission")]

use kerf_api::admission::{Admission, Outcome};
use serde_json::{Value, json};

fn admits(spec: &Value) -> bool {
    let object = json!({
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "MaintenanceWindow",
        "metadata": { "name": "w" },
        "spec": spec,
    });
    let crds: Vec<_> =
        kerf_api::crds(None).into_iter().filter(|crd| crd.spec.names.kind == "MaintenanceWindow").collect();
    matches!(
        Admission::new(&crds).expect("the definition can be checked offline").create(&object),
        Outcome::Accepted(_)
    )
}

fn admits_schedule(schedule: &Value) -> bool {
    admits(&json!({ "actions": ["Drift"], "schedules": [schedule] }))
}

#[test]
fn schedules_are_checked_under_both_of_their_names() {
    for name in ["schedule", "cron"] {
        for cron in ["0 9 * * mon-fri", "@daily", "0 0 29 2 *", "0 0 30 2 mon", "0 9-9 * jan-mar 7", "0 0 * * fri-7"] {
            assert!(admits_schedule(&json!({ name: cron, "duration": "8h" })), "{cron}");
        }
        for cron in ["* * * *", "60 * * * *", "0 0 * * TUE-mon", "0 10-9 * * *", "0 0 * dec-jan *", "0 0 31 feb,Apr *"]
        {
            assert!(!admits_schedule(&json!({ name: cron, "duration": "8h" })), "{cron}");
        }
    }
    assert!(!admits_schedule(&json!({ "duration": "8h" })));
    assert!(!admits_schedule(&json!({ "schedule": "@daily", "cron": "@daily", "duration": "8h" })));
}

#[test]
fn durations_are_positive_and_zones_look_like_zones() {
    for (duration, admitted) in
        [("8h", true), ("1h30m", true), ("0s", false), ("", false), ("1m1h", false), ("-1h", false)]
    {
        assert_eq!(admits_schedule(&json!({ "schedule": "@daily", "duration": duration })), admitted, "{duration}");
    }
    for (zone, admitted) in [("Europe/Paris", true), ("Etc/GMT+5", true), ("UTC", true), ("", false), ("../x", false)] {
        let schedule = json!({ "schedule": "@daily", "duration": "1h", "timeZone": zone });
        assert_eq!(admits_schedule(&schedule), admitted, "{zone}");
    }
}

#[test]
fn a_window_denies_at_least_one_known_action() {
    assert!(admits(&json!({ "actions": ["Consolidation", "Repair"], "type": "Deny", "schedules": [] })));
    for spec in [
        json!({}),
        json!({ "actions": [] }),
        json!({ "actions": ["drift"] }),
        json!({ "actions": ["Drift", "Drift"] }),
        json!({ "actions": ["Drift"], "type": "Allow" }),
    ] {
        assert!(!admits(&spec), "{spec}");
    }
}

#[test]
fn selectors_have_the_values_that_their_operators_need() {
    for (operator, values, admitted) in [
        ("In", json!(["a"]), true),
        ("In", json!([]), false),
        ("NotIn", Value::Null, false),
        ("Exists", Value::Null, true),
        ("DoesNotExist", json!(["a"]), false),
        ("Gt", json!(["5"]), true),
        ("Lt", json!(["a"]), false),
        ("Gt", json!(["1", "2"]), false),
        ("Gte", json!(["1"]), false),
    ] {
        let mut expression = json!({ "key": "example.com/tier", "operator": operator });
        if !values.is_null() {
            expression["values"] = values;
        }
        let spec = json!({ "actions": ["Drift"], "selector": { "matchExpressions": [expression] } });
        assert_eq!(admits(&spec), admitted, "{spec}");
    }
}
