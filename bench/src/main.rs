//! `kerf-bench`: the parts of a benchmark that must run in a process of their own. `cargo xtask bench` puts them together.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use kerf_bench::file::Problem;
use kerf_bench::workload::Workload;
use kerf_bench::{bound, check, disruption, scheduling, settle};
use kerf_scheduling::Policy;

#[derive(Parser)]
#[command(about = "Workloads as files, Kerf on them, and a lower bound on the cost of any answer")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Print the names of all workloads of a benchmark
    List {
        #[arg(value_parser = ["scheduling", "disruption"])]
        benchmark: String,
    },
    /// Write a workload to a file
    Generate {
        workload: Workload,
        #[arg(short, long)]
        output: PathBuf,
    },
    /// Schedule the pods of a problem file, check the answer and print what it took, as JSON
    Schedule {
        problem: PathBuf,
        /// How often, each time from nothing; the fastest counts
        #[arg(long, default_value_t = 5)]
        runs: usize,
        #[arg(long, default_value = "best", value_parser = ["best", "compatible"])]
        policy: String,
    },
    /// Look once for nodes of a problem file that should go, check the answer and print what it took, as JSON
    Disrupt {
        problem: PathBuf,
        /// How often, each time from nothing; the fastest counts
        #[arg(long, default_value_t = 3)]
        runs: usize,
    },
    /// Disrupt the nodes of a problem file until there is nothing left to do, and print where that ends, as JSON
    Settle {
        problem: PathBuf,
        /// Or until the nodes cost no more than this per hour
        #[arg(long, value_name = "DOLLARS")]
        until: Option<f64>,
    },
    /// Print what no answer to the problem can cost less than, as JSON
    Bound {
        problem: PathBuf,
        /// And for answers with at most so many nodes to launch
        #[arg(long)]
        nodes: Option<usize>,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().task {
        Task::List { benchmark } => {
            let all = if benchmark == "disruption" { Workload::to_disrupt() } else { Workload::all() };
            all.iter().for_each(|workload| println!("{workload}"));
        }
        Task::Generate { workload, output } => {
            let file = File::create(&output).with_context(|| format!("cannot create {}", output.display()))?;
            let mut file = BufWriter::new(file);
            workload.write(&mut file)?;
            file.flush()?;
        }
        Task::Schedule { problem, runs, policy } => {
            let problem = Problem::read(&problem)?;
            let policy = if policy == "compatible" { Policy::Compatible } else { Policy::Best };
            let (measured, schedule) = scheduling::measure(&problem, policy, runs);
            let faults = check::faults(&problem, &schedule);
            if !faults.is_empty() {
                bail!("the answer to {} is not valid:\n  {}", problem.header.name, faults.join("\n  "));
            }
            println!("{}", serde_json::to_string(&measured)?);
        }
        Task::Disrupt { problem, runs } => {
            println!("{}", serde_json::to_string(&disruption::measure(&Problem::read(&problem)?, runs)?)?);
        }
        Task::Settle { problem, until } => {
            println!("{}", serde_json::to_string(&settle::settle(Problem::read(&problem)?, until)?)?);
        }
        Task::Bound { problem, nodes } => {
            println!("{}", serde_json::to_string(&bound::bound(&Problem::read(&problem)?, nodes))?);
        }
    }
    Ok(())
}
