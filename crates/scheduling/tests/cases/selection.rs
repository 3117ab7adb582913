use kerf_scheduling::{MinValuesPolicy, Options, ReservedMode};

use crate::fixture::{Fixture, check, check_with, claims, show};

/// Sheet 02, case 72.
#[test]
fn heavier_pools_come_first_and_then_later_names() {
    let world = "type small\npool a weight=50\npool b weight=100\npool c weight=100\npool z static weight=100\n";
    check(&format!("{world} pod p cpu=1"), "new c [small]: p");
    check(&format!("{world} pod p cpu=1 select:pool=a"), "new a [small]: p");
    check(
        &format!("{world} pod p cpu=1 select:pool=z"),
        "none p: no_place a=requirements b=requirements c=requirements",
    );
}

/// Sheet 02, case 73.
#[test]
fn options_are_sorted_by_what_they_cost_where_they_may_be_launched() {
    let world = "type spotty cpu=2 price=1.00 kind=spot,on-demand zone=a
         type cheap cpu=2 price=0.60
         type dear cpu=2 price=2.00
         pool general\n";
    check(&format!("{world} pod p cpu=1"), "new general [cheap spotty dear]: p");
    check(&format!("{world} pod p cpu=1 select:kind=spot"), "new general [spotty]: p");
    let options = Options { max_types: 2, ..Options::default() };
    check_with(options, &format!("{world} pod p cpu=1"), "new general [cheap spotty]: p");
}

/// Sheet 02, case 74, and sheet 08, S4.
#[test]
fn too_few_values_to_choose_from() {
    let world = "type a cpu=2\ntype b cpu=2\npool strict require:type~3 weight=5\npool other weight=1 label:team=x\n";
    check(&format!("{world} pod p cpu=1 select:pool=strict"), "none p: no_place other=requirements strict=min_values");
    check(&format!("{world} pod p cpu=1"), "new other [a b]: p");

    let mut fixture = Fixture::read(&format!("{world} pod p cpu=1"));
    fixture.options.min_values = MinValuesPolicy::BestEffort;
    let planned = fixture.solve().new_claims.remove(0);
    assert_eq!((&*planned.pool, planned.min_values_relaxed), ("strict", true));
    let kept = planned.requirements().get("node.kubernetes.io/instance-type").unwrap();
    assert_eq!(kept.to_string(), "node.kubernetes.io/instance-type In [a b] minValues 2");
    let claim = planned.to_new_claim("x".into(), Default::default());
    assert_eq!(&*claim.annotations["karpenter.sh/nodeclaim-min-values-relaxed"], "true");

    let zones = "type a cpu=2 zone=a,b,c\npool general require:zone=a~2\npod p cpu=1";
    check(zones, "none p: no_place general=min_values");
}

#[test]
fn a_pod_that_would_leave_too_few_types_gets_a_claim_of_its_own() {
    check(
        "type a cpu=2 pods=9\ntype b cpu=4 pods=9\npool general require:type~2\npod p cpu=1 x3",
        "new general [a b]: p-0 p-1\nnew general [a b]: p-2",
    );
}

/// Sheet 02, case 75.
#[test]
fn cutting_the_list_must_not_leave_too_few_values() {
    let options = Options { max_types: 1, ..Options::default() };
    check_with(
        options,
        "type a cpu=2\ntype b cpu=2\npool general require:type~2\npod p cpu=1",
        "none p: no_place general=truncated",
    );
}

/// Sheet 02, case 77.
#[test]
fn a_large_type_that_is_cheapest_is_launched_for_a_tiny_pod() {
    check(
        "type small cpu=1 price=3\ntype medium cpu=2 price=2\ntype large cpu=9 price=1\npool general\npod p cpu=100m",
        "new general [large medium small]: p",
    );
}

/// Sheet 02, case 78.
#[test]
fn devices_that_no_type_combines_need_two_nodes() {
    let world = "type a example.com/a=1\ntype b example.com/b=1\npool general\n";
    check(
        &format!("{world} pod x cpu=1 example.com/a=1\n pod y cpu=1 example.com/b=1"),
        "new general [a]: x\nnew general [b]: y",
    );
    check(&format!("{world} pod x cpu=1 example.com/a=1 example.com/b=1"), "none x: no_place general=resources");
}

/// Sheet 02, case 79.
#[test]
fn a_pool_whose_requirements_leave_no_type_launches_nothing() {
    check(
        "type small arch=amd64
         pool arm require:arch=arm64
         node n1 unmanaged cpu=1
         pod a cpu=1 x2",
        "node n1: a-0\nnone a-1: no_place arm=no_types",
    );
}

/// Sheet 02, case 19.
#[test]
fn nothing_of_an_unknown_resource_can_be_had_anywhere() {
    check("type small\npool general\npod a cpu=1 example.com/unknown=0", "new general [small]: a");
}

/// Sheet 02, case 21.
#[test]
fn huge_pages_are_taken_from_memory() {
    let world = "type huge memory=4Gi hugepages-2Mi=3Gi\npool general\n";
    check(&format!("{world} pod a memory=2Gi"), "none a: no_place general=resources");
    check(&format!("{world} pod a memory=1Gi hugepages-2Mi=3Gi"), "new general [huge]: a");
}

/// Sheet 02, case 22.
#[test]
fn what_only_some_offerings_of_a_type_have_is_launched_from_those() {
    let world = "type plain price=1\ntype split price=2 zone=a,b override:b:example.com/gpu=2\npool general\n";
    check(&format!("{world} pod a example.com/gpu=1"), "new general [split]: a");
    check(&format!("{world} pod a example.com/gpu=1 select:zone=b"), "new general [split]: a");
    check(&format!("{world} pod a example.com/gpu=1 select:zone=a"), "none a: no_place general=no_offering");
    check(&format!("{world} pod a example.com/gpu=3"), "none a: no_place general=resources");
    // A pod without such wishes may get any of them, and the type is named once.
    check(&format!("{world} pod a cpu=1"), "new general [plain split]: a");
    // What was taken in for the one leaves nothing but the offering that has it.
    let both = "pod a example.com/gpu=1 x2\npod b cpu=100m";
    check(&format!("{world}{both}"), "new general [split]: a-0 a-1 b");
    let sold_out = world.replace("zone=a,b", "zone=a,b soldout=b");
    check(&format!("{sold_out} pod a example.com/gpu=1"), "none a: no_place general=resources");
    check(&format!("{sold_out} pod a cpu=1"), "new general [plain split]: a");
}

#[test]
fn a_claim_lists_the_offerings_that_have_room_and_no_others() {
    let ways = |pod: &str| {
        let world = "type split cpu=4 memory=4Gi price=2 zone=a,b,c override:a:memory=2Gi reserve:b:memory=3Gi\n";
        let claims = claims(&format!("{world} pool general\npod p {pod}"));
        let [claim] = &claims[..] else { panic!("{} claims", claims.len()) };
        let [option] = &claim.options[..] else { panic!("{} options", claim.options.len()) };
        option.offerings.iter().filter_map(|offering| offering.zone.clone()).collect::<Vec<_>>().concat()
    };
    assert_eq!(ways("memory=1Gi"), "cab");
    assert_eq!(ways("memory=2Gi"), "ca");
    assert_eq!(ways("memory=3Gi"), "c");
    assert_eq!(ways("memory=1Gi select:zone=b"), "b");
}

/// A claim on its way was made for what only one of its offerings has; its pod is not given another.
#[test]
fn a_claim_that_is_not_launched_yet_has_room_for_what_it_was_made_for() {
    let world = "type split zone=a,b override:b:example.com/gpu=2\npool general\n";
    let coming = "claim c pool=general require:type=split unlaunched example.com/gpu=1\n";
    check(&format!("{world}{coming} pod a example.com/gpu=1"), "claim c: a");
}

#[test]
fn a_limit_counts_what_an_offering_has() {
    let world = "type split zone=a,b override:b:example.com/gpu=2\npool general limit:example.com/gpu=3\n";
    check(
        &format!("{world} pod a example.com/gpu=2 x2"),
        "new general [split]: a-0
         none a-1: no_place general=limit",
    );
}

#[test]
fn a_sold_out_zone_is_not_launched_in() {
    let world = "type small zone=a,b soldout=a\npool general\n";
    check(&format!("{world} pod p cpu=1 select:zone=b"), "new general [small]: p");
    check(&format!("{world} pod p cpu=1 select:zone=a"), "none p: no_place general=no_offering");
}

/// Sheet 08, S1.
#[test]
fn a_full_reservation_defers_provisioning_and_a_what_if_goes_on() {
    let world = "type held kind=reserved\ntype open\npool a weight=9 types=held\npool b types=open\npod p cpu=1";
    check(world, "none p: deferred a=reservations_full");
    let mut fixture = Fixture::read(world);
    fixture.reserved = ReservedMode::Fallback;
    assert_eq!(show(&fixture.solve()), "new b [open]: p\n");
}

/// Sheet 08, S1.
#[test]
fn beside_a_full_reservation_the_other_offerings_are_used() {
    let planned = claims("type both kind=reserved,on-demand\npool general\npod p cpu=1");
    let kinds = planned[0].requirements().get("karpenter.sh/capacity-type").unwrap();
    assert_eq!(kinds.to_string(), "karpenter.sh/capacity-type In [on-demand]");
    let planned = claims("type both kind=reserved,on-demand slots=1\npool general\npod p cpu=1");
    let kinds = planned[0].requirements().get("karpenter.sh/capacity-type").unwrap();
    assert_eq!(kinds.to_string(), "karpenter.sh/capacity-type In [reserved]");
}

/// Sheet 02 §8: pods are levelled over the claims that are open.
#[test]
fn open_claims_are_filled_evenly() {
    check(
        "type small cpu=4 memory=8Gi\npool general\npod big cpu=3 x2\npod low cpu=100m x4",
        "new general [small]: big-0 low-0 low-2\nnew general [small]: big-1 low-1 low-3",
    );
}
