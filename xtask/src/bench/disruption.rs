//! `cargo xtask bench disruption`.

use std::path::Path;

use anyhow::{Context, Result};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::peer::{self, Program};
use super::report::{mebibytes, nanos, ratio, table};
use super::work::{TemporaryDirectory, answer, bench, chosen};
use crate::command::{self, cargo};

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

struct Figures {
    workload: String,
    ours: Ours,
    theirs: Theirs,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    // Before anything that takes minutes.
    peer::ensure_built("disruption")?;
    command::run(&mut cargo(["build", "--quiet", "--release", "-p", "kerf-bench"]))?;
    let directory = TemporaryDirectory::make()?;
    let mut all = Vec::new();
    for workload in chosen("disruption", arguments.only.as_deref())? {
        let figures = measure(&workload, arguments, directory.path())?;
        if arguments.output.is_some() {
            println!("{}", figures.json());
        }
        all.push(figures);
    }
    if arguments.output.is_none() {
        print!("{}", shown(&all));
    }
    Ok(())
}

fn measure(workload: &str, arguments: &Arguments, directory: &Path) -> Result<Figures> {
    let problem = directory.join(format!("{workload}.jsonl"));
    eprintln!("{workload}: making it");
    command::capture(bench().args(["generate", workload, "--output"]).arg(&problem))?;
    eprintln!("{workload}: Kerf, {} times", arguments.runs);
    let ours = answer(bench().arg("disrupt").arg(&problem).args(["--runs", &arguments.runs.to_string()]))?;
    eprintln!("{workload}: the reference, {} candidates and one search over several nodes", arguments.sample);
    let mut command = peer::program(Program::Peer, "disruption")?;
    let sample = arguments.sample.to_string();
    let theirs = answer(command.args(["disrupt", "-sample", &sample, "-problem"]).arg(&problem))?;
    std::fs::remove_file(&problem).with_context(|| format!("cannot remove {}", problem.display()))?;
    Ok(Figures { workload: workload.to_owned(), ours, theirs })
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

    fn json(&self) -> serde_json::Value {
        json!({
            "workload": self.workload,
            "round_ms": self.ours.round_ns as f64 / 1e6,
            "ratio_time": self.ratio_time(),
            "ratio_memory": self.ratio_memory(),
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
        let Figures { workload, ours, theirs } = figures;
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
    format!("{}\ntime: reference / ours, per candidate. memory: ours / reference.\n", table(&rows))
}
