//! Cases of sheet 02 §30 and sheet 08 §2, as text.

#![expect(clippy::unwrap_used, clippy::panic, reason = "all of this is tests, also what stands outside of #[test]")]

mod daemons;
mod departures;
mod existing;
mod fixture;
mod further_nodes;
mod intake;
mod limits;
mod new_claim;
mod preferences;
mod property;
mod reasons;
mod reservations;
mod selection;
mod topology;
mod volumes;
mod what_ifs;
