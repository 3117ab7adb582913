//! Taking a bed down, and removing what it left.

use std::time::Duration;

use anyhow::{Context, Result};

use super::parts::Part;
use super::state::{Layout, Record};

/// The API server first finishes the requests it has; etcd its snapshot. Both take a second or two.
const PATIENCE: Duration = Duration::from_secs(10);

/// Stops what runs, the last started first, and returns what was stopped. The caller holds the bed's lock.
pub fn down(layout: &Layout) -> Result<Vec<Part>> {
    let Some(mut record) = Record::load(layout)? else {
        return Ok(Vec::new());
    };
    let running = record.running();
    for part in running.iter().rev() {
        let stopped = record.processes[part].stop(PATIENCE);
        stopped.with_context(|| format!("cannot stop {}", part.name()))?;
        record.processes.remove(part);
        record.save(layout)?;
    }
    Ok(running)
}
