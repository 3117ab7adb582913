//! Whether a node can take a pod, as far as node and pod alone decide it.

use std::fmt;

use kerf_model::cluster::ObjectName;
use kerf_model::taint::{Effect, Taint};

use super::node::NodeState;
use crate::store::{Kind, Object, Store};
use crate::world::pod_reading::{PodView, volume_allows};

/// Why a pod does not fit a node. The texts are kube-scheduler's: people search for them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unfit {
    Cordoned,
    Placement,
    Taint(Taint),
    Ports,
    Resource(String),
    TooManyPods,
    VolumePlace,
    Spread,
    SpreadLabel,
    Affinity,
    AntiAffinity,
    AntiAffinityOfOthers,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cordoned => f.write_str("node(s) were unschedulable"),
            Self::Placement => f.write_str("node(s) didn't match Pod's node affinity/selector"),
            Self::Taint(taint) => write!(f, "node(s) had untolerated taint {{{}: {}}}", taint.key, taint.value),
            Self::Ports => f.write_str("node(s) didn't have free ports for the requested pod ports"),
            Self::Resource(name) => write!(f, "Insufficient {name}"),
            Self::TooManyPods => f.write_str("Too many pods"),
            Self::VolumePlace => f.write_str("node(s) had volume node affinity conflict"),
            Self::Spread => f.write_str("node(s) didn't match pod topology spread constraints"),
            Self::SpreadLabel => {
                f.write_str("node(s) didn't match pod topology spread constraints (missing required label)")
            }
            Self::Affinity => f.write_str("node(s) didn't match pod affinity rules"),
            Self::AntiAffinity => f.write_str("node(s) didn't match pod anti-affinity rules"),
            Self::AntiAffinityOfOthers => f.write_str("node(s) didn't satisfy existing pods anti-affinity rules"),
        }
    }
}

/// In kube-scheduler's order, so that the first reason is the one it would name.
pub fn check(pod: &PodView, name: &str, node: &NodeState, volumes: &[Object]) -> Result<(), Unfit> {
    if node.is_cordoned && !tolerates(pod, &cordon()) {
        return Err(Unfit::Cordoned);
    }
    if let Some(taint) =
        node.taints.iter().find(|taint| taint.effect != Effect::PreferNoSchedule && !tolerates(pod, taint))
    {
        return Err(Unfit::Taint(taint.clone()));
    }
    if !pod.placement.allows(name, &node.labels) {
        return Err(Unfit::Placement);
    }
    if pod.ports.iter().any(|port| node.ports.iter().any(|taken| port.conflicts_with(taken))) {
        return Err(Unfit::Ports);
    }
    for (resource, amount) in pod.requests.iter() {
        let (used, total) = (node.used.amount(resource.as_str()), node.allocatable.amount(resource.as_str()));
        let fits = amount.is_zero() || used.checked_add(amount).is_some_and(|sum| sum <= total);
        if !fits {
            return Err(match resource.as_str() {
                "pods" => Unfit::TooManyPods,
                other => Unfit::Resource(other.to_owned()),
            });
        }
    }
    match volumes.iter().all(|volume| volume_allows(volume, name, &node.labels)) {
        true => Ok(()),
        false => Err(Unfit::VolumePlace),
    }
}

pub fn tolerates(pod: &PodView, taint: &Taint) -> bool {
    pod.tolerations.iter().any(|toleration| toleration.covers(taint))
}

fn cordon() -> Taint {
    Taint::new("node.kubernetes.io/unschedulable", "", Effect::NoSchedule)
}

/// The volumes that a pod's claims are bound to.
///
/// # Errors
/// A claim that must be there or bound before any node is looked at.
pub fn volumes_of(store: &Store, pod: &PodView) -> Result<Vec<Object>, String> {
    let mut volumes = Vec::new();
    for name in &pod.claims {
        let claim = store.get(Kind::PersistentVolumeClaim, &ObjectName::new(pod.name.namespace.clone(), name.as_str()));
        let Ok(claim) = claim else { return Err(format!("persistentvolumeclaim \"{name}\" not found")) };
        match claim.text(&["spec", "volumeName"]) {
            Some(volume) => {
                volumes.extend(store.get(Kind::PersistentVolume, &ObjectName::of_cluster(volume)).ok().cloned());
            }
            None if waits_for_consumer(store, claim) => {}
            None => return Err("pod has unbound immediate PersistentVolumeClaims".to_owned()),
        }
    }
    Ok(volumes)
}

fn waits_for_consumer(store: &Store, claim: &Object) -> bool {
    let class = claim.text(&["spec", "storageClassName"]).map(ObjectName::of_cluster);
    let class = class.and_then(|class| store.get(Kind::StorageClass, &class).ok());
    class.is_some_and(|class| class.text(&["volumeBindingMode"]) == Some("WaitForFirstConsumer"))
}
