//! The `kerf` binary, run as people run it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed; clippy knows only #[test]"
)]

mod bad_input;
mod cluster;
mod commands;
mod documents;
mod guides;
mod harness;
mod help;
mod reference;
mod scenarios;
