//! The main loop as a value: [`Engine::handle`] takes what was heard and the time, and returns effects and when it
//! wants to be asked again. Every shell (controller, simulation, plan) is a loop around this one function.
//!
//! One call is one look at the cluster: changes are taken in, every object that they touch or whose time has come is
//! asked what it wants next (`kerf-lifecycle`), and when the batch window closes, pending pods get their places
//! (`kerf-scheduling`). Nothing is decided before the first lists are in.
//!
//! Level-triggered: an effect that is lost, late or repeated does no harm, because the next look asks again for what is
//! still missing. What the engine remembers beyond the snapshot only saves repeated questions; a new engine on the same
//! cluster comes to the same end.
//!
//! Must never know: a clock, the network, async, a logger, Kubernetes' JSON.
//!
//! Start here, then [`provisioning`].

mod agenda;
mod avoided;
mod batch;
mod buffers;
pub mod commands;
mod disruption;
mod engine;
mod names;
mod notes;
mod outstanding;
mod overlays;
mod patience;
mod pod_costs;
mod pool_stamp;
pub mod provisioning;
mod settings;
mod sold_out;

pub use disruption::remembered;
pub use engine::{Engine, Output};
pub use notes::DisruptionNote;
pub use provisioning::PodVerdict;
pub use settings::Settings;

#[cfg(test)]
mod tests;
