//! Running other programs.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

use crate::places;

/// The cargo that runs us, at the workspace root.
pub fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(places::root());
    command
}

/// A program of the workspace, once cargo has built it with this profile.
pub fn built(profile: &str, program: &str) -> Result<PathBuf> {
    #[derive(serde::Deserialize)]
    struct Metadata {
        target_directory: PathBuf,
    }
    let said = capture(&mut cargo(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Metadata = serde_json::from_str(&said).context("cannot read what cargo metadata printed")?;
    Ok(metadata.target_directory.join(profile).join(program))
}

/// Runs it with its output shown, and fails when it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", shown(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", shown(command));
    }
    Ok(())
}

/// Runs it quietly, and returns what it printed; on failure, the error carries what it said.
pub fn capture(command: &mut Command) -> Result<String> {
    let Output { status, stdout, stderr } =
        command.output().with_context(|| format!("cannot run {}", shown(command)))?;
    if !status.success() {
        let said = String::from_utf8_lossy(&stderr);
        bail!("{} failed ({status}): {}", shown(command), said.trim());
    }
    String::from_utf8(stdout).with_context(|| format!("{} printed something that is not UTF-8", shown(command)))
}

/// As a person would type it: program name without its directory, then the arguments.
fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let mut text = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
