use kerf_scheduling::{Options, PreferencePolicy};

use crate::fixture::{check, check_with, claims, full};

fn zone(text: &str) -> String {
    claims(text)[0].requirements().get(full("zone")).map(ToString::to_string).unwrap_or_default()
}

/// Sheet 02, case 68.
#[test]
fn alternatives_are_tried_in_their_order() {
    let world = "type small\npool general\n";
    let pod = "pod a cpu=1 term:zone=x term:team=x term:zone=a term:zone=b";
    assert_eq!(zone(&format!("{world} {pod}")), "topology.kubernetes.io/zone In [a]");
    check(&format!("{world} pod a cpu=1 term:zone=x term:zone=y"), "none a: no_place general=no_matching_type");
}

/// Sheet 02, case 69.
#[test]
fn the_heaviest_preference_that_can_be_met_counts() {
    let pod = "pod a cpu=1 prefer:1:zone=a prefer:100:zone=x prefer:50:zone=b";
    assert_eq!(zone(&format!("type small\npool general\n{pod}")), "topology.kubernetes.io/zone In [b]");
}

/// Upstream drops alternatives before preferences, and so loses the first one here.
#[test]
fn a_preference_that_cannot_be_met_costs_no_alternative() {
    let pod = "pod a cpu=1 term:zone=a term:zone=x prefer:1:zone=y";
    assert_eq!(zone(&format!("type small\npool general\n{pod}")), "topology.kubernetes.io/zone In [a]");
}

#[test]
fn a_node_that_one_alternative_allows_is_used_before_a_new_one_that_another_asks_for() {
    check(
        "type small
         pool general
         node n1 pool=general label:zone=b
         pod a cpu=1 term:zone=a term:zone=b",
        "node n1: a",
    );
}

/// Sheet 02, case 70.
#[test]
fn a_soft_taint_is_tolerated_last() {
    let world = "type small\npool soft taint:soft:PreferNoSchedule weight=10 label:team=x\n";
    check(&format!("{world} pod a cpu=1 prefer:1:zone=nowhere"), "new soft [small]: a");
    check(&format!("{world} pool plain\n pod a cpu=1"), "new plain [small]: a");
    check(&format!("{world} pool plain\n pod a cpu=1 select:team=x"), "new soft [small]: a");
}

/// §29.12.
#[test]
fn a_soft_taint_of_a_node_is_tolerated_too() {
    check("node n1 unmanaged taint:soft:PreferNoSchedule\n pod a cpu=1", "node n1: a");
}

/// Sheet 02, case 71.
#[test]
fn ignored_preferences_spread_nothing() {
    let world = "type large cpu=8 pods=10\npool general\n";
    let options = Options { preferences: PreferencePolicy::Ignore, ..Options::default() };
    for pods in ["rather-apart:1:host:app=a", "spread:host:1:app=a:soft"] {
        let text = format!("{world} pod a cpu=1 x2 label:app=a {pods}");
        check_with(options, &text, "new general [large]: a-0 a-1");
        check(&text, "new general [large]: a-0\nnew general [large]: a-1");
    }
}

#[test]
fn preferences_about_other_pods_give_way_when_nothing_else_helps() {
    check(
        "type large cpu=8 pods=10
         pool general limit:nodes=1
         pod a cpu=1 x3 label:app=a rather-apart:1:host:app=a spread:host:1:app=a:soft",
        "new general [large]: a-0 a-1 a-2",
    );
}
