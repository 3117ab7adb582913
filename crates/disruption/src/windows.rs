//! Maintenance windows that are active now.

use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::Texts;
use kerf_model::maintenance::{Action, MaintenanceWindow};
use kerf_model::snapshot::ClusterSnapshot;

use crate::KeepReason;

pub(crate) struct Windows<'a> {
    snapshot: &'a ClusterSnapshot,
    active: Vec<(&'a MaintenanceWindow, Option<Timestamp>)>,
    /// When the first of all windows opens or closes.
    pub(crate) next_transition: Option<Timestamp>,
}

impl<'a> Windows<'a> {
    pub(crate) fn of(snapshot: &'a ClusterSnapshot, now: Timestamp) -> Self {
        let mut windows = Self { snapshot, active: Vec::new(), next_transition: None };
        for window in snapshot.maintenance_windows() {
            let transition = window.next_transition(now);
            if window.is_active(now) {
                windows.active.push((window, transition));
            }
            windows.next_transition = [windows.next_transition, transition].into_iter().flatten().min();
        }
        windows
    }

    /// The window that holds the action back on a node with these labels: of several, the one that ends last.
    pub(crate) fn hold(&self, action: Action, labels: &Texts) -> Option<KeepReason> {
        let holding =
            self.active.iter().filter(|(window, _)| window.actions.contains(&action) && window.covers(labels));
        let (window, until) = holding.max_by_key(|(_, until)| until.unwrap_or(Timestamp::MAX))?;
        let problem = self.snapshot.window(&window.name).and_then(|stored| stored.problem.clone());
        Some(KeepReason::Window { window: Arc::clone(&window.name), action, until: *until, problem })
    }
}
