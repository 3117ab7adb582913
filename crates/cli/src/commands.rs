//! One file per command.

pub mod completion;
#[cfg(feature = "controller")]
pub mod controller;
pub mod convert;
pub mod crds;
pub mod demo;
pub mod hash;
pub mod reference;
pub mod scenario_choice;
pub mod simulate;
pub mod validate;
pub mod version;
