//! Every step of a node's life, from the claim that wants it to the end of its instance.
//!
//! Each function looks at one object in the cluster as it is now and returns [`Steps`]: the effects wanted next, and when
//! to look again if nothing changes before. Nothing is remembered in the functions and nothing waits in them, so a lost
//! effect, a repeat or a restart does no harm. What the API does not show (calls to the cloud that are under way,
//! evictions that were refused) is kept in [`Memory`], which the caller tells what was [heard](Memory::hear) and what was
//! [taken](Memory::took); losing it costs a repeated question, never a node.
//!
//! Who is to be looked at after a change: a pod concerns its node and that node's claim; a node, itself and its claims; a
//! claim, itself, its nodes and its pool; an attachment, its node; a pool, itself and its claims; a class, its pools; a
//! window, every claim. An answer concerns the object that was asked about. Equal steps may come out of every look until
//! their effect is seen: whoever executes them holds back what is already on its way.
//!
//! Must never know: a clock, the network, Kubernetes' JSON, which pods go where and which nodes are worth their price.
//!
//! Start with [`claim::next`], the life of a claim; then [`node::next`], how a node ends; then [`drain`].

pub mod claim;
pub mod conditions;
pub mod drain;
pub mod events;
mod field_hashes;
pub mod garbage;
mod marks;
pub mod memory;
pub mod node;
pub mod pool;
mod settings;
mod steps;
mod view;
mod volumes;
pub mod window;

pub use kerf_model::node_pool::ClassKind;
pub use marks::{Mark, Marks, Order};
pub use memory::Memory;
pub use settings::Settings;
pub use steps::{Cause, Note, Steps};
pub use view::View;
