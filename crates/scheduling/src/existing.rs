//! Hosts that exist or are coming: nodes, claims launched but not joined, claims not launched yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::cluster::{HostPort, Node, NodeClaim, condition_kind};
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

const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// A node, or a claim without one. In the order of attempts: initialised first, then by name; those that are leaving
/// stand last and take nothing.
pub(crate) struct ExistingHost<'a> {
    pub(crate) host: Host,
    pub(crate) is_initialized: bool,
    /// Whether it is staying.
    pub(crate) is_usable: bool,
    pub(crate) hostname: Arc<str>,
    /// Hosts with the same labels, but for their names, and the same taints.
    pub(crate) class: usize,
    pub(crate) ports: Vec<HostPort>,
    pub(crate) node: Option<&'a Node>,
    /// What it uses of a template's limits.
    pub(crate) usage: Option<(usize, Amounts)>,
    room: Amounts,
}

/// What hosts alike look like to a pod.
pub(crate) struct HostClass {
    /// The labels that they have or will have, without the host name. A claim that is not launched may still get any of
    /// several values.
    pub(crate) labels: Requirements,
    /// As pods meet them.
    pub(crate) taints: Vec<Taint>,
    /// What daemons will take there.
    daemons: Amounts,
}

/// All hosts, with what is left on each as one array.
pub(crate) struct Hosts<'a> {
    pub(crate) all: Vec<ExistingHost<'a>>,
    pub(crate) classes: Vec<HostClass>,
    /// How many are staying; they come first.
    pub(crate) usable: usize,
    /// Host by host, resource by resource.
    pub(crate) rooms: Vec<i64>,
    by_name: BTreeMap<Arc<str>, usize>,
}

/// What finding the hosts needs to know.
pub(crate) struct Survey<'s, 'a> {
    pub(crate) cluster: &'a ClusterSnapshot,
    pub(crate) templates: &'s [Template<'a>],
    pub(crate) daemons: &'s [Daemon<'a>],
    pub(crate) index: &'s ResourceIndex,
    /// What every pod that runs asks for, in the order of nodes and of their pods.
    pub(crate) requests: &'s BTreeMap<&'a Arc<str>, Vec<usize>>,
    pub(crate) amounts: &'s [Amounts],
    pub(crate) rules: &'a LabelRules,
}

/// A host's place in the cluster's records, merged as upstream's state does (sheet 02 §19).
#[derive(Default)]
struct Facts<'a> {
    node: Option<&'a Node>,
    claim: Option<&'a NodeClaim>,
    is_registered: bool,
    is_initialized: bool,
    is_incomplete: bool,
    is_leaving: bool,
    has_lost_its_node: bool,
}

impl Hosts<'_> {
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}

type Classes = BTreeMap<(Requirements, Vec<Taint>), usize>;

impl<'a> Survey<'_, 'a> {
    /// O(nodes + pods on them), with logarithms.
    pub(crate) fn hosts(&self) -> Hosts<'a> {
        let (mut all, mut classes, mut known) = (Vec::new(), Vec::new(), Classes::new());
        for node in self.cluster.nodes() {
            let claim = self.cluster.claims_of(node).next().map(AsRef::as_ref);
            // One of ours that the cloud has not named yet: its claim stands for it until then. It is there, though.
            let is_incomplete = node.meta.label(label::NODEPOOL).is_some() && node.provider_id.is_none();
            let is = |key| claim.is_none() || node.meta.label(key) == Some("true");
            let (is_registered, is_initialized) = (is(label::REGISTERED), is(label::INITIALIZED));
            let is_leaving = is_leaving(self.cluster, node);
            let node = Some(node.as_ref());
            let facts = Facts {
                node,
                claim,
                is_registered,
                is_initialized,
                is_incomplete,
                is_leaving,
                has_lost_its_node: false,
            };
            all.extend(
                facts.node.map(|node| self.host(&facts, Host::Node(Arc::clone(node.name())), &mut classes, &mut known)),
            );
        }
        for claim in self.cluster.claims() {
            let has_node = self.cluster.nodes_of(claim).next().is_some();
            if !has_node && !claim_is_leaving(claim) {
                // Its node was here and went without its machine: nobody can run a pod there any more.
                let has_lost_its_node = claim.status.conditions.is_true(condition_kind::REGISTERED);
                let facts = Facts { claim: Some(claim.as_ref()), has_lost_its_node, ..Facts::default() };
                all.push(self.host(&facts, Host::Claim(Arc::clone(claim.name())), &mut classes, &mut known));
            }
        }
        all.sort_by(|a, b| {
            let order = |host: &ExistingHost<'_>| (!host.is_usable, !host.is_initialized);
            order(a).cmp(&order(b)).then_with(|| (a.host.name(), &a.host).cmp(&(b.host.name(), &b.host)))
        });
        let rooms = all.iter().flat_map(|host| host.room.as_slice()).copied().collect();
        let by_name = all.iter().enumerate().rev().map(|(at, host)| (Arc::clone(host.host.name()), at)).collect();
        Hosts { usable: all.iter().filter(|host| host.is_usable).count(), all, classes, rooms, by_name }
    }

    fn host(
        &self,
        facts: &Facts<'a>,
        host: Host,
        classes: &mut Vec<HostClass>,
        known: &mut Classes,
    ) -> ExistingHost<'a> {
        let launch = match (facts.node, facts.claim) {
            (None, Some(claim)) if claim.status.provider_id.is_none() => Some(self.launch_of(claim)),
            _ => None,
        };
        let pool = facts.pool().filter(|_| !facts.is_incomplete && !facts.is_leaving);
        let template = pool.and_then(|pool| self.templates.iter().position(|own| &*own.pool.name == pool));
        let capacity = || match &launch {
            Some(launch) => launch.capacity.clone(),
            None => self.index.asked(&facts.capacity()),
        };
        let usage = template.map(|template| (template, capacity()));
        let (labels, hostname) = self.labels_of(facts, &host);
        let class = *known.entry((labels, facts.taints())).or_insert_with_key(|(labels, taints)| {
            let runs = |daemon: &&Daemon<'_>| {
                daemon.tolerates(taints) && daemon.terms.iter().any(|term| meets(labels, term).is_ok())
            };
            let daemons = self.index.asked(&sum(self.daemons.iter().filter(runs).map(Daemon::requests)));
            classes.push(HostClass { labels: labels.clone(), taints: taints.clone(), daemons });
            classes.len() - 1
        });
        let room = match launch {
            Some(launch) => Some(launch.room),
            None if facts.is_incomplete => None,
            None => self.room_of(facts, &classes[class]),
        };
        let pods = facts.node.into_iter().flat_map(|node| self.cluster.pods_on(node.name()));
        let pods = pods.filter(|pod| !pod.is_terminal());
        ExistingHost {
            host,
            is_initialized: facts.is_initialized,
            is_usable: !facts.is_leaving && !facts.has_lost_its_node,
            hostname,
            class,
            ports: pods.flat_map(|pod| pod.constraints.host_ports.iter().copied()).collect(),
            node: facts.node,
            usage,
            // A host that has promised more than it has takes nothing more, whatever is asked; it is still a host to
            // count.
            room: room.unwrap_or_else(|| self.index.less_than_nothing()),
        }
    }

    /// The labels without the host name, and that.
    fn labels_of(&self, facts: &Facts<'a>, host: &Host) -> (Requirements, Arc<str>) {
        let meta = match (facts.node, facts.claim) {
            (Some(node), _) if facts.is_registered => &node.meta,
            (_, Some(claim)) => &claim.meta,
            (Some(node), None) => &node.meta,
            (None, None) => return (Requirements::new(), Arc::clone(host.name())),
        };
        let hostname = meta.labels.get(label::HOSTNAME).unwrap_or_else(|| host.name());
        let pairs =
            meta.labels.iter().map(|(key, value)| (&**key, &**value)).filter(|(key, _)| *key != label::HOSTNAME);
        let mut labels = Requirements::from_labels(pairs, self.rules);
        if let (None, Some(claim)) = (facts.node, facts.claim)
            && claim.status.provider_id.is_none()
        {
            labels.merge(&claim.node.requirements);
        }
        (labels, Arc::clone(hostname))
    }

    /// What is left for pods: without those that run, and without daemons that have not started yet.
    fn room_of(&self, facts: &Facts<'a>, class: &HostClass) -> Option<Amounts> {
        let mut left = self.index.offered(&facts.allocatable());
        let nothing = self.index.nothing();
        let mut missing = class.daemons.clone();
        if let Some(node) = facts.node {
            let asked = self.requests.get(node.name()).into_iter().flatten();
            let pods = self.cluster.pods_on(node.name()).filter(|pod| !pod.is_terminal());
            for (pod, asked) in pods.zip(asked) {
                left.take(&self.amounts[*asked]);
                if pod.is_of_daemon_set() {
                    missing.take(&self.amounts[*asked]);
                }
            }
        }
        if !nothing.fits(&left) {
            return None;
        }
        missing.raise_to(&nothing);
        left.take(&missing);
        // A daemon that does not fit stays away; it makes no room smaller than none.
        left.raise_to(&nothing);
        Some(left)
    }

    /// What a claim will get that is not launched yet: one of its types, and nobody knows which. Pods must fit all.
    ///
    /// Upstream waits with everything until every claim is launched; one slow launch holds up all pods there.
    fn launch_of(&self, claim: &NodeClaim) -> Launch {
        let template = self.templates.iter().find(|template| Some(&*template.pool.name) == claim.pool());
        let named = claim.node.requirements.get(label::INSTANCE_TYPE);
        let options = template.into_iter().flat_map(|template| &template.types);
        let options = options.filter(|row| named.is_some_and(|named| named.has(&row.kind.name)));
        // A launch looks for room for what the claim asks for, which only some offerings of a type may have.
        let options = options.filter(|row| claim.requests.fits(&row.allocatable));
        let both = options.map(|row| Launch { room: row.room.clone(), capacity: row.capacity.clone() });
        both.reduce(|mut all, one| {
            all.room.lower_to(&one.room);
            all.capacity.raise_to(&one.capacity);
            all
        })
        // Its pool or its types are gone: what it was made for is what it will hold at least.
        .unwrap_or_else(|| {
            let room = self.index.offered(&claim.requests);
            let capacity = self.index.asked(&with_one_node(claim.requests.clone()));
            Launch { room, capacity }
        })
    }
}

struct Launch {
    room: Amounts,
    capacity: Amounts,
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
            let is_rebooting = claim.status.conditions.is_true(condition_kind::REBOOTING);
            if is_rebooting || !self.is_initialized {
                let starts = &claim.node.startup_taints;
                taints.retain(|taint| !taint.is_known_ephemeral() && !starts.iter().any(|own| own.is_same(taint)));
            }
            if is_rebooting && !claim.drains_without_limit() {
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
