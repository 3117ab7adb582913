//! Claims on their way to a node, and what is looked after meanwhile: sheet 04, cases 1-29.

use std::sync::Arc;

use kerf_model::cloud::LaunchError;

use crate::world::{World, check, message};

/// Launched, registered and initialised, with its node.
const RUNNING: &str = "claim a id=i-1 launched registered initialized cond.ConsistentStateFound=True
     node n id=i-1 registered initialized owner=a";

fn failed(reason: &str, message: &str) -> LaunchError {
    LaunchError::Failed { reason: Arc::from(reason), message: Arc::from(message) }
}

/// Case 1.
#[test]
fn the_finalizer_comes_first_then_the_launch_then_what_it_brought() {
    let mut world = World::new("claim a bare created=12:00 label.zone=mine");
    check(&world.claim("a"), "patch claim a: finalizers=[karpenter.sh/termination]");
    world.apply("claim a created=12:00 label.zone=mine");
    check(
        &world.claim("a"),
        "launch a
         wake 12:02:00",
    );
    check(&world.claim("a"), "wake 12:02:00");
    world.launched("a", "i-1", &[("zone", "theirs"), ("arch", "amd64")]);
    check(
        &world.claim("a"),
        "patch claim a: arch=amd64 @from=cloud id=i-1 Launched=True
         wake 12:05:00",
    );
}

/// A create that arrived 27 seconds late, after another claim had been made in its place, was launched on top of the limit.
#[test]
fn a_claim_that_comes_when_its_pool_has_reached_its_limit_is_given_up_before_it_is_launched() {
    let mut world = World::new(
        "type small pool=p
         pool p ready limits=nodes:2
         claim a pool=p created=11:50 id=i-1 launched
         claim b pool=p created=11:58
         claim c pool=p created=11:59",
    );
    check(
        &world.claim("b"),
        "launch b
         wake 12:02:00",
    );
    check(
        &world.claim("c"),
        "delete claim c
         note c over_limit",
    );
    // A node that boots again stays.
    world.apply("claim a pool=p created=11:50 id=i-1 launched cond.DisruptionReason=True cond.Rebooting=True");
    assert!(world.claim("c").starts_with("delete claim c"));
    // A node that is being replaced does not count beside its replacement.
    world.apply("claim a pool=p created=11:50 id=i-1 launched annotation.kerf.sh/disruption-command=v1 cond.DisruptionReason=True");
    check(
        &world.claim("c"),
        "launch c
         wake 12:02:00",
    );
}

/// A thousand claims that came at once, to a pool with limits, kept the engine busy for a minute: each of them looked at
/// all the others, and for each of those at all types that there are, twice.
#[test]
fn a_thousand_claims_that_wait_for_their_launch_are_added_up_once() {
    let mut world = World::new("pool p ready limits=cpu:1200");
    let sizes = |count: i64| (1..=count).map(|size| (format!("size-{size}"), format!("cpu:{size}")));
    world.offer_all("p", sizes(400));
    for claim in 0..1_000 {
        // Three lists of types, of which the largest has two CPUs.
        let list = ["size-1,size-2", "size-2", "size-2,none"][claim % 3];
        let second = claim / 20;
        world.apply(&format!(
            "claim c{claim:03} pool=p requires=node.kubernetes.io/instance-type:In:{list} created=11:59:{second:02}"
        ));
    }
    for claim in (0..1_000).rev() {
        let steps = world.claim(&format!("c{claim:03}"));
        let expected = if claim < 600 { "launch" } else { "delete" };
        assert!(steps.starts_with(expected), "{claim}: {steps}");
    }
    let first = world.room.cost();
    assert!(first <= 1_000 + 3 * 400, "{first} claims and types were looked at");
    // The catalogue is the same, and so need not be looked at again.
    world.apply("claim c999 pool=p requires=node.kubernetes.io/instance-type:In:size-2 created=11:59:59");
    world.claim("c999");
    assert_eq!(world.room.cost() - first, 1_000);
}

/// Of claims that were made in the same second the first by name is the older one, and what is being launched counts as it
/// may become: as the largest type that it names.
#[test]
fn what_claims_may_become_counts_against_the_limits() {
    let mut world = World::new(
        "pool p ready limits=cpu:9,nodes:4
         claim a pool=p created=11:50 id=i-1 launched capacity=cpu:2
         claim b pool=p created=11:59 requires=node.kubernetes.io/instance-type:In:small,large requests=cpu:1
         claim c pool=p created=11:59 requests=cpu:2
         claim d pool=p created=11:59 requires=node.kubernetes.io/instance-type:In:small requests=cpu:1
         claim e pool=p created=11:59 requires=node.kubernetes.io/instance-type:In:large deleting=11:59
         claim f pool=other created=11:50 requires=node.kubernetes.io/instance-type:In:large
         claim g created=11:50 requires=node.kubernetes.io/instance-type:In:large",
    );
    world.offer_all("p", [("small".to_owned(), "cpu:1".to_owned()), ("large".to_owned(), "cpu:4".to_owned())]);
    let mut launches = |claim: &str| world.claim(claim).starts_with("launch");
    assert!(launches("b"), "2 + 4 of 9");
    assert!(launches("c"), "2 + 4 + 2 of 9: nothing is known of its type but what it must have");
    assert!(launches("d"), "2 + 4 + 2 + 1 of 9");
    world.apply("claim a pool=p created=11:50 id=i-1 launched capacity=cpu:3");
    world.restart();
    let mut launches = |claim: &str| world.claim(claim).starts_with("launch");
    assert!(launches("c"));
    assert!(!launches("d"), "3 + 4 + 2 + 1 of 9");
}

/// Case 2.
#[test]
fn a_claim_of_another_controllers_class_is_not_touched() {
    let mut world = World::new("claim a bare class-kind=EC2NodeClass");
    check(&world.claim("a"), "");
    world.apply("claim a class-kind=EC2NodeClass deleting=11:59");
    check(&world.claim("a"), "");
}

/// Case 3.
#[test]
fn without_capacity_the_claim_is_given_up_at_once() {
    let mut world = World::new("claim a created=12:00");
    world.claim("a");
    world.launch_failed("a", LaunchError::InsufficientCapacity { message: Arc::from("none left") });
    check(
        &world.claim("a"),
        "event InsufficientCapacityError on claim a
         delete claim a
         note a insufficient_capacity",
    );
}

/// Case 4; the event is ours, upstream never sends it.
#[test]
fn with_a_class_that_is_not_ready_the_claim_is_given_up_at_once() {
    let mut world = World::new("claim a created=12:00");
    world.launch_failed("a", LaunchError::ClassNotReady { message: Arc::from("gone") });
    check(
        &world.claim("a"),
        "event NodeClassNotReady on claim a
         delete claim a
         note a nodeclass_not_ready",
    );
}

/// Case 5.
#[test]
fn a_failed_launch_is_shown_and_tried_again_with_growing_patience() {
    let mut world = World::new("claim a created=12:00");
    world.claim("a");
    world.launch_failed("a", failed("SubnetNotFound", "no subnet"));
    check(
        &world.claim("a"),
        "patch claim a: Launched=Unknown/SubnetNotFound
         wake 12:00:01",
    );
    world.apply("now 12:00:01\nclaim a created=12:00 cond.Launched=Unknown/SubnetNotFound@12:00");
    assert!(world.claim("a").starts_with("launch a\n"));
    world.launch_failed("a", failed("SubnetNotFound", "no subnet"));
    assert!(world.claim("a").ends_with("wake 12:00:03"));
}

/// Case 7.
#[test]
fn a_status_write_that_fails_does_not_launch_twice() {
    let mut world = World::new("claim a created=12:00");
    world.claim("a");
    world.launched("a", "i-1", &[]);
    let patch = "patch claim a: @from=cloud id=i-1 Launched=True\nwake 12:05:00";
    check(&world.claim("a"), patch);
    check(&world.claim("a"), patch);
}

/// Case 8.
#[test]
fn a_claim_that_cannot_launch_for_five_minutes_is_given_up() {
    let mut world = World::new("now 12:04:59\nclaim a created=12:00");
    world.launch_failed("a", failed("", "boom"));
    assert!(!world.claim("a").contains("delete"));
    check(
        &world.apply("now 12:05").claim("a"),
        "delete claim a
         note a launch_timeout",
    );
}

/// Case 9.
#[test]
fn the_clock_of_a_launch_is_the_condition_and_not_the_claim() {
    let mut world = World::new("now 12:12\nclaim a created=12:00 cond.Launched=Unknown/X@12:10");
    assert!(!world.claim("a").contains("delete"));
    assert!(world.apply("now 12:15").claim("a").contains("delete claim a"));
}

/// Case 10, counted from the launch (sheet 04, do better 10).
#[test]
fn a_launched_claim_without_a_node_is_given_up_after_a_quarter_of_an_hour() {
    let mut world = World::new("claim a id=i-1 created=12:00 launched");
    check(
        &world.claim("a"),
        "patch claim a: Registered=Unknown/NodeNotFound
         wake 12:15:00",
    );
    check(
        &world.apply("now 12:15").claim("a"),
        "delete claim a
         note a registration_timeout",
    );
    world.apply("claim a id=i-1 created=12:00 cond.Launched=True@12:04");
    assert!(world.claim("a").ends_with("wake 12:19:00"));
    world.apply("now 13:00\nclaim a id=i-1 created=12:00 launched registered\nnode n id=i-1 registered not-ready");
    assert!(!world.claim("a").contains("delete"));
}

/// Cases 11 and 14.
#[test]
fn a_node_that_joins_gets_everything_and_only_then_the_claim_is_registered() {
    let claim = "claim a id=i-1 created=12:00 launched pool=p label.team=x annotation.note=y \
                 taint=gpu=true:NoSchedule startup=cni=off:NoExecute";
    let mut world = World::new(claim);
    world.apply("node n bare id=i-1 taint=karpenter.sh/unregistered:NoExecute label.team=old");
    check(
        &world.claim("a"),
        "patch node n: karpenter.kwok.sh/kwoknodeclass=default karpenter.sh/nodepool=p karpenter.sh/registered=true \
         team=x @note=y finalizers=[karpenter.sh/termination] owners=[a] taints=[gpu=true:NoSchedule cni=off:NoExecute]
         patch claim a: Registered=Unknown/NodeNotSynced
         wake 12:15:00",
    );
    world.apply("node n id=i-1 registered owner=a pool=p taint=gpu=true:NoSchedule taint=cni=off:NoExecute");
    check(
        &world.claim("a"),
        "patch claim a: node=n Registered=True
         note a registered
         wake 12:15:00",
    );
}

/// Case 12.
#[test]
fn a_node_without_the_taint_registers_and_is_complained_about() {
    let mut world = World::new("claim a id=i-1 created=12:00 launched\nnode n bare id=i-1");
    let steps = world.claim("a");
    assert!(steps.starts_with("event UnregisteredTaintMissing on claim a\npatch node n:"), "{steps}");
}

/// Case 13.
#[test]
fn taints_are_not_copied_to_a_node_that_brings_its_own() {
    let claim = "claim a id=i-1 created=12:00 launched taint=gpu:NoSchedule\n";
    let node = "node n id=i-1 owner=a taint=karpenter.sh/unregistered:NoExecute label.karpenter.sh/do-not-sync-taints=";
    let steps = World::new(&format!("{claim}{node}true")).claim("a");
    assert!(steps.starts_with("patch node n: karpenter.sh/registered=true taints=[]\n"), "{steps}");
    let steps = World::new(&format!("{claim}{node}false")).claim("a");
    assert!(steps.contains("taints=[gpu:NoSchedule]\n"), "{steps}");
}

/// Case 15, also across a crash between the node's patch and the claim's (sheet 04, do better 12).
#[test]
fn a_startup_taint_that_its_owner_removed_does_not_come_back() {
    let mut world = World::new(
        "claim a id=i-1 created=12:00 launched startup=cni:NoExecute
         node n id=i-1 registered owner=a",
    );
    check(
        &world.restart().claim("a"),
        "patch claim a: node=n Registered=True
         note a registered
         wake 12:15:00",
    );
}

/// Case 16; ours looks again (sheet 04, do better 11).
#[test]
fn two_nodes_of_one_instance_hold_registration_until_one_goes() {
    let mut world = World::new(
        "claim a id=i-1 created=12:00 launched
         node n id=i-1 registered owner=a
         node m id=i-1 owner=a",
    );
    check(
        &world.claim("a"),
        "patch claim a: Registered=False/MultipleNodesFound
         wake 12:15:00",
    );
    world.apply("claim a id=i-1 created=12:00 launched cond.Registered=False/MultipleNodesFound@12:01\ngone node m");
    assert!(world.claim("a").starts_with("patch claim a: node=n Registered=True"));
}

/// Case 17.
#[test]
fn a_node_waits_for_its_hooks_and_keeps_the_taint() {
    let claim = "claim a id=i-1 created=12:00 launched pool=p label.team=x startup=cni:NoExecute";
    let mut world = World::new(claim);
    world.settings.registration_hooks = true;
    check(
        &world.claim("a"),
        "patch claim a: Registered=Unknown/NodeNotFound
         wake 12:15:00",
    );
    world.apply("node n bare id=i-1 taint=karpenter.sh/unregistered:NoExecute");
    check(
        &world.claim("a"),
        "run the hooks of a
         patch node n: karpenter.kwok.sh/kwoknodeclass=default karpenter.sh/nodepool=p team=x \
         finalizers=[karpenter.sh/termination] owners=[a] \
         taints=[karpenter.sh/unregistered:NoExecute cni:NoExecute]
         wake 12:01:00",
    );
    let node =
        "node n id=i-1 owner=a pool=p label.team=x taint=karpenter.sh/unregistered:NoExecute taint=cni:NoExecute";
    world.apply(node);
    check(&world.claim("a"), "wake 12:01:00");
    world.apply("now 12:00:10").hooks_ran("a", &["placement"], &[]);
    check(
        &world.claim("a"),
        "patch claim a: Registered=Unknown/RegistrationHookPending
         wake 12:00:15",
    );
    world.apply("now 12:00:15");
    assert!(world.claim("a").starts_with("run the hooks of a\n"));
    world.hooks_ran("a", &[], &[]);
    check(
        &world.claim("a"),
        "patch node n: karpenter.sh/registered=true taints=[cni:NoExecute]
         patch claim a: Registered=Unknown/NodeNotSynced
         wake 12:15:00",
    );
}

/// Case 17: the condition names all that are waited for.
#[test]
fn the_condition_names_the_hooks_that_are_waited_for() {
    let mut world = World::new(
        "claim a id=i-1 created=12:00 launched
         node n id=i-1 owner=a taint=karpenter.sh/unregistered:NoExecute",
    );
    world.settings.registration_hooks = true;
    world.hooks_ran("a", &["placement", "network"], &[]);
    assert_eq!(message(&world.claim_steps("a"), "Registered"), "placement, network");
}

/// Case 18. The claim has the label before the node may register: a crash in between loses nothing.
#[test]
fn what_a_hook_adds_is_on_the_claim_and_then_on_the_node() {
    let mut world = World::new(
        "claim a id=i-1 created=12:00 launched
         node n id=i-1 owner=a taint=karpenter.sh/unregistered:NoExecute",
    );
    world.settings.registration_hooks = true;
    world.hooks_ran("a", &[], &[("rack", "7")]);
    check(
        &world.claim("a"),
        "patch claim a: rack=7
         wake 12:15:00",
    );
    world.apply("claim a id=i-1 created=12:00 launched label.rack=7");
    check(
        &world.claim("a"),
        "patch node n: karpenter.sh/registered=true rack=7 taints=[]
         patch claim a: Registered=Unknown/NodeNotSynced
         wake 12:15:00",
    );
    world.apply("node n id=i-1 owner=a registered label.rack=7");
    // The node is marked: what was asked before the crash is not asked again.
    check(
        &world.restart().claim("a"),
        "patch claim a: node=n Registered=True
         note a registered
         wake 12:15:00",
    );
}

/// Case 19.
#[test]
fn a_node_is_initialised_when_nothing_is_missing_any_more() {
    let claim = "claim a id=i-1 launched registered startup=cni:NoExecute requests=cpu:1,nvidia.com/gpu:1,pods:0\n";
    let node = "node n id=i-1 registered owner=a allocatable=cpu:2";
    for (state, reason) in [
        (format!("{node} not-ready taint=cni:NoExecute"), "NodeNotReady"),
        (format!("{node} taint=cni:NoExecute taint=node.kubernetes.io/not-ready:NoSchedule"), "StartupTaintsExist"),
        (format!("{node} taint=node.kubernetes.io/not-ready:NoSchedule"), "KnownEphemeralTaintsExist"),
        (format!("{node} taint=readiness.k8s.io/net:NoSchedule"), "KnownEphemeralTaintsExist"),
        (node.to_owned(), "ResourceNotRegistered"),
        ("node other".to_owned(), "NodeNotFound"),
    ] {
        let steps = World::new(&format!("{claim}{state}")).claim("a");
        check(&steps, &format!("patch claim a: Initialized=Unknown/{reason}"));
    }
    let mut world = World::new(&format!("{claim}{node},nvidia.com/gpu:1"));
    check(&world.claim("a"), "patch node n: karpenter.sh/initialized=true");
    world.apply(&format!("{node},nvidia.com/gpu:1 initialized"));
    check(
        &world.claim("a"),
        "patch claim a: Initialized=True
         note a initialized",
    );
}

/// Sheet 08 L2.
#[test]
fn a_reboot_keeps_initialisation_to_itself() {
    let mut world = World::new(
        "claim a id=i-1 launched registered cond.Rebooting=True/RebootIssued@12:00 cond.Initialized=Unknown/Rebooting
         node n id=i-1 registered owner=a",
    );
    let steps = world.claim("a");
    assert!(!steps.contains("initialized=true") && !steps.contains("Initialized=True"), "{steps}");
}

/// Case 21; the rules themselves are tested in `conditions.rs`.
#[test]
fn after_an_edit_the_conditions_follow_the_generation() {
    let mut world = World::new(RUNNING);
    check(&world.claim("a"), "");
    world.apply(&RUNNING.replace("claim a", "claim a generation=2 observed=1"));
    check(&world.claim("a"), "patch claim a: Launched#2 Registered#2 Initialized#2 ConsistentStateFound#2");
}

/// Case 27.
#[test]
fn a_machine_smaller_than_ordered_is_reported() {
    let claim = "claim a id=i-1 launched registered initialized requests=cpu:1 capacity=cpu:10\n";
    let mut world = World::new(&format!("{claim}node n id=i-1 registered initialized capacity=cpu:8"));
    check(
        &world.claim("a"),
        "event FailedConsistencyCheck on claim a
         patch claim a: ConsistentStateFound=False/ConsistencyCheckFailed",
    );
    world.apply("node n id=i-1 registered initialized capacity=cpu:9");
    check(&world.claim("a"), "patch claim a: ConsistentStateFound=True");
}

#[test]
fn the_class_label_is_put_back_on_claim_and_node() {
    let mut world = World::new(RUNNING);
    world.apply("node n bare id=i-1 registered initialized");
    check(&world.claim("a"), "patch node n: karpenter.kwok.sh/kwoknodeclass=default");
}

/// Sheet 03 §15.3.
#[test]
fn the_taint_of_an_older_api_is_taken_off() {
    let mut world = World::new(RUNNING);
    world.apply(
        "node n id=i-1 registered initialized taint=karpenter.sh/disruption=disrupting:NoSchedule taint=a:NoSchedule",
    );
    check(&world.claim("a"), "patch node n: taints=[a:NoSchedule]");
}

/// Case 28.
#[test]
fn pod_events_are_written_with_their_own_time_and_not_too_often() {
    let mut world = World::new(RUNNING);
    world.apply("pod w node=n started=11:59:30");
    check(&world.claim("a"), "patch claim a: pod-event=11:59:30");
    let stamped = RUNNING.replace("claim a", "claim a pod-event=11:59:30");
    check(&world.apply(&stamped).claim("a"), "");
    check(&world.apply("pod v node=n started=11:59:35").claim("a"), "");
    check(&world.apply("pod v node=n started=11:59:41").claim("a"), "patch claim a: pod-event=11:59:41");
    check(&World::new(RUNNING).apply("pod d node=n started=11:59 daemon").claim("a"), "");
}

/// Case 28, the part that is ours (sheet 04, do better 22).
#[test]
fn a_restart_stamps_no_node_again() {
    let mut world = World::new("now 15:00\npod w node=n started=11:30");
    world.apply(&RUNNING.replace("claim a", "claim a pod-event=11:30"));
    check(&world.restart().claim("a"), "");
}

/// Sheet 04, do better 22.
#[test]
fn a_pod_that_ends_or_vanishes_before_our_eyes_is_an_event() {
    let stamped = RUNNING.replace("claim a", "claim a pod-event=11:30");
    let world = || World::new(&format!("{stamped}\npod w node=n started=11:30"));
    check(&world().apply("pod w node=n started=11:30 phase=Succeeded").claim("a"), "patch claim a: pod-event=12:00:00");
    check(&world().apply("gone pod w").claim("a"), "patch claim a: pod-event=12:00:00");
    let going = "now 12:01\npod w node=n started=11:30 deleting=12:00:50 grace=20s";
    check(&World::new(&stamped).apply(going).claim("a"), "patch claim a: pod-event=12:00:30");
}

/// Case 29; sheet 03 case 82.
#[test]
fn a_claim_expires_to_the_second_and_never_when_told_so() {
    let claim = RUNNING.replace("claim a", "claim a created=12:00 expire=30s");
    let mut world = World::new(&claim);
    check(&world.apply("now 12:00:29").claim("a"), "wake 12:00:30");
    check(
        &world.apply("now 12:00:30").claim("a"),
        "delete claim a
         note a expired",
    );
    check(&World::new(RUNNING).apply("now 23:59").claim("a"), "");
    world.apply(&claim.replace("claim a", "claim a deleting=12:00:30"));
    assert!(!world.claim("a").contains("expired"));
    // Whose node class is another controller's is not ours to end.
    let foreign = "claim a id=i-1 created=12:00 expire=30s class-kind=EC2NodeClass launched registered initialized";
    check(&World::new(foreign).apply("now 13:00").claim("a"), "");
}

/// Sheet 03 §15.1 and §15.2, case 83.
#[test]
fn an_expiration_waits_for_windows_and_for_its_pool() {
    let claim = RUNNING.replace("claim a", "claim a created=11:00 expire=30m pool=p");
    for pool in ["pool p disabled", "pool p disruption-off", "pool p expiration-off"] {
        check(&World::new(&claim).apply(pool).claim("a"), "event DisruptionBlocked on claim a");
    }
    let mut world = World::new(&claim);
    world.apply("pool p\nwindow office daily=9 for=4h");
    check(
        &world.claim("a"),
        "event DisruptionBlocked on claim a
         note a postponed by office
         wake 13:00:00",
    );
    assert!(world.apply("now 13:00").claim("a").starts_with("delete claim a"));
    assert!(World::new(&claim).claim("a").starts_with("delete claim a"), "a pool that is gone holds nothing");
}
