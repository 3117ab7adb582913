//! The Go toolchain, which builds the parts of a bed.

use std::process::Command;

use anyhow::Result;

use super::build::module_directory;
use crate::{MissingTool, command};

/// What the pinned modules ask for.
const NEEDED: (u32, u32) = (1, 26);

/// What `go version` says, when it is new enough.
pub fn version(task: &str) -> Result<String> {
    // Asked inside a module: a Go that is older but may fetch the toolchain that the module names does so.
    let said = command::capture(Command::new("go").arg("version").current_dir(module_directory("keygen")));
    match said {
        Ok(said) if parse(&said).is_some_and(|found| found >= NEEDED) => Ok(said.trim().to_owned()),
        Ok(_) | Err(_) => Err(MissingTool(format!(
            "cargo xtask {task} needs Go {}.{} or newer: install it from your package manager or go.dev, then run again",
            NEEDED.0, NEEDED.1
        ))
        .into()),
    }
}

/// `go version go1.26.8 linux/amd64` is (1, 26).
fn parse(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.split_whitespace().nth(2)?.strip_prefix("go")?.split('.');
    let major = numbers.next()?.parse().ok()?;
    // A release candidate is 1.27rc1.
    let minor: String = numbers.next()?.chars().take_while(char::is_ascii_digit).collect();
    Some((major, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_ordered() {
        let cases = [
            ("go version go1.26.8 linux/amd64", Some((1, 26))),
            ("go version go1.27rc1 darwin/arm64", Some((1, 27))),
            ("go version go1.9 linux/amd64", Some((1, 9))),
            ("go version devel +abc", None),
            ("", None),
        ];
        for (said, expected) in cases {
            assert_eq!(parse(said), expected, "{said}");
        }
        assert!((1, 9) < NEEDED && (2, 0) > NEEDED);
    }
}
