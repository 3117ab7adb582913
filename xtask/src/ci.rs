//! What a change must pass, in order: the quick and the likely to fail first.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::command::{self, cargo};
use crate::timing::{Lap, human, table};
use crate::{arrows, deny, generate, sim, test};

type Step = (&'static str, fn() -> Result<()>);

const STEPS: &[Step] = &[
    ("format", format),
    ("arrows", arrows::check_workspace),
    ("clippy", clippy),
    ("test", test::run_suite),
    ("sim", sim::check_some),
    ("docs", docs),
    ("deny", deny::check),
    // Last, because it says nothing about a tree that does not build.
    ("generated", generate::check_all),
];

pub fn run() -> Result<()> {
    let mut laps = Vec::new();
    let mut outcome = Ok(());
    for (name, step) in STEPS {
        println!("\n==> {name}");
        let start = Instant::now();
        let result = step();
        laps.push(Lap { name, took: start.elapsed(), passed: result.is_ok() });
        if let Err(error) = result {
            outcome = Err(error).with_context(|| format!("the step {name} failed"));
            break;
        }
    }
    println!("\nwhere the time went:\n{}", table(&laps));
    if outcome.is_ok() {
        println!("all {} steps passed in {}", laps.len(), human(laps.iter().map(|lap| lap.took).sum()));
    }
    outcome
}

fn format() -> Result<()> {
    command::run(&mut cargo(["fmt", "--all", "--check"])).context("run `cargo fmt`")
}

fn clippy() -> Result<()> {
    command::run(&mut cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    // `--all-targets` leaves out the end-to-end suites: they are marked `test = false`, so that `cargo test` needs no cluster.
    command::run(&mut cargo(["clippy", "--workspace", "--test", "e2e", "--", "-D", "warnings"]))
}

fn docs() -> Result<()> {
    command::run(cargo(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}
