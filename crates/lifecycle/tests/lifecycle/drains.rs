//! Which pods go, when and how: sheet 04, cases 38-50.

use kerf_model::effect::WriteError;

use crate::world::{World, check};

const NODE: &str = "node n id=i-1 registered owner=a deleting=11:59:50 fenced";

/// A node that has been draining since 12:00, with this much grace.
fn draining(tgp: Option<&str>, pods: &str) -> World {
    let tgp = tgp.map(|tgp| format!("tgp={tgp}")).unwrap_or_default();
    let drained = "launched registered cond.Drained=Unknown/Draining@12:00";
    World::new(&format!("claim a id=i-1 deleting=12:00 {drained} {tgp}\n{NODE}\n{pods}"))
}

/// What is done to pods, and when to look again; no events, no conditions.
fn acts(world: &mut World) -> String {
    let steps = world.node("n");
    let of_pods = |line: &&str| ["evict", "delete pod", "wake"].iter().any(|start| line.starts_with(start));
    steps.lines().filter(of_pods).collect::<Vec<_>>().join("\n")
}

fn is_drained(world: &mut World) -> bool {
    world.node("n").contains("Drained=True")
}

/// Case 38.
#[test]
fn pods_that_tolerate_the_taint_stay() {
    for tolerates in ["exists", "equal", "all"] {
        let mut world = draining(None, &format!("now 12:00:05\npod w node=n tolerates={tolerates}"));
        assert!(is_drained(&mut world), "{tolerates}");
    }
    assert!(acts(&mut draining(None, "pod w node=n tolerates=unschedulable")).starts_with("evict w"));
}

/// Case 39.
#[test]
fn mirror_pods_and_ended_pods_are_nobody_to_wait_for_and_naked_pods_are_evicted() {
    let ignored = "pod m node=n mirror\npod s node=n phase=Succeeded\npod f node=n phase=Failed";
    assert!(is_drained(&mut draining(None, &format!("now 12:00:05\n{ignored}"))));
    assert!(acts(&mut draining(None, "pod naked node=n")).starts_with("evict naked"));
}

/// Case 40.
#[test]
fn groups_leave_in_order_and_the_next_waits_for_the_last_pod_of_the_one_before() {
    let mut world = draining(
        None,
        "pod app node=n
         pod slow node=n
         pod log node=n daemon
         pod dns node=n critical
         pod net node=n critical daemon",
    );
    check(
        &acts(&mut world),
        "evict app
         evict slow
         wake 12:00:10",
    );
    world.apply("gone pod app\npod slow node=n deleting=12:00:30");
    check(&acts(&mut world), "wake 12:01:30");
    check(
        &acts(world.apply("gone pod slow")),
        "evict log
         wake 12:00:10",
    );
    check(
        &acts(world.apply("gone pod log")),
        "evict dns
         wake 12:00:10",
    );
    check(
        &acts(world.apply("gone pod dns")),
        "evict net
         wake 12:00:10",
    );
}

/// Case 41.
#[test]
fn an_eviction_that_a_budget_refuses_is_asked_again_with_growing_patience() {
    let mut world = draining(None, "pod w node=n");
    let refused = || WriteError::BudgetRefused { message: "needs 2 healthy".into() };
    acts(&mut world);
    world.eviction_failed("w", refused());
    check(
        &world.node("n"),
        "event FailedDraining on node n
         event FailedDraining on node n
         patch claim a: Drained~
         wake 12:00:00.1",
    );
    world.apply("now 12:00:01");
    check(
        &acts(&mut world),
        "evict w
         wake 12:00:11",
    );
    world.eviction_failed("w", refused());
    check(&acts(&mut world), "wake 12:00:01.2");
    for _ in 0..20 {
        world.eviction_failed("w", refused());
    }
    check(&acts(&mut world), "wake 12:00:11");
}

/// Sheet 04, do better 1.
#[test]
fn an_eviction_of_which_nothing_is_heard_is_asked_again() {
    let mut world = draining(None, "pod w node=n");
    assert!(acts(&mut world).starts_with("evict w"));
    check(&acts(world.apply("now 12:00:09")), "wake 12:00:10");
    assert!(acts(world.apply("now 12:00:10")).starts_with("evict w"));
}

/// Case 42: evictions name the uid; a pod of the same name on another node is another pod.
#[test]
fn a_pod_that_came_back_elsewhere_is_left_alone() {
    let mut world = draining(None, "pod w node=n");
    acts(&mut world);
    world.eviction_failed("w", WriteError::NotFound);
    world.apply("now 12:00:05\ngone pod w\npod w node=other uid=new");
    assert!(is_drained(&mut world));
    let mut world = draining(None, "pod w node=n");
    acts(&mut world);
    world.apply("pod w node=n uid=new");
    assert!(acts(&mut world).starts_with("evict w"), "what was asked of the old pod says nothing about the new one");
}

/// Case 43.
#[test]
fn a_protected_pod_is_waited_for() {
    check(&acts(&mut draining(None, "now 20:00\npod w node=n protect=true started=10:00")), "");
    assert!(acts(&mut draining(None, "pod w node=n protect=true\npod w node=n")).starts_with("evict w"));
    let mut world = draining(None, "pod w node=n protect=30s started=12:00");
    check(&acts(&mut world), "wake 12:00:30");
    let steps = world.apply("now 12:00:30").node("n");
    assert!(steps.starts_with("evict w\nevent DoNotDisruptGracePeriodElapsed on pod w"), "{steps}");
    for value in ["false", "-5m"] {
        let steps = draining(None, &format!("pod w node=n protect={value}")).node("n");
        assert!(steps.starts_with("evict w\nevent InvalidDoNotDisruptAnnotation on pod w"), "{steps}");
    }
    assert!(draining(None, "pod w node=n protect=1m").node("n").contains("FailedDraining"), "not started: protected");
}

/// Case 44.
#[test]
fn a_protected_pod_gets_its_full_grace_before_the_deadline() {
    let mut world = draining(Some("300s"), "pod w node=n protect=true grace=60s");
    check(&acts(world.apply("now 12:01:30")), "wake 12:04:00");
    check(
        &acts(world.apply("now 12:04:00")),
        "delete pod w grace=60
         wake 12:04:10",
    );
}

/// Case 45.
#[test]
fn a_pod_that_wants_more_than_there_is_goes_at_once() {
    for grace in ["300s", "600s"] {
        let mut world = draining(Some("300s"), &format!("now 12:00:01\npod w node=n grace={grace}"));
        check(
            &acts(&mut world),
            "delete pod w grace=299
             wake 12:00:11",
        );
    }
}

/// Case 46.
#[test]
fn a_pod_that_takes_too_long_to_go_is_shortened() {
    let mut world = draining(Some("300s"), "now 12:01:30\npod w node=n grace=6000s deleting=13:41");
    assert!(acts(&mut world).starts_with("delete pod w grace=210"));
    let mut world = draining(Some("300s"), "now 12:01:30\npod w node=n grace=6000s deleting=12:05");
    check(&acts(&mut world), "wake 12:06:00");
}

/// Case 47; once (sheet 04, do better 6), also after a restart.
#[test]
fn after_the_deadline_a_pod_is_deleted_once_and_with_a_second_of_grace() {
    let mut world = draining(Some("0s"), "now 12:00:10\npod w node=n");
    assert!(acts(&mut world).starts_with("delete pod w grace=1"));
    assert!(!acts(&mut world).contains("delete"), "before the first is seen");
    world.apply("now 12:00:10\npod w node=n deleting=12:00:11");
    check(&acts(world.restart()), "wake 12:01:11");
    check(&acts(world.apply("now 12:00:40")), "wake 12:01:11");
}

/// Case 48.
#[test]
fn the_deadline_does_not_wait_for_the_order_of_groups() {
    let mut world = draining(
        Some("5m"),
        "now 12:01
         pod web node=n protect=true grace=10s
         pod dns node=n critical grace=290s",
    );
    check(
        &acts(&mut world),
        "delete pod dns grace=240
         wake 12:01:10",
    );
}

/// Case 49: an earlier deadline, written by repair, stays and counts.
#[test]
fn the_written_deadline_counts_and_not_the_grace_period() {
    let annotation = "annotation.karpenter.sh/nodeclaim-termination-timestamp=2026-11-16T12:01:00Z";
    let claim =
        format!("claim a id=i-1 deleting=12:00 launched registered cond.Drained=Unknown/Draining tgp=1h {annotation}");
    let mut world = World::new(&format!("{claim}\n{NODE}\npod w node=n protect=true grace=10s"));
    check(&acts(&mut world), "wake 12:00:50");
}

/// Case 50.
#[test]
fn a_pod_that_outlives_its_end_by_a_minute_is_not_waited_for() {
    let pods = "pod w node=n deleting=12:00:30";
    assert!(!is_drained(&mut draining(None, &format!("now 12:01:29\n{pods}"))));
    assert!(is_drained(&mut draining(None, &format!("now 12:01:30\n{pods}"))));
}

/// Sheet 04 §4.3: nobody was told of a drain whose pods were merely slow.
#[test]
fn pods_that_take_longer_than_a_moment_to_go_are_told_of_on_the_node() {
    let mut world = World::new(&format!(
        "claim a id=i-1 deleting=12:00 launched registered cond.Drained=Unknown/Draining@12:00
         {}
         pod w node=n",
        NODE.replace("11:59:50", "12:00")
    ));
    check(
        &world.node("n"),
        "evict w
         wake 12:00:02",
    );
    world.apply("pod w node=n deleting=12:00:30\nnow 12:00:01");
    check(&world.node("n"), "wake 12:00:02");
    check(
        &world.apply("now 12:00:02").node("n"),
        "event FailedDraining on node n
         wake 12:01:30",
    );
}
