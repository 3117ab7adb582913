//! The benchmarks: Kerf and the reference on the same work, in the same run.
//!
//! Everything that is timed runs in a process of its own: `kerf-bench` (ours, in release), and the reference's packages in
//! `bench/peer`. What is measured and what is not: docs/reference/benchmarks.md.

mod disruption;
mod footprint;
mod report;
mod scheduling;
mod work;

use anyhow::Result;
use clap::{Args, Subcommand};

#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Schedule pending pods: time, nodes, cost and memory of both, and how far the cost is from a lower bound
    Scheduling(scheduling::Arguments),
    /// Look for nodes that should go: the time for a whole cluster, and per candidate beside the reference
    Disruption(disruption::Arguments),
    /// Run both controllers on a test bed with the same load: memory and CPU of the process
    Footprint(footprint::Arguments),
}

pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.benchmark {
        Benchmark::Scheduling(arguments) => scheduling::run(arguments),
        Benchmark::Disruption(arguments) => disruption::run(arguments),
        Benchmark::Footprint(arguments) => footprint::run(arguments),
    }
}
