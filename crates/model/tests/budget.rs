//! Windows and budgets, with the cases of the fact sheets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use jiff::{SignedDuration, Timestamp};
use kerf_model::budget::{Allowance, Budget, BudgetList, BudgetText, DisruptionReason};
use kerf_model::cron::Schedule;
use kerf_model::window::Window;
use proptest::prelude::*;

fn window(schedule: &str, duration: &str) -> Window {
    Window { schedule: Schedule::parse(schedule).unwrap(), duration: duration.parse().unwrap() }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A line per budget: nodes, reasons (`all`, or names with commas), and optionally `schedule/duration`.
fn budgets(lines: &str) -> BudgetList {
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    let entries = lines.map(|line| {
        let mut words = line.splitn(3, ' ');
        let nodes = words.next().unwrap();
        let reasons: Vec<&str> = words.next().unwrap().split(',').filter(|reason| *reason != "all").collect();
        let (schedule, duration) = words.next().map(|window| window.rsplit_once('/').unwrap()).unzip();
        Budget::parse(BudgetText { nodes, reasons: &reasons, schedule, duration, ..BudgetText::default() })
    });
    entries.collect()
}

/// The allowance of every reason, in the order of the enum; `-` is unlimited.
fn allowances(list: &BudgetList, nodes: u32, now: &str) -> String {
    let text = DisruptionReason::ALL.map(|reason| match list.allowance(reason, nodes, at(now)) {
        Allowance::AtMost(count) => format!("{reason} {count}"),
        Allowance::Unlimited => format!("{reason} -"),
    });
    text.join(", ")
}

#[track_caller]
fn check(lines: &str, nodes: u32, now: &str, expected: &str) {
    assert_eq!(allowances(&budgets(lines), nodes, now), expected);
}

const JUNE: &str = "2026-06-17T12:30:10Z";

/// Sheet 01, case 27.
#[test]
fn an_inactive_budget_does_not_limit() {
    check("10 all * * * * */1h", 100, JUNE, "Underutilized 10, Empty 10, Drifted 10, Unhealthy 10");
    check("10 all @yearly/1h", 100, JUNE, "Underutilized -, Empty -, Drifted -, Unhealthy -");
}

/// Sheet 01, case 28; sheet 03, case 1; sheet 08, A1.
#[test]
fn the_strictest_budget_for_a_reason_wins() {
    let lines = "10 all
         5 Drifted
         15 Drifted,Underutilized
         4 Empty";
    check(lines, 100, JUNE, "Underutilized 10, Empty 4, Drifted 5, Unhealthy 10");
    let lines = "10 all
         100 all
         100% all
         15 Drifted,Underutilized
         5 Drifted
         0 all @weekly/1h";
    check(lines, 100, JUNE, "Underutilized 10, Empty 10, Drifted 5, Unhealthy 10");
    let lines = "10 all
         5 Drifted
         2 Unhealthy";
    check(lines, 100, JUNE, "Underutilized 10, Empty 10, Drifted 5, Unhealthy 2");
}

/// Sheet 01, case 29.
#[test]
fn a_budget_of_zero_stops_its_reasons() {
    check("0 Underutilized,Empty,Drifted", 100, JUNE, "Underutilized 0, Empty 0, Drifted 0, Unhealthy -");
}

/// Sheet 01, case 30.
#[test]
fn a_window_is_open_from_its_hit_until_just_before_its_end() {
    let daily = window("@daily", "30m");
    assert!(daily.is_active(at("2026-06-17T00:00:00Z")));
    assert!(daily.is_active(at("2026-06-17T00:29:59.999999999Z")));
    assert!(!daily.is_active(at("2026-06-17T00:30:00Z")));
    assert!(!daily.is_active(at("2026-06-16T23:59:59.999999999Z")));
    assert!(!daily.is_active(at("2026-06-17T00:00:00+01:00")), "schedules are in UTC");
    assert!(window("@daily", "48h").is_active(at(JUNE)));
    assert!(!window("30 6 * * SUN", "6h").is_active(at("2026-06-21T00:00:00Z")));
}

/// Sheet 01, case 31, with our differences: a broken budget stops its own reasons only, and `reasons: []` means all.
#[test]
fn a_broken_budget_allows_nothing_for_its_reasons_only() {
    check("10 Drifted 0 0 * * tue-mon/1h", 10, JUNE, "Underutilized -, Empty -, Drifted 0, Unhealthy -");
    check("1000a% all", 10, JUNE, "Underutilized 0, Empty 0, Drifted 0, Unhealthy 0");
    check("10 unhealthy", 10, JUNE, "Underutilized 0, Empty 0, Drifted 0, Unhealthy 0");
    let list = budgets("3 all @wrongly/1h");
    assert_eq!(list.broken().count(), 1);
    for (lines, named) in [("3 all @wrongly/1h", "@wrongly"), ("1000a% all", "1000a%")] {
        let list = budgets(lines);
        let why: Vec<String> = list.broken().map(|broken| broken.error.to_string() + &cause(&broken.error)).collect();
        assert!(why.len() == 1 && why[0].contains(named), "{why:?}");
    }
    assert_eq!(list.next_transition(at(JUNE)), None);
    check("5% all", 10, JUNE, "Underutilized 1, Empty 1, Drifted 1, Unhealthy 1");
    check("10% all", 0, JUNE, "Underutilized 0, Empty 0, Drifted 0, Unhealthy 0");
    check("", 10, JUNE, "Underutilized -, Empty -, Drifted -, Unhealthy -");
    check("0 all", 10, JUNE, "Underutilized 0, Empty 0, Drifted 0, Unhealthy 0");
}

fn cause(error: &dyn std::error::Error) -> String {
    error.source().map_or(String::new(), |source| format!(": {source}"))
}

#[test]
fn nodes_is_a_number_or_a_percentage_up_to_100() {
    let nodes = |text: &str| text.parse::<kerf_model::budget::BudgetNodes>().map(|nodes| nodes.to_string()).ok();
    for text in ["0", "10", "4294967295", "0%", "100%"] {
        assert_eq!(nodes(text).as_deref(), Some(text));
    }
    for text in ["", "%", "101%", "300%", "-1", "+1", "-1%", "1.5", "10 %", "4294967296"] {
        assert_eq!(nodes(text), None, "{text:?}");
    }
}

#[test]
fn a_schedule_needs_a_duration() {
    let text = BudgetText { nodes: "1", schedule: Some("@daily"), ..BudgetText::default() };
    assert!(Budget::parse(text).is_err());
    let text = BudgetText { nodes: "1", duration: Some("1h"), ..BudgetText::default() };
    assert!(Budget::parse(text).is_err(), "nor does a duration mean anything alone");
}

#[test]
fn what_is_in_use_counts_against_the_allowance() {
    assert_eq!(Allowance::AtMost(3).minus(1), Allowance::AtMost(2));
    assert_eq!(Allowance::AtMost(3).minus(5), Allowance::AtMost(0));
    assert_eq!(Allowance::Unlimited.minus(5), Allowance::Unlimited);
    assert!(Allowance::AtMost(u32::MAX) < Allowance::Unlimited);
}

#[test]
fn a_list_changes_when_the_first_of_its_windows_does() {
    let list = budgets(
        "10 all
         0 all 0 9 * * */8h
         0 all 0 22 * * */1h",
    );
    assert_eq!(list.next_transition(at("2026-06-17T12:00:00Z")), Some(at("2026-06-17T17:00:00Z")));
    assert_eq!(list.next_transition(at("2026-06-17T17:00:00Z")), Some(at("2026-06-17T22:00:00Z")));
    assert_eq!(budgets("10 all").next_transition(at(JUNE)), None);
}

#[test]
fn overlapping_hits_extend_a_window() {
    let mornings = window("0,30 8-10 * * *", "45m");
    assert_eq!(mornings.next_transition(at("2026-06-17T08:10:00Z")), Some(at("2026-06-17T11:15:00Z")));
    // A hit at the very end leaves no gap.
    assert_eq!(
        window("0 8,9 * * *", "1h").next_transition(at("2026-06-17T08:10:00Z")),
        Some(at("2026-06-17T10:00:00Z"))
    );
}

#[test]
fn a_window_that_never_closes_is_asked_again_later() {
    let always = window("* * * * *", "1h");
    assert!(always.next_transition(at(JUNE)) > Some(at(JUNE) + SignedDuration::from_hours(24)));
}

/// The reference takes such a budget for always active.
#[test]
fn an_impossible_or_empty_window_is_never_active() {
    for never in [window("0 0 31 2 *", "24h"), window("* * * * *", "0s"), window("* * * * *", "-1h")] {
        assert!(!never.is_active(at(JUNE)));
        assert_eq!(never.next_transition(at(JUNE)), None);
    }
}

#[test]
fn a_window_longer_than_history_is_active() {
    assert!(window("@daily", "2562047h").is_active(at(JUNE)));
}

proptest! {
    #[test]
    fn activity_changes_at_the_transition_and_not_before(
        minute in 0_u8..60, hours in "(\\*/[1-8]|[0-9]|1[0-9]-2[0-3])", weekday in "(\\*|[0-6]|[0-2]-[3-6])",
        length in 1_i64..3_000, start in 1_700_000_000_i64..1_900_000_000,
    ) {
        let window = window(&format!("{minute} {hours} * * {weekday}"), &format!("{length}m"));
        let now = Timestamp::from_second(start).unwrap();
        let change = window.next_transition(now).unwrap();
        let just_before = change - SignedDuration::from_nanos(1);
        prop_assert_eq!(window.is_active(just_before), window.is_active(now));
        let middle = now + change.duration_since(now) / 2;
        prop_assert_eq!(window.is_active(middle), window.is_active(now));
        // Longer than the recurrence: always active, and the change is only where it stopped to look.
        let closes = !matches!(hours.as_bytes(), [b'*', ..]) || length < 60;
        if closes && length < 600 {
            prop_assert_ne!(window.is_active(change), window.is_active(now));
        }
    }
}
