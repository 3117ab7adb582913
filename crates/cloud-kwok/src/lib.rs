//! Nodes without machines: the provider that turns claims into Node objects, which the KWOK simulator then brings to life.
//!
//! Here a Node object *is* the instance (sheet 04 §13). A launch only chooses what the node will be: it writes nothing, so
//! a crash after it leaks nothing. The Node is posted by [`tend`](kerf_cloud::Provider::tend), once the claim says that it
//! is launched and the class's delay has passed, and only while the claim is wanted. Its name follows from the claim, so
//! posting twice makes one node.
//!
//! Terminating deletes the Node, and an instance is gone when its Node is gone, or is being deleted: what then keeps the
//! object are finalizers, the drain's among them, and the drain waits for this answer.
//!
//! - [`node`]: name, labels and shape of the Node; pure.
//! - [`class`]: the KWOKNodeClass, and when a Node is due.
//! - [`api`]: the few calls on Nodes that a shell lends.
//! - [`provider`]: all of it together.
//!
//! Must never know: a Kubernetes client, an async runtime, a clock, randomness. Start with [`provider`].

pub mod api;
pub mod class;
pub mod node;
pub mod provider;
mod repair;

pub use api::NodeApi;
pub use class::KwokClass;
pub use provider::{INTERRUPTION, KwokProvider};
pub use repair::policies as repair_policies;
