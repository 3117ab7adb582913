//! Sheet 08 D1 to D8, and case 84.

use std::sync::Arc;

use jiff::SignedDuration;
use kerf_disruption::{Action, InvalidPolicies, RepairPolicies, Round};
use kerf_model::effect::EventKind;

use crate::fixture::{Fixture, check_nodes, judged, repair_policies, show_proposal, told};

const OTHERS: &str = "node o1 pool=p\nnode o2 pool=p\nnode o3 pool=p\nnode o4 pool=p\n";

fn with(words: &str) -> String {
    format!("settings repair\ntype small cpu=4\npool p after=Never\n{OTHERS}node a pool=p cpu=4 {words}\n")
}

fn decide(words: &str) -> Round {
    Fixture::read(&with(words)).decide()
}

/// `none`, or the action with the deadline.
fn action(words: &str) -> String {
    let round = decide(words);
    let Some(proposal) = round.proposals.first() else { return "none".to_owned() };
    let secs = |grace: Option<SignedDuration>| grace.map_or("-".to_owned(), |grace| grace.as_secs().to_string());
    match &proposal.action {
        Action::Reboot { condition, grace, .. } => format!("reboot {condition} {}", secs(*grace)),
        Action::Delete | Action::Replace(_) | Action::TerminateFirst(_) => {
            format!("replace {}", secs(proposal.candidates[0].repair.as_ref().and_then(|repair| repair.bound)))
        }
    }
}

/// The score of D4, as the order in which a budget of one is spent: `a` beside a node with Ready=False since so long.
#[track_caller]
fn check_first(words: &str, other_minutes: u32, is_first: bool) {
    let healthy: String = (0..10).map(|at| format!("node h{at} pool=p\n")).collect();
    let text = format!(
        "settings repair\ntype small\npool p after=Never budget=1\n{healthy}node a pool=p {words}\nnode z pool=p sick:Ready=False/Kubelet/{other_minutes}m"
    );
    let round = Fixture::read(&text).decide();
    assert_eq!(judged(&round, "a") == "a go repair", is_first, "{words} {other_minutes}");
}

/// Ready=False scores 0 after ten minutes and one more with every half an hour; of equals the first name goes first.
#[test]
fn urgency_is_the_rank_of_the_priority_and_the_time_waited() {
    for (words, score) in [
        ("sick:Ready=False/Kubelet/10m", 0.0),
        ("sick:Ready=False/Kubelet/70m", 2.0),
        ("sick:GPU=False/Xid79/5m", 2.0),
        ("sick:GPU=False/ECC/10m", 0.0),
        ("sick:GPU=False/Xid79/20m sick:Kernel=True/Panic/20m", 2.5),
        ("sick:GPU=False/Xid79/20m sick:Ready=False/Kubelet/20m", 2.5),
        ("sick:GPU=False/Xid79/23m rebooting=5m", 2.0),
    ] {
        let as_urgent = 10 + (score * 30.0) as u32;
        check_first(words, as_urgent, true);
        check_first(words, as_urgent + 1, false);
    }
}

/// D5: of nodes that are as urgent the one with less to disrupt, and then the name.
#[test]
fn of_equally_sick_nodes_the_one_that_disturbs_less_goes_first() {
    let sick = "sick:Ready=False/Kubelet/20m";
    let healthy: String = (0..10).map(|at| format!("node h{at} pool=p\n")).collect();
    let text = format!(
        "settings repair\ntype small\npool p after=Never budget=1\n{healthy}node a pool=p {sick}\npod x on=a cpu=1 x2\nnode b pool=p {sick}\npod y on=b cpu=1\nnode c pool=p {sick}\npod z on=c cpu=1"
    );
    check_nodes(&text, "b go repair\na budget_spent\nc budget_spent");
}

/// The vectors of D4.
#[test]
fn policies_say_when_and_how_a_sick_node_is_repaired() {
    assert_eq!(action("sick:Ready=False/Kubelet/9m"), "none");
    assert_eq!(action("sick:Ready=False/Kubelet/10m"), "replace -");
    assert_eq!(action("sick:GPU=False/Xid79/5m"), "reboot GPU 60");
    assert_eq!(action("sick:GPU=False/Xid79/4m"), "none");
    assert_eq!(action("sick:GPU=False/ECC/9m"), "none", "the fallback stands in, with its toleration");
    assert_eq!(action("sick:GPU=False/ECC/10m"), "replace -");
    assert_eq!(action("sick:GPU=False/Xid79/20m sick:Kernel=True/Panic/20m"), "replace 0");
    assert_eq!(action("sick:GPU=False/Xid79/20m sick:Ready=False/Kubelet/20m"), "replace 60");
    assert_eq!(action("sick:GPU=False/Xid79/20m rebooting=2m"), "none");
    assert_eq!(action("sick:GPU=False/Xid79/23m rebooting=5m"), "reboot GPU 60");
    assert_eq!(action("sick:GPU=True/Xid79/20m"), "none", "another status is no sickness");
    check_nodes(&with("sick:Ready=False/Kubelet/9m"), "a tolerated");
    assert_eq!(decide("sick:Ready=False/Kubelet/9m").wake, Some("2026-11-18T12:01:00Z".parse().unwrap()));
}

/// D4: the tolerated time counts from what was last: the condition, the node, or the end of a reboot.
#[test]
fn a_node_that_is_younger_than_its_condition_has_its_time_from_its_creation() {
    assert_eq!(action("age=9m sick:Ready=False/Kubelet/20m"), "none");
    assert_eq!(action("age=10m sick:Ready=False/Kubelet/20m"), "replace -");
    assert_eq!(action("age=1h sick:Ready=False/Kubelet/9m"), "none");
    assert_eq!(action("age=1h sick:Ready=False/Kubelet/20m rebooting=9m"), "none");
    assert_eq!(decide("age=9m sick:Ready=False/Kubelet/20m").wake, Some("2026-11-18T12:01:00Z".parse().unwrap()));
    // Of two that are tolerated, the first that has had enough.
    let both = decide("sick:Ready=False/Kubelet/9m sick:GPU=False/Xid79/4m30s");
    assert_eq!(both.wake, Some("2026-11-18T12:00:30Z".parse().unwrap()));
}

/// D4: of those that replace, the higher priority names the cause, then who has waited longer, then the name.
#[test]
fn the_cause_of_a_repair_is_that_of_the_weightiest_policy() {
    let cause = |words: &str| {
        let round = decide(words);
        round.proposals[0].candidates[0].repair.as_ref().unwrap().condition.to_string()
    };
    assert_eq!(cause("sick:GPU=False/Xid79/20m sick:Kernel=True/Panic/20m"), "Kernel", "one that reboots names none");
    assert_eq!(cause("sick:GPU=False/Xid79/20m sick:Ready=False/Kubelet/20m"), "Ready");
    assert_eq!(cause("sick:Ready=False/Kubelet/2h sick:Kernel=True/Panic/1m"), "Kernel", "40 before 0");
    assert_eq!(cause("sick:GPU=False/ECC/20m sick:Ready=False/Kubelet/30m"), "Ready", "eligible earlier");
    assert_eq!(cause("sick:Ready=False/Kubelet/20m sick:GPU=False/ECC/20m"), "GPU", "the smaller name");
    assert_eq!(action("sick:Kernel=True/NoPanic/9m"), "none", "the pattern says where the reason begins");
}

/// D7: the shorter of the policy's and the claim's time. The claim's own counted only from a deletion, and a reboot has
/// none: its drain was not bounded by it.
#[test]
fn a_reboot_drained_longer_than_its_claim_allows() {
    assert_eq!(action("tgp=30s sick:GPU=False/Xid79/5m"), "reboot GPU 30");
    assert_eq!(action("tgp=2m sick:GPU=False/Xid79/5m"), "reboot GPU 60");
    let mut fixture = Fixture::read(&with("tgp=30s sick:GPU=False/Xid79/5m"));
    fixture.settings.repair_policies[1].termination_grace_period = None;
    let Action::Reboot { grace, .. } = &fixture.decide().proposals[0].action else { panic!("it is not rebooted") };
    assert_eq!(*grace, Some(SignedDuration::from_secs(30)));
}

#[test]
fn a_set_of_policies_needs_one_fallback_that_replaces() {
    let check = |change: &dyn Fn(&mut Vec<kerf_model::cloud::RepairPolicy>), expected: &str| {
        let mut policies = repair_policies();
        change(&mut policies);
        assert_eq!(RepairPolicies::new(&policies).unwrap_err().to_string(), expected);
    };
    assert!(RepairPolicies::new(&repair_policies()).is_ok());
    assert_eq!(RepairPolicies::new(&[]).unwrap_err(), InvalidPolicies::Fallbacks { count: 0 });
    check(&|set| set[0].action = set[1].action, "the repair policy without reason pattern must replace nodes");
    check(&|set| set[1].reason = None, "2 repair policies have no reason pattern, there must be exactly one");
    check(
        &|set| set[1].reason = Some(Arc::from("(")),
        "the reason pattern \"(\" of the repair policy for GPU means nothing",
    );
    check(&|set| set[1].priority = 101, "the priority of the repair policy for GPU is 101, more than 100");
    check(&|set| set[1].condition = Arc::from(""), "a repair policy names no condition");
    check(
        &|set| set[1].toleration = SignedDuration::from_secs(-1),
        "the repair policy for GPU has a negative duration",
    );
    check(
        &|set| set[1].termination_grace_period = Some(SignedDuration::from_secs(-1)),
        "the repair policy for GPU has a negative duration",
    );
    // With a set that cannot be used nothing is repaired; who starts with one is told.
    let mut fixture = Fixture::read(&with("sick:Ready=False/Kubelet/20m"));
    fixture.settings.repair_policies.remove(0);
    assert!(fixture.decide().proposals.is_empty());
}

/// D5, and the first part of case 84.
#[test]
fn case_84_a_pool_with_more_than_a_fifth_of_its_nodes_sick_is_frozen() {
    let text = |sick: usize, all: usize| {
        let nodes: String = (0..all)
            .map(|at| format!("node n{at} pool=p {}\n", if at < sick { "sick:Ready=False/Kubelet/20m" } else { "" }))
            .collect();
        format!("settings repair\ntype small\npool p after=Never\n{nodes}")
    };
    check_nodes(&text(3, 10), "n0 too_many_unhealthy");
    check_nodes(&text(2, 10), "n0 go repair");
    check_nodes(&text(1, 3), "n0 go repair");
    // However long, for whatever reason, and whoever made the node.
    for other in ["sick:Ready=False/Kubelet/1m", "sick:GPU=False/ECC/1m", "sick:Kernel=True/Panic/1m node-only"] {
        let text = text(1, 8) + &format!("node x pool=p {other}\nnode y pool=p {other}\n");
        check_nodes(&text, "n0 too_many_unhealthy");
        check_nodes(&text.replace("x pool=p", "x pool=q"), "n0 go repair");
    }
    let round = Fixture::read(&text(3, 10)).decide();
    let blocked: Vec<_> = round.events.iter().filter(|event| event.reason == "NodeRepairBlocked").collect();
    let kinds: std::collections::BTreeSet<_> = blocked.iter().map(|event| event.about.kind).collect();
    assert_eq!(kinds.len(), 3, "on node, claim and pool");
}

/// D5: the most urgent first, as far as the budget goes.
#[test]
fn the_sickest_node_is_repaired_first() {
    let nodes: String = (0..20).map(|at| format!("node n{at:02} pool=p\n")).collect();
    let text = format!(
        "settings repair\ntype small\npool p after=Never budget=1\n{nodes}node a pool=p sick:Ready=False/Kubelet/20m\nnode b pool=p sick:GPU=False/Xid79/20m"
    );
    check_nodes(&text, "a budget_spent\nb go repair");
}

/// D3.
#[test]
fn a_sick_node_may_be_left_alone_and_blockers_need_a_deadline() {
    let sick = "sick:Ready=False/Kubelet/20m";
    check_nodes(&with(&format!("{sick} annotation:karpenter.sh/do-not-repair=true")), "a do_not_repair");
    check_nodes(&with("annotation:karpenter.sh/do-not-repair=true"), "a consolidation_disabled");
    check_nodes(&with(&format!("{sick} annotation:do-not-disrupt=true")), "a go repair");
    check_nodes(&with(&format!("{sick} uninitialized")), "a go repair");
    check_nodes(&with(&format!("{sick} unregistered")), "a not_registered");
    let blocked = |words: &str| format!("{}pod x on=a cpu=1 protected", with(words));
    for (text, reason) in [
        (with(&format!("{sick} annotation:karpenter.sh/do-not-repair=true")), "do_not_repair"),
        (blocked(sick), "repair_needs_deadline"),
        (with(sick).replace("node a pool=p", "node a"), "no_pool"),
        // Its pods have no place, and a sick node is not one that is merely too dear.
        (format!("{}pod x on=a cpu=5", with(sick)), "pods_have_no_place"),
    ] {
        check_nodes(&text, &format!("a {reason}"));
        let blocked = [(EventKind::Node, "DisruptionBlocked"), (EventKind::NodeClaim, "DisruptionBlocked")];
        assert_eq!(told(&Fixture::read(&text).decide(), "a"), blocked, "{reason}");
    }
    let not_yet = with("sick:Ready=False/Kubelet/9m annotation:karpenter.sh/do-not-repair=true");
    assert!(told(&Fixture::read(&not_yet).decide(), "a").is_empty(), "only once it would be repaired");
    check_nodes(&with(&format!("{sick} annotation:karpenter.sh/do-not-repair=yes")), "a go repair");
    check_nodes(&blocked(&format!("{sick} tgp=5m")), "a go repair");
    check_nodes(&blocked("sick:Kernel=True/Panic/20m"), "a go repair");
}

/// D2: repair passes over a node that is not initialised, and over what would be asked after that; not over the rest.
#[test]
fn repair_passes_over_what_the_sickness_may_be_the_cause_of() {
    let sick = "sick:Ready=False/Kubelet/20m";
    check_nodes(&with(&format!("{sick} nominated")), "a nominated");
    check_nodes(&with(&format!("{sick} nominated uninitialized")), "a go repair");
    check_nodes(&with(&format!("{sick} rebooting")), "a rebooting");
    check_nodes(&with(&format!("{sick} rebooting uninitialized")), "a rebooting");
    check_nodes(&with(&format!("{sick} deleting")), "a leaving");
    check_nodes(&with(&format!("{sick} under-way")), "a under_way");
}

/// D1: what is sick goes first. In the reference's way it goes alone, one node in each pass, and nothing else is asked;
/// here the rest goes on beside it.
#[test]
fn repair_comes_first_and_starves_the_rest_only_in_the_references_way() {
    let text = |settings: &str| {
        format!(
            "settings repair {settings}\ntype small\npool p\n{}
             node s1 pool=p sick:Ready=False/Kubelet/20m
             node s2 pool=p sick:Ready=False/Kubelet/20m
             node d pool=p drifted annotation:karpenter.sh/do-not-consolidate=true",
            OTHERS.replace("pool=p", "pool=p annotation:do-not-disrupt=true") + "node e pool=p\nnode f pool=p"
        )
    };
    let methods = |settings: &str| -> Vec<_> {
        let round = Fixture::read(&text(settings)).decide();
        round.proposals.iter().map(show_proposal).collect()
    };
    assert_eq!(methods(""), ["repair delete s1", "repair delete s2", "emptiness delete e f", "drift delete d"]);
    assert_eq!(methods("compatible"), ["repair delete s1"]);
    let healthy = text("compatible").replace("sick:Ready=False/Kubelet/20m", "annotation:do-not-disrupt=true");
    let round = Fixture::read(&healthy).decide();
    assert_eq!(round.proposals.iter().map(show_proposal).collect::<Vec<_>>(), ["emptiness delete e f"]);
}

/// D7.
#[test]
fn after_two_reboots_in_a_day_a_node_is_replaced() {
    assert_eq!(action("sick:GPU=False/Xid79/20m reboots=1h"), "reboot GPU 60");
    assert_eq!(action("sick:GPU=False/Xid79/20m reboots=1h,2h"), "replace 60");
    assert_eq!(action("sick:GPU=False/Xid79/20m reboots=1h,25h"), "reboot GPU 60");
    assert_eq!(action("sick:Kernel=True/Panic/20m tgp=5m"), "replace 0", "the shorter of the two");
    assert_eq!(action("sick:GPU=False/Xid79/20m sick:Ready=False/Kubelet/20m tgp=30s"), "replace 30");
    assert_eq!(action("sick:Ready=False/Kubelet/20m tgp=5m"), "replace -", "a policy without one adds none");
}

/// D1: no hold. D5: a node that is not initialised does not count, and needs no budget.
#[test]
fn repair_does_not_wait_and_needs_budget_only_for_nodes_that_count() {
    let sick = "sick:Ready=False/Kubelet/20m";
    assert!(decide(sick).proposals[0].hold.is_zero());
    let spent = |words: &str| with(words).replace("after=Never", "after=Never budget=0");
    check_nodes(&spent(sick), "a budget_spent");
    check_nodes(&spent(&format!("{sick} uninitialized")), "a go repair");
}

/// D7: a static pool that is too large shrinks first, and is then replaced one for one.
#[test]
fn a_sick_node_of_a_static_pool_gets_one_replacement_within_its_size() {
    let text =
        |replicas: u32| with("sick:Ready=False/Kubelet/20m").replace("after=Never", &format!("replicas={replicas}"));
    check_nodes(&text(4), "a static_scales_down");
    let round = Fixture::read(&text(5)).decide();
    assert_eq!(show_proposal(&round.proposals[0]), "repair replace a -> small");
}

#[test]
fn repair_is_off_without_its_gate_and_with_the_old_way() {
    let sick = "node a pool=p sick:Ready=False/Kubelet/20m";
    for settings in ["", "repair legacy-repair"] {
        let text = format!("settings {settings}\ntype small\npool p after=Never\n{OTHERS}{sick}");
        check_nodes(&text, "a consolidation_disabled");
    }
}

/// D7: blocked pods get their place too, because the deadline moves them.
#[test]
fn repair_makes_room_for_every_pod() {
    let text = format!("{}pod x on=a cpu=4 protected", with("sick:Kernel=True/Panic/20m"));
    let round = Fixture::read(&text).decide();
    assert_eq!(judged(&round, "a"), "a go repair");
    assert_eq!(round.proposals[0].lands_on.len() + round.proposals[0].replacements().len(), 1);
}

/// Whoever refuses replacements does so again a moment later. A reboot needs none.
#[test]
fn a_pool_whose_replacements_fail_waits_before_the_next_repair() {
    let backed_off = |words: &str| format!("{}backoff p reason=Unhealthy\n", with(words));
    check_nodes(&backed_off("sick:Ready=False/Kubelet/10m"), "a backed_off");
    check_nodes(&backed_off("sick:GPU=False/Xid79/5m"), "a go repair");
}
