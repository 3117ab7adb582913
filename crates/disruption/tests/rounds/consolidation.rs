//! Cases 56 to 71 and 76: what is worth a move.

use crate::fixture::{Fixture, check, check_nodes, judged, show, told};
use kerf_disruption::{Method, View, decide};
use kerf_model::effect::{Event, EventKind};
use kerf_model::label::{self, capacity_type};
use kerf_model::price::Price;
use kerf_scheduling::{MinValuesPolicy, Options};

#[test]
fn case_56_a_large_node_with_a_small_pod_is_replaced_by_something_cheaper_as_spot() {
    let round = check(
        "type small cpu=4 price=0.10 kind=spot,on-demand
         type large cpu=16 price=0.80 kind=spot,on-demand
         type huge cpu=64 price=3.20
         pool p
         node a pool=p type=huge cpu=64
         pod web on=a cpu=3",
        "single_node_consolidation replace a -> small,large",
    );
    let claim = &round.proposals[0].replacements()[0];
    let kind = claim.requirements().get(label::CAPACITY_TYPE).unwrap();
    assert_eq!(kind.values(), [capacity_type::SPOT.into()]);
    assert_eq!(round.proposals[0].savings.unwrap().to_string(), "3.13");
}

/// The reference refuses because of the worst zone; pinned to a zone that is cheap, the move is safe.
#[test]
fn case_57_a_replacement_that_is_dear_in_some_zone_is_pinned_to_another() {
    let text = "type tiny cpu=4 zone=a,b,c kind=spot price:a=1.0 price:b=0.2 price:c=0.4
         type small cpu=8 price=0.5
         pool p
         node a pool=p type=small cpu=8
         pod web on=a cpu=3";
    check(&format!("settings compatible\n{text}"), "a no_cheaper");
    let round = check(text, "single_node_consolidation replace a -> tiny");
    let zones = round.proposals[0].replacements()[0].requirements().get(label::ZONE).unwrap().values().to_vec();
    assert_eq!(zones, ["b".into()]);
}

#[test]
fn case_58_spot_prices_do_not_help_a_pool_that_may_not_use_spot() {
    check(
        "type tiny cpu=4 kind=spot,on-demand price=0.6
         type small cpu=8 price=0.5
         pool p require:kind=on-demand
         node a pool=p type=small cpu=8
         pod web on=a cpu=3",
        "a no_cheaper",
    );
}

#[test]
fn case_59_equal_is_not_cheaper() {
    let text = "type tiny cpu=4 price=0.5
         type small cpu=8 price=0.5
         pool p
         node a pool=p type=small cpu=8
         pod web on=a cpu=3";
    check(text, "a no_cheaper");
    check(&format!("settings compatible\n{text}"), "a no_cheaper");
}

#[test]
fn case_60_cheaper_types_must_satisfy_min_values() {
    let text = "type one cpu=4 price=0.10
         type two cpu=8 price=0.50
         type three cpu=16 price=0.90
         pool p require:type~3
         node a pool=p type=two cpu=8
         pod web on=a cpu=3";
    let round = check(text, "a min_values");
    assert_eq!(told(&round, "a"), [(EventKind::Node, "Unconsolidatable"), (EventKind::NodeClaim, "Unconsolidatable")]);
    // Best effort is for pods that have no place otherwise.
    let fixture = Fixture::read(text);
    let scheduling = Options { min_values: MinValuesPolicy::BestEffort, ..Options::default() };
    assert_eq!(decide(&View { scheduling, ..fixture.view() }).verdicts["a"].label(), "min_values");
}

#[test]
fn case_63_of_two_nodes_of_the_cheapest_type_the_one_with_fewer_pods_goes() {
    check(
        "type small cpu=4 price=0.10
         pool p
         node a pool=p cpu=4
         pod web on=a cpu=1 x2
         node b pool=p cpu=4
         pod db on=b cpu=1",
        "single_node_consolidation delete b
         a destination",
    );
}

#[test]
fn case_64_a_replacement_of_a_type_that_goes_must_be_cheaper_than_keeping_that_node() {
    let text = |nano: &str| {
        format!(
            "settings compatible
             {nano}
             type small cpu=6 price=0.10
             type twoxl cpu=8 price=0.40
             pool p
             node a pool=p type=twoxl cpu=2
             pod x on=a cpu=2
             node b pool=p type=twoxl cpu=2
             pod y on=b cpu=2
             node c pool=p type=small cpu=2
             pod z on=c cpu=2"
        )
    };
    check(&text("type nano cpu=6 price=0.05"), "multi_node_consolidation replace a b c -> nano");
    // Nothing is cheaper than the small one that is there: it stays, and the other two become one beside it.
    check(&text(""), "multi_node_consolidation replace a b -> small\nc not_examined");
}

/// What saves most per pod that moves goes first; what the other saves may be more when that is done.
#[test]
fn of_two_replacements_the_one_that_moves_fewer_pods_for_the_same_savings_goes_first() {
    check_nodes(
        "type small cpu=4 price=0.20
         type large cpu=16 price=0.80
         pool p
         node a pool=p type=large cpu=16
         pod x on=a cpu=2 label:app=x apart:host:app=x
         node b pool=p type=large cpu=16
         pod z on=b cpu=2 label:app=x apart:host:app=x
         pod y on=b cpu=100m x3",
        "a go single_node_consolidation\nb next_round",
    );
}

/// The reference never launches two; here it does where both together are surely cheaper.
#[test]
fn case_65_one_node_becomes_several_only_if_that_is_cheaper() {
    let text = |price: &str| {
        format!(
            "type small cpu=4 price={price}
             type large cpu=16 price=1.00
             pool p
             node a pool=p type=large cpu=16
             pod x on=a cpu=3 label:app=x apart:host:app=x
             pod y on=a cpu=3 label:app=x apart:host:app=x"
        )
    };
    check(&text("0.60"), "a too_many_replacements");
    check(&text("0.20"), "single_node_consolidation replace a -> small -> small");
    check(&format!("settings compatible\n{}", text("0.20")), "a too_many_replacements");
}

#[test]
fn case_66_nothing_rests_on_a_node_that_is_still_starting() {
    check_nodes(
        "type small cpu=4 price=0.10
         pool p
         node a pool=p cpu=4
         pod web on=a cpu=3
         node b pool=p cpu=4 uninitialized",
        "a destination_not_ready\nb not_initialized",
    );
}

/// Pods of nodes that go anyway are no reason to keep others.
#[test]
fn case_66_pods_of_leaving_nodes_may_go_to_starting_ones() {
    check_nodes(
        "type small cpu=4 price=0.10
         pool p
         node gone pool=p cpu=4 deleting
         pod old on=gone cpu=4
         node b pool=p cpu=4 uninitialized
         node a pool=p cpu=4
         pod web on=a cpu=1
         node c pool=p cpu=4
         pod db on=c cpu=2",
        "a go single_node_consolidation",
    );
}

#[test]
fn case_67_a_destination_inside_its_consolidate_after_is_not_used() {
    let text = |pool: &str, event: &str| {
        format!(
            "type small cpu=4 price=0.10
             pool p
             pool q {pool}
             node a pool=p cpu=4
             pod web on=a cpu=1
             node b pool=q cpu=4 pod-event={event}
             pod db on=b cpu=1"
        )
    };
    check_nodes(&text("after=5m", "1m"), "a no_cheaper\nb not_settled");
    check_nodes(&text("after=5m", "6m").replace("pod-event=6m", ""), "a go single_node_consolidation");
    check_nodes(&text("after=5m", "4m59s"), "a no_cheaper\nb not_settled");
    check_nodes(&text("after=5m", "5m"), "a go single_node_consolidation\nb not_settled");
    check_nodes(&text("after=Never", "1m"), "a go single_node_consolidation");
    // What is launched is no such destination, and drift has no time to lose.
    let dear = text("after=5m", "1m")
        .replace("node a pool=p cpu=4", "type large cpu=16 price=0.80\nnode a pool=p type=large cpu=16");
    let round = Fixture::read(&dear.replace("on=a cpu=1", "on=a cpu=3.5")).decide();
    assert_eq!(show(&round), "single_node_consolidation replace a -> small\nb not_settled\n");
    let drifted = text("after=5m", "1m").replace("node a pool=p cpu=4", "node a pool=p cpu=4 drifted");
    assert_eq!(show(&Fixture::read(&drifted).decide()), "drift delete a\nb not_settled\n");
}

/// A cheaper node now and a deletion in a minute would be two moves: one is enough.
#[test]
fn a_move_that_would_be_undone_as_soon_as_a_destination_settles_is_not_made() {
    let text = "type small cpu=4 price=0.10
         type large cpu=16 price=0.80
         pool p
         pool q after=5m
         node a pool=p type=large cpu=16
         pod web on=a cpu=1
         node b pool=q cpu=4 pod-event=1m
         pod db on=b cpu=1";
    check_nodes(text, "a would_be_undone");
    check_nodes(&format!("settings compatible\n{text}"), "a go single_node_consolidation");
}

/// Found under the reference's performance suite: while hundreds of pods waited for nodes that had just come, others were
/// evicted to fill those, and took the room of the first.
#[test]
fn a_node_that_is_promised_to_waiting_pods_takes_no_others_for_now() {
    let world = |word: &str| {
        format!(
            "type small cpu=4 price=1
             pool p
             node a pool=p cpu=4
             pod x on=a cpu=1
             node b pool=p cpu=4 {word}
             pod y on=b cpu=1"
        )
    };
    assert_eq!(Fixture::read(&world("")).decide().proposals.len(), 1);
    assert!(Fixture::read(&world("nominated")).decide().proposals.is_empty());
}

#[test]
fn case_68_a_pod_that_waits_for_ever_does_not_stop_others() {
    check_nodes(
        "type small cpu=4 price=0.10
         pool p
         pod giant cpu=400
         node a pool=p cpu=4
         pod web on=a cpu=1
         node b pool=p cpu=4
         pod db on=b cpu=2",
        "a go single_node_consolidation",
    );
    check_nodes(
        "type small cpu=4 price=0.10 soldout
         type other cpu=1 price=0.01
         pool p
         node a pool=p cpu=4
         pod web on=a cpu=3
         node b pool=p cpu=4
         pod db on=b cpu=2",
        "a pods_have_no_place",
    );
}

#[test]
fn case_69_rules_between_pods_are_kept() {
    let text = |rule: &str| {
        format!(
            "type small cpu=4 price=0.10
             pool p
             node a pool=p cpu=4 zone=a
             pod x on=a cpu=1 label:app=web {rule}
             node b pool=p cpu=4 zone=b
             pod y on=b cpu=1 label:app=web {rule}"
        )
    };
    check_nodes(&text("apart:host:app=web"), "a no_cheaper\nb no_cheaper");
    check_nodes(&text("spread:zone:1:app=web"), "a no_cheaper\nb no_cheaper");
    check_nodes(&text(""), "a go single_node_consolidation");
    // A replacement in the same zone keeps the spread.
    let round = check(
        "type small cpu=4 price=0.10
         type large cpu=16 price=0.80
         pool p
         node a pool=p cpu=16 type=large zone=a
         pod x on=a cpu=1 label:app=web spread:zone:1:app=web
         node b pool=p cpu=4 zone=b
         pod y on=b cpu=1 label:app=web spread:zone:1:app=web",
        "single_node_consolidation replace a -> small\nb no_cheaper",
    );
    let requirements = round.proposals[0].replacements()[0].requirements();
    assert_eq!(requirements.get(label::ZONE).unwrap().values(), ["a".into()]);
}

#[test]
fn case_70_and_71_nodes_of_others_are_destinations_and_pods_without_owner_move_too() {
    check(
        "type small cpu=4 price=0.10
         pool p
         node foreign cpu=8 node-only
         node a pool=p cpu=4
         pod naked on=a cpu=1",
        "single_node_consolidation delete a",
    );
}

#[test]
fn case_76_an_open_reservation_is_used() {
    let text = |kind: &str, slots: &str| {
        format!(
            "type small cpu=4 price=0.10 zone=a kind=on-demand,spot,reserved slots={slots}
             pool p
             node a pool=p cpu=4 kind={kind}
             pod web on=a cpu=3"
        )
    };
    for kind in ["on-demand", "spot"] {
        let round = check(&text(kind, "1"), "single_node_consolidation replace a -> small");
        let claim = &round.proposals[0].replacements()[0];
        assert_eq!(claim.requirements().get(label::CAPACITY_TYPE).unwrap().values(), [capacity_type::RESERVED.into()]);
        assert_eq!(claim.requirements().get(label::RESERVATION_ID).unwrap().values(), ["r1".into()]);
    }
    // Sheet 08 S1: a full one is no price to compare with.
    check(&text("spot", "0"), "a spot_to_spot_disabled");
}

/// Three underutilised nodes into one: the reference's prefix search finds it too.
#[test]
fn several_nodes_become_fewer() {
    let text = "type small cpu=4 price=0.10
         pool p
         node a pool=p cpu=4
         pod x on=a cpu=1
         node b pool=p cpu=4
         pod y on=b cpu=1
         node c pool=p cpu=4
         pod z on=c cpu=1";
    check(text, "multi_node_consolidation delete a b\nc destination");
    check(&format!("settings compatible\n{text}"), "multi_node_consolidation delete a b\nc not_examined");
}

/// Six half-full nodes of an old type as three of a cheaper one: no single node can go, no replacement of one node pays.
#[test]
fn many_nodes_become_some_others() {
    let nodes: String =
        (0..6).map(|at| format!("node n{at} pool=p type=old cpu=4\npod p{at} on=n{at} cpu=3\n")).collect();
    let text = format!("type old cpu=4 price=0.20\ntype new cpu=10 price=0.35\npool p\n{nodes}");
    let round = Fixture::read(&text).decide();
    let saved: i64 = round.proposals.iter().filter_map(|own| own.savings).map(Price::micros).sum();
    assert_eq!(round.proposals[0].method, Method::MultiNode, "{}", show(&round));
    assert!(saved >= 150_000, "{}", show(&round));
    let alone = Fixture::read(
        "type old cpu=4 price=0.20\ntype new cpu=10 price=0.35\npool p\nnode a pool=p type=old cpu=4\npod a on=a cpu=3",
    );
    assert_eq!(alone.decide().verdicts["a"].label(), "no_cheaper");
}

/// Two nodes that are cheaper as one, and in their pool one that ranks before them and can be in no such move. Sets were
/// prefixes of the ranking, so that every one of them had it in it.
#[test]
fn a_node_that_may_not_be_replaced_held_back_others_that_are_cheaper_together() {
    let text = |first: &str| {
        format!(
            "type small cpu=4 price=0.10
             type six cpu=6 price=0.15
             type dear cpu=4 price=0.90
             pool p
             node a pool=p cpu=4
             pod x on=a cpu=3
             node b pool=p cpu=4
             pod y on=b cpu=3
             {first}"
        )
    };
    let joined = "multi_node_consolidation replace a b -> six";
    check(&text(""), joined);
    let recent = "2026-11-18T11:00:00Z,2026-11-18T11:30:00Z";
    check(
        &text(&format!(
            "node c pool=p type=dear cpu=4 claim-annotation:kerf.sh/consolidations={recent}\npod z on=c cpu=3"
        )),
        &format!("{joined}\nc recently_moved"),
    );
    check(
        &text("node c pool=p type=dear cpu=4\npod z on=c cpu=3 select:disk=old"),
        &format!("{joined}\nc pods_have_no_place"),
    );
}

/// Its pods would move from one node to another of the same type, because two others of the set save enough for three.
#[test]
fn a_node_that_adds_nothing_to_a_joint_move_stays() {
    check(
        "type small cpu=4 price=0.10
         type six cpu=6 price=0.12
         pool p
         node a pool=p cpu=4
         pod x on=a cpu=3 select:zone=a
         node b pool=p cpu=4 zone=b
         pod y on=b cpu=3 select:zone=b
         node c pool=p cpu=4
         pod z on=c cpu=3 select:zone=a",
        "multi_node_consolidation replace a c -> six
         b no_cheaper",
    );
}

/// All twelve pods moved to the large node, and all sixteen from there to a smaller one a minute later.
#[test]
fn a_full_node_was_emptied_onto_one_that_was_about_to_be_replaced() {
    let text = |pods: &str| {
        format!(
            "type c2 cpu=8 price=0.272\ntype c4 cpu=16 price=0.544\ntype c8 cpu=32 price=1.088\ntype c12 cpu=48 price=1.632
             pool p
             node small pool=p type=c4 cpu=16
             pod a on=small cpu=1.25 x12
             node large pool=p type=c12 cpu=48
             pod b on=large cpu=1.25 {pods}"
        )
    };
    check(&text("x4"), "single_node_consolidation replace large -> c2,c4,c8\nsmall next_round");
    // Here the large node has more pods to move than the small one.
    check(&text("x14"), "single_node_consolidation delete small\nlarge destination");
}

#[test]
fn savings_must_beat_the_floor() {
    let text = |settings: &str| {
        format!(
            "settings {settings}
             type tiny cpu=4 price=0.49
             type small cpu=8 price=0.50
             pool p
             node a pool=p type=small cpu=8
             pod web on=a cpu=3"
        )
    };
    check_nodes(&text("floor=0/0"), "a go single_node_consolidation");
    check_nodes(&text("floor=0/2"), "a go single_node_consolidation");
    check_nodes(&text("floor=0/3"), "a below_floor");
    check_nodes(&text("floor=0.02/0"), "a below_floor");
}

/// "Do better" 13: what a node costs may be unknown, that it costs something is not.
#[test]
fn a_node_of_unknown_price_is_deleted_but_not_replaced() {
    let text = |pods: &str| {
        format!(
            "type small cpu=4 price=0.10 zone=b
             pool p policy=Balanced
             node a pool=p cpu=4 zone=a
             pod web on=a cpu={pods}
             node b pool=p cpu=4 zone=b annotation:do-not-disrupt=true
             pod db on=b cpu=2"
        )
    };
    check_nodes(&text("1"), "a go single_node_consolidation");
    check_nodes(&text("3"), "a unknown_price");
}

/// "Do better" 1 and 17.
#[test]
fn nodes_that_expire_soon_go_first_and_names_decide_between_equals() {
    let text = |words: &str| {
        format!(
            "type small cpu=4 price=0.10
             pool p budget=1
             node a pool=p cpu=4 age=1h expire=100h
             pod x on=a cpu=1 x2
             node b pool=p cpu=4 {words}
             pod y on=b cpu=1 x2
             node c pool=p cpu=4 annotation:do-not-disrupt=true"
        )
    };
    check_nodes(&text("age=99h expire=100h"), "b go single_node_consolidation\na budget_spent");
    check_nodes(&text("age=1h expire=100h"), "a go single_node_consolidation\nb budget_spent");
}

/// "How a fast exact simulation does better": no replacement whose savings until the node expires are less than it costs
/// to have both for five minutes. Here a tenth of what the new node costs is saved each hour, so that it takes 50 minutes.
#[test]
fn a_node_that_expires_before_its_replacement_pays_is_not_replaced() {
    let text = |settings: &str, age: &str| {
        format!(
            "settings {settings}
             type small cpu=4 price=0.50
             type large cpu=8 price=0.55
             pool p
             node a pool=p type=large cpu=8 age={age} expire=100h
             pod web on=a cpu=3"
        )
    };
    check_nodes(&text("", "99h"), "a go single_node_consolidation");
    check_nodes(&text("", "99h9m"), "a go single_node_consolidation");
    check_nodes(&text("", "99h11m"), "a expires_first");
    check_nodes(&text("compatible", "99h11m"), "a go single_node_consolidation");
    // Nothing is launched for a deletion.
    let fits = format!("{}\nnode b pool=p cpu=4\npod db on=b cpu=1", text("", "99h59m"));
    check_nodes(&fits, "a go single_node_consolidation");
}

/// Cases 77 and 78 as decisions: a Balanced pool refuses what saves little for what it disrupts.
#[test]
fn case_78_a_balanced_pool_refuses_moves_that_disrupt_more_than_they_save() {
    let text = |policy: &str| {
        format!(
            "type tiny cpu=20 price=0.90
             type small cpu=32 price=1.00
             pool p policy={policy}
             node a pool=p type=small cpu=32
             pod web on=a cpu=1 x18
             node b pool=p type=small cpu=32 annotation:do-not-disrupt=true
             pod full on=b cpu=32"
        )
    };
    check_nodes(&text("Balanced"), "a below_score");
    check_nodes(&text("WhenEmptyOrUnderutilized"), "a go single_node_consolidation");
    check_nodes(&text("WhenEmpty"), "a only_when_empty");
    // The only node of its pool: all that the pool costs, for all that it disrupts. If it costs nothing, nothing is saved.
    let only = |price: &str| {
        format!(
            "type small cpu=4 price={price}\npool p policy=Balanced\nnode a pool=p cpu=4\npod web on=a cpu=1\nnode foreign cpu=8 node-only"
        )
    };
    check_nodes(&only("1"), "a go single_node_consolidation");
    check_nodes(&only("0"), "a below_score");
}

/// Case 78: every Balanced pool that a node is taken from must agree, and other pools have no say.
#[test]
fn case_78_one_balanced_pool_can_refuse_a_move_of_several_and_other_pools_cannot() {
    // Two nodes as one of another type that costs as much as each: a quarter of the cost of each pool is saved. One pod of
    // two is half of a pool's disruption, three of four are more.
    let text = |p: &str, q: &str, pods: &str| {
        format!(
            "type old cpu=4 price=1
             type new cpu=8 price=1
             pool p policy={p}
             pool q policy={q}
             node p1 pool=p type=old cpu=4
             pod p1 on=p1 cpu=3
             node p2 pool=p type=old cpu=4
             pod p2 on=p2 cpu=4 protected
             node q1 pool=q type=old cpu=4
             pod q1 on=q1 {pods}
             node q2 pool=q type=old cpu=4
             pod q2 on=q2 cpu=4 protected"
        )
    };
    let (balanced, always) = ("Balanced", "WhenEmptyOrUnderutilized");
    let go = "p1 go multi_node_consolidation\nq1 go multi_node_consolidation";
    check_nodes(&text(balanced, balanced, "cpu=3"), go);
    check_nodes(&text(balanced, balanced, "cpu=1 x3"), "p1 no_cheaper\nq1 no_cheaper");
    check_nodes(&text(balanced, always, "cpu=1 x3"), go);
}

/// Sheet 03 §14: a Balanced pool says what it has weighed, on the node that goes alone and of several on the pool.
#[test]
fn what_a_balanced_pool_approves_is_told_with_its_score() {
    let told = |text: &str| {
        let approved = |event: &Event| {
            let target = &event.about.target.name.name;
            (event.reason == "ConsolidationApproved")
                .then(|| format!("{:?} {target}: {}", event.about.kind, event.message))
        };
        Fixture::read(text).decide().events.iter().filter_map(approved).collect::<Vec<_>>()
    };
    let alone = |policy: &str| {
        format!(
            "type small cpu=4 price=1
             pool p policy={policy}
             node a pool=p type=small cpu=4
             pod web on=a cpu=1
             node b pool=p type=small cpu=4 annotation:do-not-disrupt=true
             pod db on=b cpu=1 x3"
        )
    };
    // Half of the cost for one pod and one node of two nodes and four pods.
    let text = "score 1.50, at least 0.50 is needed: saves 50.0 % of the pool's cost, disrupts 33.3 % of it";
    assert_eq!(told(&alone("Balanced")), [format!("Node a: {text}"), format!("NodeClaim a: {text}")]);
    assert!(told(&alone("WhenEmptyOrUnderutilized")).is_empty());
    let together = "type old cpu=4 price=1
        type new cpu=8 price=1
        pool p policy=Balanced
        node a pool=p type=old cpu=4
        pod a on=a cpu=3
        node b pool=p type=old cpu=4
        pod b on=b cpu=3";
    let told = told(together);
    assert!(matches!(&told[..], [only] if only.starts_with("NodePool p: score 0.50, ")), "{told:?}");
}

/// "Do better" 16: a claim that is not launched yet holds up nothing but itself.
#[test]
fn a_claim_that_is_not_launched_does_not_freeze_the_others() {
    check_nodes(
        "type small cpu=4
         pool p
         node new pool=p unlaunched
         node a pool=p",
        "a go emptiness\nnew not_launched",
    );
}

/// A replacement that does not become ready is not tried again at once, and deletions go on.
#[test]
fn a_pool_whose_replacements_fail_is_shrunk_but_not_rebuilt() {
    let text = |pool: &str| {
        format!(
            "type large cpu=16 price=4
             type small cpu=4 price=1
             pool p
             pool q
             backoff {pool} reason=Underutilized
             node a pool=p type=large cpu=16
             pod web on=a cpu=4
             node b pool=p type=small cpu=4
             pod db on=b cpu=1 protected
             node c pool=p type=small cpu=4
             pod tiny on=c cpu=1"
        )
    };
    check_nodes(&text("p"), "a backed_off\nc go single_node_consolidation");
    check_nodes(&text("q"), "a go single_node_consolidation\nc go single_node_consolidation");
    let mut fixture = Fixture::read(&text("p"));
    fixture.now = fixture.decide().wake.expect("it is looked at again when the time is over");
    assert_eq!(judged(&fixture.decide(), "a"), "a go single_node_consolidation");
}
