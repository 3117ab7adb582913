//! A MaintenanceWindow as it is stored: what it says, and what its status says about it.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Conditions, ObjectMeta};
use crate::maintenance::MaintenanceWindow;

#[derive(Debug, Clone, PartialEq)]
pub struct StoredWindow {
    pub meta: ObjectMeta,
    /// What it counts as.
    pub spec: MaintenanceWindow,
    /// Why it cannot be read as it is written, if it cannot: then it counts as active, always and everywhere.
    pub problem: Option<Arc<str>>,
    pub status: WindowStatus,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct WindowStatus {
    pub active: Option<bool>,
    pub next_transition: Option<Timestamp>,
    pub matched_nodes: Option<i64>,
    pub conditions: Conditions,
}
