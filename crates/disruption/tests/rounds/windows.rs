//! Cases 85 to 89: maintenance windows.

use kerf_disruption::{ObjectionKind, validate};

use crate::fixture::{Fixture, check_nodes};

const OFFICE: &str = "window w action=Drift at=0_9_*_*_1-5/8h select:zone=a";

#[test]
fn case_85_a_window_holds_its_action_back_on_its_nodes_while_it_lasts() {
    let at = |time: &str| {
        format!(
            "now 2026-11-18T{time}Z\ntype small\npool p after=Never\n{OFFICE}\nnode a pool=p drifted zone=a\nnode b pool=p drifted zone=b"
        )
    };
    check_nodes(&at("10:00:00"), "a maintenance_window\nb go drift");
    check_nodes(&at("16:59:59"), "a maintenance_window\nb go drift");
    check_nodes(&at("17:00:00"), "a go drift\nb go drift");
    check_nodes(&at("08:59:59"), "a go drift\nb go drift");
    check_nodes(&at("10:00:00").replace("2026-11-18", "2026-11-21"), "a go drift\nb go drift");
    let round = Fixture::read(&at("10:00:00")).decide();
    assert_eq!(round.wake, Some("2026-11-18T17:00:00Z".parse().unwrap()));
    assert_eq!(
        round.verdicts["a"].to_string(),
        "stays: maintenance window w holds back Drift until 2026-11-18T17:00:00Z"
    );
}

#[test]
fn case_86_every_window_must_allow_it() {
    let text = "type small\npool p\nwindow one action=Consolidation at=0_0_*_*_*/1h\nwindow two action=EmptyConsolidation at=0_11_*_*_*/2h\nnode a pool=p";
    check_nodes(text, "a maintenance_window");
    check_nodes(&text.replace("two action=EmptyConsolidation", "two action=Drift"), "a go emptiness");
    // From 11 to 13 and from 12 to 14: shut until the second has ended too, and never open in between.
    let at = |time: &str| {
        format!(
            "now 2026-11-18T{time}Z\ntype small\npool p\nwindow one action=Consolidation at=0_11_*_*_*/2h\nwindow two action=Consolidation at=0_12_*_*_*/2h\nnode a pool=p"
        )
    };
    for (time, judged) in [
        ("10:59:59", "go emptiness"),
        ("11:30:00", "maintenance_window"),
        ("12:30:00", "maintenance_window"),
        ("13:30:00", "maintenance_window"),
        ("14:00:00", "go emptiness"),
    ] {
        check_nodes(&at(time), &format!("a {judged}"));
    }
    let both = Fixture::read(&at("12:30:00")).decide();
    assert_eq!(
        both.verdicts["a"].to_string(),
        "stays: maintenance window two holds back EmptyConsolidation until 2026-11-18T14:00:00Z"
    );
}

#[test]
fn case_87_outside_its_schedules_is_the_other_way_round() {
    let at = |time: &str| {
        format!(
            "now 2026-11-18T{time}Z\ntype small\npool p\nwindow night action=Consolidation at=0_2_*_*_*/2h outside\nnode a pool=p"
        )
    };
    for (time, judged) in [
        ("01:59:59", "maintenance_window"),
        ("02:00:00", "go emptiness"),
        ("03:59:59", "go emptiness"),
        ("04:00:00", "maintenance_window"),
        ("12:00:00", "maintenance_window"),
    ] {
        check_nodes(&at(time), &format!("a {judged}"));
    }
}

/// Case 88: what cannot be read arrives as a window that is always active and names every action.
#[test]
fn case_88_a_window_without_schedules_is_always_closed() {
    let text = "type small\npool p\nwindow broken action=Consolidation action=Drift action=Repair\nnode a pool=p\nnode b pool=p drifted";
    check_nodes(text, "a maintenance_window\nb maintenance_window");
    assert_eq!(Fixture::read(text).decide().wake, None);
}

/// It was said to hold back what its text does not name, on nodes that it does not select, and not why.
#[test]
fn a_window_that_cannot_be_read_says_why() {
    let text = "type small\npool p\nwindow broken action=Consolidation problem=no_schedule\nnode a pool=p";
    assert_eq!(
        Fixture::read(text).decide().verdicts["a"].to_string(),
        "stays: maintenance window broken cannot be read and holds back everything: no_schedule"
    );
}

#[test]
fn case_89_a_window_that_opens_during_the_hold_stops_the_proposal() {
    let mut fixture = Fixture::read("type small\npool p\nnode a pool=p");
    let proposal = fixture.decide().proposals.remove(0);
    fixture.hold(&proposal);
    fixture.change("window w action=Consolidation");
    let withdrawn = validate(proposal, &fixture.view()).unwrap_err();
    assert_eq!(withdrawn.objection.kind, ObjectionKind::Window);
}

#[test]
fn repair_is_held_back_only_by_a_window_that_names_it() {
    let text = |action: &str| {
        format!(
            "settings repair\ntype small\npool p after=Never\nwindow w action={action}\nnode a pool=p sick:Ready=False/Kubelet/20m\nnode b pool=p\nnode c pool=p\nnode d pool=p\nnode e pool=p"
        )
    };
    check_nodes(&text("Drift"), "a go repair");
    check_nodes(&text("Repair"), "a maintenance_window");
}
