//! Files that are generated from code and committed, so that they can be read and used without building anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::{self, cargo};
use crate::places;

/// A directory of generated files. `kerf <arguments> --dir D` writes all of them into D.
struct Generated {
    what: &'static str,
    arguments: &'static [&'static str],
    directory: &'static str,
    /// Files of the directory that people write.
    by_hand: &'static [&'static str],
}

const GENERATED: &[Generated] = &[
    Generated { what: "custom resource definitions", arguments: &["crds"], directory: "deploy/crds", by_hand: &[] },
    Generated {
        what: "reference pages",
        arguments: &["generate-reference"],
        directory: "docs/reference",
        by_hand: &["benchmarks.md", "differences.md"],
    },
];

/// Fails when a committed file is not what the code generates now.
pub fn check_all() -> Result<()> {
    for generated in GENERATED {
        let fresh = generated.generate()?;
        let differences = compare(&generated.committed()?, &fresh);
        if !differences.is_empty() {
            let list: Vec<_> = differences.iter().map(|found| format!("  {}/{found}", generated.directory)).collect();
            bail!("the {} are stale: run `cargo xtask generate` and commit\n{}", generated.what, list.join("\n"));
        }
        println!("{} in {} are fresh ({} files)", generated.what, generated.directory, fresh.len());
    }
    Ok(())
}

pub fn rewrite_all() -> Result<()> {
    for generated in GENERATED {
        let fresh = generated.generate()?;
        let directory = places::root().join(generated.directory);
        let differences = compare(&generated.committed()?, &fresh);
        for found in &differences {
            write_difference(&directory, found, &fresh)?;
            println!("{}/{found}", generated.directory);
        }
        if differences.is_empty() {
            println!("{} in {} were fresh", generated.what, generated.directory);
        }
    }
    Ok(())
}

/// File name to content. Generated directories are flat.
type Files = BTreeMap<String, Vec<u8>>;

#[derive(Debug, PartialEq, Eq)]
enum Difference {
    Missing(String),
    Outdated { name: String, line: usize },
    Unexpected(String),
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "{name}: missing"),
            Self::Outdated { name, line } => write!(f, "{name}: differs from line {line} on"),
            Self::Unexpected(name) => write!(f, "{name}: nothing generates it"),
        }
    }
}

fn compare(committed: &Files, fresh: &Files) -> Vec<Difference> {
    let mut found = Vec::new();
    for (name, content) in fresh {
        match committed.get(name) {
            None => found.push(Difference::Missing(name.clone())),
            Some(old) if old != content => {
                found.push(Difference::Outdated { name: name.clone(), line: first_different_line(old, content) });
            }
            Some(_) => {}
        }
    }
    let unexpected = committed.keys().filter(|name| !fresh.contains_key(*name));
    found.extend(unexpected.cloned().map(Difference::Unexpected));
    found
}

fn first_different_line(left: &[u8], right: &[u8]) -> usize {
    let same = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    1 + left[..same].iter().filter(|byte| **byte == b'\n').count()
}

impl Generated {
    fn committed(&self) -> Result<Files> {
        let mut files = read_files(&places::root().join(self.directory))?;
        files.retain(|name, _| !self.by_hand.contains(&name.as_str()));
        Ok(files)
    }

    fn generate(&self) -> Result<Files> {
        let kerf = build_kerf()?;
        let scratch = scratch_directory()?;
        let outcome = command::run(Command::new(kerf).args(self.arguments).arg("--dir").arg(&scratch));
        let files = outcome.and_then(|()| read_files(&scratch));
        fs::remove_dir_all(&scratch).with_context(|| format!("cannot remove {}", scratch.display()))?;
        let files = files.with_context(|| format!("cannot generate the {}", self.what))?;
        if files.is_empty() {
            bail!("generating the {} wrote no file", self.what);
        }
        Ok(files)
    }
}

/// Built with the features of the whole workspace, so that what the tests compiled is used again: `cargo run --package`
/// would compile half of the dependencies once more.
fn build_kerf() -> Result<PathBuf> {
    let build = ["build", "--quiet", "--workspace", "--bin", "kerf", "--message-format", "json-render-diagnostics"];
    let messages = command::capture(&mut cargo(build)).context("cannot build kerf")?;
    executable(&messages).context("cargo did not say where it put kerf")
}

/// From cargo's messages, one JSON document per line.
fn executable(messages: &str) -> Option<PathBuf> {
    let parsed = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    parsed.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back()
}

fn scratch_directory() -> Result<PathBuf> {
    let path = std::env::temp_dir().join(format!("kerf-generate-{}", std::process::id()));
    fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
    Ok(path)
}

fn read_files(directory: &Path) -> Result<Files> {
    let mut files = Files::new();
    if !directory.exists() {
        return Ok(files);
    }
    for entry in fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().context("a listed file has a name")?.to_string_lossy().into_owned();
        let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        files.insert(name, content);
    }
    Ok(files)
}

fn write_difference(directory: &Path, found: &Difference, fresh: &Files) -> Result<()> {
    match found {
        Difference::Missing(name) | Difference::Outdated { name, .. } => {
            fs::create_dir_all(directory)?;
            fs::write(directory.join(name), &fresh[name]).with_context(|| format!("cannot write {name}"))
        }
        Difference::Unexpected(name) => {
            fs::remove_file(directory.join(name)).with_context(|| format!("cannot remove {name}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> Files {
        list.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn equal_directories_are_fresh() {
        let tree = files(&[("a.yaml", "one\n"), ("b.yaml", "two\n")]);
        assert_eq!(compare(&tree, &tree), []);
    }

    #[test]
    fn every_kind_of_staleness_is_named() {
        let committed = files(&[("changed.yaml", "kind: A\nspec: 1\n"), ("left.yaml", "")]);
        let fresh = files(&[("changed.yaml", "kind: A\nspec: 2\n"), ("new.yaml", "")]);
        let shown: Vec<_> = compare(&committed, &fresh).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            ["changed.yaml: differs from line 2 on", "new.yaml: missing", "left.yaml: nothing generates it"]
        );
    }

    #[test]
    fn the_program_is_found_in_what_cargo_says() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"serde"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"kerf"},"executable":"/target/debug/kerf"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages), Some("/target/debug/kerf".into()));
        assert_eq!(executable(""), None);
    }

    #[test]
    fn a_file_that_was_cut_short_is_stale() {
        let found = compare(&files(&[("a.yaml", "one\n")]), &files(&[("a.yaml", "one\ntwo\n")]));
        assert_eq!(found, [Difference::Outdated { name: "a.yaml".to_owned(), line: 2 }]);
    }
}
