//! What a pod asks for, as kube-scheduler counts it (`PodRequests` of k8s.io/component-helpers, KEP-753 and KEP-1287).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use kerf_model::quantity::{Notation, Quantity};
use kerf_model::resources::{ResourceList, ResourceName};

use crate::slim::{SlimContainer, SlimContainerStatus, SlimPodSpec, SlimPodStatus};

use super::super::problem::{Collector, Violation};

type Amounts = BTreeMap<String, WireQuantity>;

/// Requests of the containers, sidecars and init containers, of the pod as a whole, its overhead, and `pods: 1`.
pub fn requests(spec: &SlimPodSpec, status: &SlimPodStatus, problems: &mut Collector) -> ResourceList {
    let infeasible = status
        .conditions
        .iter()
        .any(|condition| condition.type_ == "PodResizePending" && condition.reason.as_deref() == Some("Infeasible"));
    let held = Held { status, infeasible };
    let mut requests = of_containers(spec, &held, problems);
    let own = amounts(|| "spec.resources.requests".to_owned(), &spec.resources.requests, problems);
    let as_a_whole = held.effective(own.clone(), &status.allocated_resources, &status.resources.requests, problems);
    for (name, _) in own.iter().filter(|(name, _)| is_pod_level(name)) {
        requests.insert(name.clone(), as_a_whole.amount(name.as_str()));
    }
    let overhead = amounts(|| "spec.overhead".to_owned(), &spec.overhead, problems);
    let mut requests = sum(requests, &overhead, problems);
    requests.insert(ResourceName::PODS, Quantity::from_value(1, Notation::DecimalSi));
    // Collected anew: a record keeps no spare capacity.
    requests.iter().map(|(name, amount)| (name.clone(), amount)).collect()
}

/// Containers run all at once, init containers one after another, and sidecars from their turn on: the need is the
/// largest of what runs together at any time.
fn of_containers(spec: &SlimPodSpec, held: &Held<'_>, problems: &mut Collector) -> ResourceList {
    let mut running = ResourceList::new();
    for (index, container) in spec.containers.iter().enumerate() {
        let statuses = &held.status.container_statuses;
        let own = held.with(format_args!("spec.containers[{index}]"), container, statuses, problems);
        running = sum(running, &own, problems);
    }
    let (mut sidecars, mut peak) = (ResourceList::new(), ResourceList::new());
    for (index, container) in spec.init_containers.iter().enumerate() {
        let field = format_args!("spec.initContainers[{index}]");
        let need = if is_sidecar(container) {
            let own = held.with(field, container, &held.status.init_container_statuses, problems);
            running = sum(running, &own, problems);
            sidecars = sum(sidecars, &own, problems);
            sidecars.clone()
        } else {
            let own = amounts(|| format!("{field}.resources.requests"), &container.resources.requests, problems);
            sum(own, &sidecars, problems)
        };
        peak = peak.max(&need);
    }
    running.max(&peak)
}

pub fn is_sidecar(container: &SlimContainer) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// The resources that a pod can ask for as a whole.
fn is_pod_level(name: &ResourceName) -> bool {
    *name == ResourceName::CPU || *name == ResourceName::MEMORY || name.as_str().starts_with("hugepages-")
}

/// What the kubelet has given to containers, which differs from their spec while they are resized in place.
struct Held<'a> {
    status: &'a SlimPodStatus,
    /// The resize cannot happen on this node: what is held stays held, and no more.
    infeasible: bool,
}

impl Held<'_> {
    fn with(
        &self,
        field: std::fmt::Arguments<'_>,
        container: &SlimContainer,
        statuses: &[SlimContainerStatus],
        problems: &mut Collector,
    ) -> ResourceList {
        let own = amounts(|| format!("{field}.resources.requests"), &container.resources.requests, problems);
        match statuses.iter().find(|status| status.name == container.name) {
            Some(status) => self.effective(own, &status.allocated_resources, &status.resources.requests, problems),
            None => own,
        }
    }

    fn effective(
        &self,
        own: ResourceList,
        allocated: &Amounts,
        actual: &Amounts,
        problems: &mut Collector,
    ) -> ResourceList {
        // Nothing reported yet, or a kubelet that does not.
        if allocated.is_empty() && actual.is_empty() {
            return own;
        }
        let field = |name: &'static str| move || format!("status.{name}");
        let allocated = amounts(field("allocatedResources"), allocated, problems);
        let held = allocated.max(&amounts(field("resources.requests"), actual, problems));
        if self.infeasible { held } else { own.max(&held) }
    }
}

/// Amounts by name. The field's name is only made when there is a problem: this runs for every container of a cluster.
pub fn amounts(field: impl Fn() -> String, wire: &Amounts, problems: &mut Collector) -> ResourceList {
    let mut list = ResourceList::new();
    for (name, WireQuantity(text)) in wire {
        match text.parse() {
            Ok(amount) => list.insert(ResourceName::from(name.as_str()), amount),
            Err(error) => problems.refuse(format!("{}[{name}]", field()), Violation::Quantity(error)),
        }
    }
    list
}

fn sum(left: ResourceList, right: &ResourceList, problems: &mut Collector) -> ResourceList {
    match left.plus(right) {
        Ok(sum) => sum,
        Err(error) => {
            problems.refuse("spec", Violation::TooMuch(error));
            ResourceList::new()
        }
    }
}
