//! A node more where that is clearly cheaper than one that is half empty.

use kerf_model::label;
use kerf_scheduling::{Aim, Policy, Question};

use crate::fixture::{Fixture, check, claims, show};

const TYPES: &str = "type one cpu=1 memory=4Gi price=1
     type two cpu=2 memory=8Gi price=2
     type four cpu=4 memory=16Gi price=4
     type eight cpu=8 memory=32Gi price=8\n";

const PODS: &str = "pod large cpu=3500m\n pod small cpu=900m\n";

#[test]
fn two_small_nodes_are_launched_instead_of_a_large_one_that_is_half_empty() {
    let world = format!("{TYPES} pool general\n {PODS}");
    check(&world, "new general [four eight]: large\nnew general [one two four eight]: small");
    let mut compatible = Fixture::read(&world);
    compatible.options.policy = Policy::Compatible;
    assert_eq!(show(&compatible.solve()), "new general [eight]: large small\n");
}

#[test]
fn a_node_more_must_save_more_than_a_quarter_of_one() {
    let world = |price| {
        format!(
            "type one cpu=1 price=1\n type four cpu=4 price=4\n type eight cpu=8 price={price}\n pool general\n {PODS}"
        )
    };
    check(&world("6.66"), "new general [eight]: large small");
    check(&world("6.67"), "new general [four eight]: large\nnew general [one four eight]: small");
}

#[test]
fn a_limit_that_leaves_no_room_for_a_node_more_is_kept() {
    let one = "new general [eight]: large small";
    let world = |limits| format!("{TYPES} pool general {limits}\n {PODS}");
    check(&world("limit:nodes=1"), one);
    check(&world("limit:cpu=8"), one);
    check(&world("limit:cpu=15"), one);
    let two = "new general [four eight]: large\nnew general [one two four eight]: small";
    check(&world("limit:nodes=2"), two);
    check(&world("limit:cpu=16"), two);
    check(&format!("{} node n1 pool=general cpu=0", world("limit:nodes=2")), one);
}

/// What is left of limits is shared by all that would like a node more.
#[test]
fn limits_leave_room_for_some_of_the_nodes_that_would_be_cheaper() {
    let apart = "apart:host:app=l label:app=l";
    let world = |nodes| {
        format!(
            "{TYPES} pool general limit:nodes={nodes}\n pod l cpu=3500m x3 {apart}\n pod s cpu=900m x3 apart:host:app=s label:app=s"
        )
    };
    for (nodes, planned) in [(3, 3), (4, 4), (5, 5), (6, 6), (9, 6)] {
        assert_eq!(claims(&world(nodes)).len(), planned, "{nodes}");
    }
}

#[test]
fn a_node_more_is_filled_before_another_is_opened() {
    check(
        &format!("{TYPES} pool general\n pod l cpu=3500m x2 apart:host:app=l label:app=l\n pod s cpu=900m x2"),
        "new general [four eight]: l-0
         new general [four eight]: l-1
         new general [two four eight]: s-0 s-1",
    );
}

#[test]
fn pods_that_avoid_each_other_do_so_on_further_nodes() {
    check(
        &format!(
            "{TYPES} pool general
             pod l cpu=3500m x2 apart:host:app=l label:app=l
             pod s cpu=900m x2 apart:host:app=s label:app=s"
        ),
        "new general [four eight]: l-0
         new general [four eight]: l-1
         new general [one two four eight]: s-0
         new general [one two four eight]: s-1",
    );
}

#[test]
fn a_further_node_comes_up_in_the_zone_of_the_first() {
    let spread = |app: &str| format!("spread:zone:1:app={app} label:app={app}");
    let (large, small) = (spread("l"), spread("s"));
    let planned = claims(&format!("{TYPES} pool general\n pod l cpu=3500m x3 {large}\n pod s cpu=900m x3 {small}"));
    for pods in ["l-", "s-"] {
        let with = planned.iter().filter(|claim| claim.pods.iter().all(|pod| pod.meta.name.name.starts_with(pods)));
        let zones = with.map(|claim| claim.requirements().get(label::ZONE).unwrap().to_string());
        let mut zones: Vec<_> = zones.collect();
        zones.sort();
        let zone = |name| format!("topology.kubernetes.io/zone In [{name}]");
        assert_eq!(zones, ["a", "b", "c"].map(zone), "{pods}");
    }
}

#[test]
fn what_ties_pods_to_a_node_ties_them_still() {
    let together = "new general [eight]: large small";
    let world =
        |large, small| format!("{TYPES} pool general\n pod large cpu=3500m {large}\n pod small cpu=900m {small}");
    check(&world("label:app=l", "near:host:app=l"), together);
    check(&world("port:80", ""), together);
    let reserved = "type held cpu=8 kind=reserved slots=1 price=1\n";
    let planned = claims(&format!("{reserved}{}", world("", "")));
    assert_eq!(planned.len(), 1);
}

/// What room the daemons leave decides, on every node anew.
#[test]
fn daemons_run_on_a_further_node_too() {
    let world = |cpu| format!("{TYPES} pool general\n daemon logs cpu={cpu}\n {PODS}");
    check(&world("100m"), "new general [four eight]: large\nnew general [one two four eight]: small");
    check(&world("600m"), "new general [eight]: large small");
}

#[test]
fn a_node_that_goes_is_not_replaced_by_two_only_because_that_is_cheaper() {
    let fixture = Fixture::read(&format!(
        "{TYPES} pool general
         node n1 pool=general cpu=8 memory=32Gi label:zone=a
         pod large cpu=3500m on=n1
         pod small cpu=900m on=n1"
    ));
    let ask = |aim| {
        let pods = fixture.cluster.pods_on("n1").cloned().collect();
        show(&fixture.answer(&Question { pods, excluded: ["n1".into()].into(), aim, ..Question::default() }))
    };
    assert_eq!(ask(Aim::Replace), "new general [eight]: large small\n");
    assert_eq!(ask(Aim::Plan).lines().count(), 2);
}
