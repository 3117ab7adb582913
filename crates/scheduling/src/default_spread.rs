//! Spread for pods that ask for none: the scheduler's own default constraints (`--scheduler-config`, sheet 02 §23).
//!
//! kube-scheduler gives a pod without spread constraints its defaults, with a selector deduced from what the pod belongs
//! to: the Services that select it, and the workload that controls it. Here the same is done to a copy of the pod before
//! it is placed; nothing is written to the API. A pod that belongs to nothing stays as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::cluster::{ObjectName, Pod, PodConstraints, SpreadConstraint, Texts, Workload, WorkloadKind};
use kerf_model::requirement::{Expression, Operator};
use kerf_model::selector::Selector;
use kerf_model::snapshot::ClusterSnapshot;

/// The constraints of a cluster; they have no selector of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefaultSpread {
    pub constraints: Vec<SpreadConstraint>,
}

/// What a selector is deduced from: namespace, controller, labels.
type Deduction = (Arc<str>, Option<Arc<str>>, Texts);

/// Remembers, while many pods are looked at, what those of one workload have in common.
#[derive(Debug, Default)]
struct Known {
    selectors: BTreeMap<Deduction, Option<Selector>>,
    constraints: BTreeMap<(Arc<PodConstraints>, Selector), Arc<PodConstraints>>,
}

/// Pods are as they say.
pub static NO_DEFAULT_SPREAD: DefaultSpread = DefaultSpread { constraints: Vec::new() };

impl DefaultSpread {
    pub fn is_empty(&self) -> bool {
        self.constraints.is_empty()
    }

    /// The pods with the spread that they have by default. Pods alike stay alike.
    pub fn apply(&self, pods: Vec<Arc<Pod>>, cluster: &ClusterSnapshot) -> Vec<Arc<Pod>> {
        if self.is_empty() {
            return pods;
        }
        let mut known = Known::default();
        pods.into_iter().map(|pod| self.spread(pod, cluster, &mut known)).collect()
    }

    fn spread(&self, pod: Arc<Pod>, cluster: &ClusterSnapshot, known: &mut Known) -> Arc<Pod> {
        if !pod.constraints.spread.is_empty() {
            return pod;
        }
        let owner = pod.meta.owners.iter().find(|owner| owner.controller).map(|owner| Arc::clone(&owner.uid));
        let key = (Arc::clone(&pod.meta.name.namespace), owner, pod.meta.labels.clone());
        let Some(selector) = known.selectors.entry(key).or_insert_with(|| deduced(&pod, cluster)).clone() else {
            return pod;
        };
        let constraints = known.constraints.entry((Arc::clone(&pod.constraints), selector.clone()));
        let constraints = constraints.or_insert_with(|| {
            let with_selector =
                |default: &SpreadConstraint| SpreadConstraint { selector: Some(selector.clone()), ..default.clone() };
            let spread = self.constraints.iter().map(with_selector).collect();
            Arc::new(PodConstraints { spread, ..(*pod.constraints).clone() })
        });
        let constraints = Arc::clone(constraints);
        Arc::new(Pod { constraints, ..(*pod).clone() })
    }
}

/// What tells the pod's own kind from others; `None` if it belongs to nothing.
fn deduced(pod: &Pod, cluster: &ClusterSnapshot) -> Option<Selector> {
    let mut labels = Texts::new();
    for service in cluster.services_in(&pod.meta.name.namespace) {
        let Some(selector) = service.selector.as_ref().filter(|selector| !selector.is_empty()) else { continue };
        if selector.iter().all(|(key, value)| pod.meta.label(key) == Some(value)) {
            labels.extend(selector.clone());
        }
    }
    let mut expressions = Vec::new();
    if let Some(workload) = controller(pod, cluster) {
        match workload.kind {
            // Its selector is a set of labels, and takes the place of what Services say about them.
            WorkloadKind::ReplicationController => labels.extend(workload.match_labels.clone()),
            WorkloadKind::ReplicaSet | WorkloadKind::StatefulSet => {
                let equal = |(key, value): (&Arc<str>, &Arc<str>)| Expression::new(key, Operator::In, [value]);
                expressions.extend(workload.match_labels.iter().map(equal));
                expressions.extend(workload.match_expressions.iter().cloned());
            }
            // A Deployment controls no pod itself.
            WorkloadKind::Deployment => {}
        }
    }
    if labels.is_empty() && expressions.is_empty() {
        return None;
    }
    Selector::new(labels.iter().map(|(key, value)| (&**key, &**value)), &expressions).ok()
}

fn controller<'a>(pod: &Pod, cluster: &'a ClusterSnapshot) -> Option<&'a Workload> {
    let owner = pod.meta.owners.iter().find(|owner| owner.controller)?;
    let kind = WorkloadKind::find(&owner.api_version, &owner.kind)?;
    let name = ObjectName::new(Arc::clone(&pod.meta.name.namespace), Arc::clone(&owner.name));
    cluster.workload(kind, name).map(|workload| &**workload)
}
