//! What the pods of a cluster ask for, compiled once for all questions about them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use kerf_model::cluster::{Pod, PodConstraints};
use kerf_model::label::LabelRules;
use kerf_model::resources::ResourceList;
use kerf_model::snapshot::ClusterSnapshot;

use crate::amounts::{Amounts, Lists};
use crate::bits::Bits;
use crate::existing::Hosts;
use crate::prepared::has_rules;
use crate::sets::Sets;
use crate::shape::{Kind, KindSource, Relaxing, Shape};
use crate::topology::{Membership, Memberships, OwnGroups, Topology};

/// Shapes of the pods that questions will be about. Pods with volumes are not among them: where those can be is a pod's
/// own.
#[derive(Default)]
pub(crate) struct Known<'a> {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) lists: Vec<&'a ResourceList>,
    pub(crate) requests: Vec<Amounts>,
    pub(crate) shapes: Vec<KnownShape>,
    /// By the address of the pod.
    pods: Vec<(usize, KnownPod)>,
}

/// What is known of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KnownPod {
    pub(crate) shape: u32,
    /// The host that it runs on.
    pub(crate) host: Option<u32>,
}

pub(crate) struct KnownShape {
    pub(crate) shape: Shape,
    /// By level: hosts that have room for one of these pods and the labels and taints that it asks for, as they are.
    pub(crate) hosts: Vec<OnceLock<Bits>>,
}

/// What pods are compiled with.
pub(crate) struct Compiling<'s, 'a> {
    pub(crate) cluster: &'a ClusterSnapshot,
    pub(crate) topology: &'s Topology,
    pub(crate) hosts: &'s Hosts<'a>,
    pub(crate) memberships: &'s mut Memberships<'a>,
    pub(crate) sets: &'s mut Sets<'static>,
    pub(crate) relaxing: Relaxing,
    pub(crate) rules: &'a LabelRules,
}

impl<'a> Known<'a> {
    /// O(pods), with logarithms; constraints are compiled once per kind.
    pub(crate) fn of(asked: &[&'a Arc<Pod>], lists: &mut Lists<'a>, with: &mut Compiling<'_, 'a>) -> Self {
        let mut known = Self::default();
        let none = OwnGroups::default();
        let nothing = Membership::default();
        let mut constraint_ids: BTreeMap<&PodConstraints, usize> = BTreeMap::new();
        let mut by_pointer: BTreeMap<*const PodConstraints, (usize, bool)> = BTreeMap::new();
        let mut kinds: BTreeMap<(usize, Option<&Arc<str>>, usize), usize> = BTreeMap::new();
        let mut shapes: BTreeMap<Shape, u32> = BTreeMap::new();
        let mut last: Option<(&Arc<str>, Option<u32>)> = None;
        for pod in asked.iter().copied().filter(|pod| pod.volumes.is_empty()) {
            let request = lists.intern(&pod.requests);
            let (constraints, has_rules) = *by_pointer.entry(Arc::as_ptr(&pod.constraints)).or_insert_with(|| {
                let next = constraint_ids.len();
                (*constraint_ids.entry(&pod.constraints).or_insert(next), has_rules(&pod.constraints))
            });
            let namespace = has_rules.then_some(&pod.meta.name.namespace);
            let membership = match with.topology.is_empty() {
                true => 0,
                false => with.memberships.id(pod, with.topology, with.cluster),
            };
            let kind = *kinds.entry((constraints, namespace, membership)).or_insert_with(|| {
                let own = namespace.and_then(|namespace| with.topology.own_groups(&pod.constraints, namespace));
                let source = KindSource {
                    constraints: &pod.constraints,
                    membership: with.memberships.all.get(membership).unwrap_or(&nothing),
                    own: own.unwrap_or(&none),
                    places: &[],
                };
                known.kinds.push(Kind::compile(&source, with.relaxing, with.sets, with.rules));
                known.kinds.len() - 1
            });
            let shape = *shapes.entry(Shape { kind, request }).or_insert_with_key(|shape| {
                let hosts = known.kinds[kind].levels.iter().map(|_| OnceLock::new()).collect();
                known.shapes.push(KnownShape { shape: *shape, hosts });
                u32::try_from(known.shapes.len() - 1).unwrap_or(u32::MAX)
            });
            // Pods come node by node, mostly.
            let host = pod.node_name.as_ref().and_then(|node| match last {
                Some((name, host)) if name == node => host,
                Some(_) | None => {
                    let host = with.hosts.find(node).and_then(|at| u32::try_from(at).ok());
                    last = Some((node, host));
                    host
                }
            });
            known.pods.push((Arc::as_ptr(pod).addr(), KnownPod { shape, host }));
        }
        known.pods.sort_unstable();
        known
    }

    /// O(log pods). The cluster keeps its pods while it is asked about, so an address tells one from all others.
    pub(crate) fn pod(&self, pod: &Arc<Pod>) -> Option<KnownPod> {
        let address = Arc::as_ptr(pod).addr();
        let at = self.pods.binary_search_by_key(&address, |(own, _)| *own).ok()?;
        Some(self.pods[at].1)
    }
}
