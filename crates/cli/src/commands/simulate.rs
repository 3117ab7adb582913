//! `kerf simulate`.

use jiff::SignedDuration;
use kerf_sim::scenario::{Finding, Outlook, Run, Scenario, Summary};
use kerf_sim::timeline::{Entry, dollars};
use serde::Serialize;

use super::scenario_choice::{self, duration, summary_text};
use crate::output::{self, Outcome, ReportFormat};

/// Run a scenario in a simulated cluster and check what it expects
///
/// Time is virtual and passes as fast as the machine allows. With the same seed the same things happen. Ends with 1 if
/// an expectation is not met; expectations later than --for are not checked.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario file, or the name of a scenario that comes with Kerf
    #[arg(short = 'f', long = "filename", value_name = "SCENARIO")]
    scenario: String,
    /// How much time passes, such as 90s, 12h or 30d [default: that of the scenario]
    #[arg(long = "for", value_parser = duration, value_name = "DURATION")]
    for_: Option<SignedDuration>,
    /// Seed of names and chances [default: that of the scenario]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How to print the result; JSON contains the timeline
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: ReportFormat,
}

const EXAMPLES: &str = "\
Examples:
  kerf simulate -f provisioning
  kerf simulate -f my-cluster.yaml --for 30d --seed 7
  kerf simulate -f expiry -o json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    scenario: String,
    seed: u64,
    summary: SummaryReport,
    expectations: Vec<Finding>,
    timeline: Vec<Entry>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SummaryReport {
    elapsed_secs: i64,
    nodes: usize,
    claims: usize,
    claims_made: usize,
    instances: usize,
    pods_running: usize,
    pods_pending: usize,
    evictions: usize,
    disruptions: std::collections::BTreeMap<String, usize>,
    dollars_saved_per_hour: String,
    /// Text, as all money: a JSON number would not keep it exactly.
    dollars_per_hour: String,
    dollars_spent: String,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let scenario = scenario_choice::choose(&args.scenario)?;
    let seed = args.seed.unwrap_or(scenario.seed);
    let mut run = Run::new(&scenario, seed, args.for_.unwrap_or(scenario.duration))?;
    let timeline = run.finish()?;
    let (summary, findings) = (run.summary(), run.findings());
    let has_failed = findings.iter().any(|finding| finding.outlook == Outlook::Failed);
    match args.output {
        ReportFormat::Text => output::print(&text(&scenario, &summary, &findings))?,
        ReportFormat::Json => output::print_json(&Report {
            scenario: scenario.name,
            seed,
            summary: SummaryReport::new(&summary),
            expectations: findings,
            timeline,
        })?,
    }
    Ok(if has_failed { Outcome::Findings } else { Outcome::Fine })
}

fn text(scenario: &Scenario, summary: &Summary, findings: &[Finding]) -> String {
    let count = |outlook| findings.iter().filter(|finding| finding.outlook == outlook).count();
    let (met, failed, open) = (count(Outlook::Met), count(Outlook::Failed), count(Outlook::NotReached));
    let mut text = summary_text(summary);
    text.push_str(&format!("Expectations: {met} met, {failed} failed"));
    if open > 0 {
        text.push_str(&format!(", {open} not reached"));
    }
    text.push('\n');
    for finding in findings.iter().filter(|finding| finding.outlook == Outlook::Failed) {
        text.push_str(&failure(&scenario.file, finding));
        text.push('\n');
    }
    text
}

/// `x.yaml:12: by 00:10:00 expected running pods: 6, seen 5`.
pub fn failure(file: &str, finding: &Finding) -> String {
    format!("{file}:{}: {} expected {}, seen: {}", finding.line, finding.when, finding.expected, finding.seen)
}

impl SummaryReport {
    fn new(summary: &Summary) -> Self {
        Self {
            elapsed_secs: summary.elapsed.as_secs(),
            nodes: summary.nodes,
            claims: summary.claims,
            claims_made: summary.claims_made,
            instances: summary.instances,
            pods_running: summary.pods_running,
            pods_pending: summary.pods_pending,
            evictions: summary.evictions,
            disruptions: summary.disruptions.clone(),
            dollars_saved_per_hour: dollars(summary.saved_hourly.micros(), 6),
            dollars_per_hour: dollars(summary.hourly.micros(), 6),
            dollars_spent: dollars(summary.spent.micros(), 6),
        }
    }
}
