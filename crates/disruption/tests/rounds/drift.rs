//! Cases 33 to 51 that are decisions. How drift is seen (44 to 50) is the lifecycle's, how it is carried out (40 to 42)
//! the engine's.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::SignedDuration;
use kerf_disruption::{Method, Policy, Reason, Running};
use kerf_model::effect::EventKind;

use crate::fixture::{Fixture, check, check_nodes, judged, show, told};

#[test]
fn case_33_a_drifted_node_is_replaced_replacement_first() {
    let round = check(
        "type small cpu=4 price=0.10
         pool p
         node a pool=p cpu=4 drifted
         pod web on=a cpu=3",
        "drift replace a -> small",
    );
    assert!(round.proposals[0].hold.is_zero());
    assert_eq!(round.proposals[0].replacements()[0].pods.len(), 1);
}

#[test]
fn case_34_pods_that_fit_elsewhere_need_no_replacement() {
    let round = check(
        "type small cpu=4
         pool p no-consolidation
         node a pool=p cpu=4 drifted
         pod web on=a cpu=1
         node b pool=p cpu=4
         pod other on=b cpu=1",
        "drift delete a
         b consolidation_disabled",
    );
    assert_eq!(&**round.proposals[0].lands_on[0].host.name(), "b");
}

#[test]
fn case_35_pods_may_need_several_new_nodes() {
    let round = Fixture::read(
        "type small cpu=2
         type big cpu=8 soldout
         pool p no-consolidation
         node a pool=p cpu=8 type=big drifted
         pod web on=a cpu=2 x3",
    )
    .decide();
    assert_eq!(round.proposals[0].replacements().len(), 3);
}

#[test]
fn case_36_a_node_whose_pods_have_no_place_does_not_stop_the_others() {
    let text = "type small cpu=2
         pool p no-consolidation
         node a pool=p cpu=5 drifted=3h
         pod web on=a cpu=5
         node b pool=p cpu=2 drifted=2h
         pod db on=b cpu=1
         node c pool=p cpu=2 drifted=1h
         pod x on=c cpu=2";
    let round = check(
        &format!("settings compatible\n{text}"),
        "drift replace b -> small
         a pods_have_no_place
         c not_examined",
    );
    let expected = [(EventKind::Node, "DisruptionBlocked"), (EventKind::NodeClaim, "DisruptionBlocked")];
    assert_eq!(told(&round, "a"), expected);
    assert!(round.events[0].message.contains("default/web"), "{}", round.events[0].message);
    let round = check(text, "drift replace b -> small\ndrift replace c -> small\na pods_have_no_place");
    assert_eq!(told(&round, "a"), expected);
}

#[test]
fn case_37_and_38_nodes_without_pods_first_then_those_that_wait_longest() {
    let text = "type small cpu=4
         pool p no-consolidation budget=1
         node a pool=p cpu=4 drifted=3h
         pod web on=a cpu=3
         node b pool=p cpu=4 drifted=5h
         pod db on=b cpu=3
         node c pool=p cpu=4 drifted=1h
         ";
    check_nodes(text, "c go drift\na budget_spent\nb budget_spent");
    let two = text.replace("budget=1", "budget=2");
    check_nodes(&two, "c go drift\nb go drift\na budget_spent");
}

/// All that the budget allows in one round; the reference takes one node in each pass.
#[test]
fn case_39_drift_goes_on_in_parallel_up_to_the_budget() {
    let nodes: String = (0..10)
        .map(|at| {
            format!("node n{at} pool=p cpu=4 {}\npod p{at} on=n{at} cpu=3\n", if at < 5 { "drifted" } else { "" })
        })
        .collect();
    let text = format!("type small cpu=4\npool p no-consolidation budget=30%\n{nodes}");
    assert_eq!(Fixture::read(&text).decide().proposals.len(), 3);
    // Five passes of the reference's way, each with what the ones before it have started.
    let mut fixture = Fixture::read(&format!("settings compatible\n{text}"));
    let started: Vec<usize> = (0..5)
        .map(|_| {
            let proposals = fixture.decide().proposals;
            fixture.memory.running.extend(proposals.iter().map(|proposal| Running {
                id: proposal.id.clone(),
                method: proposal.method,
                reason: proposal.reason,
                candidates: proposal.claims().cloned().collect(),
                pools: BTreeSet::new(),
                replacements: BTreeSet::new(),
            }));
            proposals.len()
        })
        .collect();
    assert_eq!(started, [1, 1, 1, 0, 0]);
}

/// Seen on a real cluster: pods of one move took the room planned for the next, which then needed two nodes for one.
#[test]
fn nodes_that_drift_together_get_one_replacement_each_although_their_pods_spread_over_hosts() {
    let nodes: String = (0..4)
        .map(|at| format!("node n{at} pool=p cpu=8 drifted\npod p{at} on=n{at} cpu=1 label:app=web spread:host:1:app=web\npod q{at} on=n{at} cpu=6\n"))
        .collect();
    let round = Fixture::read(&format!("type large cpu=8\npool p no-consolidation budget=100%\n{nodes}")).decide();
    let launched: Vec<usize> = round.proposals.iter().map(|proposal| proposal.replacements().len()).collect();
    assert_eq!(launched, [1, 1, 1, 1]);
}

#[test]
fn case_43_with_a_deadline_a_blocked_pod_gets_no_room_until_it_can_move() {
    check(
        "type small cpu=4
         pool p no-consolidation
         node a pool=p cpu=4 drifted tgp=5m
         pod web on=a cpu=3 protected",
        "drift delete a",
    );
    let round = check(
        "type small cpu=4
         pool p no-consolidation
         node a pool=p cpu=8 drifted tgp=5m
         pod web on=a cpu=3 protected
         pod db on=a cpu=3",
        "drift replace a -> small",
    );
    assert_eq!(round.proposals[0].replacements()[0].pods.len(), 1, "that of db");
    let spent = |word: &str| {
        format!(
            "type small cpu=4\npool p no-consolidation\nnode a pool=p cpu=4 drifted tgp=5m\npod web on=a cpu=3 label:app=web\npdb web select:app=web {word}"
        )
    };
    check(&spent("never"), "drift delete a");
    check(&spent("allowed=0"), "drift replace a -> small");
}

#[test]
fn case_51_a_pool_that_fails_waits_alone() {
    let text = "type small
         pool p no-consolidation
         pool q no-consolidation
         backoff p
         node a pool=p drifted=5h
         node b pool=q drifted";
    check(text, "drift delete b\na backed_off");
    let mut fixture = Fixture::read(text);
    let pool: Arc<str> = Arc::from("p");
    let key = (pool.clone(), Reason::Drifted);
    let first = fixture.memory.back_off[&key];
    fixture.memory.failed(&pool, Reason::Drifted, fixture.now);
    assert_eq!(fixture.memory.back_off[&key], first, "two failures in one window count once");
    let wait = first.until.duration_since(fixture.now);
    assert!((30..60).contains(&wait.as_secs()), "{wait}");
    assert_eq!(fixture.decide().wake, Some(first.until));
    fixture.memory.failed(&pool, Reason::Drifted, first.until);
    let second = fixture.memory.back_off[&key];
    assert_eq!(second.level, 2);
    assert!((60..120).contains(&second.until.duration_since(first.until).as_secs()));
    fixture.memory.finished(Method::Drift, &BTreeSet::from([pool]), true, fixture.now);
    assert!(fixture.memory.back_off.is_empty());
}

/// Pods of a drifted node do not go to another drifted node if there is a choice: they would move twice.
#[test]
fn drift_does_not_fill_nodes_that_drift_takes_next() {
    let text = "type small cpu=4
         pool p no-consolidation budget=1
         node a pool=p cpu=4 drifted=5h
         pod web on=a cpu=1
         node b pool=p cpu=4 drifted=3h
         pod db on=b cpu=1";
    check(text, "drift replace a -> small\nb budget_spent");
    check(&format!("settings compatible\n{text}"), "drift delete a\nb not_examined");
}

/// Two moves of one round never count on the same room.
#[test]
fn drift_of_two_nodes_does_not_count_on_the_same_room() {
    let round = check(
        "type small cpu=4
         pool p no-consolidation
         node a pool=p cpu=4 drifted=5h
         pod web on=a cpu=3
         node b pool=p cpu=4 drifted=3h
         pod db on=b cpu=3
         node c pool=p cpu=4",
        "drift delete a
         drift replace b -> small
         c consolidation_disabled",
    );
    assert_eq!(&**round.proposals[0].lands_on[0].host.name(), "c");
}

/// The reference runs no consolidation as long as there is drift.
#[test]
fn drift_leaves_consolidation_its_share_of_the_budget() {
    let drifted: String =
        (0..6).map(|at| format!("node d{at} pool=p cpu=4 drifted\npod d{at} on=d{at} cpu=4\n")).collect();
    let text = format!(
        "type small cpu=4
         pool p budget=4
         {drifted}
         node u1 pool=p cpu=4
         pod u1 on=u1 cpu=1
         node u2 pool=p cpu=4
         pod u2 on=u2 cpu=1
         node u3 pool=p cpu=4
         pod u3 on=u3 cpu=1"
    );
    let round = Fixture::read(&text).decide();
    let of = |method: Method| -> usize {
        round.proposals.iter().filter(|own| own.method == method).map(|own| own.candidates.len()).sum()
    };
    assert_eq!((of(Method::MultiNode), of(Method::Drift)), (2, 2), "\n{}", show(&round));
    let mut compatible = Fixture::read(&text);
    compatible.settings.policy = Policy::Compatible;
    let round = compatible.decide();
    assert_eq!(round.proposals.len(), 1);
    assert_eq!(round.proposals[0].method, Method::Drift);
}

/// A drifted node whose pods had no place, or that no budget let go, kept its half of the budget for itself: with a budget
/// of one node nothing was consolidated any more.
#[test]
fn what_drift_cannot_use_of_its_share_goes_to_consolidation() {
    let of = |budgets: &str, drifted: &str| {
        let underused: String =
            (0..4).map(|at| format!("node u{at} pool=p cpu=4\npod u{at} on=u{at} cpu=1\n")).collect();
        let text = format!(
            "type small cpu=4\npool p {budgets}\nnode d pool=p cpu={drifted} drifted\npod d on=d cpu={drifted}\n{underused}"
        );
        let round = Fixture::read(&text).decide();
        let consolidated = round.proposals.iter().filter(|own| own.method != Method::Drift);
        let nodes: usize = consolidated.map(|own| own.candidates.len()).sum();
        (nodes, judged(&round, "d"))
    };
    let stuck = || "d pods_have_no_place".to_owned();
    assert_eq!(of("budget=1", "8"), (1, stuck()));
    assert_eq!(of("budget=2", "8"), (2, stuck()));
    assert_eq!(of("budget=4", "8"), (3, stuck()), "the last one takes the pods of the others");
    let held = || "d budget_spent".to_owned();
    assert_eq!(of("budget=1 budget=0:Drifted", "4"), (1, held()));
    assert_eq!(of("budget=2 budget=0:Drifted", "4"), (2, held()));
    // One that can go needs no more than its own part.
    assert_eq!(of("budget=1", "4"), (0, "d go drift".to_owned()));
    assert_eq!(of("budget=3", "4"), (2, "d go drift".to_owned()));
}

/// One disruption serves both, within the budget of consolidation, and only if it is cheaper.
#[test]
fn a_drifted_node_and_an_underused_one_become_one_new_node_in_one_command() {
    let text = |pool: &str, price: &str| {
        format!(
            "type old cpu=4 price=0.20
             type new cpu=8 price={price}
             pool p {pool}
             node d pool=p type=old cpu=4 drifted
             pod d on=d cpu=3
             node u pool=p type=old cpu=4
             pod u on=u cpu=3"
        )
    };
    check(&text("", "0.30"), "multi_node_consolidation replace d u -> new");
    check(&text("", "0.40"), "drift replace d -> old,new\nu no_cheaper");
    check(&text("budget=0:Underutilized", "0.30"), "drift replace d -> old,new\nu budget_spent");
    check(&text("budget=0:Drifted", "0.30"), "multi_node_consolidation replace d u -> new");
    // Where the pods of a drifted node fit elsewhere, nothing is launched for them.
    check(
        "type old cpu=4 price=0.20
         pool p budget=-
         node d pool=p type=old cpu=4 drifted
         pod d on=d cpu=1
         node u pool=p type=old cpu=4
         pod u on=u cpu=2",
        "drift delete d\nu destination",
    );
}

/// They would move twice. One that drift can do nothing about is a destination like any other.
#[test]
fn nothing_is_moved_onto_a_node_that_drift_takes_next() {
    let text = |budget: &str| {
        format!(
            "type small cpu=4
             pool p {budget}
             node d pool=p type=small cpu=4 drifted
             pod d on=d cpu=2
             node u pool=p type=small cpu=4
             pod u on=u cpu=1
             node v pool=p type=small cpu=4
             pod v on=v cpu=4 protected"
        )
    };
    // The only room that d leaves for its pod is beside u, and the other way round.
    check_nodes(&text("budget=100%"), "d go drift\nu destination");
    // Two rooms for u: the one that stays is taken.
    let roomy = text("budget=100%").replace("pod v on=v cpu=4", "pod v on=v cpu=1");
    check_nodes(&roomy, "d go drift\nu go single_node_consolidation");
    let stays = text("budget=100%").replace("pod d on=d cpu=2", "pod d on=d cpu=2 protected");
    check_nodes(&stays, "d protected_pod\nu go single_node_consolidation");
}

/// A budget of one node is taken in turns.
#[test]
fn with_one_node_at_a_time_drift_and_consolidation_take_turns() {
    let mut fixture = Fixture::read(
        "type small cpu=4
         pool p budget=1
         node d pool=p cpu=4 drifted
         pod d on=d cpu=4
         node u pool=p cpu=4
         pod u on=u cpu=1
         node v pool=p cpu=4
         pod v on=v cpu=1",
    );
    let first = fixture.decide();
    assert_eq!(first.proposals[0].method, Method::Drift);
    let mut memory = fixture.memory.clone();
    memory.started(&first.proposals[0], &fixture.view());
    fixture.memory = memory;
    assert_eq!(fixture.decide().proposals[0].method, Method::SingleNode);
}

#[test]
fn a_roll_out_in_waves_bakes_between_them_and_halts_when_replacements_fail() {
    let nodes: String = (0..10).map(|at| format!("node n{at} pool=p drifted\n")).collect();
    let mut fixture = Fixture::read(&format!("settings waves=20/10m/2\ntype small\npool p no-consolidation\n{nodes}"));
    let first = fixture.decide();
    assert_eq!(first.proposals.len(), 2, "a fifth of the pool");
    assert_eq!(first.verdicts["n5"].label(), "baking");
    let mut memory = fixture.memory.clone();
    for proposal in &first.proposals {
        memory.started(proposal, &fixture.view());
    }
    fixture.memory = memory;
    assert_eq!(fixture.decide().proposals.len(), 0, "the wave is full");
    let pools = BTreeSet::from([Arc::from("p")]);
    fixture.memory.finished(Method::Drift, &pools, true, fixture.now);
    let baking = fixture.decide();
    assert_eq!((baking.proposals.len(), baking.wake), (0, Some(fixture.now + SignedDuration::from_mins(10))));
    fixture.now += SignedDuration::from_mins(10);
    assert_eq!(fixture.decide().proposals.len(), 2, "the next wave");
    fixture.memory.finished(Method::Drift, &pools, false, fixture.now);
    fixture.memory.finished(Method::Drift, &pools, false, fixture.now);
    fixture.now += SignedDuration::from_hours(1);
    assert_eq!(fixture.decide().verdicts["n5"].label(), "rollout_halted");
}

#[test]
fn a_rebalance_recommendation_replaces_the_node_only_if_asked_to() {
    let text = "type small cpu=4 kind=spot
         pool p no-consolidation
         node a pool=p cpu=4 kind=spot rebalance
         pod web on=a cpu=3";
    check(text, "a consolidation_disabled");
    check(&format!("settings rebalance\n{text}"), "rebalance replace a -> small");
    check(&format!("settings rebalance\nwindow w action=Rebalance\n{text}"), "a maintenance_window");
}

/// Each of two nodes could be replaced within the limit, and both together could not: the claim that is not launched yet may
/// become the larger type.
#[test]
fn a_claim_that_is_not_launched_takes_as_much_of_a_limit_as_it_may_become() {
    let cluster = |more: &str| {
        format!(
            "type small cpu=2 memory=4Gi price=0.10
             type large cpu=4 memory=8Gi price=0.20
             pool p after=Never budget=100% limit:cpu=10
             node a pool=p type=small cpu=2 drifted=2h
             node b pool=p type=small cpu=2 drifted=1h
             pod one on=a cpu=1.5
             pod two on=b cpu=1.5
             {more}"
        )
    };
    check_nodes(&cluster(""), "a go drift\nb go drift");
    check_nodes(&cluster("node c pool=p unlaunched"), "a go drift\nb next_round");
}

/// A thousand nodes drifted at once, and hardly any was replaced while the replacements of others were starting: its pod
/// seemed to fit on one of those, which nothing may rest on yet.
#[test]
fn the_replacement_of_another_node_is_no_destination() {
    for (leaving, drifted) in [("a", "b"), ("b", "a")] {
        check_nodes(
            &format!(
                "type small cpu=4 price=0.10
                 pool p after=Never budget=100%
                 node {leaving} pool=p cpu=4 drifted under-way=new
                 node new pool=p cpu=4 uninitialized
                 node {drifted} pool=p cpu=4 drifted
                 pod on-a on=a cpu=3
                 pod on-b on=b cpu=3"
            ),
            &format!("{drifted} go drift"),
        );
    }
}
