//! Licences, bans, sources and advisories of the dependencies, by cargo-deny.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::command::{self, cargo};
use crate::places;
use crate::timing::human;

/// Pinned, because a newer one may know new rules and fail a tree that has not changed.
const VERSION: &str = "0.20.2";

/// What can be said without the network.
pub fn check() -> Result<()> {
    let mut deny = cargo_deny()?;
    command::run(deny.args(["--offline", "check", "licenses", "bans", "sources"]))
}

/// Not a part of `ci`: the answer changes with the day, not with the tree, and needs the network.
pub fn check_advisories() -> Result<()> {
    let mut deny = cargo_deny()?;
    command::run(deny.args(["check", "advisories"]))
        .context("if the advisory database could not be fetched, run this where the network allows it")
}

fn cargo_deny() -> Result<Command> {
    let mut deny = Command::new(find_or_install()?);
    deny.current_dir(places::root()).arg("--workspace");
    Ok(deny)
}

fn find_or_install() -> Result<PathBuf> {
    let on_path = PathBuf::from("cargo-deny");
    if is_pinned(&on_path) {
        return Ok(on_path);
    }
    let cached_root = places::cache()?.join(format!("kerf-tools/cargo-deny-{VERSION}"));
    let cached = cached_root.join("bin/cargo-deny");
    if is_pinned(&cached) {
        return Ok(cached);
    }
    println!("cargo-deny {VERSION} is not installed: building it once, into {}", cached_root.display());
    let start = Instant::now();
    let package = format!("cargo-deny@{VERSION}");
    // A debug build takes half the time of an optimised one and answers in a second or two.
    command::run(
        cargo(["install", "--locked", "--debug", "--quiet", &package, "--root"])
            .arg(&cached_root)
            .env_remove("CARGO_TARGET_DIR"),
    )
    .context("cannot install cargo-deny")?;
    println!("cargo-deny {VERSION} built in {}", human(start.elapsed()));
    Ok(cached)
}

fn is_pinned(program: &PathBuf) -> bool {
    // "Not there" and "another version" mean the same here: look further.
    command::capture(Command::new(program).arg("--version"))
        .is_ok_and(|said| said.trim().ends_with(&format!(" {VERSION}")))
}
