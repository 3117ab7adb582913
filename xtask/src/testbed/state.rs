//! What is known about a bed between two commands: its directory, its ports, its processes.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::parts::{Part, Versions};
use super::process::Process;
use crate::places;

/// Written after every step of a start, so that `down` finds what was started even when `up` was killed half way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The build whose binaries run.
    pub binaries: PathBuf,
    pub versions: Versions,
    pub ports: Ports,
    pub processes: BTreeMap<Part, Process>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    pub etcd: u16,
    pub etcd_peer: u16,
    pub api_server: u16,
    pub scheduler: u16,
    pub kwok: u16,
}

impl Ports {
    pub fn all(&self) -> [u16; 5] {
        [self.etcd, self.etcd_peer, self.api_server, self.scheduler, self.kwok]
    }
}

impl Record {
    pub fn load(layout: &Layout) -> Result<Option<Self>> {
        let path = layout.record();
        match fs::read(&path) {
            Ok(bytes) => {
                let record = serde_json::from_slice(&bytes);
                Ok(Some(record.with_context(|| format!("cannot understand {}", path.display()))?))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    pub fn save(&self, layout: &Layout) -> Result<()> {
        write_then_rename(&layout.record(), &serde_json::to_vec_pretty(self)?)
    }

    pub fn running(&self) -> Vec<Part> {
        self.processes.iter().filter(|(_, process)| process.is_running()).map(|(part, _)| *part).collect()
    }
}

/// A reader sees the old file or the new one, never half of it.
fn write_then_rename(path: &Path, content: &[u8]) -> Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, content).with_context(|| format!("cannot write {}", new.display()))?;
    fs::rename(&new, path).with_context(|| format!("cannot write {}", path.display()))
}

/// The files of one bed.
#[derive(Clone, Debug)]
pub struct Layout {
    directory: PathBuf,
}

impl Layout {
    pub fn at(directory: PathBuf) -> Self {
        Self { directory }
    }

    pub fn named(name: &str) -> Result<Self> {
        check_name(name)?;
        Ok(Self::at(beds_directory()?.join(name)))
    }

    pub fn create(&self) -> Result<()> {
        // The directory holds a token and keys: nobody else's business.
        for directory in [&self.directory, &self.certificates(), &self.logs()] {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.with_context(|| format!("cannot create {}", directory.display()))?;
        }
        Ok(())
    }

    pub fn exists(&self) -> bool {
        self.directory.exists()
    }
    pub fn directory(&self) -> &Path {
        &self.directory
    }
    fn record(&self) -> PathBuf {
        self.directory.join("bed.json")
    }
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }
    pub fn tokens(&self) -> PathBuf {
        self.directory.join("tokens.csv")
    }
    pub fn kwok_configuration(&self) -> PathBuf {
        self.directory.join("kwok.yaml")
    }
    pub fn etcd_data(&self) -> PathBuf {
        self.directory.join("etcd")
    }
    pub fn certificates(&self) -> PathBuf {
        self.directory.join("certificates")
    }
    pub fn certificate(&self) -> PathBuf {
        self.certificates().join("apiserver.crt")
    }
    pub fn service_account_key(&self) -> PathBuf {
        self.certificates().join("sa.key")
    }
    pub fn service_account_public_key(&self) -> PathBuf {
        self.certificates().join("sa.pub")
    }
    pub fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }
    pub fn log(&self, part: Part) -> PathBuf {
        self.logs().join(format!("{}.log", part.name()))
    }
}

/// Names of all beds that have a directory, running or not.
pub fn bed_names() -> Result<Vec<String>> {
    let directory = beds_directory()?;
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(&directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let entry = entry?;
        if entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn beds_directory() -> Result<PathBuf> {
    Ok(places::state()?.join("kerf-testbed"))
}

/// One command at a time works on a bed; others wait. The kernel frees the lock when its holder ends, however it ends.
pub fn lock_bed(name: &str) -> Result<BedLock> {
    check_name(name)?;
    let directory = beds_directory()?;
    fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let path = directory.join(format!("{name}.lock"));
    loop {
        let file = lock(&path, &format!("another command works on the bed {name}"))?;
        // The bed may have been removed while we waited, and the locked file with it: then ours locks nothing.
        let is_current =
            fs::metadata(&path).is_ok_and(|found| file.metadata().is_ok_and(|own| own.ino() == found.ino()));
        if is_current {
            return Ok(BedLock { path, _file: file });
        }
    }
}

/// Held while a command works on a bed.
pub struct BedLock {
    path: PathBuf,
    _file: File,
}

impl BedLock {
    /// Removes all that there is of the bed, the lock last.
    pub fn remove_bed(self, layout: &Layout) -> Result<()> {
        if layout.exists() {
            let directory = layout.directory();
            fs::remove_dir_all(directory).with_context(|| format!("cannot remove {}", directory.display()))?;
        }
        fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }
}

/// Ports are picked by one bed at a time, so that two beds that start together do not pick the same.
pub fn lock_ports() -> Result<File> {
    lock(&beds_directory()?.join(".ports.lock"), "another bed picks its ports")
}

pub fn lock(path: &Path, busy: &str) -> Result<File> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            eprintln!("{busy}: waiting");
            file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
            Ok(file)
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot lock {}", path.display())),
    }
}

/// A name becomes a directory and a part of file names.
fn check_name(name: &str) -> Result<()> {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 40 || !name.chars().all(fine) || name.starts_with('-') {
        bail!("{name:?} is no name for a bed: use up to 40 lower-case letters, digits and dashes");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_the_directory_of_beds() {
        for name in ["default", "e2e-4711", "b2"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "..", "a/b", "-x", "Default", "a b", &"a".repeat(41)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
