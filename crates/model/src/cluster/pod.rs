//! Pods.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::ObjectMeta;
use crate::duration::GoDuration;
use crate::requirement::Expression;
use crate::resources::ResourceList;
use crate::selector::Selector;
use crate::taint::{Taint, Toleration, tolerates};

#[derive(Debug, Clone, PartialEq)]
pub struct Pod {
    pub meta: ObjectMeta,
    pub node_name: Option<Arc<str>>,
    pub phase: PodPhase,
    /// What the scheduler counts: containers, sidecars, init containers, overhead, and `pods: 1`.
    pub requests: ResourceList,
    pub constraints: Arc<PodConstraints>,
    pub volumes: Vec<PodVolume>,
    pub priority: i32,
    pub priority_class: Option<Arc<str>>,
    /// The scheduler has tried, and found no place.
    pub unschedulable: bool,
    /// A victim is being evicted for it on this node.
    pub nominated_node: Option<Arc<str>>,
    pub do_not_disrupt: DoNotDisrupt,
    pub started: Option<Timestamp>,
    /// Its condition `Ready` is `False`. A pod that has no such condition yet is not called unready.
    pub is_unready: bool,
    pub termination_grace: Option<SignedDuration>,
    /// Asks for devices through resource claims.
    pub uses_resource_claims: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodPhase {
    Pending,
    Running,
    Succeeded,
    Failed,
    Unknown,
}

/// The annotation `karpenter.sh/do-not-disrupt`, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoNotDisrupt {
    No,
    Always,
    /// From the pod's start.
    For(GoDuration),
    /// A value that says nothing; worth a warning.
    Invalid(Arc<str>),
}

/// Where a pod may run. Pods of one workload share it, so that work is done once per shape.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodConstraints {
    pub node_selector: Vec<(Arc<str>, Arc<str>)>,
    /// One of the terms must hold; none means no constraint.
    pub required_node_terms: Vec<Vec<Expression>>,
    pub preferred_node_terms: Vec<PreferredNodeTerm>,
    pub tolerations: Vec<Toleration>,
    pub spread: Vec<SpreadConstraint>,
    pub required_affinity: Vec<PodAffinityTerm>,
    pub preferred_affinity: Vec<WeightedPodAffinityTerm>,
    pub required_anti_affinity: Vec<PodAffinityTerm>,
    pub preferred_anti_affinity: Vec<WeightedPodAffinityTerm>,
    pub host_ports: BTreeSet<HostPort>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PreferredNodeTerm {
    pub weight: i32,
    pub expressions: Vec<Expression>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpreadConstraint {
    pub max_skew: i32,
    pub topology_key: Arc<str>,
    pub when_unsatisfiable: WhenUnsatisfiable,
    /// `None` selects nothing. Labels named by `matchLabelKeys` are already in it.
    pub selector: Option<Selector>,
    pub min_domains: Option<i32>,
    /// Count only nodes that the pod's node selector and affinity allow.
    pub honors_node_affinity: bool,
    /// Count only nodes whose taints the pod tolerates.
    pub honors_node_taints: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhenUnsatisfiable {
    DoNotSchedule,
    ScheduleAnyway,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodAffinityTerm {
    pub topology_key: Arc<str>,
    pub selector: Option<Selector>,
    /// The pod's own namespace when both are empty.
    pub namespaces: Vec<Arc<str>>,
    pub namespace_selector: Option<Selector>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WeightedPodAffinityTerm {
    pub weight: i32,
    pub term: PodAffinityTerm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// Unspecified addresses stand for all.
    pub ip: IpAddr,
    pub protocol: Protocol,
    pub port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

/// A volume that goes through a claim.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodVolume {
    /// In the pod's namespace.
    pub claim: Arc<str>,
}

impl Pod {
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Neither terminal nor on its way out.
    pub fn is_active(&self) -> bool {
        !self.is_terminal() && !self.meta.is_deleting()
    }

    pub fn is_of_daemon_set(&self) -> bool {
        self.meta.is_owned_by("apps/v1", "DaemonSet")
    }

    /// A static pod of the kubelet; the API only mirrors it.
    pub fn is_mirror(&self) -> bool {
        self.meta.is_owned_by("v1", "Node")
    }

    /// Waits for a place that only a new node can give (upstream's `IsProvisionable`).
    pub fn is_provisionable(&self) -> bool {
        self.unschedulable
            && self.node_name.is_none()
            && self.nominated_node.is_none()
            && self.is_active()
            && !self.is_of_daemon_set()
            && !self.is_mirror()
    }

    /// Would have to run elsewhere if its node went (upstream's `IsReschedulable`): stateful pods come back under their
    /// name, so even a terminating one needs its place.
    pub fn is_reschedulable(&self) -> bool {
        let comes_back =
            self.meta.is_deleting() && !self.is_terminal() && self.meta.is_owned_by("apps/v1", "StatefulSet");
        (self.is_active() || comes_back) && !self.is_of_daemon_set() && !self.is_mirror()
    }

    pub fn tolerates_disruption(&self) -> bool {
        tolerates(&[Taint::disrupted()], &self.constraints.tolerations).is_ok()
    }

    /// Whether its owner protects it now.
    pub fn is_protected(&self, now: Timestamp) -> bool {
        self.protected_until(now).is_some()
    }

    /// Until when its owner protects it; [`Timestamp::MAX`] for ever. `None` if not protected (any more).
    pub fn protected_until(&self, now: Timestamp) -> Option<Timestamp> {
        match (&self.do_not_disrupt, self.started) {
            (DoNotDisrupt::No | DoNotDisrupt::Invalid(_), _) => None,
            (DoNotDisrupt::Always, _) | (DoNotDisrupt::For(_), None) => Some(Timestamp::MAX),
            (DoNotDisrupt::For(duration), Some(started)) => {
                let end = started.checked_add(SignedDuration::from(*duration)).unwrap_or(Timestamp::MAX);
                (now < end).then_some(end)
            }
        }
    }
}

impl DoNotDisrupt {
    /// From the annotation's value. `do-not-evict: "true"` of older APIs means `Always`.
    pub fn read(value: Option<&str>) -> Self {
        match value {
            None => Self::No,
            Some("true") => Self::Always,
            Some(text) => match text.parse::<GoDuration>() {
                Ok(duration) if duration > GoDuration::ZERO => Self::For(duration),
                Ok(_) | Err(_) => Self::Invalid(Arc::from(text)),
            },
        }
    }
}

impl HostPort {
    /// Whether two pods with these ports cannot share a node.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let same_address = self.ip == other.ip || self.ip.is_unspecified() || other.ip.is_unspecified();
        self.port == other.port && self.protocol == other.protocol && same_address
    }
}
