//! Nodes that are cured by a reboot, and instances that the cloud takes: sheet 08 L1-L4, sheet 03 §13.

use std::sync::Arc;

use jiff::SignedDuration;
use kerf_lifecycle::{Mark, Order};
use kerf_model::budget::DisruptionReason;
use kerf_model::change::Input;
use kerf_model::cloud::{Interruption, InterruptionCause, RebootAnswer};
use kerf_model::effect::{Target, WriteError};

use crate::world::{World, check, message};

const CLAIM: &str = "claim a id=i-1 launched registered cond.ConsistentStateFound=True";
const GRACE: &str = "annotation.karpenter.sh/reboot-termination-grace-period=1m0s";
const BEFORE: &str = "annotation.karpenter.sh/reboot-pre-boot-id=b1";
const ASKED: &str = "cond.Rebooting=True/RebootRequested@12:00 cond.DisruptionReason=True/Unhealthy";
const NODE: &str = "node n id=i-1 registered owner=a boot=b1 taint=karpenter.sh/rebooting:NoSchedule";

fn rebooting(claim: &str, node: &str) -> World {
    World::new(&format!("{CLAIM} initialized {ASKED} {claim}\n{NODE} {node}"))
}

fn target() -> Target {
    Target { name: kerf_model::cluster::ObjectName::of_cluster("a"), uid: Arc::from("uid-a") }
}

/// What is done, without the events and waits.
fn acts(steps: &str) -> Vec<&str> {
    steps.lines().filter(|line| !line.starts_with("event") && !line.starts_with("wake")).collect()
}

fn order(world: &mut World) {
    let order = Order::Reboot {
        condition: Arc::from("GPU"),
        condition_reason: Arc::from("Xid79"),
        grace: Some(SignedDuration::from_mins(1)),
    };
    let mark = Mark { claim_uid: Arc::from("uid-a"), reason: DisruptionReason::Unhealthy, order };
    world.marks.insert(Arc::from("a"), mark);
}

#[test]
fn the_order_is_written_on_the_claim_with_the_times_of_all_reboots() {
    let mut world = World::new(&format!(
        "{CLAIM} initialized cond.Rebooting=False/RebootSucceeded@01:05 annotation.kerf.sh/reboots=2026-11-16T01:00:00Z\nnode n id=i-1 registered initialized owner=a"
    ));
    order(&mut world);
    check(
        &world.claim("a"),
        "patch claim a: @karpenter.sh/reboot-termination-grace-period=1m0s @kerf.sh/reboots=2026-11-16T01:00:00Z,2026-11-16T12:00:00Z Rebooting=True/RebootRequested DisruptionReason=True/Unhealthy",
    );
}

/// A node that was booted every day for years had all of it on its claim.
#[test]
fn reboots_that_are_long_past_stayed_on_the_claim() {
    let mut world = World::new(&format!(
        "{CLAIM} initialized cond.Rebooting=False/RebootSucceeded@01:05 annotation.kerf.sh/reboots=2026-11-14T11:00:00Z,soon,2026-11-15T01:00:00Z\nnode n id=i-1 registered initialized owner=a"
    ));
    order(&mut world);
    let steps = world.claim("a");
    assert!(steps.contains(" @kerf.sh/reboots=2026-11-15T01:00:00Z,2026-11-16T12:00:00Z "), "{steps}");
}

/// The times are written before the condition. When that was refused, or the process died in between, one reboot counted
/// twice, and two are enough to have the node replaced.
#[test]
fn a_reboot_whose_order_was_written_by_half_counts_once() {
    let claim = |more: &str| {
        let mut world = World::new(&format!(
            "{CLAIM} initialized {GRACE} {more}\nnode n id=i-1 registered initialized owner=a\nnow 12:02"
        ));
        order(&mut world);
        world.claim("a")
    };
    let ordered = "patch claim a: DisruptionReason=True/Unhealthy Rebooting=True/RebootRequested";
    let reboots = "annotation.kerf.sh/reboots";
    check(&claim(&format!("{reboots}=2026-11-16T12:00:00Z")), ordered);
    let before = "cond.Rebooting=False/RebootSucceeded@01:05";
    let second = claim(&format!("{before} {reboots}=2026-11-16T01:00:00Z,2026-11-16T12:00:00Z"));
    assert!(second.contains("Rebooting=True") && !second.contains("kerf.sh/reboots"), "{second}");
}

/// L1: tainted, emptied, the boot id written down, and only then the call.
#[test]
fn a_reboot_goes_step_by_step() {
    let mut world = World::new(&format!(
        "{CLAIM} initialized {ASKED} {GRACE}\nnode n id=i-1 registered initialized owner=a boot=b1\npod w node=n daemon"
    ));
    assert_eq!(acts(&world.claim("a")), ["patch node n: taints=[karpenter.sh/rebooting:NoSchedule]"]);
    world.apply(&format!("{NODE} initialized"));
    assert_eq!(acts(&world.claim("a")), ["evict w"]);
    world.apply("gone pod w\nnow 12:00:04");
    assert!(acts(&world.claim("a")).is_empty(), "pods may still be bound for five seconds");
    world.apply("now 12:00:05");
    assert_eq!(acts(&world.claim("a")), ["patch claim a: @karpenter.sh/reboot-pre-boot-id=b1"]);
    world.apply(&format!("{CLAIM} initialized {ASKED} {GRACE} {BEFORE}"));
    let operation = "uid-a-1794830400000000000-b1";
    assert_eq!(acts(&world.claim("a")), [format!("reboot a as {operation}")]);
    assert!(acts(&world.claim("a")).is_empty(), "the call is under way");
    // A process that does not know whether it has asked asks for the same operation, which the provider does once.
    assert_eq!(acts(&world.restart().claim("a")), [format!("reboot a as {operation}")]);
    world.hear(Input::Rebooted { claim: target(), answer: RebootAnswer::Accepted });
    assert_eq!(acts(&world.claim("a")), ["patch claim a: Rebooting=True/RebootIssued"]);
    world.apply(&format!("{CLAIM} initialized {} {GRACE} {BEFORE}", ASKED.replace("Requested", "Issued")));
    check(
        &world.claim("a"),
        "patch node n: karpenter.sh/initialized=-
         patch claim a: Initialized=Unknown/Rebooting
         wake 12:00:20",
    );
    assert_eq!(message(&world.claim_steps("a"), "Initialized"), "node is rebooting");
}

/// L1: a crash after the call makes no second reboot.
#[test]
fn a_boot_id_that_is_another_already_needs_no_call() {
    let mut world = rebooting(&format!("{GRACE} {BEFORE}"), "");
    world.apply("now 12:00:10\nnode n id=i-1 registered owner=a boot=b2 taint=karpenter.sh/rebooting:NoSchedule");
    assert_eq!(acts(&world.claim("a")), ["patch claim a: Rebooting=True/RebootIssued"]);
}

/// L1: a pod that a budget holds survives on the node. L3: it is only asked to leave, and not any more once the time is up.
#[test]
fn pods_that_are_still_there_when_the_time_is_up_live_through_the_reboot() {
    let mut world = rebooting(&format!("{GRACE} {BEFORE}"), "");
    world.apply("pod w node=n protect=true\npod v node=n grace=30s\nnow 12:00:40");
    assert_eq!(acts(&world.claim("a")), ["evict v"]);
    world.eviction_failed("v", WriteError::BudgetRefused { message: "needs 2 healthy".into() });
    world.apply("now 12:00:59");
    assert_eq!(acts(&world.claim("a")), ["evict v"], "asked again, and never deleted");
    world.apply("now 12:01");
    let steps = world.claim("a");
    let [reboot] = acts(&steps)[..] else { panic!("{steps}") };
    assert!(reboot.starts_with("reboot a"), "{reboot}");
}

/// L1: a grace of zero is no drain at all, and none is a drain without an end.
#[test]
fn how_long_a_reboot_waits_for_pods_is_what_its_grace_says() {
    let grace = |value: &str| format!("annotation.karpenter.sh/reboot-termination-grace-period={value}");
    let mut at_once = rebooting(&format!("{} {BEFORE}", grace("0s")), "");
    at_once.apply("pod v node=n\nnow 12:00:04");
    check(&at_once.claim("a"), "wake 12:00:05");
    at_once.apply("now 12:00:05");
    assert!(acts(&at_once.claim("a"))[0].starts_with("reboot a"));
    let mut patient = rebooting(BEFORE, "");
    patient.apply("pod w node=n protect=true\npod v node=n\nnow 20:00");
    assert_eq!(acts(&patient.claim("a")), ["evict v"]);
    patient.apply("gone pod v\nnow 21:00");
    assert!(!patient.claim("a").contains("reboot a"));
    patient.apply("gone pod w");
    assert!(patient.claim("a").contains("reboot a"));
}

/// L1: the provider may refuse for five minutes.
#[test]
fn a_reboot_that_the_provider_does_not_take_for_five_minutes_has_failed() {
    let mut world = rebooting(&format!("{GRACE} {BEFORE}"), "");
    world.apply("now 12:00:10");
    let refuse = |world: &mut World| {
        let answer = RebootAnswer::Failed { message: "busy".into() };
        world.hear(Input::Rebooted { claim: target(), answer });
    };
    for minute in 0..5 {
        world.apply(&format!("now 12:0{minute}:10"));
        assert!(acts(&world.claim("a"))[0].starts_with("reboot a"), "{minute}");
        refuse(&mut world);
        assert!(acts(&world.claim("a")).is_empty(), "the provider is not pressed");
    }
    check(
        &world.apply("now 12:05:10").claim("a"),
        "patch node n: taints=[]
         event RebootFailed on claim a
         patch claim a: @karpenter.sh/nodeclaim-termination-timestamp=2026-11-16T12:06:10Z
         wake 12:05:25",
    );
}

/// L1: a claim that goes meanwhile goes like any other: its deadline is its own, and not that of the reboot.
#[test]
fn a_claim_that_is_deleted_while_its_node_is_to_reboot_is_drained_by_its_deadline() {
    let mut world = rebooting(&format!("{GRACE} {BEFORE} tgp=5m deleting=12:00"), "deleting=12:00 fenced");
    world.apply("pod w node=n protect=true grace=30s\nnow 12:04:29");
    assert!(!world.claim("a").contains("reboot"));
    assert!(!world.node("n").contains("delete pod"));
    world.apply("now 12:04:30");
    assert!(world.node("n").contains("delete pod w grace=30"));
    assert!(!world.claim("a").contains("reboot"));
}

/// A history went on for ever in one moment: the drain asked to be looked at again at a time that had passed.
#[test]
fn a_drain_without_a_deadline_is_looked_at_again_in_a_while_and_not_at_once() {
    let mut world = rebooting("", "");
    world.apply("pod w node=n protect=true\nnow 12:00:20");
    let steps = world.claim("a");
    let wakes: Vec<&str> = steps.lines().filter(|line| line.starts_with("wake")).collect();
    assert_eq!(wakes, ["wake 12:00:35"], "{steps}");
}

#[test]
fn a_node_that_came_back_is_untainted_then_ready_then_initialised_anew() {
    let issued = "cond.Rebooting=True/RebootIssued@12:00 cond.DisruptionReason=True/Unhealthy cond.Initialized=Unknown/Rebooting";
    let mut world = World::new(&format!("{CLAIM} {issued} {GRACE} {BEFORE}\n{NODE} initialized"));
    assert_eq!(acts(&world.claim("a"))[0], "patch node n: karpenter.sh/initialized=-", "it takes no pods meanwhile");
    assert_eq!(world.claim("a").lines().last(), Some("wake 12:00:15"));
    world.apply("node n id=i-1 registered owner=a boot=b2 taint=karpenter.sh/rebooting:NoSchedule not-ready");
    let steps = world.claim("a");
    assert!(steps.starts_with("event RebootObserved on claim a\npatch node n: taints=[]"), "{steps}");
    world.apply("node n id=i-1 registered owner=a boot=b2 not-ready");
    assert!(!world.claim("a").contains("RebootSucceeded"));
    world.apply("node n id=i-1 registered owner=a boot=b2");
    let steps = world.claim("a");
    assert!(steps.contains("Rebooting=False/RebootSucceeded") && steps.contains("pre-boot-id=-"), "{steps}");
    world.apply(&format!("{CLAIM} cond.Rebooting=False/RebootSucceeded cond.Initialized=Unknown/Rebooting"));
    assert_eq!(acts(&world.claim("a"))[0], "patch node n: karpenter.sh/initialized=true");
}

#[test]
fn a_node_that_does_not_come_back_is_replaced_with_its_deadline_tightened() {
    let issued = "cond.Rebooting=True/RebootIssued@12:00 cond.DisruptionReason=True/Unhealthy cond.Initialized=Unknown/Rebooting";
    let mut world = World::new(&format!("{CLAIM} {issued} {GRACE} {BEFORE}\n{NODE} not-ready"));
    world.apply("now 12:25:59");
    assert!(!world.claim("a").contains("RebootFailed"));
    world.apply("now 12:26");
    let steps = world.claim("a");
    assert!(steps.starts_with("patch node n: taints=[]\nevent RebootFailed on claim a\n"), "{steps}");
    assert!(steps.contains("@karpenter.sh/nodeclaim-termination-timestamp=2026-11-16T12:27:00Z"), "{steps}");
    let deadline = "annotation.karpenter.sh/nodeclaim-termination-timestamp=2026-11-16T12:27:00Z";
    world.apply(&format!("{CLAIM} {issued} {GRACE} {BEFORE} {deadline}"));
    assert!(world.claim("a").contains("delete claim a"));
    // L4: one that is nearer already stays.
    let nearer = deadline.replace("12:27:00", "12:26:30");
    let steps = world.apply(&format!("{CLAIM} {issued} {GRACE} {BEFORE} {nearer}")).claim("a");
    assert!(steps.contains("delete claim a") && !steps.contains("termination-timestamp"), "{steps}");
}

/// L1: twenty minutes from the order that the provider took.
#[test]
fn the_time_to_come_back_counts_from_the_order() {
    let mut world = rebooting(&format!("{GRACE} {BEFORE}"), "not-ready");
    world.apply("now 12:00:10");
    assert!(acts(&world.claim("a"))[0].starts_with("reboot a"));
    world.hear(Input::Rebooted { claim: target(), answer: RebootAnswer::Accepted });
    let issued = "cond.Rebooting=True/RebootIssued@12:00 cond.DisruptionReason=True/Unhealthy cond.Initialized=Unknown/Rebooting";
    world.apply(&format!("{CLAIM} {issued} {GRACE} {BEFORE}\nnow 12:20:09"));
    assert!(!world.claim("a").contains("RebootFailed"));
    assert!(world.apply("now 12:20:10").claim("a").contains("RebootFailed"));
}

/// A node whose pods had taken two hours to leave was given up in the middle of its boot when the process restarted.
#[test]
fn after_a_restart_a_node_that_was_long_drained_has_its_time_to_come_back() {
    let issued = "cond.Rebooting=True/RebootIssued@12:00 cond.DisruptionReason=True/Unhealthy cond.Initialized=Unknown/Rebooting@14:00";
    let mut world = World::new(&format!("{CLAIM} {issued} {BEFORE}\n{NODE} not-ready\nnow 14:19:59"));
    assert!(!world.claim("a").contains("RebootFailed"));
    let steps = world.apply("now 14:20").claim("a");
    assert!(steps.contains("RebootFailed") && steps.contains("delete claim a"), "{steps}");
}

/// A Node that was not there at one look, or there twice, cost the machine.
#[test]
fn a_node_that_is_missing_for_a_moment_is_waited_for_as_long_as_the_reboot_may_take() {
    let issued = "cond.Rebooting=True/RebootIssued@12:00 cond.Initialized=Unknown/Rebooting";
    let back = "node n id=i-1 registered owner=a boot=b2 taint=karpenter.sh/rebooting:NoSchedule not-ready";
    let mut world = World::new(&format!("{CLAIM} {issued} {GRACE} {BEFORE}\n{NODE}"));
    world.apply("gone node n\nnow 12:25:59");
    assert!(acts(&world.claim("a")).is_empty());
    world.apply(back);
    assert_eq!(acts(&world.claim("a"))[0], "patch node n: taints=[]");
    world.apply("node m id=i-1 registered owner=a boot=b2");
    assert!(acts(&world.claim("a")).is_empty());
    world.apply("gone node m\ngone node n\nnow 12:26");
    assert!(world.claim("a").contains("event RebootFailed"));
    let mut world = rebooting(&format!("{GRACE} {BEFORE}"), "");
    world.apply("gone node n\nnow 12:05:59");
    assert!(acts(&world.claim("a")).is_empty());
    world.apply("now 12:06");
    assert!(world.claim("a").contains("event RebootFailed"));
}

#[test]
fn a_grace_that_cannot_be_read_ends_the_reboot_and_keeps_the_node() {
    for grace in ["soon", "-1m"] {
        let mut world = rebooting(&format!("annotation.karpenter.sh/reboot-termination-grace-period={grace}"), "");
        let steps = world.claim("a");
        assert!(steps.contains("Rebooting=False/RebootFailed") && steps.contains("taints=[]"), "{steps}");
        assert!(!steps.contains("delete claim"));
    }
}

/// Sheet 03 §13.
#[test]
fn an_interrupted_claim_goes_at_once_and_a_recommendation_is_only_told() {
    let running = format!("{CLAIM} initialized\nnode n id=i-1 registered initialized owner=a");
    let announce = |cause| {
        let mut world = World::new(&running);
        let notice = SignedDuration::from_mins(2);
        world.hear(Input::Interrupted(Interruption { provider_id: Arc::from("i-1"), cause, notice }));
        world.claim("a")
    };
    check(
        &announce(InterruptionCause::SpotReclaimed),
        "event SpotInterrupted on claim a
         event TerminatingOnInterruption on claim a
         event SpotInterrupted on node n
         event TerminatingOnInterruption on node n
         delete claim a
         note a spot_interrupted",
    );
    check(
        &announce(InterruptionCause::RebalanceRecommended),
        "event SpotRebalanceRecommendation on claim a
         event SpotRebalanceRecommendation on node n",
    );
    for (cause, reason) in [
        (InterruptionCause::Maintenance, "InstanceUnhealthy"),
        (InterruptionCause::Stopping, "InstanceStopping"),
        (InterruptionCause::Terminating, "InstanceTerminating"),
    ] {
        let steps = announce(cause);
        for object in ["claim a", "node n"] {
            assert!(steps.contains(&format!("event {reason} on {object}\n")), "{steps}");
        }
        assert!(steps.contains("delete claim a"), "{steps}");
    }
}

/// Sheet 03 case 90, and §15.1: neither a pool that is switched off nor a window holds the machine's end back.
#[test]
fn an_interruption_asks_neither_the_pool_nor_a_window() {
    let node = "node n id=i-1 registered initialized owner=a pool=p";
    for pool in ["disabled", "disruption-off", "\nwindow w daily=11 for=2h"] {
        let mut world = World::new(&format!("{CLAIM} initialized pool=p\n{node}\npool p {pool}"));
        let (cause, notice) = (InterruptionCause::SpotReclaimed, SignedDuration::from_mins(2));
        world.hear(Input::Interrupted(Interruption { provider_id: Arc::from("i-1"), cause, notice }));
        let steps = world.claim("a");
        assert!(steps.contains("delete claim a\nnote a spot_interrupted"), "{pool}: {steps}");
    }
}
