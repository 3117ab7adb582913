//! What every benchmark needs: its workloads, our program, its answers, a place for files.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command::{self, cargo};

/// A name that is known, or is one but for its size, is that workload; any other text means those that contain it.
pub fn chosen(benchmark: &str, only: Option<&str>) -> Result<Vec<String>> {
    let list = command::capture(bench().args(["list", benchmark]))?;
    let all: Vec<String> = list.lines().map(str::to_owned).collect();
    let Some(only) = only else { return Ok(all) };
    let is_named =
        all.iter().any(|name| name == only || of_any_size(name).is_some_and(|own| Some(own) == of_any_size(only)));
    if is_named {
        return Ok(vec![only.to_owned()]);
    }
    let containing: Vec<_> = all.into_iter().filter(|name| name.contains(only)).collect();
    ensure!(
        !containing.is_empty(),
        "no workload's name contains {only:?}: see `cargo run -p kerf-bench -- list {benchmark}`"
    );
    Ok(containing)
}

/// `nodes` of `nodes-200`.
fn of_any_size(name: &str) -> Option<&str> {
    let (kind, size) = name.rsplit_once('-')?;
    size.parse::<u32>().is_ok().then_some(kind)
}

/// Our side, in release; built if it is not.
pub fn bench() -> Command {
    cargo(["run", "--quiet", "--release", "-p", "kerf-bench", "--"])
}

/// What a program says, read as JSON.
pub fn answer<T: serde::de::DeserializeOwned>(command: &mut Command) -> Result<T> {
    let said = command::capture(command)?;
    serde_json::from_str(&said).with_context(|| format!("cannot read the answer {said:?}"))
}

/// Goes away with its value.
pub struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    pub fn make() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("kerf-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // Nothing can be done about a directory that stays; the system clears such places.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
