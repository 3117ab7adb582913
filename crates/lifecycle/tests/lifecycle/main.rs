//! Cases of sheet 04 as text: a cluster in, the steps wanted out. `world.rs` reads and renders them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod claims;
mod drains;
mod ends;
mod garbage;
mod health;
mod in_place;
mod life;
mod markers;
mod pools;
mod reboots;
mod render;
mod reparenting;
mod windows;
mod words;
mod world;
