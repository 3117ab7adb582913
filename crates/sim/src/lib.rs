//! A cluster in memory, on virtual time: the world that the engine is demonstrated, tested and fault-tested in.
//!
//! - [`store`]: the Kubernetes API with Kubernetes' rules: versions, finalizers, owners, patches, evictions, admission.
//! - [`world`]: what lives around it, each an [`Actor`](world::Actor) that looks at the store and writes to it: scheduler,
//!   workload controllers, kubelets, volumes. They run in a fixed order until nothing changes; then time jumps.
//!
//! - [`autoscaler`]: Kerf itself, living there, and its cloud; `ec2`: the little of AWS that an EC2NodeClass needs. [`faults`]: what goes wrong around it.
//! - [`history`]: random clusters and changes with faults, looked at by the [`checkers`]; a [`journal`] of all of it.
//! - [`scenario`]: what people write: objects, a timed script, expectations. [`timeline`]: what happened, to read.
//!
//! One seed and one script give one history, byte for byte: nothing here reads a clock, draws a random number of its own
//! or iterates in hash order.
//!
//! Must never know: how decisions are made. The world reads pods and nodes with its own eyes, so that a misreading by
//! the engine's border shows instead of being repeated.
//!
//! Start with [`store::Store`], then [`world::World`].

pub mod autoscaler;
pub mod checkers;
mod ec2;
pub mod faults;
pub mod history;
pub mod journal;
pub mod random;
pub mod scenario;
pub mod store;
pub mod timeline;
pub mod world;
