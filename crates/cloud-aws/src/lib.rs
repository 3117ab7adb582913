//! Nodes on EC2, as far as that can be decided without asking AWS.
//!
//! A shell that calls AWS tells what it found: what the selectors of a class select, and how an instance was made. Here
//! it is compared.
//!
//! - [`class`]: the EC2NodeClass, with what its selectors found.
//! - [`drift()`]: whether an instance would be made otherwise today, and what differs.
//! - [`stamps`]: the hashes of a class on itself and on its claims.
//!
//! Must never know: the AWS SDK, an async runtime, a clock, randomness. Start with [`drift()`].

pub mod class;
pub mod drift;
pub mod stamps;

pub use class::{CLASS_KIND, Ec2Class, Image, ReadClassError, Subnet};
pub use drift::{CannotTell, DriftReason, InstanceFacts, Look, drift, foresee};
