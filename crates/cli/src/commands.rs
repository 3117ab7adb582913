//! One file per command.

pub mod budget;
pub mod completion;
#[cfg(feature = "controller")]
pub mod controller;
pub mod convert;
pub mod crds;
pub mod demo;
pub mod freeze;
pub mod hash;
pub mod plan;
pub mod reference;
pub mod scenario_choice;
pub mod schedule;
pub mod simulate;
pub mod validate;
pub mod version;
pub mod why;
