//! Where a pod may run.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    NodeAffinity, PodAffinityTerm as WireAffinityTerm, Toleration as WireToleration, TopologySpreadConstraint,
    WeightedPodAffinityTerm as WireWeightedTerm,
};
use kerf_model::cluster::{
    HostPort, PodAffinityTerm, PodConstraints, PreferredNodeTerm, Protocol, SpreadConstraint, WeightedPodAffinityTerm,
    WhenUnsatisfiable,
};
use kerf_model::requirement::{Expression, Operator};
use kerf_model::taint::{ToleratedValue, Toleration};

use crate::slim::{SlimPodSpec, SlimPort};

use super::super::labels::{node_term, node_terms, selector, selector_with};
use super::super::problem::{Collector, Violation};
use super::requests::is_sidecar;

type Labels = BTreeMap<String, String>;

/// `labels` are the pod's own: spread constraints and affinities may refer to them by key.
pub fn constraints(spec: &SlimPodSpec, labels: Option<&Labels>, problems: &mut Collector) -> PodConstraints {
    let mut constraints = PodConstraints {
        node_selector: spec.node_selector.iter().map(|(key, value)| (shared(key), shared(value))).collect(),
        tolerations: spec.tolerations.iter().filter_map(toleration).collect(),
        host_ports: host_ports(spec, problems),
        ..PodConstraints::default()
    };
    for (index, wire) in spec.topology_spread_constraints.iter().enumerate() {
        let field = format!("spec.topologySpreadConstraints[{index}]");
        constraints.spread.extend(spread(&field, wire, labels, problems));
    }
    let Some(affinity) = &spec.affinity else {
        return constraints;
    };
    if let Some(wire) = &affinity.node_affinity {
        node_affinity(wire, &mut constraints, problems);
    }
    if let Some(wire) = &affinity.pod_affinity {
        let mut reader = Terms { path: "spec.affinity.podAffinity", labels, problems };
        constraints.required_affinity =
            reader.required(wire.required_during_scheduling_ignored_during_execution.as_deref());
        constraints.preferred_affinity =
            reader.preferred(wire.preferred_during_scheduling_ignored_during_execution.as_deref());
    }
    if let Some(wire) = &affinity.pod_anti_affinity {
        let mut reader = Terms { path: "spec.affinity.podAntiAffinity", labels, problems };
        constraints.required_anti_affinity =
            reader.required(wire.required_during_scheduling_ignored_during_execution.as_deref());
        constraints.preferred_anti_affinity =
            reader.preferred(wire.preferred_during_scheduling_ignored_during_execution.as_deref());
    }
    constraints
}

fn shared(text: &str) -> Arc<str> {
    Arc::from(text)
}

fn node_affinity(wire: &NodeAffinity, constraints: &mut PodConstraints, problems: &mut Collector) {
    const PATH: &str = "spec.affinity.nodeAffinity";
    if let Some(required) = &wire.required_during_scheduling_ignored_during_execution {
        let field = format!("{PATH}.requiredDuringSchedulingIgnoredDuringExecution");
        constraints.required_node_terms = node_terms(&field, &required.node_selector_terms, problems);
    }
    let preferred = wire.preferred_during_scheduling_ignored_during_execution.iter().flatten().enumerate();
    let preferred = preferred.map(|(index, wire)| {
        let field = format!("{PATH}.preferredDuringSchedulingIgnoredDuringExecution[{index}].preference");
        PreferredNodeTerm { weight: wire.weight, expressions: node_term(&field, &wire.preference, problems) }
    });
    // A preference without expressions prefers nothing.
    constraints.preferred_node_terms = preferred.filter(|term| !term.expressions.is_empty()).collect();
}

/// `None` for a toleration of an operator or effect that Kubernetes does not know: it tolerates nothing.
fn toleration(wire: &WireToleration) -> Option<Toleration> {
    let value = wire.value.as_deref().unwrap_or_default();
    let value = match wire.operator.as_deref() {
        None | Some("" | "Equal") => ToleratedValue::Equal(shared(value)),
        Some("Exists") => ToleratedValue::Any,
        Some("Lt") => ToleratedValue::below(value),
        Some("Gt") => ToleratedValue::above(value),
        Some(_) => return None,
    };
    let effect = match wire.effect.as_deref() {
        None | Some("") => None,
        Some(effect) => Some(effect.parse().ok()?),
    };
    Some(Toleration { key: wire.key.as_deref().filter(|key| !key.is_empty()).map(shared), effect, value })
}

fn spread(
    field: &str,
    wire: &TopologySpreadConstraint,
    labels: Option<&Labels>,
    problems: &mut Collector,
) -> Option<SpreadConstraint> {
    let when_unsatisfiable = match wire.when_unsatisfiable.as_str() {
        "DoNotSchedule" => WhenUnsatisfiable::DoNotSchedule,
        "ScheduleAnyway" => WhenUnsatisfiable::ScheduleAnyway,
        other => {
            problems.refuse(format!("{field}.whenUnsatisfiable"), Violation::Unknown(other.to_owned()));
            return None;
        }
    };
    let keys = same_labels(wire.match_label_keys.as_deref(), labels, Operator::In);
    let field = format!("{field}.labelSelector");
    Some(SpreadConstraint {
        max_skew: wire.max_skew,
        topology_key: shared(&wire.topology_key),
        when_unsatisfiable,
        selector: wire.label_selector.as_ref().and_then(|wire| selector_with(&field, wire, &keys, problems)),
        min_domains: wire.min_domains,
        honors_node_affinity: wire.node_affinity_policy.as_deref() != Some("Ignore"),
        honors_node_taints: wire.node_taints_policy.as_deref() == Some("Honor"),
    })
}

/// What keys of the pod's own labels stand for. A key that the pod does not have is ignored (sheet 02, case 57).
fn same_labels(keys: Option<&[String]>, labels: Option<&Labels>, operator: Operator) -> Vec<Expression> {
    let value = |key: &String| labels.and_then(|labels| labels.get(key));
    let keys = keys.unwrap_or_default().iter();
    keys.filter_map(|key| value(key).map(|value| Expression::new(key, operator, [value]))).collect()
}

/// Reads the terms of an affinity or anti-affinity.
struct Terms<'a> {
    path: &'static str,
    labels: Option<&'a Labels>,
    problems: &'a mut Collector,
}

impl Terms<'_> {
    fn required(&mut self, wire: Option<&[WireAffinityTerm]>) -> Vec<PodAffinityTerm> {
        let terms = wire.unwrap_or_default().iter().enumerate();
        terms.map(|(index, wire)| self.term(format_args!("required{ALWAYS}[{index}]"), wire)).collect()
    }

    fn preferred(&mut self, wire: Option<&[WireWeightedTerm]>) -> Vec<WeightedPodAffinityTerm> {
        let terms = wire.unwrap_or_default().iter().enumerate();
        let weighted = terms.map(|(index, wire)| WeightedPodAffinityTerm {
            weight: wire.weight,
            term: self.term(format_args!("preferred{ALWAYS}[{index}].podAffinityTerm"), &wire.pod_affinity_term),
        });
        weighted.collect()
    }

    fn term(&mut self, field: std::fmt::Arguments<'_>, wire: &WireAffinityTerm) -> PodAffinityTerm {
        let field = format!("{}.{field}", self.path);
        let mut keys = same_labels(wire.match_label_keys.as_deref(), self.labels, Operator::In);
        keys.extend(same_labels(wire.mismatch_label_keys.as_deref(), self.labels, Operator::NotIn));
        let own = wire.label_selector.as_ref();
        let others = wire.namespace_selector.as_ref();
        PodAffinityTerm {
            topology_key: shared(&wire.topology_key),
            selector: own.and_then(|wire| selector_with(&format!("{field}.labelSelector"), wire, &keys, self.problems)),
            namespaces: wire.namespaces.iter().flatten().map(|name| shared(name)).collect(),
            namespace_selector: others
                .and_then(|wire| selector(&format!("{field}.namespaceSelector"), wire, self.problems)),
        }
    }
}

const ALWAYS: &str = "DuringSchedulingIgnoredDuringExecution";

/// Ports that the pod takes on its node. Sidecars keep theirs, as in kube-scheduler; upstream overlooks them, and makes
/// nodes that the pod is then not placed on. Other init containers come one at a time and count in neither.
fn host_ports(spec: &SlimPodSpec, problems: &mut Collector) -> BTreeSet<HostPort> {
    let sidecars = spec.init_containers.iter().filter(|container| is_sidecar(container));
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
    ports.filter(|port| port.host_port != 0).filter_map(|port| host_port(port, problems)).collect()
}

fn host_port(wire: &SlimPort, problems: &mut Collector) -> Option<HostPort> {
    const FIELD: &str = "spec.containers[].ports[]";
    let port = u16::try_from(wire.host_port).map_err(|_| i64::from(wire.host_port));
    let port = problems.take(&format!("{FIELD}.hostPort"), port, Violation::OutOfRange)?;
    let protocol = match wire.protocol.as_str() {
        "" | "TCP" => Protocol::Tcp,
        "UDP" => Protocol::Udp,
        "SCTP" => Protocol::Sctp,
        other => {
            problems.refuse(format!("{FIELD}.protocol"), Violation::Unknown(other.to_owned()));
            return None;
        }
    };
    let ip = match wire.host_ip.as_str() {
        "" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        text => {
            let address = text.parse().map_err(|_| text.to_owned());
            problems.take(&format!("{FIELD}.hostIP"), address, Violation::Unknown)?
        }
    };
    Some(HostPort { ip, protocol, port })
}
