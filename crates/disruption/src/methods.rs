//! The ways in which nodes are found that should go; one file each. `decide.rs` has their order.

pub(crate) mod consolidation;
pub(crate) mod drift;
pub(crate) mod emptiness;
pub(crate) mod rebalance;
pub(crate) mod repair;
pub(crate) mod static_drift;
pub(crate) mod terminate_first;
