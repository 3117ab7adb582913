//! What Kerf asks of a cloud.
//!
//! - [`provider`]: the trait that every cloud implements. Shells carry out the engine's cloud effects with it.
//! - [`choice`]: which instance type and offering a claim gets, where the provider and not its cloud decides that.
//! - [`catalogue`]: instance types without a cloud: KWOK's, a file's, and a realistic set for demos.
//! - [`contract`]: what every provider must keep to, as a function that tests call.
//!
//! Must never know: which clouds there are, Kubernetes' objects, an async runtime, a clock, randomness.
//!
//! Start with [`provider`].

pub mod catalogue;
pub mod choice;
pub mod contract;
pub mod fingerprint;
pub mod provider;

pub use catalogue::{Catalogue, InstanceTypes};
pub use provider::{ClassKind, CloudError, Order, Provider};
