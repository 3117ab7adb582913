//! Hosts that were chosen to go while questions are asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use kerf_model::cluster::Pod;
use kerf_model::label;
use kerf_scheduling::{Departure, Prepared, Question, Schedule, Supply};
use proptest::prelude::*;
use proptest::sample::select;

use crate::fixture::{Fixture, show};

fn prepared(fixture: &Fixture) -> Prepared<'_> {
    let supply = Supply { types: &fixture.types, rules: &fixture.rules, options: fixture.options };
    Prepared::new(&fixture.cluster, supply)
}

/// The pods of the node, and those that wait.
fn without(fixture: &Fixture, node: &str) -> Question {
    let pods = fixture.cluster.pods_on(node).cloned().chain(fixture.pods()).collect();
    Question { pods, excluded: [Arc::from(node)].into(), ..Question::default() }
}

/// What becomes of the pods that ran.
fn departure(node: &str, mut found: Schedule) -> Departure {
    let running = |pods: &mut Vec<Arc<Pod>>| pods.retain(|pod| pod.node_name.is_some());
    found.on_existing.iter_mut().for_each(|on| running(&mut on.pods));
    found.new_claims.iter_mut().for_each(|claim| running(&mut claim.pods));
    found.on_existing.retain(|on| !on.pods.is_empty());
    found.new_claims.retain(|claim| !claim.pods.is_empty());
    Departure { hosts: vec![Arc::from(node)], landing: found.on_existing, launched: found.new_claims }
}

#[test]
fn a_pod_that_a_new_node_was_chosen_for_counts_where_that_will_be() {
    let fixture = Fixture::read(
        "type small cpu=2 zone=a,b\npool general
         node n1 pool=general cpu=2 label:zone=a\nnode n2 pool=general cpu=2 label:zone=a
         pod p on=n1 cpu=2 label:app=a spread:zone:1:app=a
         pod q on=n2 cpu=2 label:app=a spread:zone:1:app=a",
    );
    let mut prepared = prepared(&fixture);
    let zone = |schedule: &Schedule| {
        let zone = schedule.new_claims[0].requirements().get(label::ZONE).expect("a spread commits to a zone");
        zone.values().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let first = prepared.solve(&without(&fixture, "n1"));
    assert_eq!(zone(&first), ["b"]);
    assert_eq!(zone(&prepared.solve(&without(&fixture, "n2"))), ["b"]);
    prepared.depart(departure("n1", first));
    assert_eq!(zone(&prepared.solve(&without(&fixture, "n2"))), ["a"]);
}

#[test]
fn a_limit_and_a_reservation_are_not_counted_on_twice() {
    let fixture = Fixture::read(
        "type held cpu=2 kind=reserved slots=1 reservation=r price=1\ntype small cpu=2 price=2
         pool general limit:nodes=2
         node n1 pool=general cpu=2\nnode n2 pool=general cpu=2\npod p on=n1 cpu=2\npod q on=n2 cpu=2",
    );
    let mut prepared = prepared(&fixture);
    let first = prepared.solve(&without(&fixture, "n1"));
    assert_eq!(show(&first), "new general [held]: p\n");
    assert_eq!(show(&prepared.solve(&without(&fixture, "n2"))), "new general [held]: q\n");
    prepared.depart(departure("n1", first));
    assert_eq!(show(&prepared.solve(&without(&fixture, "n2"))), "new general [small]: q\n");
    let fixture = Fixture::read(
        "type small cpu=2\npool general limit:nodes=1\nnode n1 pool=general cpu=2\npod p on=n1 cpu=2\npod new cpu=2",
    );
    let mut prepared = self::prepared(&fixture);
    let alone = Question { pods: fixture.cluster.pods_on("n1").cloned().collect(), ..without(&fixture, "n1") };
    let first = prepared.solve(&alone);
    assert_eq!(show(&first), "new general [small]: p\n");
    prepared.depart(departure("n1", first));
    let waiting = prepared.solve(&Question { pods: fixture.pods(), ..Question::default() });
    assert!(waiting.new_claims.is_empty(), "{}", show(&waiting));
}

/// Six nodes in two zones, and up to three pods on each.
fn nodes() -> impl Strategy<Value = Vec<Vec<(u32, &'static str)>>> {
    let words = select(vec![
        "label:app=a",
        "label:app=b",
        "label:app=a apart:host:app=a",
        "label:app=b apart:host:app=a",
        "label:app=a spread:zone:1:app=a",
        "label:app=b spread:host:1:app=b",
        "label:app=c near:zone:app=c",
        "label:app=c near:host:app=b",
        "label:app=c rather-apart:1:host:app=a",
        "label:app=d select:zone=a",
    ]);
    prop::collection::vec(prop::collection::vec((1_u32..25, words), 0..4), 6)
}

/// As text, with some pods on other nodes, and without the nodes that have gone.
fn world(nodes: &[Vec<(u32, &str)>], moved: &[(String, String)], gone: &[&str]) -> String {
    let mut text = String::from("type small cpu=3 zone=a,b price=1\ntype large cpu=6 zone=a,b price=3\npool general\n");
    for (at, pods) in nodes.iter().enumerate() {
        let (node, zone) = (format!("n{at}"), if at % 2 == 0 { "a" } else { "b" });
        if !gone.contains(&node.as_str()) {
            text.push_str(&format!("node {node} pool=general cpu=6 pods=8 label:zone={zone}\n"));
        }
        for (nth, (cpu, words)) in pods.iter().enumerate() {
            let name = format!("p{at}{nth}");
            let host = moved.iter().find(|(pod, _)| *pod == name).map_or(&node, |(_, host)| host);
            text.push_str(&format!("pod {name} on={host} cpu={cpu}00m {words}\n"));
        }
    }
    text.push_str("pod new cpu=900m label:app=a\n");
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Questions after a departure get the answers that they would get if it had happened, and nobody else could move
    /// to where its pods went.
    #[test]
    fn a_departure_is_as_if_it_had_happened(nodes in nodes()) {
        let fixture = Fixture::read(&world(&nodes, &[], &[]));
        let mut prepared = prepared(&fixture);
        let (mut moved, mut landed, mut gone) = (Vec::new(), BTreeSet::new(), Vec::new());
        for node in ["n0", "n1", "n2"] {
            let found = prepared.solve(&without(&fixture, node));
            let is_running = |pods: &[Arc<Pod>]| pods.iter().any(|pod| pod.node_name.is_some());
            let is_hosted = !found.new_claims.iter().any(|claim| is_running(&claim.pods)) && found.unplaced.is_empty();
            if !is_hosted || landed.contains(node) {
                continue;
            }
            let departure = departure(node, found);
            for on in &departure.landing {
                landed.insert(Arc::clone(on.host.name()));
                moved.extend(on.pods.iter().map(|pod| (pod.meta.name.name.to_string(), on.host.name().to_string())));
            }
            gone.push(node);
            prepared.depart(departure);
            let later = Fixture::read(&world(&nodes, &moved, &gone));
            for other in ["n1", "n2", "n3", "n4", "n5"] {
                if landed.contains(other) || gone.contains(&other) {
                    continue;
                }
                let closed_to_moves = Arc::new(landed.clone());
                let as_it_is = later.answer(&Question { closed_to_moves, ..without(&later, other) });
                prop_assert_eq!(show(&prepared.solve(&without(&fixture, other))), show(&as_it_is), "{}", other);
            }
        }
    }
}
