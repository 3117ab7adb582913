//! `kerf budget`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kerf_disruption::counts_in_budget;
use kerf_model::budget::{Allowance, Budget, BudgetList, BudgetNodes, DisruptionReason};
use kerf_model::label;
use kerf_model::maintenance::MaintenanceWindow;
use kerf_model::node_pool::NodePool;
use kerf_model::snapshot::ClusterSnapshot;
use serde::Serialize;

use super::why::{allowed, no_pool};
use crate::clock;
use crate::cluster::{ClusterArgs, OVERLAYS};
use crate::output::{self, Outcome, ReportFormat};

/// Show how many nodes of a pool may be disrupted when, and warn of budgets that do not do what they seem to
///
/// A row is a stretch of time in which nothing changes. The columns are the reasons that budgets know; maintenance
/// windows that cover nodes of the pool are named, with what they hold back. Ends with 1 if there is a warning.
#[derive(clap::Args)]
// One file per -f: a name that follows is not a file.
#[command(after_help = EXAMPLES, mut_arg("files", |files| files.num_args(1)))]
pub struct Args {
    /// The NodePool
    #[arg(value_name = "NODEPOOL")]
    pool: String,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Seven days instead of one
    #[arg(long)]
    week: bool,
    /// Where the calendar begins, such as 2026-11-16T00:00:00Z [default: now]
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// The number of nodes to take percentages of [default: what the pool has]
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,
    /// How to print the calendar
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: ReportFormat,
}

const EXAMPLES: &str = "\
Examples:
  kerf budget general --week
  kerf budget general -f nodepool.yaml --nodes 50
  kerf budget general -f dump/ --at 2026-11-16T00:00:00Z -o json";

/// A calendar of every minute of a week would help nobody.
const MOST_ROWS: usize = 200;
/// Schedules of minutes have shown long before what they come to.
const MOST_STEPS: usize = 5_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    pool: String,
    nodes: u32,
    calendar: Vec<Stretch>,
    /// Whether there was more than could be shown.
    is_cut: bool,
    warnings: Vec<Warning>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stretch {
    from: Timestamp,
    to: Timestamp,
    /// By reason; `null` is any number.
    allowed: BTreeMap<String, Option<u32>>,
    windows: Vec<String>,
}

#[derive(Serialize)]
struct Warning {
    /// Stable.
    rule: &'static str,
    message: String,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let cluster = args.cluster.read(OVERLAYS)?;
    let Some(stored) = cluster.snapshot.pool(&args.pool) else { return Err(no_pool(&args.pool, &cluster.snapshot)) };
    let pool = match &stored.spec {
        Ok(pool) => pool,
        Err(problems) => bail!("NodePool {} cannot be used: {problems}", args.pool),
    };
    let now = args.at.unwrap_or_else(clock::now);
    let length = SignedDuration::from_hours(if args.week { 7 * 24 } else { 24 });
    let end = now.checked_add(length).unwrap_or(Timestamp::MAX);
    let nodes = args.nodes.unwrap_or_else(|| count(&cluster.snapshot, &pool.name));
    let (calendar, is_cut) = calendar(pool, &cluster.snapshot, nodes, (now, end));
    let report = Report { pool: args.pool.clone(), nodes, calendar, is_cut, warnings: warnings(pool, now) };
    match args.output {
        ReportFormat::Json => output::print_json(&report)?,
        ReportFormat::Text => output::print(&text(&report))?,
    }
    let found = if report.warnings.is_empty() { Outcome::Fine } else { Outcome::Findings };
    Ok(cluster.outcome.max(found))
}

/// As a round counts them.
fn count(snapshot: &ClusterSnapshot, pool: &str) -> u32 {
    let of_pool = snapshot.claims().filter(|claim| claim.pool() == Some(pool));
    let counted = of_pool.filter(|claim| counts_in_budget(claim, snapshot.nodes_of(claim).next().map(AsRef::as_ref)));
    u32::try_from(counted.count()).unwrap_or(u32::MAX)
}

/// Windows that cover a node of the pool, or every node.
pub fn windows_of<'a>(snapshot: &'a ClusterSnapshot, pool: &str) -> Vec<&'a MaintenanceWindow> {
    let of_pool: Vec<_> = snapshot.nodes().filter(|node| node.meta.label(label::NODEPOOL) == Some(pool)).collect();
    let covers = |window: &&MaintenanceWindow| {
        window.selector.is_none() || of_pool.iter().any(|node| window.covers(&node.meta.labels))
    };
    snapshot.maintenance_windows().filter(covers).collect()
}

fn calendar(
    pool: &NodePool,
    snapshot: &ClusterSnapshot,
    nodes: u32,
    (start, end): (Timestamp, Timestamp),
) -> (Vec<Stretch>, bool) {
    let budgets = &pool.disruption.budgets;
    let windows = windows_of(snapshot, &pool.name);
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut from = start;
    while from < end {
        let changes = windows.iter().filter_map(|window| window.next_transition(from));
        let to = changes.chain(budgets.next_transition(from)).filter(|at| *at > from).min().unwrap_or(end).min(end);
        let allowed = DisruptionReason::ALL.map(|reason| {
            let nodes = match budgets.allowance(reason, nodes, from) {
                Allowance::AtMost(nodes) => Some(nodes),
                Allowance::Unlimited => None,
            };
            (reason.to_string(), nodes)
        });
        let active = windows
            .iter()
            .filter(|window| window.is_active(from))
            .map(|window| format!("{} holds back {}", window.name, held_back(window, snapshot)));
        let stretch = Stretch { from, to, allowed: allowed.into(), windows: active.collect() };
        let is_alike = |last: &&mut Stretch| last.allowed == stretch.allowed && last.windows == stretch.windows;
        if let Some(last) = stretches.last_mut().filter(is_alike) {
            last.to = to;
        } else if stretches.len() == MOST_ROWS {
            return (stretches, true);
        } else {
            stretches.push(stretch);
        }
        from = to;
    }
    (stretches, false)
}

pub fn held_back(window: &MaintenanceWindow, snapshot: &ClusterSnapshot) -> String {
    if let Some(problem) = snapshot.window(&window.name).and_then(|stored| stored.problem.as_ref()) {
        return format!("everything, because it cannot be read: {problem}");
    }
    let actions: Vec<&str> = window.actions.iter().map(|action| action.label()).collect();
    actions.join(", ")
}

/// Of each budget that cannot be read: which, why, and what it does until it is corrected.
pub fn broken(list: &BudgetList) -> impl Iterator<Item = String> {
    list.entries().enumerate().filter_map(|(index, entry)| {
        let broken = entry.err()?;
        let reasons = DisruptionReason::ALL.into_iter().filter(|reason| broken.reasons.include(*reason));
        let reasons: Vec<_> = reasons.map(DisruptionReason::label).collect();
        let why = anyhow::Error::new(broken.error.clone());
        let number = index + 1;
        Some(format!("budget {number} cannot be read, and allows nothing for {}: {why:#}", reasons.join(", ")))
    })
}

/// The moments at which a budget opens or closes, as far as anybody would look.
pub fn transitions(list: &BudgetList, now: Timestamp) -> impl Iterator<Item = Timestamp> {
    let next = |at: &Timestamp| list.next_transition(*at);
    std::iter::successors(list.next_transition(now), next).take(MOST_STEPS)
}

fn warnings(pool: &NodePool, now: Timestamp) -> Vec<Warning> {
    let list = &pool.disruption.budgets;
    // Numbered as they are written, the first is 1.
    let usable: Vec<(usize, &Budget)> =
        list.entries().zip(1..).filter_map(|(entry, number)| Some((number, entry.ok()?))).collect();
    let mut warnings = Vec::new();
    let mut warn = |rule, message| warnings.push(Warning { rule, message });
    for problem in broken(list) {
        warn("broken", problem);
    }
    if usable.is_empty() && list.broken().next().is_none() {
        warn("no_budgets", "there are no budgets: any number of nodes may go at once".to_owned());
        return warnings;
    }
    for (number, budget) in &usable {
        let Some(window) = &budget.window else { continue };
        if window.next_transition(now).is_none() {
            let message = format!("budget {number} ({}) is never active: its schedule never comes", budget.nodes);
            warn("never_active", message);
        }
    }
    let outlook = Outlook::of(list, now);
    // With one warning for all reasons that are alike.
    let is_named = |reason: &DisruptionReason| usable.iter().any(|(_, budget)| budget.reasons.include(*reason));
    let (outside, unnamed): (Vec<_>, Vec<_>) = outlook.unlimited.into_iter().partition(is_named);
    if !outside.is_empty() {
        let names = labels(&outside);
        let message =
            format!("outside of the schedules any number of nodes may go for {names}: add a budget without a schedule");
        warn("unlimited_outside", message);
    }
    if !unnamed.is_empty() {
        let names = labels(&unnamed);
        warn("no_budget_for", format!("no budget is about {names}: any number of nodes may go at once for that"));
    }
    for (number, budget) in &usable {
        let covers = |other: &&Budget| {
            DisruptionReason::ALL
                .into_iter()
                .all(|reason| !budget.reasons.include(reason) || other.reasons.include(reason))
        };
        let others = usable.iter().filter(|(at, _)| at != number);
        // Of two that are the same, the first one counts.
        let stricter = others.filter(|(_, other)| other.window.is_none()).filter(|(_, other)| covers(other)).find(
            |(at, other)| match is_at_most(other.nodes, budget.nodes) {
                Some(std::cmp::Ordering::Less) => true,
                Some(std::cmp::Ordering::Equal) => at < number,
                Some(std::cmp::Ordering::Greater) | None => false,
            },
        );
        if let Some((at, other)) = stricter {
            let (own, theirs) = (budget.nodes, other.nodes);
            let message = format!("budget {number} ({own}) never counts: budget {at} always allows no more ({theirs})");
            warn("never_counts", message);
        }
    }
    let is_zero = |reason: &DisruptionReason| {
        let mut always = usable.iter().filter(|(_, budget)| budget.window.is_none() && budget.reasons.include(*reason));
        always.any(|(_, budget)| budget.nodes.of(u32::MAX) == 0)
    };
    let (zero, cancelled): (Vec<_>, Vec<_>) = outlook.nothing.into_iter().partition(is_zero);
    let causes = [(zero, "a budget of 0 has no schedule"), (cancelled, "the schedules of the budgets leave no time")];
    for (reasons, why) in causes.into_iter().filter(|(reasons, _)| !reasons.is_empty()) {
        warn("nothing_ever", format!("nothing is ever disrupted for {}: {why}", labels(&reasons)));
    }
    warnings
}

fn labels(reasons: &[DisruptionReason]) -> String {
    reasons.iter().map(|reason| reason.label()).collect::<Vec<_>>().join(", ")
}

/// What all budgets together come to in the long run, by reason.
struct Outlook {
    /// At times any number of nodes may go.
    unlimited: Vec<DisruptionReason>,
    /// Not one node may go at any time.
    nothing: Vec<DisruptionReason>,
}

impl Outlook {
    /// A year, of which every schedule shows what it does.
    const LENGTH: SignedDuration = SignedDuration::from_hours(366 * 24);
    fn of(list: &BudgetList, now: Timestamp) -> Self {
        let end = now.checked_add(Self::LENGTH).unwrap_or(Timestamp::MAX);
        let next = |at: &Timestamp| list.next_transition(*at).filter(|next| *next < end);
        let moments: Vec<Timestamp> = std::iter::successors(Some(now), next).take(MOST_STEPS).collect();
        // A budget that cannot be read has its own warning.
        let is_readable = |reason: &DisruptionReason| !list.broken().any(|broken| broken.reasons.include(*reason));
        let of = |is_meant: fn(Allowance) -> bool, is_always: bool| {
            let holds = |reason: &DisruptionReason| {
                let mut allowances = moments.iter().map(|at| list.allowance(*reason, u32::MAX, *at)).map(is_meant);
                if is_always { allowances.all(|meant| meant) } else { allowances.any(|meant| meant) }
            };
            DisruptionReason::ALL.into_iter().filter(is_readable).filter(holds).collect()
        };
        Self {
            unlimited: of(|allowance| allowance == Allowance::Unlimited, false),
            nothing: of(|allowance| allowance == Allowance::AtMost(0), true),
        }
    }
}

/// How two numbers compare whatever the size of the pool; `None` if that depends on it.
fn is_at_most(a: BudgetNodes, b: BudgetNodes) -> Option<std::cmp::Ordering> {
    match (a, b) {
        (BudgetNodes::Count(a), BudgetNodes::Count(b)) => Some(a.cmp(&b)),
        (BudgetNodes::Percent(a), BudgetNodes::Percent(b)) => Some(a.cmp(&b)),
        (BudgetNodes::Count(0), BudgetNodes::Percent(percent)) => Some(0.cmp(&percent)),
        (BudgetNodes::Percent(0), BudgetNodes::Count(count)) => Some(0.cmp(&count)),
        (BudgetNodes::Count(_), BudgetNodes::Percent(_)) | (BudgetNodes::Percent(_), BudgetNodes::Count(_)) => None,
    }
}

fn text(report: &Report) -> String {
    let mut text =
        format!("NodePool {}, {}; times in UTC\n", report.pool, output::count(report.nodes as usize, "node"));
    let reasons = DisruptionReason::ALL.map(|reason| reason.label().to_uppercase());
    let mut header: Vec<&str> = vec!["FROM", "TO"];
    header.extend(reasons.iter().map(String::as_str));
    let has_windows = report.calendar.iter().any(|stretch| !stretch.windows.is_empty());
    if has_windows {
        header.push("WINDOWS");
    }
    let rows = report.calendar.iter().map(|stretch| {
        let mut row = vec![day(stretch.from), day(stretch.to)];
        row.extend(
            DisruptionReason::ALL
                .map(|reason| stretch.allowed.get(reason.label()).copied().flatten())
                .map(|nodes| allowed(nodes.map_or(Allowance::Unlimited, Allowance::AtMost))),
        );
        if has_windows {
            row.push(stretch.windows.join("; "));
        }
        row
    });
    text.push_str(&output::table(&header, &rows.collect::<Vec<_>>()));
    if report.is_cut {
        text.push_str("and so on\n");
    }
    if report.nodes == 0 {
        text.push_str("Note: there are no nodes to take percentages of; --nodes says how many to suppose.\n");
    }
    let seen: BTreeSet<&str> = report.warnings.iter().map(|warning| warning.message.as_str()).collect();
    for message in seen {
        text.push_str(&format!("Warning: {message}\n"));
    }
    text
}

fn day(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%a %Y-%m-%d %H:%M").to_string()
}
