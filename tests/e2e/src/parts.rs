//! The parts of the bed, for cases that take one of them away.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// As `kill -9` does. The part stays away until [`mend`].
pub fn kill(part: &str) -> Result<()> {
    let directory = std::env::var_os("KERF_E2E_DIRECTORY").map(PathBuf::from);
    let path =
        directory.context("KERF_E2E_DIRECTORY is not set: run the suites with `cargo xtask e2e`")?.join("bed.json");
    let record = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let record: Value = serde_json::from_slice(&record)?;
    let pid = record["processes"][part]["pid"].as_u64().with_context(|| format!("the bed has no part {part}"))?;
    let sent = Command::new("kill").args(["-KILL", &pid.to_string()]).status()?;
    ensure!(sent.success(), "cannot kill {part}");
    Ok(())
}

/// Starts the parts that are dead, on their data, and waits until they answer.
pub fn mend() -> Result<()> {
    let variable = |name| std::env::var_os(name).with_context(|| format!("{name} is not set: use `cargo xtask e2e`"));
    let (xtask, bed) = (variable("KERF_E2E_XTASK")?, variable("KERF_E2E_BED")?);
    let mended = Command::new(xtask).args(["testbed", "up", "--name"]).arg(bed).output()?;
    ensure!(mended.status.success(), "cannot mend the bed: {}", String::from_utf8_lossy(&mended.stderr));
    Ok(())
}
