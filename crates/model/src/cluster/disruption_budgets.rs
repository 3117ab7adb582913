//! Which PodDisruptionBudgets select a pod.

use std::collections::BTreeMap;

use super::{DisruptionBudget, Pod};
use crate::selector::Selector;
use crate::snapshot::ClusterSnapshot;

/// All PodDisruptionBudgets of a cluster, found by what they select. A round asks for each pod several times, and clusters
/// have hundreds of budgets in one namespace.
#[derive(Debug, Default)]
pub struct DisruptionBudgets<'a> {
    by_namespace: BTreeMap<&'a str, OfNamespace<'a>>,
}

#[derive(Debug, Default)]
struct OfNamespace<'a> {
    /// Each by one label that all its pods have.
    by_label: BTreeMap<(&'a str, &'a str), Vec<&'a DisruptionBudget>>,
    /// Those without one.
    others: Vec<&'a DisruptionBudget>,
}

impl<'a> DisruptionBudgets<'a> {
    pub fn of(snapshot: &'a ClusterSnapshot) -> Self {
        // Budgets of one product share a label and differ in another: the rarest tells most.
        let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for label in snapshot.disruption_budgets().flat_map(|budget| required_labels(budget)) {
            *counts.entry(label).or_default() += 1;
        }
        let mut by_namespace: BTreeMap<&str, OfNamespace<'_>> = BTreeMap::new();
        for budget in snapshot.disruption_budgets() {
            let of_namespace = by_namespace.entry(&budget.meta.name.namespace).or_default();
            let rarest = required_labels(budget).min_by_key(|label| (counts.get(label).copied(), *label));
            match rarest {
                Some(label) => of_namespace.by_label.entry(label).or_default().push(budget),
                None => of_namespace.others.push(budget),
            }
        }
        Self { by_namespace }
    }

    /// By name.
    pub fn selecting(&self, pod: &Pod) -> Vec<&'a DisruptionBudget> {
        let Some(of_namespace) = self.by_namespace.get(&*pod.meta.name.namespace) else { return Vec::new() };
        let labels = pod.meta.labels.iter().map(|(key, value)| (&**key, &**value));
        let by_label = labels.filter_map(|label| of_namespace.by_label.get(&label)).flatten();
        let all = by_label.chain(&of_namespace.others).copied();
        let mut selecting: Vec<_> = all.filter(|budget| budget.selects(pod)).collect();
        selecting.sort_by(|a, b| a.meta.name.cmp(&b.meta.name));
        selecting
    }
}

fn required_labels(budget: &DisruptionBudget) -> impl Iterator<Item = (&str, &str)> {
    let labels = budget.selector.iter().flat_map(Selector::required_labels);
    labels.map(|(key, value)| (&**key, &**value))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::change::Change;
    use crate::cluster::{DoNotDisrupt, ObjectMeta, ObjectName, PodPhase, Texts};
    use crate::requirement::{Expression, Operator};
    use crate::resources::ResourceList;

    fn meta(namespace: &str, name: &str, labels: &[(&str, &str)]) -> ObjectMeta {
        ObjectMeta {
            name: ObjectName::new(namespace, name),
            uid: Arc::from(name),
            resource_version: Arc::from("1"),
            generation: 1,
            created: Timestamp::UNIX_EPOCH,
            deleting: None,
            labels: labels.iter().map(|(key, value)| (Arc::from(*key), Arc::from(*value))).collect(),
            annotations: Texts::new(),
            finalizers: Vec::new(),
            owners: Vec::new(),
        }
    }

    fn pod(namespace: &str, labels: &[(&str, &str)]) -> Pod {
        Pod {
            meta: meta(namespace, "w", labels),
            node_name: None,
            phase: PodPhase::Running,
            requests: ResourceList::new(),
            constraints: Arc::default(),
            volumes: Vec::new(),
            priority: 0,
            priority_class: None,
            unschedulable: false,
            nominated_node: None,
            do_not_disrupt: DoNotDisrupt::No,
            started: None,
            is_unready: false,
            termination_grace: None,
            uses_resource_claims: false,
        }
    }

    #[test]
    fn the_budgets_of_a_pod_are_those_that_select_it_whatever_they_ask_for() {
        let either = Expression::new("app", Operator::In, ["a", "b"]);
        let other = Expression::new("tier", Operator::NotIn, ["back"]);
        let budgets: [(&str, &str, Option<Selector>); 9] = [
            ("n", "z-app-a", Some(Selector::new([("app", "a")], []).unwrap())),
            ("n", "app-b", Some(Selector::new([("app", "b")], []).unwrap())),
            ("n", "product-a", Some(Selector::new([("part-of", "x"), ("app", "a")], []).unwrap())),
            ("n", "product-c", Some(Selector::new([("part-of", "x"), ("app", "c")], []).unwrap())),
            ("n", "either", Some(Selector::new([], [&either]).unwrap())),
            ("n", "either-of-x", Some(Selector::new([("part-of", "x")], [&either, &other]).unwrap())),
            ("n", "everything", Some(Selector::default())),
            ("n", "nothing", None),
            ("m", "app-a", Some(Selector::new([("app", "a")], []).unwrap())),
        ];
        let mut snapshot = ClusterSnapshot::default();
        for (namespace, name, selector) in budgets {
            let meta = meta(namespace, name, &[]);
            let (never_allows, always_allows_unhealthy) = (false, false);
            let budget =
                DisruptionBudget { meta, selector, disruptions_allowed: 1, never_allows, always_allows_unhealthy };
            snapshot.apply(Change::DisruptionBudget(budget.meta.name.clone(), Some(Arc::new(budget))));
        }
        let all = DisruptionBudgets::of(&snapshot);
        let mut found = 0;
        for namespace in ["n", "m", "o"] {
            for app in ["a", "b", "c", "d"] {
                for more in [&[][..], &[("part-of", "x")], &[("part-of", "x"), ("tier", "back")]] {
                    let pod = pod(namespace, &[&[("app", app)], more].concat());
                    let one_by_one: Vec<&DisruptionBudget> =
                        snapshot.disruption_budgets().map(AsRef::as_ref).filter(|it| it.selects(&pod)).collect();
                    let selecting = all.selecting(&pod);
                    found += selecting.len();
                    assert_eq!(selecting, one_by_one, "{:?}", pod.meta.labels);
                }
            }
        }
        assert_eq!(found, 33);
    }
}
