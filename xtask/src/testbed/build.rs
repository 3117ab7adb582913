//! Building the parts of a bed from their Go modules, once per version, into the user's cache.

use std::fs::{self, File};
use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::parts::{BINARIES, Binary, KUBERNETES_VERSION, KWOK_VERSION};
use super::start::last_lines;
use super::{go, state};
use crate::timing::human;
use crate::{command, places};

/// Added to every `go build`. A part of the cache key, like everything else that decides what comes out.
const BUILD_FLAGS: &[&str] = &["-trimpath", "-mod=readonly", "-buildvcs=false"];

/// The definition of kwok's Stage resource, taken from kwok's own module.
pub const STAGE_CRD: &str = "stage-crd.yaml";

pub fn module_directory(module: &str) -> PathBuf {
    places::root().join("tests/testbed").join(module)
}

pub fn builds_directory() -> Result<PathBuf> {
    Ok(places::cache()?.join("kerf-testbed"))
}

/// The directory with the binaries; builds them when this version has not been built yet.
pub fn ensure_built(task: &str) -> Result<PathBuf> {
    let key = cache_key(&go::version(task)?, &read_pins()?);
    let directory = builds_directory()?;
    let finished = directory.join(key);
    if finished.exists() {
        return Ok(finished);
    }
    fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let _lock = state::lock(&directory.join("build.lock"), "another command builds the test bed")?;
    // Another command may have finished the same build while this one waited.
    if !finished.exists() {
        build_all(&directory, &finished)?;
    }
    Ok(finished)
}

/// Builds next to the destination and renames at the end: the directory is there completely or not at all.
fn build_all(directory: &Path, finished: &Path) -> Result<()> {
    let start = Instant::now();
    eprintln!("building the parts of the test bed, once (about 8 minutes on 2 cores), into {}", finished.display());
    let unfinished = directory.join("unfinished");
    // Left by a build that was stopped. The lock is ours, so nobody works in it; Go keeps its own cache of what was done.
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).with_context(|| format!("cannot remove {}", unfinished.display()))?;
    }
    fs::create_dir_all(&unfinished).with_context(|| format!("cannot create {}", unfinished.display()))?;
    for (index, binary) in BINARIES.iter().enumerate() {
        build(binary, &unfinished, &format!("[{}/{}] {}", index + 1, BINARIES.len(), binary.name))?;
    }
    copy_stage_crd(&unfinished.join(STAGE_CRD))?;
    fs::rename(&unfinished, finished).with_context(|| format!("cannot create {}", finished.display()))?;
    eprintln!("built in {}; `cargo xtask testbed clean --binaries` removes it", human(start.elapsed()));
    Ok(())
}

fn build(binary: &Binary, into: &Path, title: &str) -> Result<()> {
    let log = into.join(format!("{}.log", binary.name));
    let mut go = Command::new("go");
    go.arg("build").args(BUILD_FLAGS).args(["-ldflags", &binary.linker_flags(), "-o"]);
    go.arg(into.join(binary.name)).arg(binary.package).current_dir(module_directory(binary.module));
    // Without C, so that the machine needs no C compiler.
    go.env("CGO_ENABLED", "0").stdin(Stdio::null());
    go.stderr(File::create(&log).with_context(|| format!("cannot create {}", log.display()))?);
    let child = go.spawn().context("cannot run go")?;
    if !wait_with_progress(child, title)? {
        bail!("cannot build {}:\n{}", binary.name, last_lines(&log, 30));
    }
    Ok(fs::remove_file(&log)?)
}

/// Whether it succeeded. On a terminal the line is kept up to date, elsewhere a line appears every 20 seconds.
pub fn wait_with_progress(mut child: Child, title: &str) -> Result<bool> {
    let live = std::io::stderr().is_terminal();
    let every = if live { Duration::from_millis(500) } else { Duration::from_secs(20) };
    let start = Instant::now();
    let mut shown = start;
    loop {
        let ended = child.try_wait().context("cannot wait for go")?;
        if ended.is_some() || shown.elapsed() >= every {
            let elapsed = human(start.elapsed());
            let word = if ended.is_some() { "took" } else { "building for" };
            if live {
                eprint!("\r\x1b[2K{title} {word} {elapsed}{}", if ended.is_some() { "\n" } else { "" });
                std::io::stderr().flush()?;
            } else {
                eprintln!("{title} {word} {elapsed}");
            }
            shown = Instant::now();
        }
        if let Some(status) = ended {
            return Ok(status.success());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn copy_stage_crd(to: &Path) -> Result<()> {
    let list = ["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"];
    let module = command::capture(Command::new("go").args(list).current_dir(module_directory("kwok")))?;
    let from = Path::new(module.trim()).join("kustomize/crd/bases/kwok.x-k8s.io_stages.yaml");
    // Read and written rather than copied: files in Go's module cache are read-only, and a copy would be too.
    let text = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
    fs::write(to, text).with_context(|| format!("cannot write {}", to.display()))
}

/// The files that decide which sources are built.
fn read_pins() -> Result<Vec<Vec<u8>>> {
    let files =
        ["kubernetes/go.mod", "kubernetes/go.sum", "kwok/go.mod", "kwok/go.sum", "keygen/go.mod", "keygen/main.go"];
    let read = |file| {
        let path = module_directory(file);
        fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    files.into_iter().map(read).collect()
}

/// A name that a person can recognise, and a digest of everything that decides what comes out.
fn cache_key(go_version: &str, pins: &[Vec<u8>]) -> String {
    let mut digest = Digest::new();
    digest.add(go_version.as_bytes());
    pins.iter().for_each(|pin| digest.add(pin));
    BUILD_FLAGS.iter().for_each(|flag| digest.add(flag.as_bytes()));
    for binary in BINARIES {
        for text in [binary.name, binary.module, binary.package, &binary.linker_flags()] {
            digest.add(text.as_bytes());
        }
    }
    format!("kubernetes-{KUBERNETES_VERSION}-kwok-{KWOK_VERSION}-{}", digest.hex())
}

/// FNV-1a: the same on every machine and for every Rust version, which the standard library does not promise of its
/// hashers. Nobody gains from a collision here, so it need not be a cryptographic one.
pub struct Digest(u64);

impl Digest {
    pub fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// The length goes first, so that two texts cannot trade bytes without being noticed.
    pub fn add(&mut self, text: &[u8]) {
        for byte in (text.len() as u64).to_le_bytes().iter().chain(text) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub fn hex(&self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_key_follows_the_pins_and_the_go_version() {
        let pins = |text: &[&str]| text.iter().map(|pin| pin.as_bytes().to_vec()).collect::<Vec<_>>();
        let key = cache_key("go1.26.8", &pins(&["a", "b"]));
        assert_eq!(key, cache_key("go1.26.8", &pins(&["a", "b"])));
        assert_ne!(key, cache_key("go1.26.9", &pins(&["a", "b"])));
        assert_ne!(key, cache_key("go1.26.8", &pins(&["a", "c"])));
        assert_ne!(key, cache_key("go1.26.8", &pins(&["ab", ""])));
        assert!(key.starts_with("kubernetes-1.36.3-kwok-0.8.0-"), "{key}");
    }

    /// Computed by hand from the definition: FNV-1a over the length in eight bytes, then the text.
    #[test]
    fn the_digest_is_the_same_on_every_machine() {
        let mut digest = Digest::new();
        digest.add(b"a");
        assert_eq!(digest.0, 0x529a_4ddc_8ff5_6bbf);
    }
}
