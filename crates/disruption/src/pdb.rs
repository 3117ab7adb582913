//! PodDisruptionBudgets: what stops a node from being chosen, and how many evictions one round may count on.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::{DisruptionBudget, DisruptionBudgets, ObjectName, Pod};
use kerf_model::snapshot::ClusterSnapshot;

use crate::KeepReason;

pub(crate) struct Pdbs<'a> {
    all: DisruptionBudgets<'a>,
    /// What each allows now.
    allowed: BTreeMap<&'a ObjectName, u32>,
}

/// How many evictions of each budget a node will ask for.
pub(crate) type PdbUse<'a> = BTreeMap<&'a ObjectName, u32>;

impl<'a> Pdbs<'a> {
    pub(crate) fn of(snapshot: &'a ClusterSnapshot) -> Self {
        let allowed = snapshot.disruption_budgets().map(|budget| (&budget.meta.name, budget.disruptions_allowed));
        Self { all: DisruptionBudgets::of(snapshot), allowed: allowed.collect() }
    }

    /// The candidate check: whether one eviction of this pod would be refused now.
    pub(crate) fn blocker(&self, pod: &Pod, now: Timestamp) -> Option<KeepReason> {
        if !is_evictable(pod, now) {
            return None;
        }
        match *self.all.selecting(pod) {
            [] => None,
            [budget] if budget.lets_go(pod) || budget.disruptions_allowed > 0 => None,
            [budget] => Some(KeepReason::PdbBlocks { pod: pod.meta.name.clone(), pdb: budget.meta.name.clone() }),
            ref several => {
                let pdbs = several.iter().map(|budget| budget.meta.name.clone()).collect();
                Some(KeepReason::SeveralPdbs { pod: pod.meta.name.clone(), pdbs })
            }
        }
    }

    /// Whether no eviction of this pod will ever be allowed, so that no place for it is needed.
    pub(crate) fn blocks_for_ever(&self, pod: &Pod, now: Timestamp) -> bool {
        is_evictable(pod, now) && DisruptionBudget::block_for_ever(&self.all.selecting(pod), pod)
    }

    /// Adds what evicting this pod takes of its budget.
    pub(crate) fn count(&self, pod: &Pod, now: Timestamp, uses: &mut PdbUse<'a>) {
        if !is_evictable(pod, now) {
            return;
        }
        for budget in self.all.selecting(pod).iter().filter(|budget| !budget.lets_go(pod)) {
            *uses.entry(&budget.meta.name).or_default() += 1;
        }
    }

    /// What each budget allows now.
    pub(crate) fn allowed(&self) -> BTreeMap<&'a ObjectName, u32> {
        self.allowed.clone()
    }
}

/// Whether a drain would ask for its eviction (upstream's `IsEvictable`).
fn is_evictable(pod: &Pod, now: Timestamp) -> bool {
    pod.is_active() && !pod.tolerates_disruption() && !pod.is_mirror() && !pod.is_protected(now)
}

/// The first pod that its owner protects. Daemons and mirror pods count.
pub(crate) fn protected<'p>(pods: impl IntoIterator<Item = &'p Arc<Pod>>, now: Timestamp) -> Option<KeepReason> {
    let protected = pods.into_iter().filter(|pod| pod.is_active()).filter_map(|pod| {
        let until = pod.protected_until(now)?;
        Some((until, pod))
    });
    // Of several, the one that holds the node longest.
    let (until, pod) = protected.max_by(|(a, left), (b, right)| (a, &right.meta.name).cmp(&(b, &left.meta.name)))?;
    let until = (until < Timestamp::MAX).then_some(until);
    Some(KeepReason::ProtectedPod { pod: pod.meta.name.clone(), until })
}
