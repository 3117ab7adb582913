//! What the end-to-end suites stand on: a connection to the bed, a case that cleans up behind itself, patience, and the
//! [`table`] of objects that the API accepts and rejects.
//!
//! `cargo xtask e2e` starts a bed and runs the suites in `suites/`. They know the cluster as a user does: through its API.
//! The run tells the tests where they are: `KUBECONFIG`, `KERF_E2E_BED` (the bed's name), `KERF_E2E_DIRECTORY` (its logs are
//! below), `KERF_E2E_KUBECTL` (the program that fits the server), `KERF_E2E_XTASK` (the run's own program).
//!
//! A test is a case with a namespace of its own, so that many of them can run at the same time on one bed; [`turns`] says
//! which. Cases about nodes have a [`world`].
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! kerf_e2e::case(async |case| {
//!     let node = case.create(&kerf_e2e::fake_node(&case.unique("node"))).await?;
//!     kerf_e2e::eventually("the node is there", async || Ok(Some(&node))).await?;
//!     Ok(())
//! })
//! .await
//! # }
//! ```

mod answer;
mod bed;
mod case;
pub mod converted;
mod definitions;
mod nodes;
pub mod parts;
pub mod patch;
mod patience;
mod program;
pub mod table;
pub mod turns;
pub mod world;

pub use answer::{Answer, Part, ask, ask_to_update};
pub use bed::{config, connect};
pub use case::{Case, case, case_in};
pub use definitions::install;
pub use nodes::{condition, fake_node};
pub use patch::merge;
pub use patience::{eventually, throughout, within};
pub use program::{Kerf, kerf_json};
