//! What waits, all at once: pods as the cluster's scheduler sees them, and the room that buffers keep.

use std::collections::BTreeSet;
use std::sync::Arc;

use kerf_model::cluster::Pod;
use kerf_model::snapshot::ClusterSnapshot;

use crate::{DefaultSpread, Problem, Schedule, Supply, is_virtual, solve};

/// What waits for a place.
#[derive(Debug, Default)]
pub struct Waiting {
    pub pods: Vec<Arc<Pod>>,
    /// Those of capacity buffers. They get what the others leave.
    pub virtual_pods: Vec<Arc<Pod>>,
}

/// Places all that waits at once.
///
/// Room for pods to come must never cost a pod that is there its place. The scheduler tries pods by size and not by
/// importance, so a schedule in which a pod lost its place to the buffers is thrown away: this answer is for the pods
/// alone, and the buffers come when those have their nodes.
pub fn place(snapshot: &ClusterSnapshot, waiting: Waiting, spread: &DefaultSpread, supply: Supply<'_>) -> Schedule {
    let pods = spread.apply(waiting.pods, snapshot);
    let virtual_pods = spread.apply(waiting.virtual_pods, snapshot);
    let Supply { types, rules, options } = supply;
    let ask = |pods: Vec<Arc<Pod>>| {
        solve(snapshot, &Problem { pods, excluded: BTreeSet::new(), types: types.clone(), rules, options })
    };
    if virtual_pods.is_empty() {
        return ask(pods);
    }
    let real = (!pods.is_empty()).then(|| ask(pods.clone()));
    let both = ask(pods.into_iter().chain(virtual_pods).collect());
    match real {
        Some(real) if left_over(&both) > left_over(&real) => real,
        Some(_) | None => both,
    }
}

/// Real pods without a place.
fn left_over(schedule: &Schedule) -> usize {
    schedule.unplaced.iter().filter(|(pod, _)| !is_virtual(pod)).count()
}
