//! The fast suite.

use std::time::Instant;

use anyhow::Result;

use crate::command::{self, cargo};
use crate::timing::human;

pub fn run_suite() -> Result<()> {
    command::run(&mut cargo(["test", "--workspace"]))
}

pub fn run() -> Result<()> {
    let start = Instant::now();
    run_suite()?;
    println!("\nthe fast suite passed in {}", human(start.elapsed()));
    Ok(())
}
