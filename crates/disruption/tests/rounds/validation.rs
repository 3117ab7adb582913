//! Cases 72 and 73: what the hold is for.

use kerf_disruption::{ObjectionKind, Proposal, validate};

use crate::fixture::Fixture;

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
}
