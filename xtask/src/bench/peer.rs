//! The reference, built from its Go module once per version into the user's cache.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::testbed::build::{Digest, wait_with_progress};
use crate::testbed::start::last_lines;
use crate::testbed::state;
use crate::{MissingTool, command, places};

/// What the reference's module asks for. Any Go from 1.21 on fetches it by itself.
const TOOLCHAIN: &str = "go1.26.10";
const REFERENCE: &str = "reference-1.15.0";
const BUILD_FLAGS: &[&str] = &["-trimpath", "-mod=readonly", "-buildvcs=false"];

/// A program of the module `bench/peer`, and the package that it is.
#[derive(Clone, Copy)]
pub enum Program {
    /// Our harness around the reference's packages.
    Peer,
    /// The reference's own controller for nodes without machines.
    KwokController,
}

impl Program {
    const ALL: [Self; 2] = [Self::Peer, Self::KwokController];

    const fn name(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::KwokController => "kwok-controller",
        }
    }

    const fn package(self) -> &'static str {
        match self {
            Self::Peer => ".",
            Self::KwokController => "sigs.k8s.io/karpenter/kwok",
        }
    }
}

/// The program, ready to run; built when this version has not been built yet.
pub fn program(program: Program, task: &str) -> Result<Command> {
    Ok(Command::new(ensure_built(task)?.join(program.name())))
}

/// The directory with the programs. Also tells early that Go is missing.
pub fn ensure_built(task: &str) -> Result<PathBuf> {
    let version = go_version(task)?;
    let directory = places::cache()?.join("kerf-bench");
    let finished = directory.join(cache_key(&version)?);
    if finished.exists() {
        return Ok(finished);
    }
    fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let _lock = state::lock(&directory.join("build.lock"), "another command builds the reference")?;
    // Another command may have finished the same build while this one waited.
    if !finished.exists() {
        build_all(&directory, &finished)?;
    }
    Ok(finished)
}

/// Builds next to the destination and renames at the end: the directory is there completely or not at all.
fn build_all(directory: &Path, finished: &Path) -> Result<()> {
    eprintln!("building the reference, once (some minutes on 2 cores), into {}", finished.display());
    let unfinished = directory.join("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).with_context(|| format!("cannot remove {}", unfinished.display()))?;
    }
    fs::create_dir_all(&unfinished).with_context(|| format!("cannot create {}", unfinished.display()))?;
    for program in Program::ALL {
        let log = unfinished.join(format!("{}.log", program.name()));
        let mut go = go();
        go.arg("build").args(BUILD_FLAGS).args(["-ldflags", "-s -w", "-o"]);
        go.arg(unfinished.join(program.name())).arg(program.package());
        go.env("CGO_ENABLED", "0").stdin(Stdio::null());
        go.stderr(File::create(&log).with_context(|| format!("cannot create {}", log.display()))?);
        let child = go.spawn().context("cannot run go")?;
        if !wait_with_progress(child, program.name())? {
            bail!("cannot build {}:\n{}", program.name(), last_lines(&log, 30));
        }
        fs::remove_file(&log)?;
    }
    fs::rename(&unfinished, finished).with_context(|| format!("cannot create {}", finished.display()))
}

fn module_directory() -> PathBuf {
    places::root().join("bench/peer")
}

fn go() -> Command {
    let mut go = Command::new("go");
    go.current_dir(module_directory()).env("GOTOOLCHAIN", TOOLCHAIN);
    go
}

fn go_version(task: &str) -> Result<String> {
    command::capture(go().arg("version")).map_err(|error| {
        MissingTool(format!(
            "cargo xtask bench {task} runs the reference beside Kerf, which needs Go (1.21 or newer, able to fetch \
             {TOOLCHAIN}): install it from your package manager or go.dev, then run again ({error:#})"
        ))
        .into()
    })
}

/// Everything that decides what comes out: the toolchain, the pins, our own sources.
fn cache_key(version: &str) -> Result<String> {
    let mut digest = Digest::new();
    digest.add(version.as_bytes());
    BUILD_FLAGS.iter().for_each(|flag| digest.add(flag.as_bytes()));
    let read = fs::read_dir(module_directory()).context("cannot read bench/peer")?;
    let mut files = read.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    for file in files.iter().filter(|file| file.is_file()) {
        digest.add(file.file_name().unwrap_or_default().as_encoded_bytes());
        digest.add(&fs::read(file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    Ok(format!("{REFERENCE}-{}", digest.hex()))
}
