//! From what the user wrote to what a decision reads: wire types into [`kerf_model`].
//!
//! Admission has refused most mistakes already; what its schema lets pass is found here (upstream calls it runtime
//! validation). All problems of an object are reported together, each with its field and the rule it breaks. A problem
//! that leaves the object usable (one broken budget, one unknown value among known ones) comes with the value.
//!
//! Nothing here defaults what the API server defaults: a missing field gets the schema's default only because objects
//! stored by an older version of it may lack it.

mod capacity_buffer;
mod labels;
mod maintenance_window;
mod metadata;
mod node;
mod node_claim;
mod node_class;
mod node_overlay;
mod node_pool;
mod node_spec;
mod pod;
mod problem;
mod shapes;
mod storage;
mod stored_pool;
mod workload;

pub use capacity_buffer::capacity_buffer;
pub use maintenance_window::{maintenance_window, stored_window, unreadable_window};
pub use node::node;
pub use node_claim::{node_claim, unlaunchable_claim};
pub use node_class::node_class;
pub use node_overlay::node_overlay;
pub use node_pool::node_pool;
pub use pod::pod;
pub use problem::{ParseError, Problem, Violation};
pub use shapes::Shapes;
pub use storage::{csi_node, persistent_volume, persistent_volume_claim, storage_class, volume_attachment};
pub use stored_pool::stored_pool;
pub use workload::{daemon_set, disruption_budget, namespace, pod_template, service, workload};

pub use metadata::object_meta;
use problem::Collector;

/// A usable object, and what is wrong with it all the same.
#[derive(Debug)]
pub struct Parsed<T> {
    pub value: T,
    pub warnings: Vec<Problem>,
}
