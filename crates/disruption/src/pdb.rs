//! PodDisruptionBudgets: what stops a node from being chosen, and how many evictions one round may count on.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::{DisruptionBudget, ObjectName, Pod};
use kerf_model::snapshot::ClusterSnapshot;

use crate::KeepReason;

/// All budgets, by namespace.
pub(crate) struct Pdbs<'a> {
    by_namespace: BTreeMap<&'a str, Vec<&'a DisruptionBudget>>,
}

/// How many evictions of each budget a node will ask for.
pub(crate) type PdbUse<'a> = BTreeMap<&'a ObjectName, u32>;

impl<'a> Pdbs<'a> {
    pub(crate) fn of(snapshot: &'a ClusterSnapshot) -> Self {
        let mut by_namespace: BTreeMap<&str, Vec<&DisruptionBudget>> = BTreeMap::new();
        for budget in snapshot.disruption_budgets() {
            by_namespace.entry(&budget.meta.name.namespace).or_default().push(budget);
        }
        Self { by_namespace }
    }

    /// The candidate check: whether one eviction of this pod would be refused now.
    pub(crate) fn blocker(&self, pod: &Pod, now: Timestamp) -> Option<KeepReason> {
        if !is_evictable(pod, now) {
            return None;
        }
        match *self.matching(pod) {
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
        is_evictable(pod, now) && DisruptionBudget::block_for_ever(&self.matching(pod), pod)
    }

    /// Adds what evicting this pod takes of its budget.
    pub(crate) fn count(&self, pod: &Pod, now: Timestamp, uses: &mut PdbUse<'a>) {
        if !is_evictable(pod, now) {
            return;
        }
        for budget in self.matching(pod).iter().filter(|budget| !budget.lets_go(pod)) {
            *uses.entry(&budget.meta.name).or_default() += 1;
        }
    }

    /// What each budget allows now.
    pub(crate) fn allowed(&self) -> BTreeMap<&'a ObjectName, u32> {
        let all = self.by_namespace.values().flatten();
        all.map(|budget| (&budget.meta.name, budget.disruptions_allowed)).collect()
    }

    fn matching(&self, pod: &Pod) -> Vec<&'a DisruptionBudget> {
        let budgets = self.by_namespace.get(&*pod.meta.name.namespace).into_iter().flatten().copied();
        budgets.filter(|budget| budget.selects(pod)).collect()
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
