//! `cargo xtask bench disruption`.

use std::path::Path;
use std::process::Stdio;

use anyhow::Result;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::report::{mebibytes, nanos, ratio, table};
use super::work::{answer, bench, each};
use crate::reference::{PEER, Program};

#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask bench disruption                          every workload, as a table
  cargo xtask bench disruption --only nodes-1000 -o json
  cargo xtask bench disruption --only nodes-200         any number of nodes")]
pub struct Arguments {
    /// Only this workload, or those whose name contains this
    #[arg(long, value_name = "WORKLOAD")]
    only: Option<String>,
    /// `json`: one object per workload and line, instead of the table
    #[arg(short, long, value_parser = ["json"])]
    output: Option<String>,
    /// How often Kerf looks, each time from nothing; the fastest counts
    #[arg(long, default_value_t = 3, value_name = "TIMES")]
    runs: usize,
    /// How many candidates the reference looks at, evenly over all
    #[arg(long, default_value_t = 50, value_name = "NODES")]
    sample: usize,
    /// How long the reference may take to settle, in minutes of real time; 0 leaves settling out
    #[arg(long, default_value_t = 10, value_name = "MINUTES")]
    settle_limit: u64,
}

/// What `kerf-bench disrupt` says.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Ours {
    round_ns: u64,
    first_ns: u64,
    nodes: usize,
    candidates: usize,
    what_ifs: usize,
    pruned: usize,
    proposals: usize,
    removed: usize,
    launched: usize,
    peak_bytes: u64,
}

/// What the peer says.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Theirs {
    candidates: usize,
    candidates_ns: u64,
    sample: usize,
    per_candidate_ns: u64,
    deleted: usize,
    replaced: usize,
    kept: usize,
    multi_ns: u64,
    multi_nodes: usize,
    peak_bytes: u64,
}

/// Where rounds end that follow each other until there is nothing left to do; both sides say the same of themselves.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Settled {
    settled: bool,
    /// It rests because its search runs into its time-out again and again. The reference's only: Kerf's has none.
    #[serde(default)]
    times_out: bool,
    rounds: usize,
    commands: usize,
    removed: usize,
    launched: usize,
    evictions: usize,
    cost_before: f64,
    cost_after: f64,
    settle_s: f64,
    real_ns: u64,
}

struct Figures {
    workload: String,
    ours: Ours,
    theirs: Theirs,
    settled: Option<BothSettled>,
}

struct BothSettled {
    ours: Settled,
    theirs: Settled,
    /// If the reference was not given enough time: our side up to where it costs no more than the reference's did by then.
    ours_as_far: Option<Settled>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    // Before anything that takes minutes.
    PEER.ensure_built("bench disruption")?;
    let all = each("disruption", arguments.only.as_deref(), |workload, problem| {
        let figures = measure(workload, problem, arguments)?;
        if arguments.output.is_some() {
            println!("{}", figures.json());
        }
        Ok(figures)
    })?;
    if arguments.output.is_none() {
        print!("{}", shown(&all));
    }
    Ok(())
}

fn measure(workload: &str, problem: &Path, arguments: &Arguments) -> Result<Figures> {
    eprintln!("{workload}: Kerf, {} times", arguments.runs);
    let ours = answer(bench().arg("disrupt").arg(problem).args(["--runs", &arguments.runs.to_string()]))?;
    eprintln!("{workload}: the reference, {} candidates and one search over several nodes", arguments.sample);
    let mut command = PEER.program(Program::Peer, "bench disruption")?;
    let sample = arguments.sample.to_string();
    let theirs = answer(command.args(["disrupt", "-sample", &sample, "-problem"]).arg(problem))?;
    let settled = match arguments.settle_limit {
        0 => None,
        minutes => {
            eprintln!("{workload}: both, until there is nothing left to do (the reference {minutes} minutes at most)");
            let ours = answer(bench().arg("settle").arg(problem))?;
            let mut command = PEER.program(Program::Peer, "bench disruption")?;
            let limit = format!("{minutes}m");
            // What it takes to compute does not count here, but its time-outs do: it gets the memory to collect garbage
            // rarely, which makes it a third faster.
            command.env("GOGC", "800");
            // It says every minute how far it is.
            command.args(["settle", "-limit", &limit, "-problem"]).arg(problem).stderr(Stdio::inherit());
            let theirs: Settled = answer(&mut command)?;
            let as_far = || {
                let cost = theirs.cost_after.to_string();
                answer(bench().arg("settle").arg(problem).args(["--until", &cost]))
            };
            let ours_as_far = if theirs.settled { None } else { Some(as_far()?) };
            Some(BothSettled { ours, theirs, ours_as_far })
        }
    };
    Ok(Figures { workload: workload.to_owned(), ours, theirs, settled })
}

impl Figures {
    /// Our whole round, by the candidates that the reference would look at too.
    fn per_candidate_ns(&self) -> f64 {
        self.ours.round_ns as f64 / self.theirs.candidates.max(1) as f64
    }

    /// The reference's time for one candidate alone by ours, in which the search over several is included.
    fn ratio_time(&self) -> f64 {
        self.theirs.per_candidate_ns as f64 / self.per_candidate_ns()
    }

    fn ratio_memory(&self) -> f64 {
        self.ours.peak_bytes as f64 / self.theirs.peak_bytes as f64
    }

    /// Ours by the reference's, of where both end: cost, evictions, time. Of a reference that was cut short, evictions and
    /// time are compared at the same cost.
    fn ratios_settled(&self) -> [Option<f64>; 3] {
        let Some(BothSettled { ours, theirs, ours_as_far }) = &self.settled else { return [None; 3] };
        let by =
            |ours: &Settled, of: fn(&Settled) -> f64| Some(of(ours) / of(theirs)).filter(|ratio| ratio.is_finite());
        let alike = ours_as_far.as_ref().unwrap_or(ours);
        [by(ours, |side| side.cost_after), by(alike, |side| side.evictions as f64), by(alike, |side| side.settle_s)]
    }

    fn json(&self) -> serde_json::Value {
        let [ratio_cost, ratio_evictions, ratio_settle] = self.ratios_settled();
        let settled = self.settled.as_ref();
        json!({
            "workload": self.workload,
            "round_ms": self.ours.round_ns as f64 / 1e6,
            "ratio_time": self.ratio_time(),
            "ratio_memory": self.ratio_memory(),
            "ratio_cost": ratio_cost,
            "ratio_evictions": ratio_evictions,
            "ratio_settle": ratio_settle,
            "ours_settled": settled.map(|both| &both.ours),
            "ours_as_far_as_reference": settled.and_then(|both| both.ours_as_far.as_ref()),
            "reference_settled": settled.map(|both| &both.theirs),
            "ours": self.ours,
            "reference": self.theirs,
        })
    }
}

fn shown(all: &[Figures]) -> String {
    let titles = [
        "workload",
        "round",
        "per candidate",
        "go",
        "come",
        "memory",
        "| reference: per candidate",
        "several",
        "memory",
        "| time",
        "memory",
    ];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for figures in all {
        let Figures { workload, ours, theirs, settled: _ } = figures;
        rows.push(vec![
            workload.clone(),
            nanos(ours.round_ns),
            format!("{:.1} µs", figures.per_candidate_ns() / 1e3),
            ours.removed.to_string(),
            ours.launched.to_string(),
            mebibytes(ours.peak_bytes),
            nanos(theirs.per_candidate_ns),
            nanos(theirs.multi_ns),
            mebibytes(theirs.peak_bytes),
            ratio(Some(figures.ratio_time())),
            ratio(Some(figures.ratio_memory())),
        ]);
    }
    let mut text = format!("{}\ntime: reference / ours, per candidate. memory: ours / reference.\n", table(&rows));
    if all.iter().any(|figures| figures.settled.is_some()) {
        text.push_str(&format!("\n{}\n", shown_settled(all)));
    }
    text
}

fn shown_settled(all: &[Figures]) -> String {
    let titles = ["workload, settled", "cost", "evictions", "time", "| reference: cost", "evictions", "time"];
    let ratios = ["| cost", "evictions", "time (ours / reference)"];
    let mut rows = vec![titles.into_iter().chain(ratios).map(str::to_owned).collect::<Vec<_>>()];
    for figures in all {
        let Some(BothSettled { ours, theirs, ours_as_far }) = &figures.settled else { continue };
        let mut row = vec![figures.workload.clone()];
        for side in [ours, theirs] {
            // A time that is not the end is marked, and an end that is none.
            let open = match (side.settled, side.times_out) {
                (false, _) => "+, not settled",
                (true, true) => ", then only time-outs",
                (true, false) => "",
            };
            row.push(format!("${:.2}/h of {:.2}", side.cost_after, side.cost_before));
            row.push(side.evictions.to_string());
            row.push(format!("{} s{open}", side.settle_s));
        }
        row.extend(figures.ratios_settled().map(ratio));
        rows.push(row);
        if let Some(side) = ours_as_far {
            let mut row = vec!["  as far as the reference".to_owned(), format!("${:.2}/h", side.cost_after)];
            row.extend([side.evictions.to_string(), format!("{} s", side.settle_s)]);
            row.resize(rows[0].len(), String::new());
            rows.push(row);
        }
    }
    table(&rows)
}
