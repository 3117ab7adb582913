//! What a disruption costs the workloads: plain numbers that only rank.

use std::sync::Arc;

use jiff::Timestamp;

use super::{NodeClaim, Pod};
use crate::duration::NillableDuration;
use crate::label::annotation;

/// 2^27 of deletion cost weigh as much as one pod, and 2^25 of priority (sheet 03 §5).
const PER_DELETION_COST: f64 = 134_217_728.0;
const PER_PRIORITY: f64 = 33_554_432.0;
const MOST: f64 = 10.0;

/// What the gate `PodDeletionCostManagement` writes on pods of nodes that go. Left over, it would make a busy node
/// look empty, so that it counts as no value (sheet 08 D11).
const LEFT_OVER: i32 = i32::MIN;

/// What evicting one pod costs, from -10 to 10; 1 for a plain pod. With the gate `PodDeletionCostManagement` what stands in
/// Kubernetes' own annotation is ours, and says nothing about the pod.
fn eviction_cost(pod: &Pod, deletion_cost_is_ours: bool) -> f64 {
    let deletion_cost = deletion_cost(pod, deletion_cost_is_ours).map_or(0.0, f64::from);
    let cost = 1.0 + deletion_cost / PER_DELETION_COST + f64::from(pod.priority) / PER_PRIORITY;
    cost.clamp(-MOST, MOST)
}

/// Our annotation if it is there, even if nobody can read it; else Kubernetes' one, unless we write that ourselves.
fn deletion_cost(pod: &Pod, deletion_cost_is_ours: bool) -> Option<i32> {
    match (pod.meta.annotation(annotation::DISRUPTION_COST), deletion_cost_is_ours) {
        (Some(text), _) => text.parse().ok(),
        (None, true) => None,
        (None, false) => {
            let text = pod.meta.annotation(annotation::POD_DELETION_COST)?;
            text.parse().ok().filter(|cost| *cost != LEFT_OVER)
        }
    }
}

/// What moving the pods of a node costs: one for the node, and what each pod that must move costs, if anything.
pub fn reschedule_cost<'p>(pods: impl IntoIterator<Item = &'p Arc<Pod>>, deletion_cost_is_ours: bool) -> f64 {
    let moving = pods.into_iter().filter(|pod| pod.is_reschedulable());
    1.0 + moving.map(|pod| eviction_cost(pod, deletion_cost_is_ours).max(0.0)).sum::<f64>()
}

/// What ending a node costs all its pods, daemons too: less, the less of its life it has left.
pub fn disruption_cost<'p>(
    claim: &NodeClaim,
    pods: impl IntoIterator<Item = &'p Arc<Pod>>,
    deletion_cost_is_ours: bool,
    now: Timestamp,
) -> f64 {
    let pods = pods.into_iter().map(|pod| eviction_cost(pod, deletion_cost_is_ours));
    pods.sum::<f64>() * lifetime_left(claim, now)
}

/// How much of its life a claim has left, from 1 to 0. A node that expires soon costs its pods a move anyway.
pub fn lifetime_left(claim: &NodeClaim, now: Timestamp) -> f64 {
    let NillableDuration::After(life) = claim.node.expire_after else { return 1.0 };
    if life.as_nanos() <= 0 {
        return 0.0;
    }
    let age = now.duration_since(claim.meta.created).as_secs_f64();
    let life = life.as_nanos() as f64 / 1e9;
    ((life - age) / life).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{DoNotDisrupt, ObjectMeta, ObjectName, PodPhase, Texts};

    fn cost(annotations: &[(&str, &str)], priority: i32, ours: bool) -> f64 {
        let meta = ObjectMeta {
            name: ObjectName::new("default", "x"),
            uid: Arc::from("x"),
            resource_version: Arc::from("1"),
            generation: 1,
            created: Timestamp::UNIX_EPOCH,
            deleting: None,
            labels: Texts::new(),
            annotations: annotations.iter().map(|(key, value)| (Arc::from(*key), Arc::from(*value))).collect(),
            finalizers: Vec::new(),
            owners: Vec::new(),
        };
        let pod = Pod {
            meta,
            node_name: None,
            phase: PodPhase::Running,
            requests: Default::default(),
            constraints: Default::default(),
            volumes: Vec::new(),
            priority,
            priority_class: None,
            unschedulable: false,
            nominated_node: None,
            do_not_disrupt: DoNotDisrupt::No,
            started: None,
            is_unready: false,
            termination_grace: None,
            uses_resource_claims: false,
        };
        eviction_cost(&pod, ours)
    }

    const OWN: &str = annotation::DISRUPTION_COST;
    const OTHER: &str = annotation::POD_DELETION_COST;

    /// The vectors of sheet 08 D10, and of sheet 03 §5 (case 24).
    #[test]
    fn case_24_and_d10_what_an_eviction_costs() {
        for (annotations, expected) in [
            (&[][..], 1.0),
            (&[(OTHER, "1.5")], 1.0),
            (&[(OTHER, "134217728")], 2.0),
            (&[(OTHER, "-134217728")], 0.0),
            (&[(OTHER, "2147483647")], 10.0),
            (&[(OTHER, "2147483648")], 1.0),
            (&[(OWN, "134217728")], 2.0),
            (&[(OWN, "-2147483648")], -10.0),
            (&[(OWN, "bad"), (OTHER, "134217728")], 1.0),
            (&[(OWN, "0"), (OTHER, "134217728")], 1.0),
        ] {
            assert!((cost(annotations, 0, false) - expected).abs() < 1e-6, "{annotations:?}");
        }
        assert_eq!(cost(&[(OTHER, "134217728")], 0, true), 1.0, "with the gate on it is ours");
        assert_eq!(cost(&[(OWN, "134217728"), (OTHER, "0")], 0, true), 2.0, "a person's own counts always");
        assert_eq!(cost(&[(OTHER, "-2147483648")], 0, false), 1.0, "left over from the gate");
        assert_eq!(cost(&[], 1_000_000_000, false), 10.0);
        assert_eq!(cost(&[], -33_554_432, false), 0.0);
    }

    #[test]
    fn case_24_more_deletion_cost_and_more_priority_never_cost_less() {
        let steps = || (i32::MIN..=i32::MAX).step_by(1 << 24);
        let by_cost = steps().skip(1).map(|value| cost(&[(OTHER, &value.to_string())], 0, false));
        let by_priority = steps().map(|value| cost(&[], value, false));
        assert!(by_cost.is_sorted() && by_priority.is_sorted());
    }
}
