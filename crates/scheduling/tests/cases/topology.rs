use std::collections::BTreeMap;

use crate::fixture::{Fixture, check, claims, full};

const WORLD: &str = "type big cpu=64 memory=64Gi pods=100\npool general\n";

/// How many pods each zone gets on new claims; `?` is a claim that is not committed.
#[track_caller]
fn check_zones(text: &str, expected: &str) {
    let schedule = Fixture::read(text).solve();
    let mut zones: BTreeMap<String, usize> = BTreeMap::new();
    for claim in &schedule.new_claims {
        let zone = claim.requirements().get(full("zone")).filter(|zone| zone.count() == Some(1));
        let zone = zone.map_or("?".to_owned(), |zone| zone.values()[0].to_string());
        *zones.entry(zone).or_default() += claim.pods.len();
    }
    let mut shown: Vec<_> = zones.iter().map(|(zone, count)| format!("{zone}={count}")).collect();
    if !schedule.unplaced.is_empty() {
        shown.push(format!("left={}", schedule.unplaced.len()));
    }
    assert_eq!(shown.join(" "), expected);
}

/// Sheet 02, case 48.
#[test]
fn a_spread_over_a_label_that_nothing_has_fails_alone() {
    check(
        &format!("{WORLD} pod a cpu=1 spread:rack:1:app=a\n pod b cpu=1"),
        "new general [big]: b\nnone a: no_place general=topology",
    );
}

/// Sheet 02, case 49.
#[test]
fn a_spread_without_a_selector_counts_nobody() {
    check(&format!("{WORLD} pod a cpu=1 x2 spread:host:1:-"), "new general [big]: a-0 a-1");
}

#[test]
fn pods_are_spread_over_zones() {
    check_zones(&format!("{WORLD} pod a cpu=1 x7 label:app=a spread:zone:1:app=a"), "a=3 b=2 c=2");
    check_zones(&format!("{WORLD} pod a cpu=1 x4 label:app=a spread:zone:1:app=a require:zone=a,c"), "a=2 c=2");
}

/// Sheet 02, case 50.
#[test]
fn zones_that_only_exist_on_nodes_hold_the_others_back() {
    check_zones(
        "type big cpu=64 pods=100 zone=c
         pool general
         node n1 unmanaged label:zone=a cpu=0
         node n2 unmanaged label:zone=b cpu=0
         pod old1 on=n1 label:app=a
         pod old2 on=n2 label:app=a
         pod a cpu=1 x10 label:app=a spread:zone:5:app=a",
        "c=6 left=4",
    );
}

/// Sheet 02, case 51.
#[test]
fn a_lopsided_spread_is_levelled_as_far_as_it_goes() {
    check_zones(
        &format!(
            "{WORLD}
             node n1 unmanaged label:zone=a cpu=0
             pod old on=n1 x3 label:app=a
             pod a cpu=1 x3 label:app=a spread:zone:1:app=a"
        ),
        "b=2 c=1",
    );
}

/// Sheet 02, case 52.
#[test]
fn a_spread_over_at_least_three_domains() {
    let two = "type big cpu=64 pods=100 zone=a,b\npool general\n";
    check_zones(&format!("{two} pod a cpu=1 x3 label:app=a spread:zone:1:app=a:min=3"), "a=1 b=1 left=1");
    check_zones(&format!("{WORLD} pod a cpu=1 x11 label:app=a spread:zone:1:app=a:min=3"), "a=4 b=4 c=3");
}

/// Sheet 02, case 53 and §29.5.
#[test]
fn spreads_that_differ_only_in_the_least_number_of_domains_are_two() {
    let two = "type big cpu=64 pods=100 zone=a,b\npool general\n";
    check_zones(
        &format!(
            "{two}
             pod a cpu=2 x3 label:app=a spread:zone:1:app=a:min=3
             pod b cpu=1 x3 label:app=b spread:zone:1:app=b"
        ),
        "a=3 b=2 left=1",
    );
}

/// Sheet 02, case 54.
#[test]
fn a_pod_that_its_own_spread_does_not_count_stays_with_its_kind() {
    check(&format!("{WORLD} pod a cpu=1 x5 label:app=a spread:host:1:app=b"), "new general [big]: a-0 a-1 a-2 a-3 a-4");
}

/// Sheet 02, case 55.
#[test]
fn tainted_domains_count_only_if_the_spread_says_so() {
    let world = "type big cpu=64 pods=100
         pool open require:rack=mine
         pool closed1 require:rack=r1 taint:no:NoSchedule
         pool closed2 require:rack=r2 taint:no:NoSchedule\n";
    let count = |text: &str| Fixture::read(text).solve().unplaced.len();
    assert_eq!(count(&format!("{world} pod a cpu=1 x5 label:app=a spread:rack:1:app=a")), 4);
    assert_eq!(count(&format!("{world} pod a cpu=1 x5 label:app=a spread:rack:1:app=a:taints")), 0);
}

/// §29.7: one pool that names a zone it cannot reach must not hold up the spread of all.
/// A host that the spread does not look at went, and its zone was forgotten with one that it does look at.
#[test]
fn a_zone_is_a_domain_until_the_last_host_that_counts_there_is_gone() {
    let world = "type small zone=a\npool general label:team=x
         node counts pool=general cpu=0 label:zone=d label:team=x
         node other pool=general cpu=0 label:zone=d
         pod p cpu=1 x2 label:app=a select:team=x spread:zone:1:app=a\n";
    let with_it = "new general [small]: p-0\nnone p-1: no_place general=topology";
    check(world, with_it);
    check(&format!("{world} exclude other"), with_it);
    check(&format!("{world} exclude counts"), "new general [small]: p-0 p-1");
    check(&format!("{world} exclude counts\nexclude other"), "new general [small]: p-0 p-1");
}

#[test]
fn a_zone_that_nothing_can_be_launched_in_is_no_domain() {
    check_zones(
        "type big cpu=64 pods=100 zone=a,b,c soldout=c
         pool general
         pool typo require:zone=nowhere
         pod a cpu=1 x4 label:app=a spread:zone:1:app=a",
        "a=2 b=2",
    );
}

/// Sheet 02, case 56.
#[test]
fn pods_of_two_tainted_pools_are_spread_over_the_domains_of_their_own() {
    let planned = claims(
        "type small pods=20
         pool one require:rack=foo,bar taint:one:NoSchedule
         pool two require:rack=foo,baz taint:two:NoSchedule
         pod a cpu=100m x2 label:app=a tolerate:one spread:rack:1:app=a:taints
         pod b cpu=100m x4 label:app=a tolerate:two spread:rack:1:app=a:taints",
    );
    let mut counts = BTreeMap::<String, usize>::new();
    for claim in &planned {
        *counts.entry(claim.requirements().get("rack").unwrap().values()[0].to_string()).or_default() +=
            claim.pods.len();
    }
    let mut counts: Vec<_> = counts.into_values().collect();
    counts.sort();
    assert_eq!(counts, [1, 2, 3]);
}

/// Sheet 02, case 58.
#[test]
fn a_preferred_zone_does_not_limit_the_domains() {
    check_zones(&format!("{WORLD} pod a cpu=1 x3 label:app=a spread:zone:1:app=a prefer:1:zone=a"), "a=1 b=1 c=1");
}

/// Pods that are counted but have no rule are on a claim before a pod with the rule commits it to a zone.
#[test]
fn pods_on_a_claim_are_counted_when_it_is_committed() {
    check_zones(
        &format!(
            "{WORLD}
             pod plain cpu=2 x2 label:app=a
             pod a cpu=1 x2 label:app=a spread:zone:1:app=a"
        ),
        "?=2 a=1 b=1",
    );
}

#[test]
fn pods_are_spread_over_hosts_and_zones_at_once() {
    let fixture = Fixture::read(&format!("{WORLD} pod a cpu=1 x6 label:app=a spread:zone:1:app=a spread:host:1:app=a"));
    let schedule = fixture.solve();
    assert_eq!((schedule.new_claims.len(), schedule.unplaced.len()), (6, 0));
}

/// Sheet 02, case 59.
#[test]
fn pods_that_want_one_host_do_not_open_a_second() {
    let world = "type small cpu=5 pods=100\npool general\n";
    let pods = "pod a cpu=1 x10 label:app=a near:host:app=a";
    check(
        &format!("{world} {pods}"),
        "new general [small]: a-0 a-1 a-2 a-3 a-4
         none a-5: no_place general=topology
         none a-6: no_place general=topology
         none a-7: no_place general=topology
         none a-8: no_place general=topology
         none a-9: no_place general=topology",
    );
}

/// Sheet 02, case 60 and §29.6.
#[test]
fn pods_that_want_one_zone_get_one() {
    let world = "type small cpu=2 pods=100\npool general\n";
    check_zones(&format!("{world} pod a cpu=1 x9 label:app=a near:zone:app=a"), "a=9");
}

/// Sheet 02, case 61.
#[test]
fn pods_that_want_to_be_together_but_are_pinned_apart_are_apart() {
    check_zones(
        &format!(
            "{WORLD}
             pod a cpu=1 label:app=a near:zone:app=a select:zone=a
             pod b cpu=1 label:app=a near:zone:app=a select:zone=b"
        ),
        "a=1 b=1",
    );
}

/// Sheet 02 §8: a pod that waits for another is tried again.
#[test]
fn a_pod_follows_another_of_the_same_pass() {
    check(
        &format!("{WORLD} pod leader cpu=1 label:app=leader select:zone=b\n pod follower cpu=2 near:zone:app=leader"),
        "new general [big]: follower leader",
    );
    check(&format!("{WORLD} pod follower cpu=2 near:zone:app=leader"), "none follower: no_place general=topology");
}

#[test]
fn a_pod_follows_another_onto_a_claim_whose_zone_is_open() {
    check(
        &format!("{WORLD} pod leader cpu=2 label:app=leader\n pod follower cpu=1 near:zone:app=leader"),
        "new general [big]: follower leader",
    );
}

/// Sheet 02, case 62.
#[test]
fn pods_that_avoid_each_other_in_every_zone_find_no_place() {
    let nodes = "node n1 unmanaged label:zone=a
         node n2 unmanaged label:zone=b
         node n3 unmanaged label:zone=c\n";
    let on =
        |rule: &str| -> String { (1..=3).map(|at| format!("pod old{at} on=n{at} label:app=old {rule}\n")).collect() };
    let avoiding = format!("{WORLD} {nodes} {} pod a cpu=1 apart:zone:app=old", on(""));
    check(&avoiding, "none a: no_place general=topology");
    let avoided = format!("{WORLD} {nodes} {} pod a cpu=1 label:app=a", on("apart:zone:app=a"));
    check(&avoided, "none a: no_place general=topology");
    let by_host = format!("{WORLD} {nodes} {} pod a cpu=1 label:app=a", on("apart:host:app=a"));
    check(&by_host, "new general [big]: a");
}

/// Sheet 02, cases 63 and 64: upstream needs a pass per zone.
#[test]
fn pods_that_avoid_each_other_in_a_zone_get_their_zones_in_one_pass() {
    check_zones(&format!("{WORLD} pod a cpu=1 x4 label:app=a apart:zone:app=a"), "a=1 b=1 c=1 left=1");
    check_zones(&format!("{WORLD} pod a cpu=2 label:app=a apart:zone:app=b\n pod b cpu=1 label:app=b"), "?=1 a=1");
}

/// Sheet 02, case 65.
#[test]
fn a_running_pod_that_would_rather_be_alone_blocks_nobody() {
    check("node n1 unmanaged\n pod old cpu=1 on=n1 rather-apart:1:host:app=a\n pod a cpu=1 label:app=a", "node n1: a");
}

/// Sheet 02, case 66.
#[test]
fn an_affinity_looks_into_its_own_namespace_unless_it_names_others() {
    let world = "node n1 unmanaged\n pod old on=n1 label:app=x namespace=other\n";
    check(&format!("{world} pod a cpu=1 apart:host:app=x"), "node n1: a");
    check(&format!("{world} pod a cpu=1 apart:host:app=x:other"), "none a: no_pools");
}

#[test]
fn pods_without_a_zone_are_counted_once_somebody_else_gives_their_claim_one() {
    check_zones(
        &format!(
            "{WORLD}
             pod plain cpu=3 x2 label:app=a
             pod pin cpu=2 select:zone=a
             pod a cpu=1 label:app=a spread:zone:1:app=a"
        ),
        "a=3 b=1",
    );
}

#[test]
fn a_pod_waits_until_it_is_known_which_zone_its_kind_runs_in() {
    check(
        "type small cpu=2
         pool general
         pod plain cpu=2 label:app=a
         pod a cpu=1 label:app=a near:zone:app=a",
        "new general [small]: plain\nnone a: no_place general=topology",
    );
}
