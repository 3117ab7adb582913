//! `kerf why`.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::bail;
use clap::ValueEnum;
use jiff::Timestamp;
use kerf_disruption::{KeepReason, Proposal, Verdict};
use kerf_lifecycle::claim::expiration::Expiry;
use kerf_model::budget::Allowance;
use kerf_model::cluster::{ConditionStatus, DoNotDisrupt, NodeClaim, ObjectName, Pod, condition_kind};
use kerf_model::label::{self, annotation};
use kerf_model::node_pool::NodePool;
use kerf_model::snapshot::ClusterSnapshot;
use serde::Serialize;

use super::budget;
use super::plan::{Decided, DecisionArgs, MoveReport};
use super::schedule::UnplacedReport;
use crate::names::not_found;
use crate::output::{self, Outcome, ReportFormat};

/// Say why a node stays or goes, why a pod waits, or what holds a pool back
///
/// The answer is the decision that the controller would make now, with its parameters and what can be done about it.
/// Works on the live cluster, which is only read, and with -f on a dump.
#[derive(clap::Args)]
// One file per -f: a name that follows is not a file.
#[command(after_help = EXAMPLES, mut_arg("files", |files| files.num_args(1)))]
pub struct Args {
    /// What it is
    #[arg(value_enum, ignore_case = true, value_name = "KIND")]
    kind: KindName,
    /// Its name; of a pod, also NAMESPACE/NAME
    #[arg(value_name = "NAME")]
    name: String,
    /// The pod's namespace
    #[arg(short, long, default_value = "default", value_name = "NAMESPACE")]
    namespace: String,
    #[command(flatten)]
    decision: DecisionArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: ReportFormat,
}

const EXAMPLES: &str = "\
Examples:
  kerf why node ip-10-0-1-17
  kerf why pod web-5d9c7 -n shop
  kerf why nodepool general -f dump/ -o json";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KindName {
    /// A node, ours or not
    #[value(aliases = ["nodes", "no"])]
    Node,
    /// A NodeClaim
    #[value(name = "nodeclaim", alias = "nodeclaims")]
    NodeClaim,
    /// A NodePool
    #[value(name = "nodepool", alias = "nodepools")]
    NodePool,
    /// A pod that runs or waits
    #[value(aliases = ["pods", "po"])]
    Pod,
}

/// The same for every kind, so that scripts need to know one form.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Answer {
    kind: &'static str,
    name: String,
    /// Stable.
    verdict: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'static str>,
    /// What else is worth knowing, in order.
    facts: Vec<Fact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<MoveReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unplaced: Option<UnplacedReport>,
}

#[derive(Serialize)]
struct Fact {
    name: String,
    value: String,
}

fn fact(name: impl Into<String>, value: impl Into<String>) -> Fact {
    Fact { name: name.into(), value: value.into() }
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let decided = args.decision.decide()?;
    let answer = match args.kind {
        KindName::Node => of_node(&args.name, &decided)?,
        KindName::NodeClaim => of_claim(&args.name, &decided)?,
        KindName::NodePool => of_pool(&args.name, &decided)?,
        KindName::Pod => of_pod(&pod_name(args), &decided)?,
    };
    match args.output {
        ReportFormat::Json => output::print_json(&answer)?,
        ReportFormat::Text => output::print(&answer.text())?,
    }
    Ok(decided.cluster.outcome)
}

fn pod_name(args: &Args) -> ObjectName {
    match args.name.split_once('/') {
        Some((namespace, name)) => ObjectName::new(namespace, name),
        None => ObjectName::new(args.namespace.as_str(), args.name.as_str()),
    }
}

fn of_node(name: &str, decided: &Decided) -> anyhow::Result<Answer> {
    let snapshot = &decided.cluster.snapshot;
    let Some(node) = snapshot.node(name) else {
        if snapshot.claim(name).is_some() {
            bail!("there is no node {name}, but a NodeClaim of that name");
        }
        return Err(not_found("node", name, snapshot.nodes().map(|node| node.name().to_string())));
    };
    match snapshot.claims_of(node).next() {
        Some(claim) => Ok(Answer { kind: "Node", name: name.to_owned(), ..about_claim(claim, decided) }),
        None => Ok(Answer {
            kind: "Node",
            name: name.to_owned(),
            verdict: "not_ours".to_owned(),
            message: "stays: no NodeClaim has its provider id, so it is not Kerf's to remove".to_owned(),
            ..Answer::default()
        }),
    }
}

fn of_claim(name: &str, decided: &Decided) -> anyhow::Result<Answer> {
    let snapshot = &decided.cluster.snapshot;
    let Some(claim) = snapshot.claim(name) else {
        if snapshot.node(name).is_some() {
            bail!("there is no NodeClaim {name}, but a node of that name");
        }
        return Err(not_found("NodeClaim", name, snapshot.claims().map(|claim| claim.name().to_string())));
    };
    Ok(Answer { kind: "NodeClaim", name: name.to_owned(), ..about_claim(claim, decided) })
}

fn about_claim(claim: &NodeClaim, decided: &Decided) -> Answer {
    let labels = [("type", label::INSTANCE_TYPE), ("zone", label::ZONE), ("capacity", label::CAPACITY_TYPE)];
    let named = [("node", claim.status.node_name.as_deref()), ("pool", claim.pool())];
    let known = named.into_iter().chain(labels.map(|(name, key)| (name, claim.meta.label(key))));
    let mut facts = vec![fact("claim", &**claim.name())];
    facts.extend(known.filter_map(|(name, value)| Some(fact(name, value?))));
    let Some(verdict) = decided.round.verdicts.get(claim.name()) else {
        let message = format!("stays: its class {} is of no provider that Kerf knows", claim.node.class);
        return Answer { verdict: "not_ours".to_owned(), message, facts, ..Answer::default() };
    };
    if let Some(drifted) = claim.status.conditions.get(condition_kind::DRIFTED) {
        facts.push(fact("drifted", format!("{}: {}", drifted.reason, drifted.message)));
    }
    match decided.cluster.expiry(claim, decided.now) {
        Expiry::At(end) => facts.push(fact("expires", output::moment(end))),
        Expiry::Held(hold) => facts.push(fact("expired", format!("held back: {hold}"))),
        Expiry::Never | Expiry::Due => {}
    }
    if *verdict == Verdict::Leaving {
        facts.extend(still_to_come(claim));
    }
    let of_claim = |proposal: &&Proposal| proposal.claims().any(|own| own == claim.name());
    let plan = decided.round.proposals.iter().find(of_claim).map(MoveReport::of);
    let (meaning, remedy) = match verdict {
        Verdict::Keep(reason) => {
            if let Some(until) = reason.until() {
                facts.push(fact("until", output::moment(until)));
            }
            facts.extend(budget_allows_more(reason, decided));
            (Some(reason.text().meaning), Some(reason.text().remedy))
        }
        Verdict::Go { .. } | Verdict::UnderWay { .. } | Verdict::Leaving => (None, None),
    };
    Answer {
        verdict: verdict.label().to_owned(),
        message: verdict.to_string(),
        meaning,
        remedy,
        facts,
        plan,
        ..Answer::default()
    }
}

/// When the pool's budgets next allow more than is in use, if they ever do. What is in use may be back before.
fn budget_allows_more(reason: &KeepReason, decided: &Decided) -> Option<Fact> {
    let KeepReason::BudgetSpent { pool, reason, allowed, consuming } = reason else { return None };
    let nodes = decided.round.budgets.get(&(Arc::clone(pool), *reason))?.nodes;
    let budgets = &decided.cluster.snapshot.pool(pool)?.spec.as_ref().ok()?.disruption.budgets;
    let at = budget::transitions(budgets, decided.now)
        .find(|at| budgets.allowance(*reason, nodes, *at) > Allowance::AtMost(*consuming))?;
    Some(fact(if *allowed == Allowance::AtMost(0) { "until" } else { "at most until" }, output::moment(at)))
}

/// What keeps a claim that is on its way out.
fn still_to_come(claim: &NodeClaim) -> impl Iterator<Item = Fact> {
    let steps = [condition_kind::DRAINED, condition_kind::VOLUMES_DETACHED];
    let waits = steps.into_iter().filter_map(|kind| claim.status.conditions.get(kind));
    let waits = waits.filter(|step| step.status == ConditionStatus::Unknown && !step.message.is_empty());
    let waits = waits.map(|step| fact("waits for", &*step.message));
    let deadline = claim.meta.annotation(annotation::TERMINATION_TIMESTAMP);
    waits.chain(deadline.map(|at| fact("at most until", at)))
}

fn of_pool(name: &str, decided: &Decided) -> anyhow::Result<Answer> {
    let snapshot = &decided.cluster.snapshot;
    let Some(pool) = snapshot.pool(name) else { return Err(no_pool(name, snapshot)) };
    let mut facts = Vec::new();
    let unready = pool.status.conditions.0.iter().filter(|condition| condition.status != ConditionStatus::True);
    for condition in unready {
        let text = format!("{}: {} {}", condition.status, condition.reason, condition.message);
        facts.push(fact(&*condition.kind, text.trim_end()));
    }
    let (verdict, message) = match &pool.spec {
        Err(problems) => ("invalid", format!("launches nothing and disrupts nothing: {problems}")),
        Ok(_) if kerf_scheduling::is_usable(pool) => ("usable", "launches nodes for pods that need them".to_owned()),
        Ok(spec) if spec.disabled => ("disabled", "launches nothing: spec.disabled is set".to_owned()),
        Ok(_) if pool.meta.is_deleting() => ("deleting", "launches nothing: it is being deleted".to_owned()),
        Ok(_) if pool.status.conditions.is_true("Ready") => ("static", "keeps its number of nodes".to_owned()),
        Ok(_) => ("not_ready", "launches nothing: it is not Ready".to_owned()),
    };
    for (reason, budget) in decided.round.budgets.iter().filter(|((of, _), _)| &**of == name) {
        let text = format!("{} of {} nodes, {} in use", allowed(budget.allowed), budget.nodes, budget.consuming);
        facts.push(fact(format!("budget {}", reason.1), text));
    }
    if let Ok(spec) = &pool.spec {
        facts.extend(budget::broken(&spec.disruption.budgets).map(|problem| fact("warning", problem)));
        facts.extend(switches(spec).map(|switch| fact("switch", switch)));
    }
    for window in budget::windows_of(snapshot, name).into_iter().filter(|window| window.is_active(decided.now)) {
        let until = window.next_transition(decided.now).map(|at| format!(" until {at}")).unwrap_or_default();
        let what = budget::held_back(window, snapshot);
        facts.push(fact(format!("window {}", window.name), format!("holds back {what}{until}")));
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let of_pool = snapshot.claims().filter(|claim| claim.pool() == Some(name));
    for verdict in of_pool.filter_map(|claim| decided.round.verdicts.get(claim.name())) {
        *counts.entry(verdict.label()).or_default() += 1;
    }
    facts.extend(counts.into_iter().map(|(label, count)| fact(format!("nodes {label}"), count.to_string())));
    let (verdict, name) = (verdict.to_owned(), name.to_owned());
    Ok(Answer { kind: "NodePool", name, verdict, message, facts, ..Answer::default() })
}

/// What its owner has switched off.
fn switches(pool: &NodePool) -> impl Iterator<Item = &'static str> {
    let all = [
        (pool.disabled, "spec.disabled: no nodes come and none go by choice"),
        (!pool.disruption.enabled, "spec.disableDeprovisioning: no nodes go by choice"),
        (!pool.disruption.consolidation_enabled, "spec.disruption.consolidation.enabled is false"),
        (!pool.disruption.drift_enabled, "spec.disruption.drift.enabled is false"),
        (!pool.disruption.expiration_enabled, "spec.disruption.expiration.enabled is false"),
    ];
    all.into_iter().filter_map(|(is_set, text)| is_set.then_some(text))
}

pub fn allowed(allowance: Allowance) -> String {
    match allowance {
        Allowance::AtMost(nodes) => nodes.to_string(),
        Allowance::Unlimited => "any number".to_owned(),
    }
}

pub fn no_pool(name: &str, snapshot: &ClusterSnapshot) -> anyhow::Error {
    not_found("NodePool", name, snapshot.pools().map(|pool| pool.meta.name.name.to_string()))
}

fn of_pod(name: &ObjectName, decided: &Decided) -> anyhow::Result<Answer> {
    let snapshot = &decided.cluster.snapshot;
    let Some(pod) = snapshot.pod(name) else {
        return Err(not_found("pod", &name.to_string(), snapshot.pods().map(|pod| pod.meta.name.to_string())));
    };
    let mut answer = if let Some(node) = &pod.node_name { runs(pod, node, decided) } else { waits(pod, decided) };
    answer.kind = "Pod";
    answer.name = name.to_string();
    Ok(answer)
}

fn runs(pod: &Pod, node: &Arc<str>, decided: &Decided) -> Answer {
    let mut answer = Answer {
        verdict: "bound".to_owned(),
        message: format!("has its place on {node}"),
        facts: vec![fact("node", &**node)],
        ..Answer::default()
    };
    if let Some(until) = pod.protected_until(decided.now).filter(|_| pod.is_active()) {
        answer.facts.push(fact("protects", "its node from disruption (karpenter.sh/do-not-disrupt)"));
        if until < Timestamp::MAX {
            answer.facts.push(fact("until", output::moment(until)));
        }
    }
    if let DoNotDisrupt::Invalid(value) = &pod.do_not_disrupt {
        answer.facts.push(fact("warning", format!("karpenter.sh/do-not-disrupt: {value:?} means nothing")));
    }
    let found = decided.cluster.snapshot.node(node);
    let claim = found.and_then(|node| decided.cluster.snapshot.claims_of(node).next());
    if let Some(verdict) = claim.and_then(|claim| decided.round.verdicts.get(claim.name())) {
        answer.facts.push(fact("its node", verdict.to_string()));
    }
    answer
}

fn waits(pod: &Pod, decided: &Decided) -> Answer {
    let answer = |verdict: &str, message: String| Answer { verdict: verdict.to_owned(), message, ..Answer::default() };
    let is_it = |other: &&Arc<Pod>| other.meta.name == pod.meta.name;
    let schedule = &decided.schedule;
    if let Some(on) = schedule.on_existing.iter().find(|on| on.pods.iter().any(|other| is_it(&other))) {
        return answer("fits", format!("there is room for it on {}", on.host.name()));
    }
    if let Some(claim) = schedule.new_claims.iter().find(|claim| claim.pods.iter().any(|other| is_it(&other))) {
        let claim = super::schedule::ClaimReport::of(claim);
        let message = format!("a node of {} is launched for it: {}", claim.pool, claim.options_text());
        return answer("planned", message);
    }
    if let Some((pod, why)) = schedule.unplaced.iter().find(|(other, _)| is_it(&other)) {
        let report = UnplacedReport::of(pod, why);
        return Answer { unplaced: Some(report), ..answer(why.overall.id(), why.to_string()) };
    }
    let why = match () {
        () if pod.is_terminal() => "it has ended",
        () if pod.meta.is_deleting() => "it is being deleted",
        () if pod.is_of_daemon_set() => {
            "it belongs to a DaemonSet: it waits for its own node, and no node is launched for it"
        }
        () if pod.nominated_node.is_some() => "the scheduler is making room for it by preemption",
        () if !pod.unschedulable => {
            "the scheduler has not said that it is unschedulable (gated pods wait for their gates)"
        }
        () => "it is a mirror of a static pod",
    };
    answer("not_considered", format!("needs nothing from Kerf: {why}"))
}

impl Answer {
    fn text(&self) -> String {
        let mut text = format!("{} {}: {}\n", self.kind, self.name, self.message);
        if let Some(unplaced) = &self.unplaced {
            text = format!("{} {}", self.kind, unplaced.lines());
        }
        let width = self.facts.iter().map(|fact| fact.name.chars().count()).max().unwrap_or(0);
        for Fact { name, value } in &self.facts {
            text.push_str(&format!("  {name:<width$}  {value}\n"));
        }
        if let Some(plan) = &self.plan {
            text.push_str(&plan.lines("  "));
        }
        if let Some(meaning) = self.meaning {
            text.push_str(&format!("Reason: {meaning} [{}]\n", self.verdict));
        }
        if let Some(remedy) = self.remedy {
            text.push_str(&format!("What to do: {remedy}\n"));
        }
        text
    }
}
