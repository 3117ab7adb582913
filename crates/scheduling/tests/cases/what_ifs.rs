use std::collections::BTreeSet;
use std::sync::Arc;

use kerf_scheduling::{Aim, Prepared, Question, Supply};

use crate::fixture::{Fixture, show};

const WORLD: &str = "type small cpu=2 memory=4Gi
    pool general
    node n1 pool=general cpu=4
    node n2 pool=general cpu=4
    node n3 pool=general cpu=4
    pod a on=n1 cpu=1 label:app=a apart:host:app=a
    pod b on=n2 cpu=1 label:app=a apart:host:app=a
    pod c on=n1 cpu=500m
    pod new cpu=100m";

fn names(names: &[&str]) -> BTreeSet<Arc<str>> {
    names.iter().map(|name| Arc::from(*name)).collect()
}

fn without(fixture: &Fixture, node: &str) -> Question {
    let pods = fixture.cluster.pods_on(node).cloned().collect();
    Question { pods, excluded: names(&[node]), ..Question::default() }
}

#[test]
fn pods_of_a_node_that_would_go_find_room_elsewhere() {
    let fixture = Fixture::read(WORLD);
    assert_eq!(show(&fixture.answer(&without(&fixture, "n1"))), "node n2: c\nnode n3: a\n");
    assert_eq!(show(&fixture.answer(&without(&fixture, "n2"))), "node n3: b\n");
}

/// What-ifs do not see each other, whatever their order and whoever asks.
#[test]
fn many_threads_get_the_answers_that_one_gets() {
    let fixture = Fixture::read(WORLD);
    let supply = Supply { types: &fixture.types, rules: &fixture.rules, options: fixture.options };
    let prepared = Prepared::new(&fixture.cluster, supply);
    let nodes = ["n1", "n2", "n3"];
    let expected: Vec<_> = nodes.iter().map(|node| show(&fixture.answer(&without(&fixture, node)))).collect();
    std::thread::scope(|scope| {
        for turn in 0..6 {
            let (prepared, expected, fixture) = (&prepared, &expected, &fixture);
            scope.spawn(move || {
                for at in (0..30).map(|step| (step + turn) % 3) {
                    assert_eq!(show(&prepared.solve(&without(fixture, nodes[at]))), expected[at]);
                }
            });
        }
    });
}

/// Sheet 02 §9.
#[test]
fn a_node_that_is_closed_to_moves_takes_what_has_no_place_anyway() {
    let fixture = Fixture::read(WORLD);
    let mut question = without(&fixture, "n1");
    question.pods.extend(fixture.pods());
    question.closed_to_moves = Arc::new(names(&["n2", "n3"]));
    let shown = show(&fixture.answer(&question));
    assert!(shown.starts_with("node n2: new\nnew general"), "{shown}");
    question.from_leaving = Arc::new(question.pods.iter().map(|pod| Arc::clone(&pod.meta.uid)).collect());
    assert_eq!(show(&fixture.answer(&question)), "node n2: c new\nnode n3: a\n");
}

#[test]
fn a_pod_that_the_cluster_does_not_have_can_be_asked_about() {
    let fixture = Fixture::read(WORLD);
    let other = Fixture::read("pod d cpu=1 x2 label:app=d example.com/gpu=0 spread:host:1:app=d");
    let question = Question { pods: other.pods(), ..Question::default() };
    assert_eq!(show(&fixture.answer(&question)), "node n1: d-0\nnode n2: d-1\n");
}

/// Whoever only wants to know whether pods fit gets nothing launched for them, and an answer at the first that does not.
#[test]
fn a_question_about_fitting_launches_nothing_and_ends_at_the_first_pod_without_a_place() {
    let fixture = Fixture::read(
        "type small cpu=2 memory=4Gi\npool general
         node n1 pool=general cpu=4\nnode n2 pool=general cpu=1
         pod big on=n1 cpu=2\npod little on=n1 cpu=1\npod new cpu=1500m",
    );
    let fits = |node: &str| Question { aim: Aim::Fit, ..without(&fixture, node) };
    let found = fixture.answer(&fits("n1"));
    assert!(found.new_claims.is_empty() && found.on_existing.is_empty(), "{}", show(&found));
    assert_eq!(found.unplaced.iter().map(|(pod, _)| &*pod.meta.name.name).collect::<Vec<_>>(), ["big"]);
    // A pod that waits for a place anyway gets one, also where something must be launched for it.
    let pods = fixture
        .pods()
        .into_iter()
        .chain(fixture.cluster.pods_on("n1").filter(|pod| pod.meta.name.name.starts_with('l')).cloned());
    let found = fixture.answer(&Question { pods: pods.collect(), ..fits("n1") });
    assert_eq!(show(&found), "node n2: little\nnew general [small]: new\n");
}

/// Rules that only pods have that stay where they are make no difference to the pods asked about. Found by the property
/// tests.
#[test]
fn rules_of_pods_that_nobody_asks_about_do_not_hold_back_a_cheaper_answer() {
    let text = "type large cpu=5 pods=2 price=4 zone=a\ntype small cpu=3 pods=2 price=1 zone=a\npool general
        node n1 cpu=1 pods=1
        pod stays label:app=a near:zone:app=a on=n1
        pod big cpu=1600m x2 label:app=a\npod little cpu=0 label:app=a";
    let fixture = Fixture::read(text);
    let supply = Supply { types: &fixture.types, rules: &fixture.rules, options: fixture.options };
    let question = Question { pods: fixture.pods(), ..Question::default() };
    let among_all = show(&Prepared::new(&fixture.cluster, supply).solve(&question));
    assert_eq!(among_all, show(&fixture.solve()));
    assert_eq!(among_all, "new general [small large]: big-0 little\nnew general [small large]: big-1\n");
}
