//! Nodes more where they are clearly cheaper than ones that are half empty.

use std::collections::BTreeMap;

use kerf_model::label;
use kerf_scheduling::{Aim, PlannedClaim, Policy, Question};

use crate::fixture::{Fixture, claims};

const TYPES: &str = "type one cpu=1 memory=4Gi price=1
     type two cpu=2 memory=8Gi price=2
     type four cpu=4 memory=16Gi price=4
     type eight cpu=8 memory=32Gi price=8\n";

/// So many of both, none on a host with its like.
fn pods(count: usize) -> String {
    format!(
        "pod l cpu=3500m x{count} apart:host:app=l label:app=l
         pod s cpu=900m x{count} apart:host:app=s label:app=s\n"
    )
}

/// How many nodes of which smallest type, with how many pods each.
fn sizes(planned: &[PlannedClaim]) -> String {
    let mut sizes: BTreeMap<(String, usize), usize> = BTreeMap::new();
    for claim in planned {
        let cheapest = claim.options.first().unwrap().instance_type.to_string();
        *sizes.entry((cheapest, claim.pods.len())).or_default() += 1;
    }
    let texts: Vec<_> = sizes.iter().map(|((size, pods), count)| format!("{count} {size} with {pods}")).collect();
    texts.join(", ")
}

#[track_caller]
fn check(world: &str, expected: &str) {
    assert_eq!(sizes(&claims(world)), expected, "{world}");
}

const TOGETHER: &str = "10 eight with 2";
const APART: &str = "10 four with 1, 10 one with 1";

#[test]
fn two_small_nodes_are_launched_instead_of_a_large_one_that_is_half_empty() {
    let world = format!("{TYPES} pool general\n {}", pods(10));
    check(&world, APART);
    let mut compatible = Fixture::read(&world);
    compatible.options.policy = Policy::Compatible;
    assert_eq!(sizes(&compatible.solve().new_claims), TOGETHER);
}

/// A handful of pods came up on twice as many nodes.
#[test]
fn a_small_workload_stays_on_few_nodes() {
    check(&format!("{TYPES} pool general\n pod large cpu=3500m\n pod small cpu=900m"), "1 eight with 2");
    check(&format!("{TYPES} pool general\n {}", pods(9)), "9 eight with 2");
}

#[test]
fn a_node_more_must_save_more_than_a_quarter_of_one() {
    let world = |price| {
        format!(
            "type one cpu=1 price=1\n type four cpu=4 price=4\n type eight cpu=8 price={price}\n pool general\n {}",
            pods(10)
        )
    };
    check(&world("6.66"), TOGETHER);
    check(&world("6.67"), APART);
}

#[test]
fn a_limit_that_leaves_no_room_for_a_node_more_is_kept() {
    let world = |limits| format!("{TYPES} pool general {limits}\n {}", pods(10));
    check(&world("limit:nodes=10"), TOGETHER);
    check(&world("limit:cpu=80"), TOGETHER);
    check(&world("limit:cpu=87"), TOGETHER);
    check(&world("limit:nodes=20"), APART);
    check(&world("limit:cpu=160"), APART);
}

/// What is left of limits is shared by all that would like a node more.
#[test]
fn limits_leave_room_for_some_of_the_nodes_that_would_be_cheaper() {
    for (nodes, planned) in [(10, 10), (11, 11), (15, 15), (20, 20), (30, 20)] {
        let world = format!("{TYPES} pool general limit:nodes={nodes}\n {}", pods(10));
        assert_eq!(claims(&world).len(), planned, "{nodes}");
    }
}

#[test]
fn a_node_more_is_filled_before_another_is_opened() {
    let large = "pod l cpu=3500m x10 apart:host:app=l label:app=l";
    check(&format!("{TYPES} pool general\n {large}\n pod s cpu=900m x2"), "10 four with 1, 1 two with 2");
}

#[test]
fn a_further_node_comes_up_in_the_zone_of_the_first() {
    let spread = |app: &str| format!("spread:zone:1:app={app} apart:host:app={app} label:app={app}");
    let (large, small) = (spread("l"), spread("s"));
    let world = format!("{TYPES} pool general\n pod l cpu=3500m x30 {large}\n pod s cpu=900m x30 {small}");
    let planned = claims(&world);
    assert_eq!(sizes(&planned), "30 four with 1, 30 one with 1");
    for pods in ["l-", "s-"] {
        let with = planned.iter().filter(|claim| claim.pods.iter().all(|pod| pod.meta.name.name.starts_with(pods)));
        let mut zones: BTreeMap<String, usize> = BTreeMap::new();
        with.for_each(|claim| {
            *zones.entry(claim.requirements().get(label::ZONE).unwrap().to_string()).or_default() += 1;
        });
        let expected = ["a", "b", "c"].map(|name| (format!("topology.kubernetes.io/zone In [{name}]"), 10));
        assert_eq!(zones, expected.into(), "{pods}");
    }
}

/// What room the daemons leave decides, on every node anew.
#[test]
fn daemons_run_on_a_further_node_too() {
    let world = |cpu| format!("{TYPES} pool general\n daemon logs cpu={cpu}\n {}", pods(10));
    check(&world("100m"), APART);
    check(&world("600m"), TOGETHER);
}

#[test]
fn a_node_that_goes_is_not_replaced_by_two_only_because_that_is_cheaper() {
    let fixture = Fixture::read(&format!("{TYPES} pool general\n {}", pods(10)));
    let ask = |aim| {
        let pods = fixture.cluster.pods().cloned().collect();
        sizes(&fixture.answer(&Question { pods, aim, ..Question::default() }).new_claims)
    };
    assert_eq!((&*ask(Aim::Replace), &*ask(Aim::Plan)), (TOGETHER, APART));
}
