//! Cases 72 and 73: what the hold is for.

use kerf_disruption::{KeepReason, Memory, Method, ObjectionKind, Proposal, View, decide, overtaken, validate};

use crate::fixture::{Fixture, judged, show_proposal};

const CLUSTER: &str = "type small cpu=4 price=0.10
    type large cpu=16 price=0.80
    pool p
    node a pool=p type=large cpu=16
    pod web on=a cpu=3 label:app=web";

fn held(text: &str) -> (Fixture, Proposal) {
    let mut fixture = Fixture::read(text);
    let proposal = fixture.decide().proposals.remove(0);
    fixture.hold(&proposal);
    fixture.now += proposal.hold;
    (fixture, proposal)
}

#[track_caller]
fn check_withdrawn(change: &str, kind: ObjectionKind) {
    let (mut fixture, proposal) = held(CLUSTER);
    fixture.change(change);
    let withdrawn = validate(proposal, &fixture.view()).unwrap_err();
    assert_eq!(withdrawn.objection.kind, kind, "{:?}", withdrawn.objection);
}

#[test]
fn an_unchanged_cluster_approves_what_it_proposed() {
    let (fixture, proposal) = held(CLUSTER);
    let approved = validate(proposal.clone(), &fixture.view()).unwrap();
    assert_eq!(approved.proposal().id, proposal.id);
    assert_eq!(approved.into_proposal().replacements().len(), 1);
}

#[test]
fn case_72_what_comes_up_during_the_hold_stops_a_replacement() {
    check_withdrawn("pod other on=a cpu=1 protected", ObjectionKind::Churn);
    check_withdrawn("pdb web allowed=0 select:app=web", ObjectionKind::Churn);
    check_withdrawn("node a pool=p type=large cpu=16 nominated", ObjectionKind::Churn);
    check_withdrawn("node a pool=p type=large cpu=16 deleting", ObjectionKind::Churn);
    check_withdrawn("pool p budget=0", ObjectionKind::Budget);
    check_withdrawn("pod more on=a cpu=8", ObjectionKind::Scheduling);
    check_withdrawn("node b pool=p cpu=4", ObjectionKind::Scheduling);
    check_withdrawn("window w action=Consolidation", ObjectionKind::Window);
    // What was to be launched is not offered any more.
    let (mut fixture, proposal) = held(CLUSTER);
    let without = CLUSTER.replace("type small cpu=4 price=0.10", "type other cpu=4 price=0.10");
    fixture.types = Fixture::read(&without).types;
    let withdrawn = validate(proposal, &fixture.view()).unwrap_err();
    assert_eq!(withdrawn.objection.kind, ObjectionKind::Scheduling);
}

/// It went ahead with what was cheapest when it was proposed.
#[test]
fn a_proposal_that_has_waited_is_carried_out_as_it_would_be_decided_now() {
    let (mut fixture, proposal) = held(CLUSTER);
    assert_eq!(show_proposal(&proposal), "single_node_consolidation replace a -> small");
    fixture.types = Fixture::read(&format!("type tiny cpu=4 price=0.04\n{CLUSTER}")).types;
    let approved = validate(proposal.clone(), &fixture.view()).unwrap();
    assert_eq!(show_proposal(approved.proposal()), "single_node_consolidation replace a -> tiny,small");
    assert_eq!(approved.proposal().savings.unwrap().to_string(), "0.76");
    assert_eq!(approved.proposal().id, proposal.id);
}

/// The round of this moment would take both nodes at once and save more for it. Still the one that has waited goes: the
/// next round finds what is left to do, and nobody waits for ever.
#[test]
fn a_better_move_that_needs_other_nodes_does_not_stop_one_that_has_waited() {
    let (mut fixture, proposal) = held(
        "type small cpu=4 price=0.10
         type large cpu=12 price=0.15
         type huge cpu=16 price=0.80
         pool p
         node a pool=p type=huge cpu=8
         pod x on=a cpu=4",
    );
    fixture.change("node b pool=p type=huge cpu=8\npod y on=b cpu=8");
    let anew = decide(&View { memory: &Memory::default(), ..fixture.view() });
    assert_eq!(anew.proposals[0].candidates.len(), 2, "both together");
    let approved = validate(proposal, &fixture.view()).unwrap();
    assert_eq!(approved.proposal().claims().map(ToString::to_string).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn case_73_a_set_that_is_withdrawn_leaves_its_nodes_to_the_next_round() {
    let (mut fixture, proposal) = held(
        "type small cpu=4 price=0.10
         pool p
         node a pool=p cpu=4
         pod x on=a cpu=1
         node b pool=p cpu=4
         pod y on=b cpu=1
         node c pool=p cpu=4
         pod z on=c cpu=1",
    );
    assert_eq!(proposal.candidates.len(), 2);
    // One of the two gets a protected pod: it stays, and the other still goes.
    fixture.change("pod late on=a cpu=1 protected");
    let approved = validate(proposal, &fixture.view()).unwrap();
    assert_eq!(approved.proposal().claims().map(ToString::to_string).collect::<Vec<_>>(), ["b"]);

    // A replacement of several falls as a whole, and the next look takes what is left alone.
    let (mut fixture, proposal) = held(
        "type small cpu=4 price=0.10
         type large cpu=16 price=0.15
         type huge cpu=16 price=0.80
         pool p
         node a pool=p type=huge cpu=8
         pod x on=a cpu=8
         node b pool=p type=huge cpu=4
         pod y on=b cpu=4",
    );
    assert_eq!((proposal.method, proposal.candidates.len()), (Method::MultiNode, 2));
    fixture.change("pod late on=a cpu=1 protected");
    let withdrawn = validate(proposal, &fixture.view()).unwrap_err();
    assert_eq!(withdrawn.objection.kind, ObjectionKind::Churn);
    fixture.memory.held.clear();
    assert_eq!(judged(&fixture.decide(), "b"), "b go single_node_consolidation");
}

/// A process that takes a command up asks for what may have changed since, and not whether it would choose the node again.
#[test]
fn what_another_process_chose_is_held_back_by_gates_windows_and_budgets_that_allow_nothing() {
    let check = |method, change: &str, expected: Option<&str>| {
        let mut fixture = Fixture::read(
            "type large cpu=16 price=0.80
             pool p
             node a pool=p type=large cpu=16 unsettled
             node b pool=p type=large cpu=16 unready",
        );
        fixture.change(change);
        let reasons = overtaken(&["a".into()], method, &fixture.view());
        assert_eq!(reasons.get("a").map(KeepReason::label), expected, "{method:?} {change}");
    };
    for method in Method::ALL {
        check(method, "", None);
        check(method, "pool p budget=1", None);
        check(method, "pool p budget=0", Some("budget_spent"));
    }
    check(Method::Emptiness, "pod w on=a cpu=1", Some("not_settled"));
    check(Method::SingleNode, "pod w on=a cpu=1", None);
    check(Method::Drift, "pod w on=a cpu=1 protected", Some("protected_pod"));
    check(Method::Repair, "pod w on=a cpu=1 protected", None);
    check(Method::MultiNode, "pdb w allowed=0 select:app=w\npod w on=a cpu=1 label:app=w", Some("pdb_blocks"));
    check(Method::Emptiness, "pool p after=Never", Some("consolidation_disabled"));
    check(Method::Drift, "pool p after=Never", None);
    check(Method::Drift, "window w action=Drift", Some("maintenance_window"));
    check(Method::Emptiness, "window w action=Drift", None);
    check(Method::Emptiness, "window w action=Consolidation", Some("maintenance_window"));
}
