//! Kerf's tasks: everything that a contributor or a CI machine runs, as `cargo xtask …`.
//!
//! Start reading at `ci.rs` for what a change must pass, and at `testbed.rs` for the real Kubernetes on loopback.

mod arrows;
mod bench;
mod cases;
mod ci;
mod command;
mod conformance;
mod deny;
mod e2e;
mod generate;
mod places;
mod reference;
mod sim;
mod test;
mod testbed;
mod timing;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Kerf's build, test and test-bed tasks")]
#[command(after_help = "Examples:
  cargo xtask test                 the fast suite; needs Rust only
  cargo xtask ci                   everything that a change must pass
  cargo xtask testbed up           a real Kubernetes on loopback; needs Go
  cargo xtask e2e                  the end-to-end suites on a bed of their own
  cargo xtask conformance          the reference's own suites; needs Go
  cargo xtask bench scheduling     Kerf and the reference on the same work; needs Go")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run the fast suite: unit, property, scenario and doc tests of every crate
    Test,
    /// Run everything that a change must pass, and show where the time went
    Ci,
    /// Run random histories of the simulated cluster with faults; fails if a promise is broken
    Sim(sim::Arguments),
    /// Check the dependencies against the advisory database (needs the network)
    Advisories,
    /// Rewrite the committed files that are generated from code
    Generate,
    /// Run a real Kubernetes on loopback: etcd, API server, controller manager, scheduler, kwok
    Testbed(testbed::Arguments),
    /// Run the end-to-end suites on a fresh test bed
    E2e(e2e::Arguments),
    /// Run the reference's own suites on a test bed, with Kerf in the reference's place
    Conformance(conformance::Arguments),
    /// Measure Kerf beside the reference on the same work
    Bench(bench::Arguments),
}

/// A tool of the machine is missing: nothing of ours failed, so scripts can tell it apart by the exit code.
#[derive(Debug)]
pub struct MissingTool(String);

impl std::fmt::Display for MissingTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MissingTool {}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Test => test::run(),
        Task::Ci => ci::run(),
        Task::Sim(arguments) => sim::run(&arguments),
        Task::Advisories => deny::check_advisories(),
        Task::Generate => generate::rewrite_all(),
        Task::Testbed(arguments) => return finish(testbed::run(arguments)),
        Task::E2e(arguments) => e2e::run(&arguments),
        Task::Conformance(arguments) => conformance::run(&arguments),
        Task::Bench(arguments) => bench::run(&arguments),
    };
    finish(outcome.map(|()| ExitCode::SUCCESS))
}

/// Exit codes: 0 done, 1 something failed, 2 wrong usage (clap's own code) or a tool that is missing.
fn finish(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            if error.is::<MissingTool>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
