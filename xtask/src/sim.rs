//! Random histories of the simulated cluster with faults, looked at by checkers.

use anyhow::Result;

use crate::command::{self, cargo};

#[derive(clap::Args)]
pub struct Arguments {
    /// How many histories
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first seed; the others follow it
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    /// Nothing goes wrong: only people and the cloud change things
    #[arg(long)]
    no_faults: bool,
    /// Print everything that happens; for one seed
    #[arg(long)]
    trace: bool,
    /// `json`: the last line is an object with `histories` and `violations`
    #[arg(short, long, value_parser = ["json"])]
    output: Option<String>,
}

/// In release: a history is a few hundred thousand decisions.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut command = cargo(["run", "--quiet", "--release", "-p", "kerf-sim", "--example", "histories", "--"]);
    command.args(["--seeds", &arguments.seeds.to_string(), "--first-seed", &arguments.first_seed.to_string()]);
    command.args(["--no-faults", &arguments.no_faults.to_string(), "--trace", &arguments.trace.to_string()]);
    if let Some(output) = &arguments.output {
        command.args(["-o", output]);
    }
    command::run(&mut command)
}

/// What every change must pass: a crash at every cut point of a few scripts, and some random histories.
pub fn check_some() -> Result<()> {
    command::run(&mut cargo(["test", "--quiet", "--release", "-p", "kerf-sim", "--test", "faults"]))?;
    run(&Arguments { seeds: 50, first_seed: 1, no_faults: false, trace: false, output: None })
}
