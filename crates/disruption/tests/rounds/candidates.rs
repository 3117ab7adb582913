//! Cases 14 to 24: which nodes may be chosen at all.

use kerf_model::effect::{EventKind, EventSeverity};

use crate::fixture::{Fixture, check, check_nodes, told};

const BASE: &str = "type small cpu=4 price=0.10
    type large cpu=16 price=0.80
    pool p
    node free pool=p cpu=4 unsettled
    ";

/// Consolidation by class: graceful, drift without a deadline, drift with one, consolidation with one.
#[track_caller]
fn check_matrix(pod: &str, pdb: &str, expected: [&str; 4]) {
    let each = ["", "drifted", "drifted tgp=5m", "tgp=5m"];
    for (words, expected) in each.into_iter().zip(expected) {
        let text = format!("{BASE}\nnode a pool=p {words}\npod web on=a cpu=1 label:app=web {pod}\n{pdb}");
        check_nodes(&text, &format!("a {expected}"));
    }
}

#[test]
fn case_14_a_protected_pod_blocks_all_but_drift_with_a_deadline() {
    check_matrix("protected", "", ["protected_pod", "protected_pod", "go drift", "protected_pod"]);
}

#[test]
fn case_15_so_does_a_pdb_that_allows_nothing() {
    let pdb = "pdb web allowed=0 select:app=web";
    check_matrix("", pdb, ["pdb_blocks", "pdb_blocks", "go drift", "pdb_blocks"]);
}

/// Cases 14 and 15 for drift of static pools, which insists as drift of others does.
#[test]
fn pods_that_block_hold_back_static_drift_unless_there_is_a_deadline() {
    let with = |node: &str, pod: &str| {
        format!(
            "type small cpu=4\npool s replicas=1\nnode a pool=s drifted {node}
             pod web on=a cpu=1 label:app=web {pod}\npdb other allowed=0 select:app=guarded"
        )
    };
    check_nodes(&with("", ""), "a go static_drift");
    check_nodes(&with("", "protected"), "a protected_pod");
    check_nodes(&with("tgp=5m", "protected"), "a go static_drift");
    check_nodes(&with("", "").replace("app=web", "app=guarded"), "a pdb_blocks");
    check_nodes(&with("tgp=5m", "").replace("app=web", "app=guarded"), "a go static_drift");
}

#[test]
fn case_16_daemons_and_mirror_pods_protect_too_and_pods_that_are_done_do_not() {
    let with = |pod: &str| format!("{BASE}\nnode a pool=p\npod x on=a cpu=1 protected {pod}");
    check_nodes(&with("owner=DaemonSet"), "a protected_pod");
    check_nodes(&with("owner=Node"), "a protected_pod");
    check_nodes(&with("deleting"), "a go emptiness");
    check_nodes(&with("succeeded"), "a go emptiness");
}

#[test]
fn case_17_a_pdb_counts_for_pods_that_would_be_evicted() {
    let with = |pod: &str| {
        format!("{BASE}\npdb web allowed=0 select:app=web\nnode a pool=p\npod x on=a cpu=1 label:app=web {pod}")
    };
    check_nodes(&with("owner=DaemonSet"), "a pdb_blocks");
    check_nodes(&with("owner=Node"), "a go emptiness");
    check_nodes(&with("succeeded"), "a go emptiness");
    check_nodes(&with("deleting"), "a go emptiness");
    check_nodes(&with("namespace=other"), "a go single_node_consolidation");
    check_nodes(&with("tolerate:karpenter.sh/disrupted"), "a go single_node_consolidation");
}

#[test]
fn case_18_two_pdbs_on_one_pod_always_block() {
    check_nodes(
        &format!(
            "{BASE}
         pdb one allowed=5 select:app=web
         pdb two allowed=5 select:app=web
         node a pool=p
         pod x on=a cpu=1 label:app=web"
        ),
        "a several_pdbs",
    );
}

#[test]
fn case_19_an_unready_pod_may_go_if_its_pdb_says_so() {
    let with = |policy: &str| {
        format!(
            "{BASE}\npdb one allowed=0 select:app=web {policy}\nnode a pool=p\npod x on=a cpu=1 label:app=web unready"
        )
    };
    check_nodes(&with("always-allow"), "a go single_node_consolidation");
    check_nodes(&with(""), "a pdb_blocks");
}

#[test]
fn case_20_protection_may_end() {
    let with = |pods: &str| format!("{BASE}\nnode a pool=p\n{pods}");
    check_nodes(&with("pod x on=a cpu=1 protected=30m age=29m"), "a protected_pod");
    check_nodes(&with("pod x on=a cpu=1 protected=30m age=31m"), "a go single_node_consolidation");
    check_nodes(&with("pod x on=a cpu=1 protected=30m not-started"), "a protected_pod");
    check_nodes(&with("pod x on=a cpu=1 protected=abc"), "a go single_node_consolidation");
    check_nodes(&with("pod x on=a cpu=1 protected=-5m"), "a go single_node_consolidation");
    for (value, is_warned) in [("abc", true), ("-5m", true), ("false", true), ("30m", false), ("true", false)] {
        let events = Fixture::read(&with(&format!("pod x on=a cpu=1 protected={value}"))).decide().events;
        let warned = events.iter().find(|event| event.reason == "InvalidDoNotDisruptAnnotation");
        assert_eq!(warned.is_some(), is_warned, "{value}");
        if let Some(event) = warned {
            assert_eq!((event.about.kind, event.severity), (EventKind::Pod, EventSeverity::Warning));
            assert_eq!(&*event.about.target.name.name, "x");
            assert!(event.message.contains(value), "{}", event.message);
        }
    }
    let two = with("pod x on=a cpu=1 protected=10m age=5m\npod y on=a cpu=1 protected=60m age=5m");
    let fixture = Fixture::read(&two);
    let round = fixture.decide();
    assert_eq!(
        round.verdicts["a"].to_string(),
        "stays: pod default/y has the annotation karpenter.sh/do-not-disrupt until 2026-11-18T12:55:00Z"
    );
    assert_eq!(round.wake, Some("2026-11-18T12:55:00Z".parse().unwrap()), "not before it can help");
}

/// A duration on a node is Kerf's own, from the node's creation; the reference knows only `true`.
#[test]
fn case_21_a_node_can_be_protected_too() {
    let with = |value: &str| format!("type small\npool p\nnode a pool=p age=2h annotation:do-not-disrupt={value}");
    check_nodes(&with("true"), "a do_not_disrupt");
    check_nodes(&with("false"), "a go emptiness");
    check_nodes(&with("1h"), "a go emptiness");
    check_nodes(&with("3h"), "a do_not_disrupt");
    check_nodes(&format!("settings compatible\n{}", with("3h")), "a go emptiness");
    check_nodes(
        "type small\npool p\nnode a pool=p annotation:karpenter.sh/do-not-deprovision=true",
        "a do_not_disrupt",
    );
}

#[test]
fn case_22_what_is_not_whole_or_spoken_for_is_no_candidate() {
    check(
        "type small
         pool p
         pool unlisted unlisted
         node a pool=p nominated
         node b pool=p deleting
         node c pool=p marked
         node d pool=p uninitialized
         node e
         node f pool=nowhere
         node g pool=p under-way
         node h pool=p node-only
         node i pool=p claim-only
         node j pool=p unlaunched
         node k pool=p unregistered
         node l pool=unlisted
         node m pool=p rebooting",
        "a nominated
         b leaving
         c leaving
         d not_initialized
         e no_pool
         f pool_missing
         g under_way
         i no_node
         j not_launched
         k not_registered
         l no_instance_types
         m rebooting",
    );
}

#[test]
fn case_23_without_type_zone_or_capacity_type_a_node_is_not_consolidated_but_may_drift_or_be_empty() {
    for (word, reason) in [
        ("type=gone", "unknown_type"),
        ("type=-", "unknown_type"),
        ("zone=-", "no_zone"),
        ("kind=-", "no_capacity_type"),
    ] {
        let node = |words: &str| format!("{BASE}\nnode a pool=p {word} {words}\n");
        let busy = format!("{}pod web on=a cpu=1", node(""));
        check_nodes(&busy, &format!("a {reason}"));
        let expected = [(EventKind::Node, "Unconsolidatable"), (EventKind::NodeClaim, "Unconsolidatable")];
        assert_eq!(told(&Fixture::read(&busy).decide(), "a"), expected);
        check_nodes(&format!("{}pod web on=a cpu=1", node("drifted")), "a go drift");
        check_nodes(&node(""), "a go emptiness");
    }
}

/// Sheet 03 §5 and sheet 08 D10, as a whole: a node is empty if no pod costs anything.
#[test]
fn case_24_what_a_pod_costs_decides_whether_its_node_is_empty() {
    let is_empty = |settings: &str, pod: &str| {
        let text = format!("settings {settings}\n{BASE}\nnode a pool=p\npod web on=a cpu=1 {pod}");
        Fixture::read(&text).decide().proposals.iter().any(|proposal| {
            proposal.method == kerf_disruption::Method::Emptiness && proposal.claims().any(|claim| &**claim == "a")
        })
    };
    assert!(!is_empty("", ""));
    assert!(is_empty("", "priority=-33554432"));
    assert!(is_empty("", "annotation:deletion-cost=-134217728"));
    assert!(!is_empty("", "annotation:deletion-cost=-134217727"));
    assert!(is_empty("", "annotation:disruption-cost=-134217728"));
    assert!(!is_empty("", "annotation:disruption-cost=bad annotation:deletion-cost=-134217728"), "no fall-through");
    assert!(!is_empty("deletion-cost", "annotation:deletion-cost=-134217728"), "then it is ours, and says nothing");
    assert!(!is_empty("", "annotation:deletion-cost=-2147483648"), "left over from the gate");
    assert!(is_empty("", "annotation:disruption-cost=-2147483648"));
}

/// Sheet 03 §3: what keeps a node from being a candidate is told on the node and on its claim, and names what it is.
#[test]
fn what_blocks_a_node_is_told_with_its_name() {
    let message = |text: &str| {
        let round = Fixture::read(text).decide();
        let blocked = told(&round, "a").into_iter().filter(|(_, reason)| *reason == "DisruptionBlocked").count();
        assert!(blocked > 0, "{text}: {:?}", round.events);
        let event = round.events.iter().find(|event| event.reason == "DisruptionBlocked").unwrap();
        assert_eq!(event.interval.as_mins(), 2);
        event.message.clone()
    };
    let with = |node: &str, more: &str| format!("type small\npool p\nnode a pool=p {node}\n{more}");
    let pod = "pod x on=a cpu=1 label:app=web";
    for (text, named) in [
        (with("annotation:do-not-disrupt=true", ""), "karpenter.sh/do-not-disrupt"),
        (with("", "pod x on=a cpu=1 protected"), "default/x"),
        (with("", &format!("{pod}\npdb web allowed=0 select:app=web")), "default/web"),
        (
            with("", &format!("{pod}\npdb one allowed=1 select:app=web\npdb two allowed=1 select:app=web")),
            "default/two",
        ),
        (with("nominated", ""), "pending pod"),
        (with("uninitialized", ""), "not initialized"),
        ("type small\npool p\nnode a pool=nowhere".to_owned(), "nowhere"),
        (with("", "window night action=Consolidation"), "night"),
    ] {
        assert!(message(&text).contains(named), "{named:?} in {:?}", message(&text));
    }
}

/// "Do better" 14.
#[test]
fn evictions_that_a_pdb_allows_are_counted_over_the_round() {
    let text = "type small cpu=4
         pool p
         pdb web allowed=1 select:app=web
         node a pool=p cpu=4
         pod x on=a cpu=1 label:app=web
         node b pool=p cpu=4
         pod y on=b cpu=4 label:app=web
         node c pool=p cpu=8 annotation:do-not-disrupt=true
         ";
    check(text, "single_node_consolidation delete a\nb pdb_taken\nc do_not_disrupt");
    check(&format!("settings compatible\n{text}"), "multi_node_consolidation delete a b\nc do_not_disrupt");
}

/// A node with more pods under a budget than it allows now is still chosen: it drains as they come back.
#[test]
fn one_node_may_need_more_evictions_than_there_are_now() {
    check_nodes(
        &format!("{BASE}\npdb web allowed=1 select:app=web\nnode a pool=p\npod x on=a cpu=1 x3 label:app=web"),
        "a go single_node_consolidation",
    );
}

/// Case 90, the half that is about disruption.
#[test]
fn toggles_of_the_pool_hold_back_what_they_say() {
    let with = |pool: &str, node: &str| {
        format!(
            "type small cpu=4\npool p {pool}\nnode a pool=p {node}\npod x on=a cpu=1\nnode b pool=p annotation:do-not-disrupt=true"
        )
    };
    check_nodes(&with("disabled", "drifted"), "a pool_disabled");
    check_nodes(&with("disabled", ""), "a pool_disabled");
    check_nodes(&with("no-deprovisioning", ""), "a disruption_disabled");
    check_nodes(&with("", ""), "a go single_node_consolidation");
    check_nodes("type small\npool p disabled\nnode a pool=p", "a pool_disabled");
    check_nodes("type small\npool p replicas=1 disabled\nnode a pool=p drifted", "a pool_disabled");
    check_nodes("type small\npool p no-deprovisioning\nnode a pool=p", "a disruption_disabled");
    check_nodes(&with("no-deprovisioning", "drifted"), "a disruption_disabled");
    check_nodes(&with("no-drift after=Never", "drifted"), "a drift_disabled");
    check_nodes(&with("after=Never", "drifted"), "a go drift");
    check_nodes(&with("force-evict after=Never", "drifted"), "a go drift");
    check_nodes(&format!("{}\npod y on=a cpu=1 protected", with("force-evict after=Never", "drifted")), "a go drift");
    check_nodes(&format!("settings no-drift\n{}", with("after=Never", "drifted")), "a drift_disabled");
}

/// Case 91.
#[test]
fn case_91_do_not_consolidate_holds_back_consolidation_only() {
    let node = |words: &str| {
        format!("type small\npool p\nnode a pool=p annotation:karpenter.sh/do-not-consolidate=true {words}")
    };
    check_nodes(&node(""), "a do_not_consolidate");
    check_nodes(&node("drifted"), "a go drift");
    let busy = |words: &str| format!("{BASE}\nnode a pool=p cpu=4 {words}\npod web on=a cpu=1");
    check_nodes(&busy("annotation:karpenter.sh/do-not-consolidate=true"), "a do_not_consolidate");
    check_nodes(&busy("annotation:karpenter.sh/do-not-consolidate=false"), "a go single_node_consolidation");
}

/// Sheet 03 case 92: the pool that a node was moved to has the budget that counts.
#[test]
fn a_node_that_has_moved_to_another_pool_drifts_under_that_pools_budget() {
    let text = "type small\npool old after=Never budget=100%\npool new after=Never budget=0\nnode a pool=new drifted\nnode b pool=old drifted";
    check_nodes(text, "a budget_spent\nb go drift");
}

/// Sheet 08 D2: of several reasons the first in the order of the checks is told.
#[test]
fn the_checks_have_an_order() {
    let words = ["rebooting", "uninitialized", "nominated", "annotation:do-not-disrupt=true", "pool=nowhere"];
    let told = ["rebooting", "not_initialized", "nominated", "do_not_disrupt", "pool_missing"];
    for first in 0..words.len() {
        let text = format!("type small\nnode a {}\npod x on=a cpu=1 protected", words[first..].join(" "));
        check_nodes(&text, &format!("a {}", told[first]));
        let marked = text.replace("node a", "node a marked");
        check_nodes(&marked, "a leaving");
    }
}

/// A history relabelled a node into a static pool, which takes none: that pool made a replacement for it, and gave it up at
/// once because it had as many nodes as it should.
#[test]
fn a_node_whose_label_names_a_pool_that_it_was_not_moved_to_is_judged_by_its_own() {
    let relabelled = |own: &str| {
        format!("type small\npool own {own}\npool s replicas=1\nnode b pool=s\nnode a pool=s made-by=own drifted")
    };
    check_nodes(&relabelled("after=Never"), "a go drift\nb static_pool");
    check_nodes(&relabelled("disabled"), "a pool_disabled\nb static_pool");
}
