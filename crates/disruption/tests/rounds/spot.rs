//! Cases 61 and 62: spot for spot.

use crate::fixture::{Fixture, check, check_nodes};

fn types(count: usize) -> String {
    (0..count).map(|at| format!("type t{at:02} cpu=4 kind=spot price=0.{:03}\n", 100 + at)).collect()
}

fn cluster(settings: &str, cheaper: usize, pool: &str) -> String {
    format!(
        "settings {settings}
         {}
         type own cpu=8 kind=spot price=0.900
         pool p {pool}
         node a pool=p type=own kind=spot cpu=8
         pod web on=a cpu=3",
        types(cheaper)
    )
}

#[test]
fn case_61_spot_is_replaced_by_spot_only_with_enough_to_choose_from() {
    check_nodes(&cluster("", 20, ""), "a spot_to_spot_disabled");
    check_nodes(&cluster("spot-to-spot", 14, ""), "a too_few_spot_types");
    check_nodes(&cluster("spot-to-spot", 15, ""), "a go single_node_consolidation");
    let options = |text: &str| Fixture::read(text).decide().proposals[0].replacements()[0].options.len();
    assert_eq!(options(&cluster("spot-to-spot", 15, "")), 15);
    assert_eq!(options(&cluster("spot-to-spot", 20, "")), 15);
    assert_eq!(options(&cluster("spot-to-spot", 25, "require:type~20")), 20);
}

#[test]
fn case_61_a_node_whose_type_is_among_the_cheapest_stays() {
    let text = cluster("spot-to-spot", 15, "").replace(
        "type own cpu=8 kind=spot price=0.900",
        "type own cpu=8 kind=spot zone=a,b price:a=0.9 price:b=0.001 soldout:a",
    );
    check_nodes(&text, "a same_type");
    // Deleting spot needs no gate.
    let deletable =
        format!("{}\nnode b pool=p type=own kind=spot cpu=8 annotation:do-not-disrupt=true", cluster("", 1, ""));
    check_nodes(&deletable, "a go single_node_consolidation");
}

#[test]
fn case_62_several_spot_nodes_become_one_with_fewer_types_to_choose_from() {
    let nodes: String = ["a", "b", "c"]
        .iter()
        .map(|name| format!("node {name} pool=p type=own kind=spot cpu=4\npod {name} on={name} cpu=3\n"))
        .collect();
    let text = format!(
        "settings spot-to-spot\ntype big1 cpu=12 kind=spot price=0.9\ntype big2 cpu=12 kind=spot price=0.95\ntype own cpu=4 kind=spot price=0.5\npool p\n{nodes}"
    );
    check(&text, "multi_node_consolidation replace a b c -> big1,big2");
}
