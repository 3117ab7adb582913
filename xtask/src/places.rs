//! Where things are: the workspace, the user's cache, the user's state.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The workspace root. Known when xtask is compiled, because xtask is only ever run from its own checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

/// What can be built again: `$XDG_CACHE_HOME`, by default `~/.cache`.
pub fn cache() -> Result<PathBuf> {
    user_directory("XDG_CACHE_HOME", ".cache")
}

/// What belongs to running beds: `$XDG_STATE_HOME`, by default `~/.local/state`. Not `target/`, where `cargo clean`
/// would take away the only record of running processes.
pub fn state() -> Result<PathBuf> {
    user_directory("XDG_STATE_HOME", ".local/state")
}

fn user_directory(variable: &str, below_home: &str) -> Result<PathBuf> {
    // The XDG rules say that a relative path is to be ignored.
    let set = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    match set {
        Some(path) => Ok(path),
        None => Ok(env::home_dir().context("cannot find the home directory: set HOME")?.join(below_home)),
    }
}
