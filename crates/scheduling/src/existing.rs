//! Hosts that exist or are coming: nodes, claims launched but not joined, claims not launched yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_model::cluster::{HostPort, Node, NodeClaim, Pod};
use kerf_model::label::{self, LabelRules};
use kerf_model::quantity::{Notation, Quantity};
use kerf_model::requirement::{Incompatible, Requirement, Requirements};
use kerf_model::resources::{ResourceList, ResourceName};
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::taint::{Effect, Taint};

use crate::amounts::{Amounts, ResourceIndex, sum};
use crate::daemons::Daemon;
use crate::intake::{claim_is_leaving, is_leaving};
use crate::schedule::Host;
use crate::template::Template;
use crate::volumes::Attached;

const CORDONED: &str = "node.kubernetes.io/unschedulable";

pub(crate) struct ExistingHost<'a> {
    pub(crate) host: Host,
    pub(crate) is_initialized: bool,
    /// The labels it has or will have. A claim that is not launched may still get any of several values.
    pub(crate) labels: Requirements,
    pub(crate) hostname: Arc<str>,
    /// As pods meet them.
    pub(crate) taints: Vec<Taint>,
    pub(crate) room: Amounts,
    pub(crate) ports: Vec<HostPort>,
    pub(crate) attached: Attached,
    pub(crate) volume_limits: Option<&'a BTreeMap<Arc<str>, u32>>,
    pub(crate) pods: Vec<Arc<Pod>>,
}

/// What of a pool's limits is used.
pub(crate) struct Usage {
    pub(crate) pool: Arc<str>,
    pub(crate) capacity: Amounts,
}

/// What finding the hosts needs to know.
pub(crate) struct Survey<'s, 'a> {
    pub(crate) cluster: &'a ClusterSnapshot,
    pub(crate) excluded: &'s BTreeSet<Arc<str>>,
    pub(crate) templates: &'s [Template<'a>],
    pub(crate) daemons: &'s [Daemon<'a>],
    pub(crate) index: &'s ResourceIndex,
    pub(crate) rules: &'a LabelRules,
    /// Whether any pod to place has volumes: looking up what is attached is not free.
    pub(crate) with_volumes: bool,
}

/// A host's place in the cluster's records, merged as upstream's state does (sheet 02 §19).
#[derive(Default)]
struct Facts<'a> {
    node: Option<&'a Node>,
    claim: Option<&'a NodeClaim>,
    is_registered: bool,
    is_initialized: bool,
    is_incomplete: bool,
}

impl<'a> Survey<'_, 'a> {
    /// In the order of attempts: initialised first, then by name. With them what they use of their pools' limits.
    pub(crate) fn hosts(&self) -> (Vec<ExistingHost<'a>>, Vec<Usage>) {
        let (mut hosts, mut usages) = (Vec::new(), Vec::new());
        for node in self.cluster.nodes() {
            let claim = self.cluster.claims_of(node).next().map(AsRef::as_ref);
            if self.excluded.contains(node.name()) || is_leaving(self.cluster, node) {
                continue;
            }
            // One of ours that the cloud has not named yet: its claim stands for it until then. It is there, though.
            let is_incomplete = node.meta.label(label::NODEPOOL).is_some() && node.provider_id.is_none();
            let is = |key| claim.is_none() || node.meta.label(key) == Some("true");
            let (is_registered, is_initialized) = (is(label::REGISTERED), is(label::INITIALIZED));
            let facts = Facts { node: Some(node.as_ref()), claim, is_registered, is_initialized, is_incomplete };
            self.add(&facts, Host::Node(Arc::clone(node.name())), &mut hosts, &mut usages);
        }
        for claim in self.cluster.claims() {
            let has_node = self.cluster.nodes_of(claim).next().is_some();
            if !has_node && !claim_is_leaving(claim) && !self.excluded.contains(claim.name()) {
                let facts = Facts { claim: Some(claim.as_ref()), ..Facts::default() };
                self.add(&facts, Host::Claim(Arc::clone(claim.name())), &mut hosts, &mut usages);
            }
        }
        let order = |host: &ExistingHost<'_>| (!host.is_initialized, Arc::clone(host.host.name()), host.host.clone());
        hosts.sort_by_cached_key(order);
        (hosts, usages)
    }

    fn add(&self, facts: &Facts<'a>, host: Host, hosts: &mut Vec<ExistingHost<'a>>, usages: &mut Vec<Usage>) {
        let launch = match (facts.node, facts.claim) {
            (None, Some(claim)) if claim.status.provider_id.is_none() => Some(self.launch_of(claim)),
            _ => None,
        };
        if let Some(pool) = facts.pool().filter(|_| !facts.is_incomplete) {
            let capacity = match &launch {
                Some(launch) => launch.capacity.clone(),
                None => self.index.amounts(&facts.capacity()),
            };
            usages.push(Usage { pool: Arc::from(pool), capacity });
        }
        let labels = self.labels_of(facts, &host);
        let hostname = match labels.get(label::HOSTNAME).map(Requirement::values) {
            Some([name]) => Arc::clone(name),
            _ => Arc::clone(host.name()),
        };
        let taints = facts.taints();
        let pods: Vec<_> = facts
            .node
            .into_iter()
            .flat_map(|node| self.cluster.pods_on(node.name()))
            .filter(|pod| !pod.is_terminal())
            .collect();
        let room = match launch {
            Some(launch) => Some(launch.room),
            None if facts.is_incomplete => None,
            None => self.room_of(facts, &pods, &labels, &taints),
        };
        // A host that has promised more than it has takes nothing more, whatever is asked; it is still a host to count.
        let room = room.unwrap_or_else(|| self.index.less_than_nothing());
        let node_name = facts.node.map(Node::name).filter(|_| self.with_volumes);
        hosts.push(ExistingHost {
            host,
            is_initialized: facts.is_initialized,
            labels,
            hostname,
            taints,
            room,
            ports: pods.iter().flat_map(|pod| pod.constraints.host_ports.iter().copied()).collect(),
            attached: match node_name {
                Some(_) => Attached::by(pods.iter().copied(), self.cluster),
                None => Attached::default(),
            },
            volume_limits: node_name.and_then(|name| self.cluster.csi_node(name)).map(|csi| &csi.limits),
            pods: Vec::new(),
        });
    }

    fn labels_of(&self, facts: &Facts<'a>, host: &Host) -> Requirements {
        let meta = match (facts.node, facts.claim) {
            (Some(node), _) if facts.is_registered => &node.meta,
            (_, Some(claim)) => &claim.meta,
            (Some(node), None) => &node.meta,
            (None, None) => return Requirements::new(),
        };
        let pairs = meta.labels.iter().map(|(key, value)| (&**key, &**value));
        let mut labels = Requirements::from_labels(pairs, self.rules);
        if let (None, Some(claim)) = (facts.node, facts.claim)
            && claim.status.provider_id.is_none()
        {
            labels.merge(&claim.node.requirements);
        }
        if labels.get(label::HOSTNAME).is_none() {
            labels.add(Requirement::one_of(label::HOSTNAME, [host.name()]), self.rules);
        }
        labels
    }

    /// What is left for pods: without those that run, and without daemons that have not started yet.
    fn room_of(
        &self,
        facts: &Facts<'a>,
        pods: &[&Arc<Pod>],
        labels: &Requirements,
        taints: &[Taint],
    ) -> Option<Amounts> {
        let used = sum(pods.iter().map(|pod| &pod.requests));
        let left = facts.allocatable().minus(&used).ok()?;
        if left.iter().any(|(_, amount)| amount.is_negative()) {
            return None;
        }
        let runs = |daemon: &&Daemon<'_>| {
            daemon.tolerates(taints) && daemon.terms.iter().any(|term| meets(labels, term).is_ok())
        };
        let expected = sum(self.daemons.iter().filter(runs).map(Daemon::requests));
        let running = sum(pods.iter().filter(|pod| pod.is_of_daemon_set()).map(|pod| &pod.requests));
        let mut missing = self.index.amounts(&expected);
        missing.take(&self.index.amounts(&running));
        missing.raise_to(&self.index.nothing());
        let mut room = self.index.amounts(&left);
        room.take(&missing);
        // A daemon that does not fit stays away; it makes no room smaller than none.
        room.raise_to(&self.index.nothing());
        Some(room)
    }

    /// What a claim will get that is not launched yet: one of its types, and nobody knows which. Pods must fit all.
    ///
    /// Upstream waits with everything until every claim is launched; one slow launch holds up all pods there.
    fn launch_of(&self, claim: &NodeClaim) -> Launch {
        let template = self.templates.iter().find(|template| Some(&*template.pool.name) == claim.pool());
        let named = claim.node.requirements.get(label::INSTANCE_TYPE);
        let options = template.into_iter().flat_map(|template| &template.types);
        let options = options.filter(|row| named.is_some_and(|named| named.has(&row.kind.name)));
        let both = options.map(|row| Launch { room: row.room.clone(), capacity: row.capacity.clone() });
        both.reduce(|mut all, one| {
            all.room.lower_to(&one.room);
            all.capacity.raise_to(&one.capacity);
            all
        })
        // Its pool or its types are gone: what it was made for is what it will hold at least.
        .unwrap_or_else(|| {
            let room = self.index.amounts(&claim.requests);
            let capacity = self.index.amounts(&with_one_node(claim.requests.clone()));
            Launch { room, capacity }
        })
    }
}

struct Launch {
    room: Amounts,
    capacity: Amounts,
}

impl ExistingHost<'_> {
    /// Whether a pod's requirements hold, whatever the host turns out to be.
    pub(crate) fn meets(&self, asked: &Requirements) -> bool {
        meets(&self.labels, asked).is_ok()
    }
}

/// Every value that the labels can have must be one that is asked for.
pub(crate) fn meets(labels: &Requirements, asked: &Requirements) -> Result<(), Incompatible> {
    for asked in asked.iter() {
        let key = asked.key();
        match labels.get(key) {
            None if asked.allows_absence() => {}
            None => return Err(Incompatible::Undefined { key: Arc::clone(key), hint: None }),
            Some(own) if is_within(own, asked) => {}
            Some(own) => {
                return Err(Incompatible::Disjoint {
                    incoming: Box::new(asked.clone()),
                    existing: Box::new(own.clone()),
                });
            }
        }
    }
    Ok(())
}

fn is_within(own: &Requirement, asked: &Requirement) -> bool {
    match own.values() {
        [value] if own.count() == Some(1) => asked.has(value),
        _ => own.intersection(asked) == *own,
    }
}

impl Facts<'_> {
    fn pool(&self) -> Option<&str> {
        let own = self.claim.and_then(NodeClaim::pool);
        own.or_else(|| self.node.and_then(|node| node.meta.label(label::NODEPOOL)))
    }

    fn capacity(&self) -> ResourceList {
        with_one_node(self.reported(|node| &node.capacity, |claim| &claim.status.capacity))
    }

    fn allocatable(&self) -> ResourceList {
        self.reported(|node| &node.allocatable, |claim| &claim.status.allocatable)
    }

    /// While a node starts, its kubelet may not know of all it has: extended resources come with their drivers.
    fn reported(
        &self,
        of_node: impl Fn(&Node) -> &ResourceList,
        of_claim: impl Fn(&NodeClaim) -> &ResourceList,
    ) -> ResourceList {
        match (self.node, self.claim) {
            (Some(node), Some(claim)) if !self.is_initialized => {
                let known = of_node(node).iter().filter(|(_, amount)| !amount.is_zero());
                let known = known.map(|(name, amount)| (name.clone(), amount));
                let promised = of_claim(claim).iter().map(|(name, amount)| (name.clone(), amount));
                promised.chain(known).collect()
            }
            (Some(node), _) => of_node(node).clone(),
            (None, Some(claim)) => of_claim(claim).clone(),
            (None, None) => ResourceList::new(),
        }
    }

    /// Taints of a node that starts or reboots and that go by themselves hold nobody off.
    fn taints(&self) -> Vec<Taint> {
        let mut taints = match (self.node, self.claim) {
            (Some(node), _) if self.is_registered => node.taints.clone(),
            (_, Some(claim)) => claim.node.taints.clone(),
            (Some(node), None) => node.taints.clone(),
            (None, None) => Vec::new(),
        };
        if let Some(claim) = self.claim {
            let is_rebooting = claim.status.conditions.is_true("Rebooting");
            if is_rebooting || !self.is_initialized {
                let starts = &claim.node.startup_taints;
                taints.retain(|taint| !taint.is_known_ephemeral() && !starts.iter().any(|own| own.is_same(taint)));
            }
            if is_rebooting {
                taints.retain(|taint| !taint.is_same(&Taint::rebooting()));
            }
        }
        let cordon = Taint::new(CORDONED, "", Effect::NoSchedule);
        if self.node.is_some_and(|node| node.unschedulable) && !taints.iter().any(|taint| taint.is_same(&cordon)) {
            taints.push(cordon);
        }
        taints
    }
}

fn with_one_node(mut capacity: ResourceList) -> ResourceList {
    capacity.insert(ResourceName::NODES, Quantity::from_value(1, Notation::DecimalSi));
    capacity
}
