//! Kerf's nouns, and the arithmetic on them.
//!
//! What Kubernetes and Karpenter write as text is a value here, with exactly their meaning: amounts ([`quantity`],
//! [`resources`], [`price`]), time ([`duration`], [`cron`], [`window`], [`budget`], [`time`]), labels ([`label`],
//! [`requirement`], [`selector`], [`taint`]), and the objects made of them ([`cluster`], [`node_pool`],
//! [`maintenance`]). [`intern`] gives names dense ids for the hot paths.
//!
//! The engine's words stand here too: [`change`] what it hears, [`effect`] what it does, [`cloud`] what clouds answer.
//!
//! Must never know: Kubernetes objects and their JSON, a clock, randomness, IO, async, a logger. Time arrives as `now`.
//! Text that cannot be read is an error that says where and why; nothing here panics.
//!
//! Start with [`requirement`]: everything that is placed anywhere is placed by it.

pub mod budget;
pub mod change;
pub mod cloud;
pub mod cluster;
pub mod cron;
mod digits;
pub mod duration;
pub mod effect;
pub mod intern;
pub mod label;
pub mod maintenance;
pub mod node_pool;
pub mod price;
pub mod quantity;
pub mod requirement;
pub mod resources;
pub mod selector;
pub mod snapshot;
pub mod taint;
pub mod time;
pub mod window;
