//! Drift hashes, bit for bit those of the reference: a cluster can move to Kerf and back without rolling a node.
//!
//! - [`node_pool`] and [`ec2_node_class`]: what is hashed of an object. Both read the JSON that the API server returns,
//!   with its defaults already applied: nothing is defaulted here, as the hash is of the object as stored.
//! - [`fields`]: the same per field, so that drift can say *which* field changed, and whether the edit meant anything.
//! - [`migrate`]: who gets which hash when versions change, and when a claim counts as drifted.
//!
//! Inside: `go_hash` is the algorithm, `layout` the tables' language, `kubelet_text` one field that is hashed as text.
//!
//! ```
//! use kerf_api::hash::node_pool_hash;
//! use serde_json::json;
//!
//! let pool = json!({"spec": {"template": {"spec": {
//!     "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
//!     "expireAfter": "720h",
//! }}}});
//! assert_eq!(node_pool_hash(&pool)?.to_string(), "12745407319442031341");
//! # Ok::<(), kerf_api::hash::HashError>(())
//! ```

pub mod ec2_node_class;
mod error;
pub mod fields;
mod go_hash;
mod kubelet_text;
mod layout;
pub mod migrate;
pub mod node_pool;
pub mod stamp;

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

pub use ec2_node_class::{Ec2HashVersion, ec2_node_class_fields, ec2_node_class_hash, ec2_node_class_seal};
pub use error::{Expected, HashError, HashProblem};
pub use fields::{Edit, FieldChange, FieldHashes};
pub use migrate::{Claim, ClaimWrite, Restamp, restamp_for_ec2_node_class, restamp_for_node_pool};
pub use node_pool::{NODE_POOL_HASH_VERSION, NodeClassKind, node_pool_hash};
pub use stamp::{EC2_NODE_CLASS_KEYS, NODE_POOL_KEYS, Seal, Stamp, StampKeys, drifted};

/// A drift hash; its text is decimal, as in the annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hash(u64);

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Hash {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}
