use crate::fixture::{Fixture, check, show};

const POOL: &str = "type small cpu=2 memory=2Gi\ntype large cpu=8 memory=8Gi price=4\npool general\n";

/// Sheet 02, case 34.
#[test]
fn a_second_pod_uses_what_was_launched_for_the_first() {
    check(&format!("{POOL} claim c1 pool=general cpu=2\n pod a cpu=1"), "claim c1: a");
}

/// Somebody took the finalizer off a node and deleted it. The machine runs on, and its claim with it: it counts against
/// limits, and is no room for pods.
#[test]
fn a_claim_whose_node_was_deleted_without_its_machine_takes_no_pods() {
    check(&format!("{POOL} claim c1 pool=general cpu=2 registered\n pod a cpu=1"), "new general [small large]: a");
    let limited = "type small cpu=2 memory=2Gi\npool general limit:cpu=3\n";
    let lost = format!("{limited} claim c1 pool=general cpu=2 registered\n pod a cpu=1");
    assert!(show(&Fixture::read(&lost).solve()).starts_with("none a:"), "its machine counts");
}

#[test]
fn a_claim_that_is_not_launched_yet_holds_its_pods_in_every_type_it_may_get() {
    let world = format!("{POOL} claim c1 pool=general require:type=small,large require:zone=a unlaunched\n");
    check(&format!("{world} pod a cpu=2"), "claim c1: a");
    // The large type would hold it, the small one would not.
    check(&format!("{world} pod a cpu=3"), "new general [large]: a");
    check(&format!("{world} pod a cpu=1 select:zone=a"), "claim c1: a");
    let reversed = "type large cpu=8 memory=8Gi\ntype small cpu=2 memory=2Gi\npool general\n";
    let claim = "claim c1 pool=general require:type=small,large unlaunched\n";
    check(&format!("{reversed} {claim} pod a cpu=3"), "new general [large]: a");
}

#[test]
fn a_claim_that_is_not_launched_yet_cannot_be_narrowed_any_more() {
    let world = format!("{POOL} claim c1 pool=general require:type=small require:zone=a,b unlaunched\n");
    check(&format!("{world} pod a cpu=1 require:zone=a,b,c"), "claim c1: a");
    check(&format!("{world} pod a cpu=1 select:zone=a"), "new general [small large]: a");
}

#[test]
fn a_claim_whose_types_are_gone_holds_what_it_was_made_for() {
    check(
        &format!("{POOL} claim c1 pool=other cpu=1 unlaunched\n pod a cpu=1 \n pod b cpu=1"),
        "new general [small large]: a b",
    );
    check(&format!("{POOL} claim c1 pool=other cpu=1 memory=1Gi pods=1 unlaunched\n pod a cpu=1"), "claim c1: a");
}

/// Sheet 02, case 35.
#[test]
fn a_node_is_used_when_its_zone_is_among_those_asked_for() {
    let world = format!("{POOL} node n1 pool=general label:zone=b\n");
    check(&format!("{world} pod a cpu=1 require:zone=a,b"), "node n1: a");
    check(&format!("{world} pod a cpu=1 require:zone=a,c"), "new general [small large]: a");
}

/// Sheet 02, case 6: a label that an existing node does not have is not there.
#[test]
fn a_node_without_the_label_does_not_do() {
    let world = format!("{POOL} node n1 pool=general\n");
    check(&format!("{world} pod a cpu=1 select:zone=a"), "new general [small large]: a");
    check(&format!("{world} pod a cpu=1 require:zone!=a"), "node n1: a");
    check(&format!("{world} pod a cpu=1 require:!zone"), "node n1: a");
}

/// Sheet 02, case 36.
#[test]
fn taints_of_starting_nodes_are_ignored_until_they_are_initialised() {
    let node = |more: &str| format!("{POOL} node n1 {more} taint:node.kubernetes.io/not-ready:NoExecute\n pod a cpu=1");
    check(&node("pool=general starting"), "node n1: a");
    check(&node("pool=general"), "new general [small large]: a");
    check(&node("unmanaged"), "new general [small large]: a");
}

/// Sheet 02, case 37.
#[test]
fn startup_taints_are_ignored_only_before_initialisation() {
    let node = |more: &str| {
        format!("{POOL} node n1 pool=general {more} startup:cni:NoSchedule taint:cni=x:NoSchedule\n pod a cpu=1")
    };
    check(&node("starting"), "node n1: a");
    check(&node(""), "new general [small large]: a");
}

/// Sheet 08, S5.
#[test]
fn a_rebooting_node_stays_a_destination() {
    let node = |more: &str| {
        format!("{POOL} node n1 pool=general {more} taint:karpenter.sh/rebooting:NoSchedule\n pod a cpu=1")
    };
    check(&node("rebooting"), "node n1: a");
    check(&node(""), "new general [small large]: a");
}

/// Seen in a random history: a disruption budget let no more pods leave before those that had left ran elsewhere, and those
/// were to wait for the node.
#[test]
fn a_node_that_empties_without_limit_before_its_reboot_is_no_destination() {
    check(
        &format!("{POOL} node n1 pool=general empties-to-reboot taint:karpenter.sh/rebooting:NoSchedule\n pod a cpu=1"),
        "new general [small large]: a",
    );
}

/// Sheet 02, case 38.
#[test]
fn initialised_nodes_come_first_and_then_names() {
    check(
        &format!(
            "{POOL}
             node a pool=general cpu=1 starting
             node b pool=general cpu=1
             node c pool=general cpu=1
             pod p cpu=1 x3"
        ),
        "node b: p-0
         node c: p-1
         node a: p-2",
    );
}

/// Sheet 02, case 39.
#[test]
fn a_device_that_the_kubelet_does_not_know_yet_is_taken_from_the_claim() {
    let node = |more: &str| {
        format!(
            "{POOL} node n1 pool=general {more} example.com/gpu=1 missing:example.com/gpu
             pod a cpu=1 example.com/gpu=1"
        )
    };
    check(&node("starting"), "node n1: a");
    check(&node(""), "none a: no_place general=resources");
}

#[test]
fn cordoned_leaving_and_excluded_nodes_take_nothing() {
    check(
        &format!(
            "{POOL}
             node cordoned pool=general cordoned
             node leaving pool=general deleting
             node moved pool=general
             exclude moved
             pod b cpu=1 on=moved
             pod a cpu=1"
        ),
        "new general [small large]: a b",
    );
}

#[test]
fn host_ports_are_taken_once_per_node() {
    check(
        &format!(
            "{POOL}
             node n1 pool=general
             pod old cpu=1 on=n1 port:80
             pod a cpu=1 port:80 x2
             pod b cpu=1 port:81"
        ),
        "node n1: b
         new general [small large]: a-0
         new general [small large]: a-1",
    );
}

#[test]
fn a_node_that_has_promised_more_than_it_has_takes_nothing() {
    check(
        &format!("{POOL} node n1 pool=general cpu=4 memory=1Gi\n pod old memory=2Gi on=n1\n pod a cpu=1"),
        "new general [small large]: a",
    );
}

#[test]
fn finished_pods_give_their_room_back_only_when_they_are_finished() {
    check(
        &format!("{POOL} node n1 pool=general cpu=2\n pod old cpu=2 on=n1 deleting\n pod a cpu=2"),
        "new general [small large]: a",
    );
}

/// Sheet 02, case 90.
#[test]
fn the_order_in_which_pods_are_named_changes_nothing() {
    check_in_any_order(&format!(
        "{POOL}
         node n1 pool=general
         pod a cpu=1 x4 spread:zone:1:app=a label:app=a
         pod b cpu=2 x3 apart:host:app=b label:app=b
         pod c cpu=500m memory=1Gi x5
         pod d cpu=9"
    ));
}

/// Pods that ask for nothing scarce count as equally large; who was named first went first.
#[test]
fn the_order_in_which_equally_large_pods_are_named_changes_nothing() {
    check_in_any_order(
        "type small cpu=6 memory=3Gi pods=4 zone=a
         pool general
         pod a cpu=0 memory=100Mi label:app=a
         pod b cpu=3100m memory=100Mi x2 label:app=b near:zone:app=a
         pod c cpu=1600m memory=100Mi x4 label:app=a spread:zone:1:app=b
         pod d cpu=0 memory=200Mi x3 label:app=a",
    );
}

#[track_caller]
fn check_in_any_order(text: &str) {
    let fixture = Fixture::read(text);
    let expected = show(&fixture.solve());
    let mut pods = fixture.pods();
    pods.reverse();
    assert_eq!(show(&fixture.solve_pods(pods.clone())), expected);
    for turn in 0..pods.len() {
        pods.rotate_left(1);
        pods.swap(0, turn);
        assert_eq!(show(&fixture.solve_pods(pods.clone())), expected);
    }
}
