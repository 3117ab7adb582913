//! The engine in a real cluster: watches in, writes out.
//!
//! - `watch`: one watch per kind, each with its own back-off, turned into what the engine hears.
//! - `brain`: the engine on its own thread. The only place that reads the clock for decisions.
//! - `pace`: the engine's time, when somebody sets the clock.
//! - `effects`: the only writer; effects on one object in order, those on different objects at the same time.
//! - `requests`: one request to the API and what its refusal means. `cloud`: what is asked of the provider.
//! - [`kwok`]: what the KWOK provider needs of a cluster. [`lease`]: who of several replicas acts.
//! - [`metrics`] and `probes`: what others can see of it. [`throttle`], [`traffic`]: how much it asks of the API.
//!
//! Must never know: how anything is decided. Start with [`run`].

mod brain;
mod cloud;
mod effects;
mod interruptions;
pub mod kwok;
pub mod lease;
pub mod metrics;
mod pace;
mod probes;
mod requests;
mod run;
mod said;
pub mod throttle;
pub mod traffic;
mod watch;

pub use cloud::ClassReader;
pub use run::{Addresses, Clients, Options, RunError, run};
