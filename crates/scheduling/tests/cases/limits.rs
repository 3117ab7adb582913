use crate::fixture::check;

/// Sheet 02, case 23.
#[test]
fn a_limit_holds_within_a_pass_and_over_passes() {
    let pool = "type small cpu=2\npool general limit:cpu=2\n";
    check(&format!("{pool} pod a cpu=1750m"), "new general [small]: a");
    check(&format!("{pool} pod a cpu=2100m"), "none a: no_place general=resources");
    check(
        &format!("{pool} node n1 pool=general cpu=2\n pod old cpu=1750m on=n1\n pod a cpu=1750m"),
        "none a: no_place general=limit",
    );
}

/// Sheet 02, case 24.
#[test]
fn two_nodes_are_not_opened_where_the_limit_leaves_one() {
    check(
        "type small cpu=2
         pool general limit:cpu=3
         pod a cpu=1500m x2 apart:host:app=a label:app=a",
        "new general [small]: a-0
         none a-1: no_place general=limit",
    );
}

/// Sheet 02, case 25, which upstream fails in one pass (§29.2).
#[test]
fn a_limit_on_nodes_counts_the_nodes_of_this_pass() {
    let pool = "type small cpu=2\npool general limit:nodes=2\n";
    check(
        &format!("{pool} pod a cpu=1 x3 apart:host:app=a label:app=a"),
        "new general [small]: a-0
         new general [small]: a-1
         none a-2: no_place general=limit",
    );
    check(
        &format!(
            "{pool}
             node n1 pool=general cpu=0
             claim c1 pool=general require:type=small unlaunched taint:x:NoSchedule
             pod a cpu=1"
        ),
        "none a: no_place general=limit",
    );
}

/// Sheet 02, case 26.
#[test]
fn a_limit_on_any_resource_rules_out_types_that_have_more() {
    check(
        "type small cpu=2 pods=10
         type tiny cpu=1 pods=1
         pool general limit:pods=1
         pod a cpu=1",
        "new general [tiny]: a",
    );
}

#[test]
fn a_claim_that_is_not_launched_counts_as_the_largest_it_may_become() {
    check(
        "type small cpu=2
         type large cpu=8
         pool general limit:cpu=9
         claim c1 pool=general require:type=small,large unlaunched taint:x:NoSchedule
         pod a cpu=1",
        "none a: no_place general=limit",
    );
}

#[test]
fn what_is_leaving_counts_against_no_limit() {
    check(
        "type small cpu=2
         pool general limit:cpu=2
         node n1 pool=general cpu=2 deleting
         pod a cpu=1",
        "new general [small]: a",
    );
}
