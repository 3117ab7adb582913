//! What every benchmark needs: its workloads, our program, its answers, a place for files.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command::{self, cargo};

/// A name that is known, or is one but for its size, is that workload; any other text means those that contain it.
fn chosen(benchmark: &str, only: Option<&str>) -> Result<Vec<String>> {
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

/// Measures each chosen workload on a file that has its problem, with our side built.
pub fn each<F>(
    benchmark: &str,
    only: Option<&str>,
    mut measure: impl FnMut(&str, &Path) -> Result<F>,
) -> Result<Vec<F>> {
    command::run(&mut cargo(["build", "--quiet", "--release", "-p", "kerf-bench"]))?;
    let directory = TemporaryDirectory::make()?;
    let mut all = Vec::new();
    for workload in chosen(benchmark, only)? {
        let problem = directory.0.join(format!("{workload}.jsonl"));
        eprintln!("{workload}: making it");
        command::capture(bench().args(["generate", &workload, "--output"]).arg(&problem))?;
        all.push(measure(&workload, &problem)?);
        // They are large.
        std::fs::remove_file(&problem).with_context(|| format!("cannot remove {}", problem.display()))?;
    }
    Ok(all)
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
struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    fn make() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("kerf-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // Nothing can be done about a directory that stays; the system clears such places.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
