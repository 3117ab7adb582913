//! The old repair: sheet 04 §5 and cases 55 to 57, sheet 08 L6, sheet 03 case 84.

use std::sync::Arc;

use jiff::SignedDuration;
use kerf_lifecycle::claim::health::LegacyRepair;
use kerf_model::cloud::{RepairAction, RepairPolicy};
use kerf_model::cluster::ConditionStatus;

use crate::world::{World, check};

const RUNNING: &str = "launched registered initialized cond.ConsistentStateFound=True";
const DEADLINE: &str = "annotation.karpenter.sh/nodeclaim-termination-timestamp";

fn policies() -> Vec<RepairPolicy> {
    let policy = |condition: &str, reason: Option<&str>, minutes, action| RepairPolicy {
        condition: Arc::from(condition),
        status: ConditionStatus::False,
        reason: reason.map(Arc::from),
        toleration: SignedDuration::from_mins(minutes),
        // Not looked at, like the priority.
        termination_grace_period: Some(SignedDuration::from_hours(1)),
        priority: 7,
        action,
    };
    vec![
        policy("Ready", None, 60, RepairAction::ReplaceNode),
        policy("Disk", Some("^Broken$"), 30, RepairAction::ReplaceNode),
        policy("Gpu", Some("Xid"), 0, RepairAction::RebootNode),
    ]
}

/// Claims `c0`… of pool `p` with their nodes; `words` for the node of the first ones that are sick.
fn world(sick: usize, all: usize, words: &str) -> World {
    let mut world = World::new("class default\npool p budget=0");
    for at in 0..all {
        let own = if at < sick { words } else { "" };
        world.apply(&format!(
            "claim c{at} id=i-{at} {RUNNING} pool=p
             node n{at} id=i-{at} registered initialized owner=c{at} pool=p {own}"
        ));
    }
    world.settings.legacy_repair = Some(LegacyRepair::new(&policies()));
    world
}

/// Case 55, and 57: budgets and `do-not-disrupt` are not asked.
#[test]
fn a_sick_node_goes_at_once_unless_more_than_a_fifth_of_its_pool_is_sick() {
    let sick = "not-ready created=10:00 annotation.karpenter.sh/do-not-disrupt=true annotation.karpenter.sh/do-not-repair=true";
    let blocked = world(3, 10, sick).claim("c0");
    assert!(blocked.contains("event NodeRepairBlocked on node n0"), "{blocked}");
    assert!(blocked.contains("event NodeRepairBlocked on claim c0"), "{blocked}");
    assert!(blocked.contains("event NodeRepairBlocked on pool p"), "{blocked}");
    assert!(blocked.ends_with("wake 12:05:00"), "{blocked}");
    let deadline = "patch claim c0: @karpenter.sh/nodeclaim-termination-timestamp=2026-11-16T12:00:00Z";
    for (sick_nodes, all) in [(2, 10), (1, 3)] {
        check(&world(sick_nodes, all, sick).claim("c0"), deadline);
    }
    // The claim's own grace period is not waited for either, nor is its pool's switch.
    let mut graceful = world(1, 5, sick);
    graceful.apply(&format!("claim c0 id=i-0 {RUNNING} pool=p tgp=1h\npool p disabled budget=0"));
    check(&graceful.claim("c0"), deadline);
}

/// Case 57: the deadline stands on the claim before it goes; one that is past is kept.
#[test]
fn the_drain_that_follows_asks_nobody() {
    for (written, goes) in
        [("2026-11-16T12:00:00Z", true), ("2026-11-16T11:00:00Z", true), ("2026-11-16T13:00:00Z", false)]
    {
        let mut world = world(1, 5, "not-ready created=10:00");
        world.apply(&format!("claim c0 id=i-0 {RUNNING} pool=p {DEADLINE}={written}"));
        let steps = world.claim("c0");
        assert_eq!(steps.contains("delete claim c0\nnote c0 unhealthy"), goes, "{steps}");
        assert_eq!(steps.contains("termination-timestamp=2026-11-16T12:00:00Z"), !goes, "{steps}");
    }
}

/// Case 56: two conditions with 60 and 30 minutes; 27 minutes later it is looked at again in three.
#[test]
fn the_condition_that_has_had_enough_first_counts() {
    let mut world = world(1, 5, "not-ready created=11:33 sick.Disk=False/Broken@11:33");
    check(&world.claim("c0"), "wake 12:03:00");
    world.apply("now 12:03");
    assert!(world.claim("c0").contains("termination-timestamp"));
}

/// L6: a pattern is honoured, and policies that reboot are not for the old repair.
#[test]
fn other_reasons_and_reboots_do_not_count() {
    check(&world(1, 5, "sick.Disk=False/Full@10:00").claim("c0"), "");
    check(&world(1, 5, "sick.Gpu=False/Xid79@10:00").claim("c0"), "");
    let mut off = world(1, 5, "not-ready created=10:00");
    off.settings.legacy_repair = None;
    check(&off.claim("c0"), "");
}
