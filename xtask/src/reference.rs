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

/// A Go module of ours that pins the reference, and the programs that are built with it.
pub struct Module {
    directory: &'static str,
    /// Below the user's cache.
    cache: &'static str,
    programs: &'static [Program],
}

/// What benchmarks run.
pub const PEER: Module =
    Module { directory: "bench/peer", cache: "kerf-bench", programs: &[Program::Peer, Program::KwokController] };

/// The reference's own tests of a cluster with it.
pub const SUITES: Module = Module {
    directory: "tests/conformance",
    cache: "kerf-conformance",
    programs: &[Program::Regression, Program::Disruption, Program::Performance],
};

#[derive(Clone, Copy)]
pub enum Program {
    /// Our harness around the reference's packages.
    Peer,
    /// The reference's own controller for nodes without machines.
    KwokController,
    Regression,
    Disruption,
    Performance,
}

impl Program {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::KwokController => "kwok-controller",
            Self::Regression => "regression",
            Self::Disruption => "disruption",
            Self::Performance => "performance",
        }
    }

    const fn package(self) -> &'static str {
        match self {
            Self::Peer => ".",
            Self::KwokController => "sigs.k8s.io/karpenter/kwok",
            Self::Regression => "sigs.k8s.io/karpenter/test/suites/regression",
            Self::Disruption => "sigs.k8s.io/karpenter/test/suites/disruption",
            Self::Performance => "sigs.k8s.io/karpenter/test/suites/performance",
        }
    }

    /// How Go makes it.
    const fn build(self) -> &'static [&'static str] {
        match self {
            Self::Peer | Self::KwokController => &["build"],
            // Packages that are nothing but tests. They are not ours to vet.
            Self::Regression | Self::Disruption | Self::Performance => &["test", "-c", "-vet=off"],
        }
    }
}

impl Module {
    /// The program, ready to run; built when this version has not been built yet.
    pub fn program(&self, program: Program, task: &str) -> Result<Command> {
        Ok(Command::new(self.ensure_built(task)?.join(program.name())))
    }

    /// The directory with the programs. Also tells early that Go is missing.
    pub fn ensure_built(&self, task: &str) -> Result<PathBuf> {
        let version = self.go_version(task)?;
        let directory = places::cache()?.join(self.cache);
        let finished = directory.join(self.cache_key(&version)?);
        if finished.exists() {
            return Ok(finished);
        }
        fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
        let _lock = state::lock(&directory.join("build.lock"), "another command builds the reference")?;
        // Another command may have finished the same build while this one waited.
        if !finished.exists() {
            self.build_all(&directory, &finished)?;
        }
        Ok(finished)
    }

    /// Builds next to the destination and renames at the end: the directory is there completely or not at all.
    fn build_all(&self, directory: &Path, finished: &Path) -> Result<()> {
        eprintln!("building the reference, once (some minutes on 2 cores), into {}", finished.display());
        let unfinished = directory.join("unfinished");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).with_context(|| format!("cannot remove {}", unfinished.display()))?;
        }
        fs::create_dir_all(&unfinished).with_context(|| format!("cannot create {}", unfinished.display()))?;
        for program in self.programs {
            let log = unfinished.join(format!("{}.log", program.name()));
            let mut go = self.go();
            go.args(program.build()).args(BUILD_FLAGS).args(["-ldflags", "-s -w", "-o"]);
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

    /// Where Go keeps the reference's sources, for files that are no program.
    pub fn reference_sources(&self) -> Result<PathBuf> {
        let list = ["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter"];
        Ok(command::capture(self.go().args(list))?.trim().into())
    }

    fn source(&self) -> PathBuf {
        places::root().join(self.directory)
    }

    fn go(&self) -> Command {
        let mut go = Command::new("go");
        go.current_dir(self.source()).env("GOTOOLCHAIN", TOOLCHAIN);
        go
    }

    fn go_version(&self, task: &str) -> Result<String> {
        command::capture(self.go().arg("version")).map_err(|error| {
            MissingTool(format!(
                "cargo xtask {task} runs programs of the reference, which needs Go (1.21 or newer, able to fetch \
                 {TOOLCHAIN}): install it from your package manager or go.dev, then run again ({error:#})"
            ))
            .into()
        })
    }

    /// Everything that decides what comes out: the toolchain, the pins, our own sources.
    fn cache_key(&self, version: &str) -> Result<String> {
        let mut digest = Digest::new();
        digest.add(version.as_bytes());
        BUILD_FLAGS.iter().for_each(|flag| digest.add(flag.as_bytes()));
        for program in self.programs {
            digest.add(program.package().as_bytes());
        }
        let read = fs::read_dir(self.source()).with_context(|| format!("cannot read {}", self.directory))?;
        let mut files = read.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        files.sort();
        for file in files.iter().filter(|file| file.is_file()) {
            digest.add(file.file_name().unwrap_or_default().as_encoded_bytes());
            digest.add(&fs::read(file).with_context(|| format!("cannot read {}", file.display()))?);
        }
        Ok(format!("{REFERENCE}-{}", digest.hex()))
    }
}
