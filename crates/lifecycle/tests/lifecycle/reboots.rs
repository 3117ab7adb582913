//! Nodes that are cured by a reboot, and instances that the cloud takes: sheet 08 L1-L4, sheet 03 §13.

use std::sync::Arc;

use jiff::SignedDuration;
use kerf_lifecycle::{Mark, Order};
use kerf_model::budget::DisruptionReason;
use kerf_model::change::Input;
use kerf_model::cloud::{Interruption, InterruptionCause, RebootAnswer};
use kerf_model::effect::Target;

use crate::world::{World, check};

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

#[test]
fn the_order_is_written_on_the_claim_with_the_times_of_all_reboots() {
    let mut world = World::new(&format!(
        "{CLAIM} initialized annotation.kerf.sh/reboots=2026-11-16T01:00:00Z\nnode n id=i-1 registered initialized owner=a"
    ));
    let order = Order::Reboot {
        condition: Arc::from("GPU"),
        condition_reason: Arc::from("Xid79"),
        grace: Some(SignedDuration::from_mins(1)),
    };
    let mark = Mark { claim_uid: Arc::from("uid-a"), reason: DisruptionReason::Unhealthy, order };
    world.marks.insert(Arc::from("a"), mark);
    check(
        &world.claim("a"),
        "patch claim a: @karpenter.sh/reboot-termination-grace-period=1m0s @kerf.sh/reboots=2026-11-16T01:00:00Z,2026-11-16T12:00:00Z DisruptionReason=True/Unhealthy Rebooting=True/RebootRequested",
    );
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
    world.hear(Input::Rebooted { claim: target(), answer: RebootAnswer::Accepted });
    assert_eq!(acts(&world.claim("a")), ["patch claim a: Rebooting=True/RebootIssued"]);
}

/// L1: a crash after the call makes no second reboot.
#[test]
fn a_boot_id_that_is_another_already_needs_no_call() {
    let mut world = rebooting(&format!("{GRACE} {BEFORE}"), "");
    world.apply("now 12:00:10\nnode n id=i-1 registered owner=a boot=b2 taint=karpenter.sh/rebooting:NoSchedule");
    assert_eq!(acts(&world.claim("a")), ["patch claim a: Rebooting=True/RebootIssued"]);
}

/// L1: a pod that a budget holds survives on the node.
#[test]
fn pods_that_are_still_there_when_the_time_is_up_live_through_the_reboot() {
    let mut world = rebooting(&format!("{GRACE} {BEFORE}"), "");
    world.apply("pod w node=n protect=true\nnow 12:00:59");
    assert!(acts(&world.claim("a")).is_empty());
    world.apply("now 12:01");
    assert!(acts(&world.claim("a"))[0].starts_with("reboot a"));
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
    world.apply("node n id=i-1 registered owner=a boot=b2 taint=karpenter.sh/rebooting:NoSchedule not-ready");
    assert_eq!(acts(&world.claim("a"))[0], "patch node n: taints=[]");
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
    assert!(steps.contains("event RebootFailed") && steps.contains("termination-timestamp"), "{steps}");
    let deadline = "annotation.karpenter.sh/nodeclaim-termination-timestamp=2026-11-16T12:27:00Z";
    world.apply(&format!("{CLAIM} {issued} {GRACE} {BEFORE} {deadline}"));
    assert!(world.claim("a").contains("delete claim a"));
}

#[test]
fn a_grace_that_cannot_be_read_ends_the_reboot_and_keeps_the_node() {
    let mut world = rebooting("annotation.karpenter.sh/reboot-termination-grace-period=soon", "");
    let steps = world.claim("a");
    assert!(steps.contains("Rebooting=False/RebootFailed") && steps.contains("taints=[]"), "{steps}");
    assert!(!steps.contains("delete claim"));
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
