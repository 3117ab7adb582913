//! Where manifests come from: files, directories, `-` for standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use kerf_api::manifest::{self, Document, MAX_BYTES};

use crate::output::{self, Outcome};

const STDIN: &str = "-";
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

#[derive(clap::Args)]
pub struct Input {
    /// File or directory with YAML or JSON manifests, or - for standard input
    ///
    /// May be given several times. Of a directory, the .yaml, .yml and .json files are read, in order of their names.
    #[arg(short = 'f', long = "filename", required = true, num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Look into directories below the given ones too
    #[arg(short = 'R', long)]
    recursive: bool,
}

/// All documents that could be read, in the order given, and whether those are all.
pub struct Documents {
    pub documents: Vec<Document>,
    pub outcome: Outcome,
}

impl Input {
    pub fn of(files: Vec<PathBuf>, recursive: bool) -> Self {
        Self { files, recursive }
    }

    /// Reads everything. A file or document that cannot be read is reported on standard error and does not stop the others.
    pub fn read(&self) -> anyhow::Result<Documents> {
        let mut documents = Vec::new();
        let mut outcome = Outcome::Fine;
        for path in self.paths()? {
            let label = if path.as_os_str() == STDIN { "<stdin>".to_string() } else { path.display().to_string() };
            let results = match bytes_of(&path) {
                Ok(bytes) => manifest::read(&label, &bytes),
                Err(error) => {
                    outcome = Outcome::Unreadable;
                    output::complain(&format!("cannot read {label}: {error}"));
                    continue;
                }
            };
            for result in results {
                match result {
                    Ok(document) => documents.push(document),
                    Err(error) => {
                        outcome = Outcome::Unreadable;
                        output::complain(&error.to_string());
                    }
                }
            }
        }
        if documents.is_empty() && outcome == Outcome::Fine {
            // More often the sign of a command before us that failed than what anyone wanted to check.
            bail!("there is no object in the input");
        }
        Ok(Documents { documents, outcome })
    }

    fn paths(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for path in &self.files {
            if path.as_os_str() != STDIN && path.is_dir() {
                let before = paths.len();
                self.add_directory(path, &mut paths)?;
                if paths.len() == before {
                    let hint = if self.recursive { "" } else { "; -R looks into directories below it" };
                    bail!("{} holds no .yaml, .yml or .json file{hint}", path.display());
                }
            } else {
                paths.push(path.clone());
            }
        }
        Ok(paths)
    }

    fn add_directory(&self, directory: &Path, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
        let context = || format!("cannot list {}", directory.display());
        let entries = fs::read_dir(directory).with_context(context)?;
        let mut entries: Vec<fs::DirEntry> = entries.collect::<Result<_, _>>().with_context(context)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            // The type of the entry itself: a link to a directory above would never end.
            if entry.file_type().with_context(context)?.is_dir() {
                if self.recursive {
                    self.add_directory(&path, paths)?;
                }
            } else if path.extension().and_then(|e| e.to_str()).is_some_and(|e| EXTENSIONS.contains(&e)) {
                paths.push(path);
            }
        }
        Ok(())
    }
}

fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str() == STDIN { read_bounded(io::stdin().lock()) } else { read_bounded(fs::File::open(path)?) }
}

/// One byte more than a manifest may have: enough for the reader to refuse a stream that never ends.
fn read_bounded(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
