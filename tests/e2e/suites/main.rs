//! The end-to-end suites, one module each. `cargo xtask e2e bed` runs the suite `bed`.

mod api;
mod bed;
mod controller;
