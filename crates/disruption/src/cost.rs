//! What a disruption costs the workloads: plain numbers that only rank.

use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::{NodeClaim, Pod};
use kerf_model::duration::NillableDuration;
use kerf_model::label::annotation;

/// 2^27 of deletion cost weigh as much as one pod, and 2^25 of priority (sheet 03 §5).
const PER_DELETION_COST: f64 = 134_217_728.0;
const PER_PRIORITY: f64 = 33_554_432.0;
const MOST: f64 = 10.0;

/// What [`PodDeletionCostManagement`](crate::Gates) writes on pods of nodes that go. Left over, it would make a busy node
/// look empty, so that it counts as no value (sheet 08 D11).
const LEFT_OVER: i32 = i32::MIN;

/// What evicting one pod costs, from -10 to 10; 1 for a plain pod.
pub(crate) fn eviction_cost(pod: &Pod, deletion_cost_is_ours: bool) -> f64 {
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
pub(crate) fn reschedule_cost<'p>(pods: impl IntoIterator<Item = &'p Arc<Pod>>, deletion_cost_is_ours: bool) -> f64 {
    let moving = pods.into_iter().filter(|pod| pod.is_reschedulable());
    1.0 + moving.map(|pod| eviction_cost(pod, deletion_cost_is_ours).max(0.0)).sum::<f64>()
}

/// How much of its life a claim has left, from 1 to 0. A node that expires soon costs its pods a move anyway.
pub(crate) fn lifetime_left(claim: &NodeClaim, now: Timestamp) -> f64 {
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
    use kerf_model::cluster::{DoNotDisrupt, ObjectMeta, ObjectName, PodPhase, Texts};

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
        assert_eq!(cost(&[(OTHER, "-2147483648")], 0, false), 1.0, "left over from the gate");
        assert_eq!(cost(&[], 1_000_000_000, false), 10.0);
        assert_eq!(cost(&[], -33_554_432, false), 0.0);
    }
}
