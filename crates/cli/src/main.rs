//! The `kerf` binary: files or scenarios in, text or JSON out.
//!
//! Each command is a file in `commands/`. A command reads its input through [`input`], asks the crates below, and prints
//! through [`output`]. It decides nothing itself.
//!
//! Exit codes: 0 all is well, 1 there are findings, 2 the command line or the input could not be read.

mod clock;
mod cluster;
mod commands;
mod foresight;
mod input;
mod names;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[cfg(feature = "controller")]
use commands::controller;
use commands::{
    budget, completion, convert, crds, demo, freeze, hash, plan, reference, schedule, simulate, validate, version, why,
};
use output::Outcome;

/// A node autoscaler for Kubernetes that speaks Karpenter's API
///
/// `kerf controller` runs in a cluster; `plan`, `why`, `budget` and `schedule` read one, or a dump of one; the other
/// commands work on files and in a simulated one. Installed as `kubectl-kerf` it is `kubectl kerf`.
#[derive(Parser)]
#[command(name = "kerf", version, max_term_width = 120, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  all is well
  1  there are findings
  2  bad usage, or input that cannot be read";

#[derive(Subcommand)]
enum Command {
    Demo(demo::Args),
    Simulate(simulate::Args),
    #[cfg(feature = "controller")]
    Controller(Box<controller::Args>),
    Plan(plan::Args),
    Why(why::Args),
    Budget(budget::Args),
    Schedule(schedule::Args),
    Freeze(freeze::FreezeArgs),
    Thaw(freeze::ThawArgs),
    Crds(crds::Args),
    Convert(convert::Args),
    Validate(validate::Args),
    Hash(hash::Args),
    Completion(completion::Args),
    Version(version::Args),
    #[command(hide = true)]
    GenerateReference(reference::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Demo(args) => demo::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        #[cfg(feature = "controller")]
        Command::Controller(args) => controller::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Budget(args) => budget::run(&args),
        Command::Schedule(args) => schedule::run(&args),
        Command::Freeze(args) => freeze::freeze(&args),
        Command::Thaw(args) => freeze::thaw(&args),
        Command::Crds(args) => crds::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Hash(args) => hash::run(&args),
        Command::Completion(args) => completion::run(&args),
        Command::Version(args) => version::run(&args),
        Command::GenerateReference(args) => reference::run(&args),
    };
    match result {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            output::complain(&format!("{error:#}"));
            Outcome::Unreadable.into()
        }
    }
}
