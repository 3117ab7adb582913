//! Cases 52, 53 and 55, and terminate-first (sheet 08 D9).

use std::sync::Arc;

use jiff::SignedDuration;
use kerf_disruption::{Action, Round};
use kerf_model::cloud::Repair;
use kerf_model::effect::EventKind;

use crate::fixture::{Fixture, check, check_nodes, judged, show_proposal, told};

fn drifted(pool: &str, count: usize) -> String {
    let nodes: String = (0..count).map(|at| format!("node n{at} pool=s drifted\n")).collect();
    format!("type small\npool s replicas=5 {pool}\n{nodes}")
}

fn started(text: &str) -> usize {
    Fixture::read(text).decide().proposals.len()
}

#[test]
fn case_52_replacements_stay_within_the_limit_on_nodes() {
    assert_eq!(started(&drifted("limit:nodes=5", 5)), 0);
    assert_eq!(started(&drifted("limit:nodes=7", 5)), 2);
    assert_eq!(started(&drifted("budget=3", 5)), 3);
    check_nodes(&drifted("limit:nodes=5", 5), "n0 static_at_limit");
    let round = Fixture::read(&drifted("limit:nodes=6", 5)).decide();
    assert_eq!(show_proposal(&round.proposals[0]), "static_drift replace n0 -> small");
    assert!(round.proposals[0].replacements()[0].pods.is_empty());
    // The next pass has what the first has started beside it: two of seven places are taken by what is coming.
    let under_way = drifted("limit:nodes=7", 5)
        .replace("n0 pool=s drifted", "n0 pool=s drifted under-way=r0")
        .replace("n1 pool=s drifted", "n1 pool=s drifted under-way=r1");
    assert_eq!(started(&under_way), 0);
}

/// As every claim of a dynamic pool: without the label it would not meet the requirement, and drift again.
#[test]
fn a_replacement_carries_a_value_for_every_label_that_the_pool_requires() {
    let text = "type small\npool s replicas=1 require:tier=gold,silver require:rack\nnode a pool=s drifted";
    let round = Fixture::read(text).decide();
    let labels = &round.proposals[0].replacements()[0].labels;
    let value = |key: &str| labels.get(key).map(|value| &**value);
    assert_eq!((value("tier"), value("rack")), (Some("gold"), Some("0")));
}

#[test]
fn case_53_a_pool_that_is_too_large_shrinks_first() {
    check_nodes(
        "type small\npool s replicas=1\nnode a pool=s drifted\nnode b pool=s",
        "a static_scales_down\nb static_pool",
    );
    // What goes does not run any more, and then it is replaced.
    check_nodes("type small\npool s replicas=1\nnode a pool=s drifted\nnode b pool=s deleting", "a go static_drift");
}

#[test]
fn case_55_nodes_of_static_pools_are_never_consolidated() {
    check(
        "type small cpu=4
         pool s replicas=2
         node a pool=s
         node b pool=s cpu=4
         pod web on=b cpu=1",
        "a static_pool\nb static_pool",
    );
}

#[test]
fn a_static_pool_at_its_limit_lets_go_first_if_it_may() {
    let text = "type small\npool s replicas=2 limit:nodes=2\nnode a pool=s drifted\nnode b pool=s";
    check(text, "a static_at_limit\nb static_pool");
    let round = Fixture::read(text).decide();
    assert!(round.events.iter().any(|event| event.reason == "DisruptionBlocked"), "told also with the gate off");
    let round = check(&format!("settings terminate-first\n{text}"), "static_drift terminate-first a\nb static_pool");
    assert_eq!(why(&round), "static-at-limit");
    // A pool that cannot refill keeps its node.
    for broken in ["notready", "deleting"] {
        let text = text.replace("limit:nodes=2", &format!("limit:nodes=2 {broken}"));
        check(&format!("settings terminate-first\n{text}"), "a static_at_limit\nb static_pool");
    }
}

/// The metric label of the first proposal.
fn why(round: &Round) -> &'static str {
    match &round.proposals[0].action {
        Action::TerminateFirst(why) => why.label(),
        other => panic!("{}", other.label()),
    }
}

#[test]
fn a_node_that_holds_the_last_reserved_slot_goes_first_if_it_may() {
    let text = "type small cpu=4 kind=reserved zone=a slots=0
         pool p no-consolidation
         node a pool=p cpu=4 kind=reserved drifted
         pod web on=a cpu=3";
    let round = check(text, "a pods_have_no_place");
    assert!(round.events.iter().any(|event| event.reason == "DisruptionBlocked"));
    let round = check(&format!("settings terminate-first\n{text}"), "drift terminate-first a");
    assert_eq!(why(&round), "no-reserved-capacity");
    // Its slot would not be enough, is no slot, or is not offered any more.
    for (old, new) in
        [("cpu=3", "cpu=5"), ("cpu=4 kind=reserved drifted", "cpu=4 drifted"), ("slots=0", "slots=0 soldout")]
    {
        check(&format!("settings terminate-first\n{}", text.replace(old, new)), "a pods_have_no_place");
    }
}

/// Sheet 08 D9: each method has its own gate.
#[test]
fn the_gate_of_one_method_lets_the_other_not_go_first() {
    let others = "node o1 pool=s\nnode o2 pool=s\nnode o3 pool=s\nnode o4 pool=s";
    let text = |words: &str| {
        format!("settings repair\ntype small\npool s replicas=5 limit:nodes=5\n{others}\nnode a pool=s {words}")
    };
    for (words, by_drift, by_repair) in [
        ("drifted", "a go static_drift", "a static_at_limit"),
        ("sick:Ready=False/Kubelet/20m", "a static_at_limit", "a go repair"),
    ] {
        let mut fixture = Fixture::read(&text(words));
        fixture.settings.gates.terminate_first_drift = true;
        assert_eq!(judged(&fixture.decide(), "a"), by_drift);
        fixture.settings.gates.terminate_first_drift = false;
        fixture.settings.gates.terminate_first_repair = true;
        assert_eq!(judged(&fixture.decide(), "a"), by_repair);
    }
}

/// Sheet 08 D9 (c): a static pool that can only be launched from reservations that are full.
#[test]
fn a_static_pool_of_full_reservations_lets_go_first_if_it_may() {
    let text = "type small cpu=4 kind=reserved zone=a slots=0
         pool s replicas=2
         node a pool=s kind=reserved drifted
         node b pool=s kind=reserved";
    let round = check(text, "a no_instance_types\nb static_pool");
    let blocked = [(EventKind::Node, "DisruptionBlocked"), (EventKind::NodeClaim, "DisruptionBlocked")];
    assert_eq!(told(&round, "a"), blocked);
    let round = check(&format!("settings terminate-first\n{text}"), "static_drift terminate-first a\nb static_pool");
    assert_eq!(why(&round), "no-reserved-capacity");
    // With a slot to spare it is replaced first.
    let spare = text.replace("slots=0", "slots=1");
    check(&format!("settings terminate-first\n{spare}"), "static_drift replace a -> small\nb static_pool");
    // A pool that cannot refill keeps its node.
    let broken = text.replace("replicas=2", "replicas=2 notready");
    check(&format!("settings terminate-first\n{broken}"), "a no_instance_types\nb static_pool");
    // The node holds none of the slots, or one that is not offered any more: nothing comes free when it goes.
    for (old, new) in [("kind=reserved drifted", "drifted"), ("slots=0", "slots=0 soldout")] {
        let text = format!("settings terminate-first\n{}", text.replace(old, new));
        check(&text, "a no_instance_types\nb static_pool");
    }
}

/// Sheet 08 D9: the same for repair, behind its own gate.
#[test]
fn repair_lets_go_first_if_it_may() {
    let others = "node o1 pool=s\nnode o2 pool=s\nnode o3 pool=s\nnode o4 pool=s";
    let sick = "sick:Ready=False/Kubelet/20m";
    let at_limit = format!("type small\npool s replicas=5 limit:nodes=5\n{others}\nnode a pool=s {sick}");
    check_nodes(&format!("settings repair\n{at_limit}"), "a static_at_limit");
    let round = Fixture::read(&format!("settings repair terminate-first\n{at_limit}")).decide();
    assert_eq!(round.proposals[0].action.label(), "terminate-first");
    // It was not bounded: a pod that may not be evicted would have kept it.
    let panicked = at_limit.replace(sick, "sick:Kernel=True/Panic/20m");
    let round = Fixture::read(&format!("settings repair terminate-first\n{panicked}")).decide();
    let repair = Repair { condition: Arc::from("Kernel"), bound: Some(SignedDuration::ZERO) };
    assert_eq!(round.proposals[0].candidates[0].repair, Some(repair));

    let reserved = others.replace("pool=s", "pool=s kind=reserved");
    let full = format!(
        "type small cpu=4 kind=reserved zone=a slots=0\npool s replicas=5\n{reserved}\nnode a pool=s kind=reserved {sick}"
    );
    check_nodes(&format!("settings repair\n{full}"), "a no_instance_types");
    let round = Fixture::read(&format!("settings repair terminate-first\n{full}")).decide();
    assert_eq!(round.proposals[0].action.label(), "terminate-first");

    // D9 (a): of a dynamic pool, where the slot that it holds is the only place for its pods.
    let dynamic = format!(
        "type small cpu=4 kind=reserved zone=a slots=0\npool s after=Never\n{reserved}\nnode a pool=s cpu=4 kind=reserved {sick}
         pod web on=a cpu=4\n{}",
        (1..5).map(|at| format!("pod o{at} on=o{at} cpu=4\n")).collect::<String>()
    );
    check_nodes(&format!("settings repair\n{dynamic}"), "a pods_have_no_place");
    let round = Fixture::read(&format!("settings repair terminate-first\n{dynamic}")).decide();
    assert_eq!(why(&round), "no-reserved-capacity");
}

/// Sheet 03 §15.2: a pool that is switched off launches nothing, whatever it is for; where others may launch, they do.
#[test]
fn the_sick_node_of_a_pool_that_is_switched_off_was_replaced_from_that_pool() {
    let others = "node o1 pool=s\nnode o2 pool=s\nnode o3 pool=s\nnode o4 pool=s";
    let text = |pool: &str| {
        format!(
            "settings repair terminate-first\ntype small cpu=4\npool s disabled {pool}\n{others}\nnode a pool=s cpu=4 sick:Ready=False/Kubelet/20m\n"
        )
    };
    check_nodes(&text("replicas=5"), "a pool_disabled");
    check_nodes(&text("replicas=5 limit:nodes=5"), "a pool_disabled");
    let busy: String = (1..5).map(|at| format!("pod o{at} on=o{at} cpu=4\n")).collect();
    check_nodes(&format!("{}pod web on=a cpu=4\n{busy}", text("")), "a pods_have_no_place");
    let round = Fixture::read(&format!("{}pool q\npod web on=a cpu=4\n{busy}", text(""))).decide();
    assert_eq!(&*round.proposals[0].replacements()[0].pool, "q");
    // Without pods, or if it only boots again, nothing is launched.
    check_nodes(&text(""), "a go repair");
    check_nodes(&text("replicas=5").replace("Ready=False/Kubelet", "GPU=False/Xid"), "a go repair");
}
