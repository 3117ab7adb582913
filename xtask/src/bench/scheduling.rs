//! `cargo xtask bench scheduling`.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::report::{mebibytes, nanos, ratio, table};
use super::work::{answer, bench, each};
use crate::reference::{PEER, Program};

#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask bench scheduling                          every workload, as a table
  cargo xtask bench scheduling --only diverse-5000      one of them
  cargo xtask bench scheduling --only diverse -o json   those whose name contains it, one object per line
  cargo xtask bench scheduling --only diverse-300       any size of the mix

It takes some twenty minutes for all of them, nearly all of it the reference's; the figures are worth something on a
machine that does nothing else.")]
pub struct Arguments {
    /// Only this workload, or those whose name contains this
    #[arg(long, value_name = "WORKLOAD")]
    only: Option<String>,
    /// `json`: one object per workload and line, instead of the table
    #[arg(short, long, value_parser = ["json"])]
    output: Option<String>,
    /// How often Kerf answers, each time from nothing; the fastest counts
    #[arg(long, default_value_t = 5, value_name = "TIMES")]
    runs: usize,
    /// Give up waiting for the reference's solve after this long; its time is then at least that
    #[arg(long, default_value_t = 900, value_name = "SECONDS")]
    peer_limit: u64,
    /// Do not run the reference
    #[arg(long)]
    no_peer: bool,
}

/// What `kerf-bench schedule` says.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Ours {
    setup_ns: u64,
    solve_ns: u64,
    first_ns: u64,
    nodes: usize,
    cost_per_hour: f64,
    pods_on_existing: usize,
    unscheduled: usize,
    peak_bytes: u64,
}

/// What the peer says.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Theirs {
    setup_ns: u64,
    solve_ns: u64,
    nodes: usize,
    cost_per_hour: f64,
    pods_on_existing: usize,
    unscheduled: usize,
    peak_bytes: u64,
    timed_out: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Bound {
    cost_per_hour: f64,
    impossible_pods: usize,
    is_exact: bool,
    is_whole: bool,
    cost_per_hour_at_nodes: f64,
    took_ms: u64,
}

struct Figures {
    workload: String,
    ours: Ours,
    /// With the policy that chooses as the reference does.
    compatible: Ours,
    theirs: Option<Theirs>,
    bound: Bound,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    // Before anything that takes minutes.
    if !arguments.no_peer {
        PEER.ensure_built("bench scheduling")?;
    }
    let all = each("scheduling", arguments.only.as_deref(), |workload, problem| {
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
    let ours: Ours = answer(bench().arg("schedule").arg(problem).args(["--runs", &arguments.runs.to_string()]))?;
    let compatible = answer(bench().arg("schedule").arg(problem).args(["--runs", "1", "--policy", "compatible"]))?;
    eprintln!("{workload}: the lower bound");
    let bound = answer(bench().arg("bound").arg(problem).args(["--nodes", &ours.nodes.to_string()]))?;
    // Nearly half an hour, by how its time grows up to 20,000.
    let too_much = workload.ends_with("-100000");
    let theirs = if arguments.no_peer || too_much {
        eprintln!("{workload}: without the reference{}", if too_much { ", which would take too long" } else { "" });
        None
    } else {
        eprintln!("{workload}: the reference, for at most {} s", arguments.peer_limit);
        let mut command = PEER.program(Program::Peer, "bench scheduling")?;
        let limit = format!("{}s", arguments.peer_limit);
        Some(answer(command.args(["schedule", "-limit", &limit, "-problem"]).arg(problem))?)
    };
    Ok(Figures { workload: workload.to_owned(), ours, compatible, theirs, bound })
}

impl Figures {
    /// The reference's time by ours, both with set-up.
    fn ratio_time(&self) -> Option<f64> {
        let theirs = self.theirs.as_ref()?;
        Some((theirs.setup_ns + theirs.solve_ns) as f64 / (self.ours.setup_ns + self.ours.solve_ns).max(1) as f64)
    }

    /// Ours by the reference's. Meaningless, and so absent, if one of them left pods that the other placed.
    fn ratio_cost(&self) -> Option<f64> {
        let theirs = self.theirs.as_ref().filter(|theirs| theirs.unscheduled == self.ours.unscheduled)?;
        if theirs.cost_per_hour == 0.0 && self.ours.cost_per_hour == 0.0 {
            return Some(1.0);
        }
        Some(self.ours.cost_per_hour / theirs.cost_per_hour)
    }

    fn ratio_memory(&self) -> Option<f64> {
        Some(self.ours.peak_bytes as f64 / self.theirs.as_ref()?.peak_bytes as f64)
    }

    fn cost_over_bound(&self, ours: &Ours) -> Option<f64> {
        let comparable = ours.unscheduled == self.bound.impossible_pods && self.bound.cost_per_hour > 0.0;
        comparable.then(|| ours.cost_per_hour / self.bound.cost_per_hour)
    }

    /// By what no answer with as few nodes as ours costs less than.
    fn cost_over_bound_at_nodes(&self) -> Option<f64> {
        let ratio = self.cost_over_bound(&self.ours)?;
        Some(ratio * self.bound.cost_per_hour / self.bound.cost_per_hour_at_nodes)
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "workload": self.workload,
            "ratio_time": self.ratio_time(),
            "ratio_time_is_at_least": self.theirs.as_ref().is_some_and(|theirs| theirs.timed_out),
            "ratio_cost": self.ratio_cost(),
            "ratio_memory": self.ratio_memory(),
            "cost_over_bound": self.cost_over_bound(&self.ours),
            "cost_over_bound_at_nodes": self.cost_over_bound_at_nodes(),
            "cost_over_bound_compatible": self.cost_over_bound(&self.compatible),
            "ours": self.ours,
            "ours_compatible": self.compatible,
            "reference": self.theirs,
            "bound": self.bound,
        })
    }
}

fn shown(all: &[Figures]) -> String {
    let titles = [
        "workload",
        "ours",
        "set-up",
        "solve",
        "nodes",
        "$/h",
        "left",
        "memory",
        "| reference",
        "set-up",
        "solve",
        "nodes",
        "$/h",
        "left",
        "memory",
        "| time",
        "cost",
        "memory",
        "cost/bound",
        "at nodes",
        "compatible",
    ];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for figures in all {
        let Ours { setup_ns, solve_ns, nodes, cost_per_hour, unscheduled, peak_bytes, .. } = &figures.ours;
        let mut row = vec![
            figures.workload.clone(),
            nanos(setup_ns + solve_ns),
            nanos(*setup_ns),
            nanos(*solve_ns),
            nodes.to_string(),
            format!("{cost_per_hour:.2}"),
            unscheduled.to_string(),
            mebibytes(*peak_bytes),
        ];
        match &figures.theirs {
            Some(theirs) => row.extend([
                format!("{}{}", if theirs.timed_out { "> " } else { "" }, nanos(theirs.setup_ns + theirs.solve_ns)),
                nanos(theirs.setup_ns),
                nanos(theirs.solve_ns),
                theirs.nodes.to_string(),
                format!("{:.2}", theirs.cost_per_hour),
                theirs.unscheduled.to_string(),
                mebibytes(theirs.peak_bytes),
            ]),
            None => row.extend(["not run", "", "", "", "", "", ""].map(str::to_owned)),
        }
        let [ours, compatible] = [&figures.ours, &figures.compatible].map(|ours| figures.cost_over_bound(ours));
        let to_bound = [ours, figures.cost_over_bound_at_nodes(), compatible];
        let ratios = [figures.ratio_time(), figures.ratio_cost(), figures.ratio_memory()];
        row.extend(ratios.into_iter().chain(to_bound).map(ratio));
        rows.push(row);
    }
    format!(
        "{}\ntime: reference / ours, with set-up. cost and memory: ours / reference. Every answer of ours was checked.\n",
        table(&rows)
    )
}
