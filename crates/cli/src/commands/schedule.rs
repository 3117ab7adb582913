//! `kerf schedule`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use clap::ValueEnum;
use jiff::Timestamp;
use kerf_model::cluster::Pod;
use kerf_model::price::Price;
use kerf_scheduling::{
    DefaultSpread, NO_DEFAULT_SPREAD, Options, PlannedClaim, Policy, Schedule, Supply, Unplaced, Waiting, place,
    pods_to_place,
};
use serde::Serialize;

use crate::clock;
use crate::cluster::{Cluster, ClusterArgs, OVERLAYS};
use crate::output::{self, Outcome, ReportFormat};

/// Show where the pending pods of a cluster would go, and why some would go nowhere
///
/// Works on a dump of a cluster or on manifests, without a cluster: pods, nodes, NodeClaims, NodePools, DaemonSets,
/// volumes and their claims. Pods of manifests count as unschedulable, and pools without a status as ready. Without -f the
/// live cluster is read. Ends with 1 if a pod has no place.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Which of the valid answers is wanted
    #[arg(long, value_enum, default_value = "best", value_name = "POLICY")]
    policy: PolicyName,
    /// How to print the answer; JSON contains every option
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: ReportFormat,
}

const EXAMPLES: &str = "\
Examples:
  kerf schedule -f examples/dumps/pending
  kubectl get pods,nodes,nodeclaims,nodepools,daemonsets,pv,pvc,sc -A -o yaml | kerf schedule -f -
  kerf schedule -f dump/ --catalogue ec2-like --policy compatible -o json";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PolicyName {
    /// The cheapest that is found
    Best,
    /// What Karpenter would choose
    Compatible,
}

impl From<PolicyName> for Policy {
    fn from(name: PolicyName) -> Self {
        match name {
            PolicyName::Best => Self::Best,
            PolicyName::Compatible => Self::Compatible,
        }
    }
}

/// More names than this are counted, not listed.
const NAMES_SHOWN: usize = 3;

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let cluster = args.cluster.read(OVERLAYS)?;
    let options = Options { policy: args.policy.into(), ..Options::default() };
    let schedule = schedule(&cluster, Vec::new(), &NO_DEFAULT_SPREAD, options, clock::now());
    let report = Report::of(&schedule, &cluster);
    match args.output {
        ReportFormat::Json => output::print_json(&report)?,
        ReportFormat::Text => output::print(&text(&report))?,
    }
    let found = if report.unplaced.is_empty() { Outcome::Fine } else { Outcome::Findings };
    Ok(cluster.outcome.max(found))
}

/// Where pods that need a place, and those of buffers, would go now.
pub fn schedule(
    cluster: &Cluster,
    virtual_pods: Vec<Arc<Pod>>,
    spread: &DefaultSpread,
    options: Options,
    now: Timestamp,
) -> Schedule {
    let pods = pods_to_place(&cluster.snapshot, &BTreeSet::new(), now);
    let supply = Supply { types: &cluster.types, rules: &cluster.rules, options };
    place(&cluster.snapshot, Waiting { pods, virtual_pods }, spread, supply)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    claims: Vec<ClaimReport>,
    existing: Vec<HostReport>,
    unplaced: Vec<UnplacedReport>,
    /// Of all new claims, with the cheapest option of each; dollars.
    hourly_price: String,
    assumptions: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimReport {
    pub pool: String,
    /// Of the cheapest option, dollars per hour.
    pub hourly_price: String,
    pub options: Vec<OptionReport>,
    pub requests: String,
    pub pods: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OptionReport {
    pub instance_type: String,
    pub hourly_price: String,
}

#[derive(Serialize)]
struct HostReport {
    host: String,
    pods: Vec<String>,
}

#[derive(Serialize)]
pub struct UnplacedReport {
    pub pod: String,
    pub reason: &'static str,
    pub message: String,
    /// By pool.
    pub pools: BTreeMap<String, RefusalReport>,
}

#[derive(Serialize)]
pub struct RefusalReport {
    pub reason: &'static str,
    pub message: String,
}

impl Report {
    fn of(schedule: &Schedule, cluster: &Cluster) -> Self {
        let total = schedule.new_claims.iter().filter_map(PlannedClaim::price).map(Price::micros).sum();
        let existing = schedule.on_existing.iter().filter(|on| !on.pods.is_empty());
        Self {
            claims: schedule.new_claims.iter().map(ClaimReport::of).collect(),
            existing: existing
                .map(|on| HostReport { host: on.host.name().to_string(), pods: names(&on.pods) })
                .collect(),
            unplaced: schedule.unplaced.iter().map(|(pod, why)| UnplacedReport::of(pod, why)).collect(),
            hourly_price: Price::from_micros(total).to_string(),
            assumptions: cluster.assumptions.clone(),
        }
    }
}

impl ClaimReport {
    pub fn of(claim: &PlannedClaim) -> Self {
        let option = |option: &Arc<kerf_scheduling::TypeOption>| OptionReport {
            instance_type: option.instance_type.to_string(),
            hourly_price: option.price.to_string(),
        };
        Self {
            pool: claim.pool.to_string(),
            hourly_price: claim.price().unwrap_or_default().to_string(),
            options: claim.options.iter().map(option).collect(),
            requests: claim.requests.to_string(),
            pods: names(&claim.pods),
        }
    }

    /// The cheapest type, and how many others there are.
    pub fn options_text(&self) -> String {
        match self.options.as_slice() {
            [] => String::new(),
            [only] => only.instance_type.clone(),
            [first, rest @ ..] => format!("{} or {} more", first.instance_type, rest.len()),
        }
    }
}

impl UnplacedReport {
    pub fn of(pod: &Pod, why: &Unplaced) -> Self {
        let pools = why.pools.iter().map(|(pool, refusal)| {
            (pool.to_string(), RefusalReport { reason: refusal.id(), message: refusal.to_string() })
        });
        Self {
            pod: pod.meta.name.to_string(),
            reason: why.overall.id(),
            message: why.to_string(),
            pools: pools.collect(),
        }
    }

    /// The reason, and below it that of each pool.
    pub fn lines(&self) -> String {
        let mut text = format!("{}: {}\n", self.pod, if self.pools.is_empty() { &self.message } else { self.reason });
        for (pool, refusal) in &self.pools {
            text.push_str(&format!("  pool {pool}: {} [{}]\n", refusal.message, refusal.reason));
        }
        text
    }
}

fn names(pods: &[Arc<Pod>]) -> Vec<String> {
    let mut names: Vec<String> = pods.iter().map(|pod| pod.meta.name.to_string()).collect();
    names.sort();
    names
}

/// `a, b, c and 4 more`.
pub fn short_list(names: &[String]) -> String {
    match names.len().checked_sub(NAMES_SHOWN) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..NAMES_SHOWN].join(", ")),
    }
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    if !report.claims.is_empty() {
        let count = output::count(report.claims.len(), "node");
        text.push_str(&format!("{count} to launch, ${} per hour:\n", report.hourly_price));
        let rows = report.claims.iter().map(|claim| {
            let pods = format!("{} ({})", claim.pods.len(), short_list(&claim.pods));
            vec![claim.pool.clone(), claim.options_text(), claim.hourly_price.clone(), claim.requests.clone(), pods]
        });
        text.push_str(&output::table(&["POOL", "TYPE", "PRICE", "REQUESTS", "PODS"], &rows.collect::<Vec<_>>()));
    }
    if !report.existing.is_empty() {
        text.push_str(&format!("{}On nodes that exist:\n", if text.is_empty() { "" } else { "\n" }));
        let rows = report
            .existing
            .iter()
            .map(|on| vec![on.host.clone(), format!("{} ({})", on.pods.len(), short_list(&on.pods))]);
        text.push_str(&output::table(&["NODE", "PODS"], &rows.collect::<Vec<_>>()));
    }
    if !report.unplaced.is_empty() {
        let count = output::count(report.unplaced.len(), "pod");
        text.push_str(&format!("{}{count} without a place:\n", if text.is_empty() { "" } else { "\n" }));
        for unplaced in &report.unplaced {
            text.push_str(&unplaced.lines());
        }
    }
    if text.is_empty() {
        text.push_str("No pod needs a place.\n");
    }
    for assumption in &report.assumptions {
        text.push_str(&format!("Note: {assumption}.\n"));
    }
    text
}
