//! The KWOK provider on nodes in memory.

#![expect(clippy::unwrap_used, reason = "clippy allows it in test functions, and these are their helpers")]

mod contract;
mod nodes;
mod support;
