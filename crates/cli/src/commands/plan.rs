//! `kerf plan`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Context;
use clap::ValueEnum;
use jiff::{SignedDuration, Timestamp};
use kerf_api::change::Features;
use kerf_api::scheduler_config::default_constraints;
use kerf_cloud_kwok::class::CLASS_KIND;
use kerf_disruption::{Candidate, Floor, KeepReason, Proposal, Round, Settings, Verdict, View, decide};
use kerf_engine::remembered;
use kerf_lifecycle::claim::Hold;
use kerf_lifecycle::claim::expiration::Expiry;
use kerf_model::cloud::RepairPolicy;
use kerf_model::cluster::{NodeClaim, Pod};
use kerf_model::price::Price;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_scheduling::{DefaultSpread, Options, Schedule, resolve};
use serde::Serialize;

use super::schedule::{self, ClaimReport, PolicyName, UnplacedReport, short_list};
use crate::clock;
use crate::cluster::{Cluster, ClusterArgs, OVERLAYS, class_kinds};
use crate::output::{self, Outcome, ReportFormat};

/// Show what Kerf would do to a cluster now, in order, and when the rest becomes possible
///
/// Nodes for pending pods first, then nodes that would go, with what they save, what is launched before, and where their
/// pods run afterwards. The decisions are those of the controller; nothing is written. Every later moment supposes that
/// nothing else changes before it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    decision: DecisionArgs,
    /// How many later moments to look for at which something else becomes possible
    #[arg(long, default_value_t = 3, value_name = "N")]
    next: usize,
    /// How to print the plan; JSON has the verdict of every claim
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: ReportFormat,
}

const EXAMPLES: &str = "\
Examples:
  kerf plan
  kerf plan -f examples/dumps/underused --at 2026-11-16T12:00:00Z
  kubectl get pods,nodes,nodeclaims,nodepools,pdb,daemonsets -A -o yaml | kerf plan -f - -o json";

/// What commands that decide have in common.
#[derive(clap::Args)]
pub struct DecisionArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// The moment to decide at, such as 2026-11-16T12:00:00Z [default: now]
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// Which of the valid decisions are wanted
    #[arg(long, value_enum, default_value = "best", value_name = "POLICY")]
    policy: PolicyName,
    /// What a consolidation must save, such as 5%:0.001, as the controller has it
    #[arg(long, value_name = "SAVINGS")]
    minimum_savings: Option<Floor>,
    /// Feature gates to decide with, as the controller has them
    #[arg(long, value_enum, value_delimiter = ',', value_name = "GATES")]
    gates: Vec<GateName>,
    /// What the cluster's scheduler assumes for pods that say nothing, as the controller has it
    #[arg(long, default_value = "", value_name = "CONFIG")]
    scheduler_config: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum GateName {
    /// Room is kept free for the pods of CapacityBuffers
    #[value(alias = "CapacityBuffer=true")]
    CapacityBuffer,
    /// Sick nodes are repaired; needs a provider that says when
    #[value(alias = "NodeRepair=true")]
    NodeRepair,
    /// Spot nodes are replaced by cheaper spot nodes
    #[value(alias = "SpotToSpotConsolidation=true")]
    SpotToSpotConsolidation,
    /// Pools with a fixed number of nodes
    #[value(alias = "StaticCapacity=true")]
    StaticCapacity,
    /// Drifted nodes may go before their replacement
    #[value(alias = "TerminateFirstDrift=true")]
    TerminateFirstDrift,
    /// Sick nodes may go before their replacement
    #[value(alias = "TerminateFirstRepair=true")]
    TerminateFirstRepair,
}

/// A cluster, the moment, and what is decided there.
pub struct Decided {
    pub cluster: Cluster,
    pub now: Timestamp,
    /// Claims whose time is over.
    expired: Vec<Arc<str>>,
    pub schedule: Schedule,
    pub round: Round,
    settings: Settings,
    surroundings: Surroundings,
}

/// What decisions stand on besides the cluster.
struct Surroundings {
    options: Options,
    default_spread: DefaultSpread,
    /// Of capacity buffers.
    virtual_pods: Vec<Arc<Pod>>,
    /// Nodes on which pods that wait have room: they stay for those.
    nominated: Vec<Arc<str>>,
}

/// How long the controller keeps a node for a pod that it has found room for, as it is unless somebody sets another batch.
const NOMINATION: SignedDuration = SignedDuration::from_secs(20);

impl DecisionArgs {
    pub fn decide(&self) -> anyhow::Result<Decided> {
        let constraints = default_constraints(&self.scheduler_config).context("cannot use --scheduler-config")?;
        let default_spread = DefaultSpread { constraints };
        let has_buffers = self.gates.contains(&GateName::CapacityBuffer);
        let mut cluster = self.cluster.read(Features {
            capacity_buffers: has_buffers,
            default_spread: !default_spread.is_empty(),
            ..OVERLAYS
        })?;
        let now = self.at.unwrap_or_else(clock::now);
        cluster.mark(now);
        let expired = cluster.expire(now);
        let classes = class_kinds();
        let mut settings = match self.policy {
            PolicyName::Best => Settings::for_classes(classes),
            PolicyName::Compatible => Settings::compatible(classes),
        };
        if let Some(floor) = self.minimum_savings {
            settings.floor = floor;
        }
        for gate in &self.gates {
            match gate {
                // What it switches on is in the surroundings.
                GateName::CapacityBuffer => {}
                GateName::NodeRepair => {
                    settings.gates.node_repair = true;
                    settings.repair_policies = repair_policies(&cluster);
                }
                GateName::SpotToSpotConsolidation => settings.gates.spot_to_spot_consolidation = true,
                GateName::StaticCapacity => settings.gates.static_capacity = true,
                GateName::TerminateFirstDrift => settings.gates.terminate_first_drift = true,
                GateName::TerminateFirstRepair => settings.gates.terminate_first_repair = true,
            }
        }
        let options = Options { policy: self.policy.into(), ..Options::default() };
        let buffers = cluster.snapshot.buffers().filter(|buffer| has_buffers && !buffer.meta.is_deleting());
        let resolved = buffers.filter_map(|buffer| resolve(buffer, &cluster.snapshot).ok());
        let virtual_pods: Vec<_> = resolved.flat_map(|buffer| buffer.pods).collect();
        let schedule = schedule::schedule(&cluster, virtual_pods.clone(), &default_spread, options, now);
        let is_real = |pod: &Arc<Pod>| cluster.snapshot.pod(&pod.meta.name).is_some();
        let nominated = schedule.on_existing.iter().filter(|on| on.pods.iter().any(is_real));
        let nominated = nominated.map(|on| on.host.name().clone()).collect();
        let surroundings = Surroundings { options, default_spread, virtual_pods, nominated };
        let until = now.checked_add(NOMINATION).unwrap_or(Timestamp::MAX);
        let round = round(&cluster, &settings, &surroundings, until, now);
        Ok(Decided { cluster, now, expired, schedule, round, settings, surroundings })
    }
}

/// What the provider of the cluster's pools calls sick, where Kerf knows it.
fn repair_policies(cluster: &Cluster) -> Vec<RepairPolicy> {
    let mut classes = cluster.snapshot.claims().map(|claim| &claim.node.class);
    let is_kwok = classes.any(|class| *class.group == *CLASS_KIND.group && *class.kind == *CLASS_KIND.kind);
    if is_kwok { kerf_cloud_kwok::repair_policies() } else { Vec::new() }
}

/// Nominated nodes stay until then.
fn round(
    cluster: &Cluster,
    settings: &Settings,
    surroundings: &Surroundings,
    until: Timestamp,
    now: Timestamp,
) -> Round {
    let mut memory = remembered(&cluster.snapshot);
    memory.nominations.extend(surroundings.nominated.iter().map(|node| (Arc::clone(node), until)));
    let view = View {
        snapshot: &cluster.snapshot,
        types: &cluster.types,
        labels: &cluster.rules,
        scheduling: surroundings.options,
        default_spread: &surroundings.default_spread,
        virtual_pods: &surroundings.virtual_pods,
        settings,
        memory: &memory,
        now,
    };
    decide(&view)
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let decided = args.decision.decide()?;
    let report = Report::of(&decided, args.next);
    match args.output {
        ReportFormat::Json => output::print_json(&report)?,
        ReportFormat::Text => output::print(&text(&report, &decided))?,
    }
    Ok(decided.cluster.outcome)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    at: Timestamp,
    /// For pods that wait.
    launches: Vec<ClaimReport>,
    unplaced: Vec<UnplacedReport>,
    /// Nodes whose time is over: they go now, and what their pods need is launched as for pods that wait.
    expired: Vec<ExpiredReport>,
    moves: Vec<MoveReport>,
    /// Of all moves together, dollars per hour.
    hourly_savings: String,
    later: Vec<LaterReport>,
    /// Nodes that expire within seven days, the first of them first.
    expiring: Vec<ExpiryReport>,
    /// By claim.
    verdicts: BTreeMap<String, VerdictReport>,
    assumptions: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MoveReport {
    pub id: String,
    pub method: &'static str,
    pub reason: String,
    pub action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hourly_savings: Option<String>,
    /// How long it waits before it is looked at again and done.
    pub hold_seconds: i64,
    pub nodes: Vec<NodeReport>,
    pub replacements: Vec<ClaimReport>,
    /// Nodes that exist, and the pods they get.
    pub lands_on: BTreeMap<String, Vec<String>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    pub claim: String,
    pub node: String,
    pub pool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hourly_price: Option<String>,
    pub pods: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExpiredReport {
    claim: String,
    node: String,
    pool: String,
    expire_after: String,
    pods: Vec<String>,
}

#[derive(Serialize)]
struct LaterReport {
    at: Timestamp,
    /// Nodes that could not go before.
    nodes: Vec<String>,
    /// What becomes possible then and is not before: the moves that these nodes are part of.
    moves: Vec<MoveReport>,
}

/// A node whose time will be over.
#[derive(Serialize)]
struct ExpiryReport {
    at: Timestamp,
    claim: String,
    node: String,
    pool: String,
    /// What holds it back until then, though its time is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<String>,
}

#[derive(Serialize)]
struct VerdictReport {
    verdict: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'static str>,
}

impl Report {
    fn of(decided: &Decided, next: usize) -> Self {
        let Decided { cluster, now, expired, schedule, round, .. } = decided;
        let expired = expired.iter().filter_map(|claim| cluster.snapshot.claim(claim));
        let savings: i64 = round.proposals.iter().filter_map(|proposal| proposal.savings).map(Price::micros).sum();
        let verdicts = round.verdicts.iter().map(|(claim, verdict)| {
            let remedy = match verdict {
                Verdict::Keep(reason) => Some(reason.text().remedy),
                Verdict::Go { .. } | Verdict::UnderWay { .. } | Verdict::Leaving => None,
            };
            let found = cluster.snapshot.claim(claim);
            let node = found.and_then(|claim| claim.status.node_name.as_ref()).map(ToString::to_string);
            (claim.to_string(), VerdictReport { verdict: verdict.label(), message: verdict.to_string(), node, remedy })
        });
        Self {
            at: *now,
            launches: schedule.new_claims.iter().map(ClaimReport::of).collect(),
            unplaced: schedule.unplaced.iter().map(|(pod, why)| UnplacedReport::of(pod, why)).collect(),
            expired: expired.map(|claim| ExpiredReport::of(claim, &cluster.snapshot)).collect(),
            moves: round.proposals.iter().map(MoveReport::of).collect(),
            hourly_savings: Price::from_micros(savings).to_string(),
            later: later(decided, next),
            expiring: expiring(decided),
            verdicts: verdicts.collect(),
            assumptions: cluster.assumptions.iter().cloned().chain(unknown_types(round)).collect(),
        }
    }
}

/// A plan with another cloud's catalogue says little.
fn unknown_types(round: &Round) -> Option<String> {
    let unknown = |verdict: &&Verdict| matches!(verdict, Verdict::Keep(KeepReason::UnknownType));
    let count = round.verdicts.values().filter(unknown).count();
    let which = "of an instance type that the catalogue does not have: say with --catalogue what the pools can launch";
    (count > 0).then(|| format!("{} {which}", output::count(count, "node")))
}

impl ExpiredReport {
    fn of(claim: &NodeClaim, snapshot: &ClusterSnapshot) -> Self {
        let node = claim.status.node_name.as_deref().unwrap_or_default();
        let moving = snapshot.pods_on(node).filter(|pod| pod.is_reschedulable());
        Self {
            claim: claim.name().to_string(),
            node: node.to_owned(),
            pool: claim.pool().unwrap_or_default().to_owned(),
            expire_after: claim.node.expire_after.to_string(),
            pods: moving.map(|pod| pod.meta.name.to_string()).collect(),
        }
    }

    fn line(&self) -> String {
        let Self { claim, node, pool, expire_after, pods } = self;
        let name = if node.is_empty() { claim } else { node };
        format!("Delete 1 node (Expired)\n  - {name} of {pool}: older than {expire_after}, {}\n", to_move(pods))
    }
}

/// How many pods have to run elsewhere.
fn to_move(pods: &[String]) -> String {
    match pods.len() {
        0 => "no pods to move".to_owned(),
        count => format!("{} to move", output::count(count, "pod")),
    }
}

impl MoveReport {
    pub fn of(proposal: &Proposal) -> Self {
        let lands_on = proposal.lands_on.iter().map(|on| {
            let pods = on.pods.iter().map(|pod| pod.meta.name.to_string()).collect();
            (on.host.name().to_string(), pods)
        });
        Self {
            id: proposal.id.to_string(),
            method: proposal.method.label(),
            reason: proposal.reason.to_string(),
            action: proposal.action.label(),
            hourly_savings: proposal.savings.map(|savings| savings.to_string()),
            hold_seconds: proposal.hold.as_secs(),
            nodes: proposal.candidates.iter().map(NodeReport::of).collect(),
            replacements: proposal.replacements().iter().map(ClaimReport::of).collect(),
            lands_on: lands_on.collect(),
        }
    }

    /// One line per node that goes, and what comes for it.
    pub fn lines(&self, indent: &str) -> String {
        let savings = self.hourly_savings.as_ref().map(|savings| format!(", saves ${savings} per hour"));
        let mut text = format!("{indent}{} ({}){}\n", self.verb(), self.reason, savings.unwrap_or_default());
        for node in &self.nodes {
            let kind = node.instance_type.as_deref().unwrap_or("unknown type");
            let price = node.hourly_price.as_ref().map(|price| format!(" at ${price}")).unwrap_or_default();
            let pods = to_move(&node.pods);
            text.push_str(&format!("{indent}  - {} of {}: {kind}{price}, {pods}\n", node.node, node.pool));
        }
        for claim in &self.replacements {
            let (pool, options) = (&claim.pool, claim.options_text());
            let pods = output::count(claim.pods.len(), "pod");
            text.push_str(&format!("{indent}  + {pool}: {options} at ${} for {pods}\n", claim.hourly_price));
        }
        for (host, pods) in &self.lands_on {
            text.push_str(&format!("{indent}  = {host} takes {}\n", short_list(pods)));
        }
        text
    }

    fn verb(&self) -> String {
        let nodes = output::count(self.nodes.len(), "node");
        match self.action {
            "replace" => format!("Replace {nodes} by {}", self.replacements.len()),
            "reboot" => format!("Reboot {nodes}"),
            "terminate-first" => format!("Delete {nodes} before the replacement"),
            _ => format!("Delete {nodes}"),
        }
    }
}

impl NodeReport {
    fn of(candidate: &Candidate) -> Self {
        let text = |text: &Option<Arc<str>>| text.as_ref().map(ToString::to_string);
        Self {
            claim: candidate.claim.name.to_string(),
            node: candidate.node.name.to_string(),
            pool: candidate.pool.to_string(),
            instance_type: text(&candidate.instance_type),
            zone: text(&candidate.zone),
            capacity_type: text(&candidate.capacity_type),
            hourly_price: candidate.price.map(|price| price.to_string()),
            pods: candidate.pods.iter().map(ToString::to_string).collect(),
        }
    }
}

/// How far ahead to look, and at how many moments: a budget that changes every minute is looked at for some hours.
const HORIZON: SignedDuration = SignedDuration::from_hours(7 * 24);
const MOST_MOMENTS: usize = 200;

/// The next moments at which something becomes possible that is not before.
fn later(decided: &Decided, wanted: usize) -> Vec<LaterReport> {
    let Decided { cluster, now, settings, surroundings, .. } = decided;
    let mut cluster = cluster.clone();
    let end = now.checked_add(HORIZON).unwrap_or(Timestamp::MAX);
    let claims = |round: &Round| -> BTreeSet<String> {
        round.proposals.iter().flat_map(Proposal::claims).map(ToString::to_string).collect()
    };
    let mut before = claims(&decided.round);
    let mut at = next_moment(&cluster, &decided.round, *now);
    let mut found = Vec::new();
    for _ in 0..MOST_MOMENTS {
        let Some(moment) = at.filter(|moment| *moment <= end && found.len() < wanted) else { break };
        cluster.mark(moment);
        // The pods that were found room for run there by then.
        let round = round(&cluster, settings, surroundings, Timestamp::MAX, moment);
        let is_new = |proposal: &&Proposal| proposal.claims().any(|claim| !before.contains(&**claim));
        let moves: Vec<MoveReport> = round.proposals.iter().filter(is_new).map(MoveReport::of).collect();
        if !moves.is_empty() {
            let nodes = moves.iter().flat_map(|found| &found.nodes).filter(|node| !before.contains(&node.claim));
            let nodes = nodes.map(|node| node.node.clone()).collect();
            found.push(LaterReport { at: moment, nodes, moves });
        }
        before.extend(claims(&round));
        at = next_moment(&cluster, &round, moment);
    }
    found
}

/// Nodes whose time will be over though nobody does anything.
fn expiring(decided: &Decided) -> Vec<ExpiryReport> {
    let Decided { cluster, now, .. } = decided;
    let end = now.checked_add(HORIZON).unwrap_or(Timestamp::MAX);
    let staying = cluster.snapshot.claims().filter(|claim| !claim.meta.is_deleting());
    let expiring = staying.filter(|claim| decided.round.verdicts.contains_key(claim.name())).filter_map(|claim| {
        let (at, held) = match cluster.expiry(claim, *now) {
            Expiry::At(at) => (at, None),
            Expiry::Held(hold @ Hold::Window { until: Some(until), .. }) => (until, Some(hold.to_string())),
            // Until somebody changes a pool or a window.
            Expiry::Held(_) | Expiry::Never | Expiry::Due => return None,
        };
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let (node, pool) = (text(claim.status.node_name.as_deref()), text(claim.pool()));
        (at <= end).then(|| ExpiryReport { at, claim: claim.name().to_string(), node, pool, held })
    });
    let mut expiring: Vec<ExpiryReport> = expiring.collect();
    expiring.sort_by(|a, b| (a.at, &a.claim).cmp(&(b.at, &b.claim)));
    expiring
}

/// When a decision may next change though nothing happens: a window or a budget opens or closes, or a wait is over.
fn next_moment(cluster: &Cluster, round: &Round, now: Timestamp) -> Option<Timestamp> {
    let pools = cluster.snapshot.pools().filter_map(|pool| pool.spec.as_ref().ok());
    let budgets = pools.filter_map(|pool| pool.disruption.budgets.next_transition(now));
    let windows = cluster.snapshot.maintenance_windows().filter_map(|window| window.next_transition(now));
    budgets.chain(windows).chain(round.wake).filter(|at| *at > now).min()
}

fn text(report: &Report, decided: &Decided) -> String {
    let mut text = format!("At {}:\n", output::moment(report.at));
    for claim in &report.launches {
        let (pool, options, pods) = (&claim.pool, claim.options_text(), short_list(&claim.pods));
        text.push_str(&format!("Launch {options} of {pool} at ${} for {pods}\n", claim.hourly_price));
    }
    for expired in &report.expired {
        text.push_str(&expired.line());
    }
    for found in &report.moves {
        text.push_str(&found.lines(""));
    }
    if report.launches.is_empty() && report.expired.is_empty() && report.moves.is_empty() {
        text.push_str("Nothing to do.\n");
    }
    if report.moves.len() > 1 {
        text.push_str(&format!("Together this saves ${} per hour.\n", report.hourly_savings));
    }
    for unplaced in &report.unplaced {
        text.push_str(&format!("No place for {}", unplaced.lines()));
    }
    let going = by_reason(&decided.round, |verdict| matches!(verdict, Verdict::UnderWay { .. } | Verdict::Leaving));
    if !going.is_empty() {
        text.push_str("\nNodes that are on their way out:\n");
        text.push_str(&output::table(&["STATE", "NODES", "FOR EXAMPLE"], &going));
    }
    let stay = by_reason(&decided.round, Verdict::is_keep);
    if !stay.is_empty() {
        text.push_str("\nNodes that stay:\n");
        text.push_str(&output::table(&["REASON", "NODES", "FOR EXAMPLE"], &stay));
    }
    for later in &report.later {
        let nodes = short_list(&later.nodes);
        text.push_str(&format!("\nAt {}, if nothing changes before, also {nodes}:\n", output::moment(later.at)));
        for found in &later.moves {
            text.push_str(&found.lines("  "));
        }
    }
    if let [first, rest @ ..] = report.expiring.as_slice() {
        let nodes = output::count(report.expiring.len(), "node");
        let held = first.held.as_ref().map(|held| format!(", held back {held}")).unwrap_or_default();
        let (name, at) = (if first.node.is_empty() { &first.claim } else { &first.node }, output::moment(first.at));
        let first_of = if rest.is_empty() { "" } else { ", the first" };
        text.push_str(&format!(
            "\nWithin seven days {nodes} will expire{first_of}: {name} of {} at {at}{held}.\n",
            first.pool
        ));
    }
    for assumption in &report.assumptions {
        text.push_str(&format!("Note: {assumption}.\n"));
    }
    text
}

/// By reason, the most frequent first.
fn by_reason(round: &Round, is_meant: impl Fn(&Verdict) -> bool) -> Vec<Vec<String>> {
    let mut by_reason: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for (claim, verdict) in round.verdicts.iter().filter(|(_, verdict)| is_meant(verdict)) {
        let text = match verdict {
            Verdict::Keep(reason) => reason.to_string(),
            Verdict::Go { .. } | Verdict::UnderWay { .. } | Verdict::Leaving => verdict.to_string(),
        };
        by_reason.entry(verdict.label()).or_default().push(format!("{claim}: {text}"));
    }
    let mut rows: Vec<_> = by_reason.into_iter().collect();
    rows.sort_by_key(|(label, claims)| (std::cmp::Reverse(claims.len()), *label));
    rows.into_iter()
        .map(|(label, claims)| vec![label.to_owned(), claims.len().to_string(), claims[0].clone()])
        .collect()
}
