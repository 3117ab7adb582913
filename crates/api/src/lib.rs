//! Karpenter's API: the border between JSON and [`kerf_model`].
//!
//! - One file per kind ([`node_pool`], [`node_claim`], …): the wire types. They keep what the user wrote: text stays
//!   text, absent and empty stay apart (drift hashes tell them apart), and whatever the schema admits decodes.
//!   [`crds()`] makes the definitions to install from them.
//! - [`parse`]: from a wire type to the model, with every problem named. [`lenient`]: lists and watches that one bad object
//!   cannot break.
//! - `admission` (feature): what the API server would say to an object, offline. [`lint`]: what it would let pass.
//! - [`rule_book`]: every rule that the last two can name.
//! - [`hash`]: drift hashes. [`convert`]: legacy manifests to v1. [`manifest`] and [`yaml`]: files as people keep them.
//! - [`slim`]: Kubernetes' own objects, cut down to what decisions read. [`change`]: what watches yield, of every kind, as
//!   what the engine hears. [`write`](mod@write): what the engine does, as requests to the API.
//!
//! Must never know: a cluster, a clock, who calls it. Start with [`node_pool`].

#![expect(clippy::duplicated_attributes, reason = "every printer column of a kind names its type")]

#[cfg(feature = "admission")]
pub mod admission;
pub mod api_kind;
pub mod capacity_buffer;
pub mod change;
pub mod convert;
pub mod crds;
pub mod ec2_node_class;
pub mod hash;
pub mod kwok_node_class;
pub mod lenient;
pub mod lint;
pub mod maintenance_window;
pub mod manifest;
pub mod node_claim;
pub mod node_overlay;
pub mod node_pool;
mod optional_spec;
pub mod parse;
pub mod provider;
pub mod requirement;
pub mod rule_book;
pub mod scheduler_config;
pub mod schema;
pub mod slim;
pub mod text;
pub mod write;
pub mod yaml;

pub use crds::{crd_yaml, crds};
pub use provider::Provider;

/// The release of Karpenter whose API this crate speaks.
pub const KARPENTER_RELEASE: &str = "v1.15";
