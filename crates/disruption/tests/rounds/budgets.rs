//! Cases 1 to 13: how many nodes a pool lets go. The arithmetic of schedules has its own cases in `kerf-model`.

use kerf_disruption::Reason;
use kerf_model::budget::Allowance;

use crate::fixture::{Fixture, check_nodes};

fn allowed(text: &str, reason: Reason) -> Allowance {
    let round = Fixture::read(text).decide();
    round.budgets.iter().find(|((_, own), _)| *own == reason).unwrap().1.allowed
}

fn left(text: &str, reason: Reason) -> Allowance {
    let round = Fixture::read(text).decide();
    round.budgets.iter().find(|((_, own), _)| *own == reason).unwrap().1.remaining()
}

fn nodes(count: usize, words: &str) -> String {
    (0..count).map(|at| format!("node n{at:03} pool=p {words}\n")).collect()
}

/// Cases 1 and A1 of sheet 08.
#[test]
fn case_1_the_strictest_budget_about_a_reason_counts() {
    let budgets = "budget=10 budget=100 budget=100% budget=15:Drifted,Underutilized budget=5:Drifted budget=2:Unhealthy budget=0@@weekly/1h";
    let text = format!("type small\npool p after=Never {budgets}\n{}", nodes(100, ""));
    let each = [(Reason::Empty, 10), (Reason::Drifted, 5), (Reason::Underutilized, 10), (Reason::Unhealthy, 2)];
    for (reason, expected) in each {
        assert_eq!(allowed(&text, reason), Allowance::AtMost(expected), "{reason}");
    }
    let text = text.replace("after=Never", "after=Never budget=4:Empty");
    assert_eq!(allowed(&text, Reason::Empty), Allowance::AtMost(4));
}

#[test]
fn case_2_budgets_outside_of_their_windows_limit_nothing() {
    let text =
        format!("now 2026-06-15T12:00:00Z\ntype small\npool p after=Never budget=1@@yearly/1h\n{}", nodes(3, ""));
    for reason in Reason::ALL {
        assert_eq!(allowed(&text, reason), Allowance::Unlimited);
    }
}

/// In the reference a budget that cannot be read stops every reason of the pool.
#[test]
fn case_3_a_budget_that_cannot_be_read_stops_its_own_reasons() {
    let text = "type small\npool p budget=1000a%:Empty\nnode a pool=p";
    assert_eq!(allowed(text, Reason::Empty), Allowance::AtMost(0));
    assert_eq!(allowed(text, Reason::Drifted), Allowance::Unlimited);
    check_nodes(text, "a budget_spent");
    // One that names no reason stops them all.
    for broken in ["1000a%", "5@@wrongly/1h"] {
        let text = format!("type small\npool p budget={broken}\nnode a pool=p");
        for reason in Reason::ALL {
            assert_eq!(allowed(&text, reason), Allowance::AtMost(0), "{broken} {reason}");
        }
    }
}

/// A second node of the pool was taken five seconds after the first, whose replacement was still starting.
#[test]
fn a_node_whose_command_is_under_way_counts_before_it_is_deleted() {
    let pool = "type small\npool p after=Never budget=1\n";
    assert_eq!(left(&format!("{pool}node a pool=p under-way\nnode b pool=p"), Reason::Drifted), Allowance::AtMost(0));
    check_nodes(
        &format!("{pool}node a pool=p drifted under-way\nnode b pool=p drifted"),
        "a under_way
         b budget_spent",
    );
}

/// A command was rolled back, and another node was taken before the taint had come off the first.
#[test]
fn a_node_counts_until_the_marks_of_its_failed_command_are_off() {
    let pool = "type small\npool p after=Never budget=1\n";
    let text = format!("{pool}node a pool=p left-over-marks\nnode b pool=p drifted");
    assert_eq!(left(&text, Reason::Drifted), Allowance::AtMost(0));
    check_nodes(&text, "b budget_spent");
}

#[test]
fn case_4_shares_round_up_and_what_goes_or_is_broken_counts() {
    let pool = |budget: &str| format!("type small\npool p after=Never budget={budget}\n");
    assert_eq!(allowed(&format!("{}{}", pool("5%"), nodes(10, "")), Reason::Empty), Allowance::AtMost(1));
    assert_eq!(allowed(&format!("{}{}", pool("20%"), nodes(19, "")), Reason::Empty), Allowance::AtMost(4));
    assert_eq!(allowed(&pool("10%"), Reason::Empty), Allowance::AtMost(0));
    let two_going = format!("{}{}node x pool=p deleting\nnode y pool=p marked", pool("100%"), nodes(8, ""));
    assert_eq!(left(&two_going, Reason::Empty), Allowance::AtMost(8));
    let one_broken = format!("{}{}node x pool=p unready", pool("100%"), nodes(9, ""));
    assert_eq!(left(&one_broken, Reason::Drifted), Allowance::AtMost(9));
    let none_left = format!("{}node x pool=p unready\nnode y pool=p deleting", pool("1"));
    assert_eq!(left(&none_left, Reason::Drifted), Allowance::AtMost(0));
}

#[test]
fn cases_5_to_7_windows_are_in_utc_and_last_as_long_as_they_say() {
    let at = |now: &str, budget: &str| {
        let text = format!("now {now}\ntype small\npool p after=Never budget=0@{budget}\nnode a pool=p");
        allowed(&text, Reason::Empty) == Allowance::AtMost(0)
    };
    assert!(!at("2026-06-17T00:00:00+01:00", "@daily/30m"), "midnight an hour to the east");
    assert!(at("2026-06-17T00:00:00Z", "@daily/30m"));
    assert!(at("2026-01-01T12:00:00Z", "@yearly/24h"));
    assert!(!at("2026-01-02T00:00:00Z", "@yearly/24h"));
    for hour in 0..24 {
        assert!(at(&format!("2026-06-17T{hour:02}:30:00Z"), "@daily/48h"), "{hour}");
    }
}

/// As the schedules of `kerf-model` say, in UTC.
#[test]
fn case_8_a_window_is_open_from_its_hit_to_just_before_its_end() {
    for (now, active) in [("00:00:00", false), ("06:30:00", true), ("12:29:59", true), ("12:30:00", false)] {
        let text = format!("now 2026-11-15T{now}Z\ntype small\npool p budget=0@30_6_*_*_SUN/6h\nnode a pool=p");
        let expected = if active { Allowance::AtMost(0) } else { Allowance::Unlimited };
        assert_eq!(allowed(&text, Reason::Empty), expected, "{now}");
        check_nodes(&text, if active { "a budget_spent" } else { "a go emptiness" });
    }
}

#[test]
fn a_round_is_wanted_when_a_budget_window_opens_or_closes() {
    let text = "now 2026-11-15T06:30:00Z\ntype small\npool p budget=0@30_6_*_*_SUN/6h\nnode a pool=p";
    assert_eq!(Fixture::read(text).decide().wake, Some("2026-11-15T12:30:00Z".parse().unwrap()));
}

/// Case 9: such a schedule is an error of its budget, which then allows nothing.
#[test]
fn case_9_a_range_that_wraps_is_no_schedule() {
    check_nodes("type small\npool p budget=5@0_0_*_*_tue-mon/1h\nnode a pool=p", "a budget_spent");
}

/// Case 10: the reference calls an impossible schedule always active; here it never is (and `kerf validate` warns).
#[test]
fn case_10_a_schedule_that_never_happens_limits_nothing() {
    check_nodes("type small\npool p budget=0@0_0_31_2_*/1h\nnode a pool=p", "a go emptiness");
}

#[test]
fn case_11_nodes_that_do_not_count_are_in_neither_number() {
    let text = format!(
        "type small\npool p after=Never budget=100%\n{}node x pool=p uninitialized\nnode y pool=p terminating\nnode z pool=p node-only
         node f pool=p foreign deleting\nnode u pool=p uninitialized unready deleting",
        nodes(4, "")
    );
    let round = Fixture::read(&text).decide();
    for reason in Reason::ALL {
        let using = round.budgets[&("p".into(), reason)];
        assert_eq!((using.nodes, using.consuming), (4, 0), "{reason}");
    }
    assert!(!round.verdicts.contains_key("f"), "another autoscaler's");
}

/// That an absent list is 10 %, and case 13, are the API's.
#[test]
fn case_12_an_empty_list_of_budgets_limits_nothing() {
    let text = "type small\npool p budget=-\nnode a pool=p";
    assert_eq!(allowed(text, Reason::Empty), Allowance::Unlimited);
}

/// Sheet 08 D6.
#[test]
fn a_rebooting_node_uses_the_budget_and_a_broken_one_does_not_hold_back_repair() {
    let text = format!("type small\npool p after=Never budget=10%\n{}node x pool=p unready", nodes(9, ""));
    assert_eq!(left(&text, Reason::Unhealthy), Allowance::AtMost(1));
    assert_eq!(left(&text, Reason::Drifted), Allowance::AtMost(0));
    let text = format!("type small\npool p after=Never budget=10%\n{}node x pool=p rebooting", nodes(9, ""));
    assert_eq!(left(&text, Reason::Unhealthy), Allowance::AtMost(0));
    // It has lost the label that says that it is initialised, and is one of the ten all the same.
    let text =
        format!("type small\npool p after=Never budget=100%\n{}node x pool=p rebooting uninitialized", nodes(9, ""));
    let round = Fixture::read(&text).decide();
    assert!(round.budgets.values().all(|using| (using.nodes, using.consuming) == (10, 1)), "{:?}", round.budgets);
    // A node that both reboots and is not ready is one node.
    let text = text.replace("rebooting uninitialized", "rebooting uninitialized unready");
    assert_eq!(left(&text, Reason::Drifted), Allowance::AtMost(9));
}
