use crate::fixture::check;

const WORLD: &str = "type small cpu=2 memory=2Gi\npool general\n";

/// Sheet 02, case 10.
#[test]
fn a_pod_that_asks_for_a_label_of_the_node_itself_is_not_tried() {
    check(
        &format!(
            "{WORLD}
             pod pinned cpu=1 select:host=n1
             pod private cpu=1 select:karpenter.sh/x=y
             pod fine cpu=1 select:zone=a"
        ),
        "new general [small]: fine
         none pinned: invalid_pod
         none private: invalid_pod",
    );
}

/// Sheet 02, case 11.
#[test]
fn a_pod_that_wants_no_node_of_ours_is_left_alone_silently() {
    check(&format!("{WORLD} pod out cpu=1 require:!pool"), "none out: opted_out");
}

/// Sheet 02, case 12.
#[test]
fn daemons_mirrors_and_preempting_pods_need_no_node() {
    check(
        &format!(
            "{WORLD}
             pod daemon cpu=1 owner=DaemonSet
             pod mirror cpu=1 owner=Node
             pod preempting cpu=1 nominated=n1"
        ),
        "",
    );
}

/// Sheet 02, case 40.
#[test]
fn pods_of_a_leaving_node_get_a_place_before_they_are_evicted() {
    check(
        &format!(
            "{WORLD}
             node old pool=general deleting
             pod web cpu=1 on=old
             pod agent cpu=1 on=old owner=DaemonSet
             pod gone cpu=1 on=old owner=ReplicaSet deleting
             pod db cpu=1 on=old owner=StatefulSet deleting
             pod kept cpu=1 on=old protected"
        ),
        "new general [small]: db web",
    );
}

/// Sheet 02, case 40.
#[test]
fn pods_whose_budget_never_lets_them_go_stay_where_they_are() {
    let world = format!("{WORLD} node old pool=general deleting\n pod web cpu=1 on=old\n");
    check(&format!("{world} budget all allowed=0 never"), "");
    check(&format!("{world} budget all allowed=1"), "new general [small]: web");
    check(&format!("{world} budget all allowed=1\n budget same allowed=1"), "");
}

/// A drain evicts one after the other: places that were planned only for those who may go now made a node for each.
#[test]
fn pods_whose_budget_is_spent_for_now_get_their_place_with_the_others() {
    check(
        &format!("{WORLD} node old pool=general deleting\n pod web cpu=100m x3 on=old\n budget all allowed=0"),
        "new general [small]: web-0 web-1 web-2",
    );
}

/// Sheet 03, case 90: a pool that gives up no nodes still gets new ones, and one that is disabled gets none.
#[test]
fn a_pool_without_deprovisioning_is_launched_from_and_a_disabled_one_is_not() {
    check("type small\npool p no-deprovisioning\npod a cpu=1", "new p [small]: a");
    check("type small\npool p disabled\npod a cpu=1", "none a: no_pools");
    check("type small\npool p disabled weight=10\npool q\npod a cpu=1", "new q [small]: a");
}

/// Sheet 02, case 94.
#[test]
fn a_pod_that_asks_for_devices_is_refused_and_not_guessed_at() {
    check(&format!("{WORLD} pod gpu cpu=1 devices"), "none gpu: not_supported_yet");
}

#[test]
fn without_a_usable_pool_pods_still_go_to_nodes_that_have_room() {
    check(
        "type small
         pool off disabled
         pool fixed static
         pool broken notready
         node n1 pool=off cpu=2
         pod a cpu=2
         pod b cpu=2",
        "node n1: a
         none b: no_pools",
    );
}
