//! What is counted, under which labels: sheet 03 §14, sheet 04 §9, sheet 08 L8.

use kerf_api::change::{Reader, WatchedKind};
use kerf_disruption::{BudgetUse, Method, ObjectionKind, ProposalId, ScoredMove, TerminateFirst};
use kerf_model::cloud::{InterruptionCause, Repair};
use kerf_model::cluster::ObjectName;
use kerf_model::effect::Target;
use kerf_testkit::texts;

use kerf_engine::commands::Failure;
use kerf_model::label::LabelRules;
use serde_json::{Value, json};

use super::*;

fn metrics() -> Metrics {
    Metrics::new(&Build { version: "1", commit: "" }, true, None, Traffic::default())
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// Objects as a watch brings them.
fn cluster(objects: &[Value]) -> ClusterSnapshot {
    let mut reader = Reader::new(Some(kerf_api::Provider::Kwok));
    let mut snapshot = ClusterSnapshot::default();
    for object in objects {
        let kind = WatchedKind::of(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap()).unwrap();
        snapshot.apply(reader.seen_json(kind, object).unwrap().change);
    }
    snapshot
}

/// Of the pool `p`, on spot; its node has its name.
fn claim(name: &str, more: Value) -> Value {
    let mut claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "creationTimestamp": "2026-11-16T10:00:00Z",
            "labels": {"karpenter.sh/nodepool": "p", "karpenter.sh/capacity-type": "spot"},
        },
        "spec": {"nodeClassRef": {"group": "g", "kind": "K", "name": "default"}, "requirements": []},
        "status": {"providerID": format!("i-{name}")},
    });
    for (part, fields) in more.as_object().unwrap() {
        for (field, value) in fields.as_object().unwrap() {
            claim[part][field] = value.clone();
        }
    }
    claim
}

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": format!("node-{name}")},
        "spec": {"providerID": format!("i-{name}")}})
}

fn pod(name: &str, node: &str, owner: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("pod-{name}"), "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "o", "controller": true}]},
        "spec": {"nodeName": node, "containers": []}, "status": {"phase": "Running"}})
}

fn target(snapshot: &ClusterSnapshot, claim: &str) -> Target {
    Target::from(&snapshot.claim(claim).unwrap().meta)
}

#[track_caller]
fn check(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|found| found == *line), "{line} in {text}");
    }
}

#[tokio::test]
async fn a_note_that_is_repeated_counts_once() {
    let metrics = Metrics::new(&Build { version: "1", commit: "" }, true, Some("lease"), Traffic::default());
    let claim = Target { name: ObjectName::of_cluster("a"), uid: Arc::from("u") };
    let note = Note::GivenUp { claim, cause: Cause::Expired };
    let snapshot = ClusterSnapshot::default();
    assert!(metrics.note(&note, &snapshot, Timestamp::UNIX_EPOCH));
    assert!(!metrics.note(&note, &snapshot, Timestamp::UNIX_EPOCH));
    let text = metrics.text().await;
    assert!(text.contains("karpenter_build_info{version=\"1\","), "{text}");
    assert!(text.contains("leader_election_master_status{name=\"lease\"} 0\n"), "{text}");
}

/// Sheet 03 §11: what replaces a node was counted as if it came for pods.
#[tokio::test]
async fn claims_are_counted_by_what_they_come_for() {
    let metrics = metrics();
    let labels = texts([(label::NODEPOOL, "p")]);
    let claim = |replaces_for| NewClaim { labels: labels.clone(), replaces_for, ..kerf_testkit::new_claim("a") };
    [None, Some(Reason::Drifted), None].into_iter().for_each(|reason| metrics.claim_created(&claim(reason)));
    let text = metrics.text().await;
    for (reason, count) in [("provisioned", 2), ("drifted", 1)] {
        let line = format!(
            "karpenter_nodeclaims_created_total{{reason=\"{reason}\",nodepool=\"p\",min_values_relaxed=\"false\"}} {count}\n"
        );
        assert!(text.contains(&line), "{line} in {text}");
    }
}

/// Sheet 08 L8: only the old repair was counted.
#[tokio::test]
async fn a_repair_that_obeys_budgets_was_not_counted_by_condition() {
    let snapshot = cluster(&[claim("a", json!({"status": {"imageID": "image"}}))]);
    let claim = target(&snapshot, "a");
    let metrics = metrics();
    let repair = Repair { condition: Arc::from("KernelReady"), bound: Some(SignedDuration::ZERO) };
    let cause = Cause::Disrupted { reason: Reason::Unhealthy, consolidation_policy: None, repair: Some(repair) };
    metrics.note(&Note::GivenUp { claim, cause }, &snapshot, Timestamp::UNIX_EPOCH);
    let line = "karpenter_nodeclaims_unhealthy_disrupted_total{condition=\"kernel_ready\",nodepool=\"p\",capacity_type=\"spot\",image_id=\"image\",termination_mode=\"forceful\"} 1\n";
    let text = metrics.text().await;
    assert!(text.contains(line), "{line} in {text}");
}

/// Sheet 03 §10 and §14: nodes that failed the second look are counted, and those that could go, by reason.
#[tokio::test]
async fn disruption_is_counted_by_nodes() {
    let metrics = metrics();
    let mut round = Round::default();
    let counts = [(Method::Emptiness, 1), (Method::StaticDrift, 2), (Method::Drift, 3), (Method::MultiNode, 4)];
    round.eligible.extend(counts);
    round.eligible.insert(Method::SingleNode, 4);
    let (window, action) = (Arc::from("night"), Action::Drift);
    let held_back = KeepReason::Window { window, action, until: None, problem: None };
    round.verdicts.insert(Arc::from("a"), Verdict::Keep(held_back));
    metrics.disruption(&DisruptionNote::Looked, &round, Duration::ZERO);
    let withdrawn = DisruptionNote::Withdrawn {
        command: ProposalId::from("c"),
        method: Method::Emptiness,
        objection: ObjectionKind::Churn,
        nodes: 3,
    };
    metrics.disruption(&withdrawn, &round, Duration::ZERO);
    let text = metrics.text().await;
    for line in [
        "karpenter_voluntary_disruption_eligible_nodes{reason=\"empty\"} 1",
        "karpenter_voluntary_disruption_eligible_nodes{reason=\"drifted\"} 5",
        "karpenter_voluntary_disruption_eligible_nodes{reason=\"underutilized\"} 4",
        "karpenter_voluntary_disruption_eligible_nodes{reason=\"unhealthy\"} 0",
        "karpenter_voluntary_disruption_failed_validations_total{consolidation_type=\"empty\"} 3",
        "kerf_maintenance_window_blocks_total{window=\"night\",action=\"Drift\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

#[tokio::test]
async fn searches_that_were_cut_short_are_there_from_the_start() {
    let text = metrics().text().await;
    for kind in ["multi", "single"] {
        let name = "karpenter_voluntary_disruption_consolidation_timeouts_total";
        check(&text, &[&format!("{name}{{consolidation_type=\"{kind}\"}} 0")]);
    }
}

#[tokio::test]
async fn decisions_are_counted_as_a_whole_and_by_pool() {
    let metrics = metrics();
    let round = Round::default();
    let started = |method: Method, decision, pools: &[&str]| {
        let note = DisruptionNote::Started {
            command: ProposalId::from("c"),
            method,
            reason: method.reason(),
            decision,
            nodes: pools.iter().map(|pool| (Arc::from(*pool), 2)).collect(),
            replacements: 1,
        };
        metrics.disruption(&note, &round, Duration::ZERO);
    };
    started(Method::MultiNode, Decision::Replace, &["p", "q"]);
    started(Method::MultiNode, Decision::Replace, &["p"]);
    started(Method::Emptiness, Decision::Delete, &["p"]);
    started(Method::Repair, Decision::Reboot, &["p"]);
    started(Method::StaticDrift, Decision::TerminateFirst(TerminateFirst::StaticAtLimit), &["s"]);
    check(
        &metrics.text().await,
        &[
            "karpenter_voluntary_disruption_decisions_total{decision=\"replace\",reason=\"underutilized\",consolidation_type=\"multi\"} 2",
            "karpenter_voluntary_disruption_decisions_total{decision=\"delete\",reason=\"empty\",consolidation_type=\"empty\"} 1",
            "karpenter_voluntary_disruption_decisions_total{decision=\"reboot\",reason=\"unhealthy\",consolidation_type=\"\"} 1",
            "karpenter_voluntary_disruption_decisions_total{decision=\"terminate-first\",reason=\"drifted\",consolidation_type=\"\"} 1",
            "karpenter_voluntary_disruption_decisions_by_nodepool_total{nodepool=\"p\",decision=\"replace\",reason=\"underutilized\",consolidation_type=\"multi\"} 2",
            "karpenter_voluntary_disruption_decisions_by_nodepool_total{nodepool=\"q\",decision=\"replace\",reason=\"underutilized\",consolidation_type=\"multi\"} 1",
            "karpenter_voluntary_disruption_terminate_first_decisions_total{nodepool=\"s\",reason=\"drifted\",terminate_first_reason=\"static-at-limit\"} 1",
        ],
    );
}

/// It grew by one with each command that failed, also with one that replaced nothing.
#[tokio::test]
async fn a_failure_counts_for_each_replacement_that_it_leaves() {
    let metrics = metrics();
    for (method, decision, missing) in [
        (Method::MultiNode, Decision::Replace, 2),
        (Method::MultiNode, Decision::Replace, 1),
        (Method::SingleNode, Decision::Delete, 0),
    ] {
        let failure = Failure::NotMarkedInTime;
        let command = ProposalId::from("c");
        let note = DisruptionNote::Failed { command, method, reason: method.reason(), decision, failure, missing };
        metrics.disruption(&note, &Round::default(), Duration::ZERO);
    }
    let name = "karpenter_voluntary_disruption_queue_failures_total";
    check(
        &metrics.text().await,
        &[
            &format!("{name}{{decision=\"replace\",reason=\"underutilized\",consolidation_type=\"multi\"}} 3"),
            &format!("{name}{{decision=\"delete\",reason=\"underutilized\",consolidation_type=\"single\"}} 0"),
        ],
    );
}

/// The policy stood in snake case, and other policies than Balanced were not counted.
#[tokio::test]
async fn moves_are_counted_by_the_name_of_their_policy() {
    let metrics = metrics();
    let weighed = |policy, score, approved| ScoredMove { pool: Arc::from("p"), policy, score, approved };
    let round = Round {
        scored: vec![
            weighed(ConsolidationPolicy::Balanced, Some(1.5), true),
            weighed(ConsolidationPolicy::Balanced, Some(0.2), false),
            weighed(ConsolidationPolicy::WhenEmptyOrUnderutilized, None, true),
        ],
        ..Round::default()
    };
    metrics.disruption(&DisruptionNote::Looked, &round, Duration::ZERO);
    let text = metrics.text().await;
    let other = "decision=\"approved\",nodepool=\"p\",policy=\"WhenEmptyOrUnderutilized\"";
    check(
        &text,
        &[
            "karpenter_consolidation_moves_total{decision=\"approved\",nodepool=\"p\",policy=\"Balanced\"} 1",
            "karpenter_consolidation_moves_total{decision=\"rejected\",nodepool=\"p\",policy=\"Balanced\"} 1",
            &format!("karpenter_consolidation_moves_total{{{other}}} 1"),
            "karpenter_consolidation_score_count{decision=\"approved\",nodepool=\"p\",policy=\"Balanced\"} 1",
            "karpenter_consolidation_score_bucket{decision=\"rejected\",nodepool=\"p\",policy=\"Balanced\",le=\"0.25\"} 1",
            "karpenter_consolidation_score_bucket{decision=\"rejected\",nodepool=\"p\",policy=\"Balanced\",le=\"0.1\"} 0",
        ],
    );
    assert!(!text.contains(&format!("karpenter_consolidation_score_count{{{other}}}")), "{text}");
}

/// Sheet 08 L8; what is left to repair says nothing where nobody repairs.
#[tokio::test]
async fn budgets_are_shown_by_reason_in_lower_case_and_for_repair_only_with_its_gate() {
    let metrics = metrics();
    let using = |allowed, consuming| BudgetUse { nodes: 7, allowed, consuming };
    let mut round = Round::default();
    for (reason, using) in [
        (Reason::Drifted, using(Allowance::AtMost(3), 2)),
        (Reason::Empty, using(Allowance::Unlimited, 2)),
        (Reason::Unhealthy, using(Allowance::AtMost(1), 1)),
    ] {
        round.budgets.insert((Arc::from("p"), reason), using);
    }
    metrics.disruption(&DisruptionNote::Looked, &round, Duration::ZERO);
    let text = metrics.text().await;
    check(
        &text,
        &[
            "karpenter_nodepools_allowed_disruptions{nodepool=\"p\",reason=\"drifted\"} 3",
            "karpenter_nodepools_nodes_consuming_budgets{nodepool=\"p\",reason=\"drifted\"} 2",
            "karpenter_nodepools_allowed_disruptions{nodepool=\"p\",reason=\"empty\"} 7",
        ],
    );
    assert!(!text.contains("nodepool=\"p\",reason=\"unhealthy\""), "{text}");
    round.eligible.insert(Method::Repair, 0);
    metrics.disruption(&DisruptionNote::Looked, &round, Duration::ZERO);
    let line = "karpenter_nodepools_allowed_disruptions{nodepool=\"p\",reason=\"unhealthy\"} 1";
    check(&metrics.text().await, &[line]);
}

#[tokio::test]
async fn a_claim_that_is_given_up_is_counted_with_the_pods_that_have_to_move() {
    let metrics = metrics();
    let graceful = json!({});
    let eventual = json!({"spec": {"terminationGracePeriod": "5m"}});
    let forceful = json!({"spec": {"terminationGracePeriod": "0s"}});
    let snapshot = cluster(&[
        claim("a", graceful),
        node("a"),
        pod("x", "a", "ReplicaSet"),
        pod("y", "a", "ReplicaSet"),
        pod("log", "a", "DaemonSet"),
        claim("b", eventual),
        claim("c", forceful),
    ]);
    let gives_up = |snapshot: &ClusterSnapshot, name: &str, cause: Cause| {
        metrics.note(&Note::GivenUp { claim: target(snapshot, name), cause }, snapshot, at(0));
    };
    let consolidation_policy = Some(ConsolidationPolicy::WhenEmptyOrUnderutilized);
    let disrupted = Cause::Disrupted { reason: Reason::Underutilized, consolidation_policy, repair: None };
    gives_up(&snapshot, "a", disrupted);
    gives_up(&snapshot, "b", Cause::Expired);
    gives_up(&snapshot, "c", Cause::Interrupted { cause: InterruptionCause::SpotReclaimed });
    let labels = |reason: &str, policy: &str, mode: &str| {
        format!(
            "reason=\"{reason}\",nodepool=\"p\",capacity_type=\"spot\",consolidation_policy=\"{policy}\",termination_mode=\"{mode}\""
        )
    };
    let consolidated = labels("underutilized", "when_empty_or_underutilized", "graceful");
    check(
        &metrics.text().await,
        &[
            &format!("karpenter_nodeclaims_disrupted_total{{{consolidated}}} 1"),
            &format!("karpenter_pods_disruption_initiated_total{{{consolidated}}} 2"),
            &format!("karpenter_nodeclaims_disrupted_total{{{}}} 1", labels("expired", "", "eventual")),
            &format!("karpenter_nodeclaims_disrupted_total{{{}}} 1", labels("spot_interrupted", "", "forceful")),
        ],
    );
}

#[tokio::test]
async fn the_drift_of_a_pool_that_is_left_alone_is_shown_until_it_goes_on() {
    let metrics = metrics();
    let round = Round::default();
    for seconds in [60, 120] {
        metrics.disruption(&DisruptionNote::BackedOff { pool: Arc::from("p"), seconds }, &round, Duration::ZERO);
    }
    check(
        &metrics.text().await,
        &[
            "karpenter_voluntary_disruption_drift_backoffs_total{nodepool=\"p\"} 2",
            "karpenter_nodepools_drift_backoff_seconds{nodepool=\"p\"} 120",
        ],
    );
    let replaced = |method: Method| DisruptionNote::Replaced {
        command: ProposalId::from("c"),
        method,
        reason: method.reason(),
        decision: Decision::Replace,
        pools: vec![Arc::from("p")],
    };
    metrics.disruption(&replaced(Method::SingleNode), &round, Duration::ZERO);
    check(&metrics.text().await, &["karpenter_nodepools_drift_backoff_seconds{nodepool=\"p\"} 120"]);
    metrics.disruption(&replaced(Method::Drift), &round, Duration::ZERO);
    check(&metrics.text().await, &["karpenter_nodepools_drift_backoff_seconds{nodepool=\"p\"} 0"]);
}

/// Only reboots that worked had a duration.
#[tokio::test]
async fn every_end_of_a_reboot_is_counted_and_timed() {
    let metrics = metrics();
    let rebooting = |status: &str, reason: &str, since: Timestamp| Condition {
        kind: Arc::from(condition_kind::REBOOTING),
        status: if status == "True" { ConditionStatus::True } else { ConditionStatus::False },
        reason: Arc::from(reason),
        message: Arc::from(""),
        since,
        observed_generation: 1,
    };
    let state = |reason: &str| {
        json!({"status": {"conditions": [{
            "type": "Rebooting", "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": at(0).to_string(),
        }]}})
    };
    let snapshot = cluster(&[claim("a", state("RebootRequested")), claim("b", state("RebootIssued"))]);
    let before = rebooting("True", "RebootIssued", at(0));
    for (reason, end) in [("RebootSucceeded", 30), ("RebootFailed", 5)] {
        let now = rebooting("False", reason, at(end));
        let change = Transition { before: Some(&before), now: &now };
        metrics.rebooted(snapshot.claim("a").unwrap(), &change, at(end));
    }
    for (name, end) in [("a", 300), ("b", 1200)] {
        let note = Note::GivenUp { claim: target(&snapshot, name), cause: Cause::RebootFailed };
        metrics.note(&note, &snapshot, at(end));
    }
    let text = metrics.text().await;
    for (result, took) in
        [("succeeded", 30), ("invalid_request", 5), ("provider_error", 300), ("recovery_timeout", 1200)]
    {
        check(
            &text,
            &[
                &format!("karpenter_nodes_reboots_total{{result=\"{result}\"}} 1"),
                &format!("karpenter_nodes_reboot_duration_seconds_count{{result=\"{result}\"}} 1"),
                &format!("karpenter_nodes_reboot_duration_seconds_sum{{result=\"{result}\"}} {took}"),
            ],
        );
    }
    check(&text, &["karpenter_nodes_reboot_recovery_duration_seconds_count 1"]);
}

#[tokio::test]
async fn what_the_cloud_announces_counts_once_for_each_instance_and_cause() {
    let metrics = metrics();
    let hear = |id: &str, cause| {
        let notice = SignedDuration::from_mins(2);
        metrics.interruption_received(&Interruption { provider_id: Arc::from(id), cause, notice });
    };
    hear("i-a", InterruptionCause::RebalanceRecommended);
    hear("i-a", InterruptionCause::SpotReclaimed);
    hear("i-a", InterruptionCause::SpotReclaimed);
    hear("i-b", InterruptionCause::SpotReclaimed);
    let name = "karpenter_interruption_received_messages_total";
    check(
        &metrics.text().await,
        &[
            &format!("{name}{{message_type=\"spot_interrupted\"}} 2"),
            &format!("{name}{{message_type=\"rebalance_recommendation\"}} 1"),
        ],
    );
}

/// Every instance that had ever been announced was remembered for good.
#[test]
fn announcements_of_instances_that_are_gone_are_forgotten() {
    let metrics = metrics();
    let hear = |id: &str| {
        let (cause, notice) = (InterruptionCause::SpotReclaimed, SignedDuration::from_mins(2));
        metrics.interruption_received(&Interruption { provider_id: Arc::from(id), cause, notice });
    };
    let snapshot = cluster(&[claim("a", json!({}))]);
    hear("i-a");
    metrics.claim_gone(snapshot.claim("a").unwrap(), at(0));
    assert!(metrics.values().announced.is_empty());
    (0..2 * MANY_ANNOUNCED).for_each(|instance| hear(&instance.to_string()));
    assert!(metrics.values().announced.len() <= MANY_ANNOUNCED);
}

#[tokio::test]
async fn an_expiration_that_a_window_postpones_counts_once() {
    let metrics = metrics();
    let snapshot = cluster(&[claim("a", json!({}))]);
    let note = Note::Postponed { claim: target(&snapshot, "a"), window: Arc::from("night") };
    for second in [0, 10] {
        metrics.note(&note, &snapshot, at(second));
    }
    check(&metrics.text().await, &["kerf_maintenance_window_blocks_total{window=\"night\",action=\"Expiration\"} 1"]);
}

#[test]
fn a_window_says_whether_it_holds_anything_back() {
    let window = |name: &str, schedule: &str| {
        json!({"apiVersion": "karpenter.sh/v1alpha1", "kind": "MaintenanceWindow", "metadata": {"name": name, "uid": name},
            "spec": {"schedules": [{"schedule": schedule, "duration": "1h"}], "actions": ["Drift"]}})
    };
    let now: Timestamp = "2026-11-18T09:30:00Z".parse().unwrap();
    let seen = Seen {
        snapshot: cluster(&[window("open", "0 9 * * *"), window("closed", "0 11 * * *")]),
        types: BTreeMap::new(),
        waiting: BTreeMap::new(),
        unschedulable: 0,
        ignored: 0,
        labels: LabelRules::core(),
        now,
    };
    let mut page = Page::default();
    seen.write(true, &mut page);
    check(
        &page.text(),
        &["kerf_maintenance_window_active{window=\"open\"} 1", "kerf_maintenance_window_active{window=\"closed\"} 0"],
    );
}

#[tokio::test]
async fn pods_that_are_made_to_leave_are_counted_by_the_reason() {
    let metrics = metrics();
    ["Drifted", "Drifted", "Forceful Termination"].into_iter().for_each(|reason| metrics.pod_drained(reason));
    check(
        &metrics.text().await,
        &[
            "karpenter_pods_drained_total{reason=\"Drifted\"} 2",
            "karpenter_pods_drained_total{reason=\"Forceful Termination\"} 1",
        ],
    );
}
