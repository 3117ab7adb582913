//! Cases 25 to 32.

use crate::fixture::{Fixture, check, check_nodes, show};
use kerf_disruption::{ObjectionKind, validate};

#[test]
fn case_25_all_empty_nodes_go_in_one_command_without_a_what_if() {
    let round = check(
        "type small price=0.10
         pool general
         node a pool=general
         node b pool=general",
        "emptiness delete a b",
    );
    assert_eq!(round.work.what_ifs, 0);
    assert_eq!(round.proposals[0].savings.unwrap().to_string(), "0.20");
    assert_eq!(round.proposals[0].hold.as_secs(), 15);
}

#[test]
fn case_26_the_budget_of_each_pool_limits_how_many_go() {
    let nodes =
        |pool: &str, from: u32| -> String { (from..from + 10).map(|at| format!("node n{at} pool={pool}\n")).collect() };
    let go = |text: &str| {
        let round = Fixture::read(text).decide();
        round.proposals.iter().map(|proposal| proposal.candidates.len()).sum::<usize>()
    };
    assert_eq!(go(&format!("type small\npool p budget=3\n{}", nodes("p", 10))), 3);
    assert_eq!(go(&format!("type small\npool p budget=0%\n{}", nodes("p", 10))), 0);
    let two = format!("type small\npool p budget=2\npool q budget=2\n{}{}", nodes("p", 10), nodes("q", 30));
    assert_eq!(go(&two), 4);
    check_nodes("type small\npool p budget=0%\nnode a pool=p", "a budget_spent");
}

#[test]
fn case_27_daemons_and_terminating_pods_leave_a_node_empty_and_a_stateful_one_does_not() {
    check(
        "type small
         pool general
         node a pool=general
         pod log on=a cpu=1 owner=DaemonSet
         node b pool=general
         pod web on=b cpu=1 owner=ReplicaSet deleting",
        "emptiness delete a b",
    );
    check(
        "type small
         pool general
         node a pool=general
         pod db on=a cpu=1 owner=StatefulSet deleting",
        "a no_cheaper",
    );
}

#[test]
fn case_28_only_settled_nodes_of_pools_that_consolidate_go() {
    check(
        "type small
         pool general after=5m
         pool never after=Never
         pool off no-consolidation
         node a pool=general pod-event=2m
         node b pool=general unsettled
         node b2 pool=general consolidatable=False
         node c pool=never
         node d pool=off",
        "a not_settled
         b not_settled
         b2 not_settled
         c consolidation_disabled
         d consolidation_disabled",
    );
    let round = Fixture::read("type small\npool p after=Never\nnode a pool=p").decide();
    let names: Vec<_> = round.events.iter().map(|event| event.reason).collect();
    assert_eq!(names, ["Unconsolidatable", "Unconsolidatable"], "on the node and on its claim");
}

#[test]
fn case_30_a_node_that_gets_a_pod_during_the_hold_is_dropped_and_the_others_go() {
    let mut fixture = Fixture::read("type small\npool p\nnode a pool=p\nnode b pool=p");
    let proposal = fixture.decide().proposals.remove(0);
    fixture.hold(&proposal);
    fixture.change("pod web on=a cpu=1");
    let approved = validate(proposal.clone(), &fixture.view()).unwrap();
    let left: Vec<_> = approved.proposal().claims().map(ToString::to_string).collect();
    assert_eq!(left, ["b"]);
    let dropped: Vec<_> = approved.dropped().iter().map(|objection| objection.kind).collect();
    assert_eq!(dropped, [ObjectionKind::Churn]);
    fixture.change("pod db on=b cpu=1");
    let withdrawn = validate(proposal, &fixture.view()).unwrap_err();
    assert_eq!(withdrawn.objection.kind, ObjectionKind::Churn);
    assert_eq!(withdrawn.proposal.candidates.len(), 2, "as many as the counter is told");
}

#[test]
fn while_held_a_proposal_is_not_made_again() {
    let mut fixture = Fixture::read("type small\npool p\nnode a pool=p");
    let proposal = fixture.decide().proposals.remove(0);
    fixture.hold(&proposal);
    let round = fixture.decide();
    assert_eq!(show(&round), "a go\n");
    assert_eq!(round.wake, Some(fixture.now + proposal.hold));
}

#[test]
fn case_31_a_node_that_a_pending_pod_waits_for_stays() {
    check("type small\npool p\nnode a pool=p nominated", "a nominated");
}

#[test]
fn case_32_pods_that_cost_nothing_must_still_fit_elsewhere() {
    check(
        "type small cpu=4
         pool p
         node a pool=p cpu=4
         pod cheap on=a cpu=3 priority=-33554432
         node b pool=p cpu=4
         pod busy on=b cpu=2 annotation:do-not-disrupt=x protected",
        "a too_many_replacements
         b protected_pod",
    );
    check(
        "type small cpu=4
         pool p
         node a pool=p cpu=4
         pod cheap on=a cpu=1 priority=-33554432
         node b pool=p cpu=4
         pod busy on=b cpu=2 protected",
        "emptiness delete a
         b protected_pod",
    );
}

/// The node whose pods cost nothing counted twice, so that the next one stayed although there was room in the budget.
#[test]
fn a_node_whose_pods_cost_nothing_takes_one_of_the_budget() {
    check(
        "type small cpu=4
         pool p budget=2
         node a pool=p cpu=4
         pod busy on=a cpu=1 protected
         node b pool=p cpu=4
         pod cheap on=b cpu=1 priority=-33554432
         node c pool=p cpu=4
         pod low on=c cpu=1 priority=-33554432
         node d pool=p cpu=4
         pod last on=d cpu=1 priority=-33554432",
        "emptiness delete b
         emptiness delete c
         a protected_pod
         d budget_spent",
    );
}

/// It was emptied onto a node that the same round deleted as empty.
#[test]
fn pods_that_cost_nothing_do_not_move_to_an_empty_node_that_goes_too() {
    check(
        "type small cpu=4
         pool p
         node a pool=p cpu=4
         pod cheap on=a cpu=3 priority=-33554432
         node b pool=p cpu=4",
        "emptiness delete b
         a too_many_replacements",
    );
}
