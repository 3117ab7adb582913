//! What the benchmarks are made of. `cargo xtask bench` runs them; nothing of this is shipped.
//!
//! - [`workload`]: clusters and pending pods, made from fixed seeds and written as a [`file`](mod@file) that both Kerf and the
//!   reference's harness (`bench/peer`, in Go) read.
//! - [`scheduling`]: Kerf on such a file, with the time it takes.
//! - [`disruption`]: Kerf's look at a whole cluster for nodes that should go.
//! - [`settle`]: such looks one after the other, until there is nothing left to do.
//! - [`check`]: whether an answer is one that Kubernetes would accept. Shares no code with the solver.
//! - [`bound`]: what no answer can cost less than.
//!
//! Start with [`workload`].

pub mod bound;
pub mod check;
pub mod disruption;
pub mod file;
pub mod memory;
mod objects;
mod random;
pub mod scheduling;
pub mod settle;
pub mod workload;
