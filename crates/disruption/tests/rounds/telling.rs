//! What a round tells people, and what it counts: sheet 03 §14.

use kerf_disruption::{Method, Reason, Round};
use kerf_model::effect::{Event, EventKind, EventSeverity};

use crate::fixture::{Fixture, show, told};

const BLOCKED: [(EventKind, &str); 2] =
    [(EventKind::Node, "DisruptionBlocked"), (EventKind::NodeClaim, "DisruptionBlocked")];

/// `decision pool policy`, with ` score` if there is one, of every move that was weighed.
fn weighed(text: &str) -> Vec<String> {
    let round = Fixture::read(text).decide();
    let one = |it: &kerf_disruption::ScoredMove| {
        let decision = if it.approved { "approved" } else { "rejected" };
        let score = it.score.map_or(String::new(), |score| format!(" {score:.2}"));
        format!("{decision} {} {}{score}", it.pool, it.policy.label())
    };
    round.scored.iter().map(one).collect()
}

fn events_on<'r>(round: &'r Round, name: &str) -> Vec<&'r Event> {
    round.events.iter().filter(|event| &*event.about.target.name.name == name).collect()
}

#[test]
fn every_consolidation_is_counted_and_only_those_of_balanced_pools_have_a_score() {
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
    assert_eq!(weighed(&alone("Balanced")), ["approved p Balanced 1.50"]);
    assert_eq!(weighed(&alone("WhenEmptyOrUnderutilized")), ["approved p WhenEmptyOrUnderutilized"]);
    assert!(weighed(&alone("WhenEmpty")).is_empty());
}

/// An emptiness was counted as an approved move with a score.
#[test]
fn the_deletion_of_an_empty_node_is_not_weighed() {
    assert!(weighed("type small\npool p policy=Balanced\nnode a pool=p").is_empty());
}

/// A quarter of the cost of each pool is saved; three pods of four are more than half of a pool's disruption.
#[test]
fn a_move_of_several_that_a_balanced_pool_refuses_is_counted_once() {
    let text = |settings: &str, pods: &str| {
        format!(
            "settings {settings}
             type old cpu=4 price=1
             type new cpu=8 price=1
             pool p policy=Balanced
             pool q policy=WhenEmptyOrUnderutilized
             node p1 pool=p type=old cpu=4
             pod p1 on=p1 {pods}
             node p2 pool=p type=old cpu=4
             pod p2 on=p2 cpu=4 protected
             node q1 pool=q type=old cpu=4
             pod q1 on=q1 cpu=3
             node q2 pool=q type=old cpu=4
             pod q2 on=q2 cpu=4 protected"
        )
    };
    for settings in ["best", "compatible"] {
        let approved = weighed(&text(settings, "cpu=3"));
        assert_eq!(approved, ["approved p Balanced 0.50", "approved q WhenEmptyOrUnderutilized"], "{settings}");
        let refused = weighed(&text(settings, "cpu=1 x3"));
        assert_eq!(refused, ["rejected p Balanced 0.38", "rejected q WhenEmptyOrUnderutilized"], "{settings}");
    }
}

/// They were told of while a node drained only.
#[test]
fn a_pod_says_whether_its_protection_holds_while_nobody_deletes_its_node() {
    let one = |words: &str| {
        let round = Fixture::read(&format!("type small\npool p\nnode a pool=p\npod w on=a cpu=1 {words}")).decide();
        let events = events_on(&round, "w");
        events.iter().map(|event| (event.severity, event.reason, event.interval.as_mins())).collect::<Vec<_>>()
    };
    let normal = |reason| vec![(EventSeverity::Normal, reason, 2)];
    assert_eq!(one("protected=soon"), [(EventSeverity::Warning, "InvalidDoNotDisruptAnnotation", 2)]);
    assert_eq!(one("protected=2h age=1h"), normal("DoNotDisruptUntil"));
    assert_eq!(one("protected=1h age=2h"), normal("DoNotDisruptGracePeriodElapsed"));
    for silent in ["", "protected", "protected=1h not-started", "protected=1h age=2h succeeded"] {
        assert_eq!(one(silent), [], "{silent:?}");
    }
    let draining = "type small\npool p\nnode a pool=p marked\npod w on=a cpu=1 protected=soon";
    assert!(events_on(&Fixture::read(draining).decide(), "w").is_empty(), "its drain tells");
}

#[test]
fn a_node_that_is_going_or_coming_says_that_it_is_not_disrupted() {
    let told_of = |text: &str, node: &str| told(&Fixture::read(&format!("type small\npool p\n{text}")).decide(), node);
    assert_eq!(told_of("node a pool=p deleting", "a"), BLOCKED);
    assert_eq!(told_of("node a pool=p marked", "a"), BLOCKED);
    assert_eq!(told_of("node a pool=p under-way=b\nnode b pool=p uninitialized", "b"), BLOCKED);
    assert!(told_of("node a pool=p under-way=b\nnode b pool=p", "a").is_empty(), "its command tells");
}

/// What blocks was not asked of nodes of static pools that have not drifted.
#[test]
fn a_node_of_a_static_pool_that_is_blocked_says_so() {
    let told_of = |node: &str, more: &str| {
        told(&Fixture::read(&format!("type small\npool s replicas=1\nnode a pool=s {node}\n{more}")).decide(), "a")
    };
    assert_eq!(told_of("nominated", ""), BLOCKED);
    assert_eq!(told_of("", "pod w on=a cpu=1 protected"), BLOCKED);
    assert_eq!(told_of("", "pod w on=a cpu=1"), []);
}

#[test]
fn a_pool_says_that_a_budget_allows_nothing_if_something_asks() {
    let on_pool = |text: &str| {
        let round = Fixture::read(text).decide();
        let reasons: Vec<_> = events_on(&round, "p").iter().map(|event| event.dedupe.clone()).collect();
        assert!(events_on(&round, "p").iter().all(|event| event.reason == "DisruptionBlocked"));
        reasons
    };
    assert_eq!(on_pool("type small\npool p budget=0\nnode a pool=p"), ["Empty"]);
    assert_eq!(on_pool("type small\npool p budget=0 after=Never\nnode a pool=p drifted"), ["Drifted"]);
    assert!(on_pool("type small\npool p budget=0 after=Never\nnode a pool=p").is_empty());
    let sick = "type small\npool p budget=0:Unhealthy after=Never\nnode a pool=p sick:Ready=False/Kubelet/20m";
    assert_eq!(on_pool(&format!("settings repair\n{sick}")), ["Unhealthy"]);
    assert!(on_pool(sick).is_empty(), "nobody repairs without the gate");
}

#[test]
fn a_round_says_whether_it_looks_for_sick_nodes() {
    let repairs = |settings: &str| {
        Fixture::read(&format!("settings {settings}\ntype small\npool p\nnode a pool=p")).decide().repairs()
    };
    assert!(repairs("repair"));
    assert!(!repairs("best"));
    assert!(!repairs("repair legacy-repair"));
}

/// The gauge fell to 0 for as long as the proposal waited.
#[test]
fn nodes_of_a_proposal_that_waits_are_still_eligible() {
    let mut fixture = Fixture::read("type small\npool p\nnode a pool=p\nnode b pool=p");
    let eligible = |fixture: &Fixture| fixture.decide().eligible_by_reason()[&Reason::Empty];
    assert_eq!(eligible(&fixture), 2);
    let proposal = fixture.decide().proposals.remove(0);
    fixture.hold(&proposal);
    assert_eq!(eligible(&fixture), 2);
    fixture.change("node a pool=p deleting");
    assert_eq!(eligible(&fixture), 1, "one that goes could not be chosen");
    let mut busy =
        Fixture::read("type small cpu=4\npool p\nnode a pool=p\npod w on=a cpu=1\nnode b pool=p\npod x on=b cpu=2");
    let eligible = |fixture: &Fixture| fixture.decide().eligible_by_reason()[&Reason::Underutilized];
    let before = eligible(&busy);
    let proposal = busy.decide().proposals.remove(0);
    assert_eq!(proposal.method, Method::SingleNode, "{}", show(&busy.decide()));
    busy.hold(&proposal);
    assert_eq!((before, eligible(&busy)), (2, 2));
}

#[test]
fn a_node_that_is_to_be_replaced_says_so_with_the_saving_and_one_that_is_deleted_does_not() {
    let candidates = |text: &str| {
        let round = Fixture::read(text).decide();
        let events = round.events.iter().filter(|event| event.reason == "ConsolidationCandidate");
        events.map(|event| format!("{:?} {}", event.about.kind, event.message)).collect::<Vec<_>>()
    };
    let replaced =
        "type small cpu=2 price=1\ntype large cpu=8 price=4\npool p\nnode a pool=p type=large cpu=8\npod w on=a cpu=1";
    let said = candidates(replaced);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("Node ") && said[1].starts_with("NodeClaim "), "{said:?}");
    assert!(said.iter().all(|text| text.contains("replace") && text.contains("saving 3")), "{said:?}");
    let several =
        "type old cpu=4 price=1\ntype new cpu=8 price=1\npool p\nnode a pool=p type=old cpu=4\npod a on=a cpu=3
         node b pool=p type=old cpu=4\npod b on=b cpu=3";
    let said = candidates(several);
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said.iter().all(|text| text.contains("as part of 2 nodes")), "{said:?}");
    assert!(candidates("type small\npool p\nnode a pool=p").is_empty());
}

/// That of the first candidate stood for all.
#[test]
fn each_node_of_a_move_has_the_policy_of_its_own_pool() {
    let policies = |text: &str| {
        let round = Fixture::read(text).decide();
        let candidates = round.proposals.iter().flat_map(|proposal| &proposal.candidates);
        let shown = |policy: kerf_model::node_pool::ConsolidationPolicy| policy.label();
        let of = candidates.map(|it| format!("{} {}", it.pool, it.consolidation_policy.map_or("-", shown)));
        of.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    let pools = "type small\npool p policy=WhenEmpty\npool q policy=Balanced";
    assert_eq!(policies(&format!("{pools}\nnode a pool=p\nnode b pool=q")), ["p WhenEmpty", "q Balanced"]);
    assert_eq!(policies(&format!("{pools} no-consolidation\nnode b pool=q drifted")), ["q -"], "drift has none");
}
