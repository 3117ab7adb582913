//! What pods of ReplicaSets cost to delete, kept in line with what is to become of their nodes (gate
//! `PodDeletionCostManagement`, sheet 08 D11).
//!
//! Beside the value stands a copy under our own name: a value that is not its copy was written by somebody else, and is
//! left alone. With the gate off, what is left of ours is taken away.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_disruption::{Cost, NodeCost, is_of_replica_set};
use kerf_model::cluster::Pod;
use kerf_model::effect::{Effect, MetaPatch, Target};
use kerf_model::label::annotation;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::time::later;

const EVERY: SignedDuration = SignedDuration::from_mins(1);
/// So many nodes are changed at once, besides those that go: each pod is a request.
const NODES_AT_ONCE: usize = 50;

#[derive(Debug, Default)]
pub struct PodCosts {
    looked_at: Option<Timestamp>,
    /// Something that the answer rests on may be other than at the last look.
    is_changed: bool,
    /// By pool: nodes whose pods are still to be written.
    pending: BTreeMap<Arc<str>, u32>,
}

impl PodCosts {
    pub fn touch(&mut self) {
        self.is_changed = true;
    }

    pub fn pending(&self) -> &BTreeMap<Arc<str>, u32> {
        &self.pending
    }

    pub fn next_due(&self) -> Option<Timestamp> {
        match self.looked_at {
            None => Some(Timestamp::MIN),
            Some(last) => (self.is_changed || !self.pending.is_empty()).then(|| later(last, EVERY)),
        }
    }

    /// What is to be written now.
    pub fn write(&mut self, costs: Vec<NodeCost>, snapshot: &ClusterSnapshot, now: Timestamp) -> Vec<Effect> {
        self.looked_at = Some(now);
        self.is_changed = false;
        self.pending.clear();
        let (mut effects, mut nodes) = (Vec::new(), 0);
        for NodeCost { node, pool, cost } in costs {
            let patches: Vec<_> = snapshot.pods_on(&node).filter_map(|pod| patch(pod, cost.value())).collect();
            if patches.is_empty() {
                continue;
            }
            if cost != Cost::Leaving && nodes >= NODES_AT_ONCE {
                *self.pending.entry(pool.unwrap_or_default()).or_default() += 1;
                continue;
            }
            nodes += usize::from(cost != Cost::Leaving);
            effects.extend(patches);
        }
        effects
    }

    /// Takes away what is left of ours: the gate is off. Looks again until there is nothing left: somebody may have written
    /// the pod meanwhile.
    pub fn clean(&mut self, snapshot: &ClusterSnapshot, now: Timestamp) -> Vec<Effect> {
        let effects: Vec<_> = snapshot.pods().filter_map(|pod| patch(pod, None)).collect();
        self.looked_at = Some(now);
        self.is_changed = !effects.is_empty();
        effects
    }
}

/// The pod with the value, or without one; `None` if it is so already, or somebody else's.
fn patch(pod: &Pod, value: Option<i32>) -> Option<Effect> {
    let (written, ours) =
        (pod.meta.annotation(annotation::POD_DELETION_COST), pod.meta.annotation(annotation::OUR_COST));
    if !pod.is_active() || !is_of_replica_set(pod) || written != ours {
        return None;
    }
    let wanted = value.map(|value| Arc::from(value.to_string()));
    if written == wanted.as_deref() {
        return None;
    }
    let keys = [annotation::POD_DELETION_COST, annotation::OUR_COST];
    let meta = MetaPatch {
        // Somebody may be writing their own at this moment.
        resource_version: Some(pod.meta.resource_version.clone()),
        annotations: keys.map(|key| (Arc::from(key), wanted.clone())).into(),
        ..MetaPatch::default()
    };
    Some(Effect::PatchPod(Target::from(&pod.meta), Box::new(meta)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerf_model::change::Change;
    use kerf_model::cluster::{Owner, PodPhase};
    use kerf_testkit::texts;

    fn pod(name: &str, node: &str, annotations: &[(&str, &str)]) -> Change {
        let owner = Owner {
            api_version: Arc::from("apps/v1"),
            kind: Arc::from("ReplicaSet"),
            name: Arc::from("web"),
            uid: Arc::from("web"),
            controller: true,
            blocks_deletion: true,
        };
        let mut pod = kerf_testkit::pod(name);
        pod.node_name = Some(Arc::from(node));
        pod.phase = PodPhase::Running;
        pod.meta.annotations = texts(annotations.iter().copied());
        pod.meta.owners.push(owner);
        Change::Pod(pod.meta.name.clone(), Some(Arc::new(pod)))
    }

    fn cluster(pods: impl IntoIterator<Item = Change>) -> ClusterSnapshot {
        let mut snapshot = ClusterSnapshot::default();
        pods.into_iter().for_each(|pod| snapshot.apply(pod));
        snapshot
    }

    fn shown(effects: &[Effect]) -> Vec<String> {
        let show = |effect: &Effect| match effect {
            Effect::PatchPod(pod, meta) => {
                let cost = &meta.annotations[annotation::POD_DELETION_COST];
                format!("{} {}", pod.name.name, cost.as_deref().unwrap_or("-"))
            }
            other => format!("{other:?}"),
        };
        effects.iter().map(show).collect()
    }

    fn cost(node: &str, cost: Cost) -> NodeCost {
        NodeCost { node: Arc::from(node), pool: Some(Arc::from("p")), cost }
    }

    const WRITTEN: &str = annotation::POD_DELETION_COST;
    const OURS: &str = annotation::OUR_COST;

    #[test]
    fn what_a_person_has_written_is_left_alone() {
        let snapshot = cluster([
            pod("fresh", "a", &[]),
            pod("ours", "a", &[(WRITTEN, "-7"), (OURS, "-7")]),
            pod("right", "a", &[(WRITTEN, "-1"), (OURS, "-1")]),
            pod("theirs", "a", &[(WRITTEN, "5")]),
            pod("changed", "a", &[(WRITTEN, "5"), (OURS, "-1")]),
        ]);
        let now = Timestamp::UNIX_EPOCH;
        let mut costs = PodCosts::default();
        let effects = costs.write(vec![cost("a", Cost::Normal(-1))], &snapshot, now);
        assert_eq!(shown(&effects), ["fresh -1", "ours -1"]);
        let effects = costs.write(vec![cost("a", Cost::None)], &snapshot, now);
        assert_eq!(shown(&effects), ["ours -", "right -"]);
        assert_eq!(shown(&costs.clean(&snapshot, now)), ["ours -", "right -"], "the gate is off: what is left goes");
    }

    /// D11: fifty nodes at once, besides those that go.
    #[test]
    fn the_rest_waits_a_minute() {
        let names: Vec<String> = (0..60).map(|at| format!("n{at:02}")).collect();
        let snapshot = cluster(names.iter().map(|name| pod(name, name, &[])));
        let all = |own| names.iter().map(|name| cost(name, own)).collect::<Vec<_>>();
        let mut costs = PodCosts::default();
        assert_eq!(costs.write(all(Cost::Normal(-1)), &snapshot, Timestamp::UNIX_EPOCH).len(), 50);
        assert_eq!(costs.pending().get("p"), Some(&10));
        assert_eq!(costs.next_due(), Timestamp::from_second(60).ok());
        assert_eq!(costs.write(all(Cost::Leaving), &snapshot, Timestamp::UNIX_EPOCH).len(), 60);
        assert_eq!(costs.next_due(), None);
        // In the order that they come in: what stays is written last.
        let drifted_last = names.iter().enumerate().map(|(at, name)| match at {
            0..20 => cost(name, Cost::Drifted(-2)),
            20..40 => cost(name, Cost::Normal(-1)),
            _ => cost(name, Cost::None),
        });
        let ours = cluster(names.iter().map(|name| pod(name, name, &[(WRITTEN, "-9"), (OURS, "-9")])));
        let effects = costs.write(drifted_last.collect(), &ours, Timestamp::UNIX_EPOCH);
        let last: Vec<_> = shown(&effects)[38..42].to_vec();
        assert_eq!(last, ["n38 -1", "n39 -1", "n40 -", "n41 -"]);
        assert_eq!((effects.len(), costs.pending().get("p")), (50, Some(&10)));
    }

    /// Seen on a real API server: a pod whose status was written at the same moment kept our cost for ever.
    #[test]
    fn what_is_left_of_our_costs_is_taken_away_until_nothing_is() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let ours = cluster([pod("x", "a", &[(WRITTEN, "-1"), (OURS, "-1")])]);
        let mut costs = PodCosts::default();
        assert_eq!(shown(&costs.clean(&ours, at(0))), ["x -"]);
        assert_eq!(costs.next_due(), Some(at(60)));
        assert!(costs.clean(&cluster([pod("x", "a", &[])]), at(60)).is_empty());
        assert_eq!(costs.next_due(), None);
    }

    /// D11: not more often than every minute, and only if something has changed.
    #[test]
    fn costs_are_looked_at_every_minute_while_something_changes() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let snapshot = cluster([pod("x", "a", &[])]);
        let mut costs = PodCosts::default();
        assert_eq!(costs.next_due(), Some(Timestamp::MIN));
        costs.write(vec![cost("a", Cost::Normal(-1))], &snapshot, at(0));
        assert_eq!(costs.next_due(), None);
        costs.touch();
        assert_eq!(costs.next_due(), Some(at(60)));
    }
}
