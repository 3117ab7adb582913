//! Gauges of pods, nodes, claims and pools, made from one look at the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::{
    Condition, InstanceType, Node, NodeClaim, ObjectMeta, ObjectName, Pod, PodPhase, StoredPool,
};
use kerf_model::label::{self, LabelRules};
use kerf_model::price::Price;
use kerf_model::quantity::Quantity;
use kerf_model::resources::{ResourceList, ResourceName};
use kerf_model::snapshot::ClusterSnapshot;

use super::catalogue as metric;
use super::registry::{Page, pairs};
use super::{seconds, uses_devices};

/// One look at the cluster. Records are shared, so it costs little to take.
#[derive(Debug)]
pub struct Seen {
    pub snapshot: ClusterSnapshot,
    /// By pool.
    pub types: BTreeMap<Arc<str>, Arc<[InstanceType]>>,
    pub waiting: BTreeMap<ObjectName, Waiting>,
    /// Pods that nothing can take.
    pub unschedulable: usize,
    /// Pods that are not tried.
    pub ignored: usize,
    pub labels: LabelRules,
    pub now: Timestamp,
}

/// A pod that needs, or needed, a node.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    pub since: Timestamp,
    pub decided: Option<Timestamp>,
}

impl Seen {
    pub(super) fn write(&self, with_state: bool, page: &mut Page) {
        let undecided = self.waiting.values().filter(|waiting| waiting.decided.is_none()).count();
        page.gauge(&metric::SCHEDULER_QUEUE, &["provisioner"], undecided as f64);
        page.gauge(&metric::SCHEDULER_UNSCHEDULABLE, &["provisioner"], self.unschedulable as f64);
        page.gauge(&metric::SCHEDULER_IGNORED, &[], self.ignored as f64);
        if !with_state {
            return;
        }
        self.write_nodes(page);
        for pool in self.snapshot.pools() {
            self.write_pool(pool, page);
        }
        for window in self.snapshot.maintenance_windows() {
            let active = if window.is_active(self.now) { 1.0 } else { 0.0 };
            page.gauge(&metric::WINDOW_ACTIVE, &[&window.name], active);
        }
        for pod in self.snapshot.pods() {
            self.write_pod(pod, page);
        }
        for claim in self.snapshot.claims() {
            self.write_claim(claim, page);
        }
    }

    fn write_nodes(&self, page: &mut Page) {
        let (mut allocatable, mut requested) = (ResourceList::new(), ResourceList::new());
        for node in self.snapshot.nodes() {
            let labels = self.node_labels(node);
            let (daemons, others): (Vec<&Arc<Pod>>, Vec<&Arc<Pod>>) = self
                .snapshot
                .pods_on(node.name())
                .filter(|pod| !pod.is_terminal())
                .partition(|pod| pod.is_of_daemon_set());
            let (daemons, others) = (sum(&daemons), sum(&others));
            let overhead = node.capacity.clone().minus(&node.allocatable).unwrap_or_default();
            let lists = [
                (&metric::NODES_ALLOCATABLE, &node.allocatable),
                (&metric::NODES_POD_REQUESTS, &others),
                (&metric::NODES_DAEMON_REQUESTS, &daemons),
                (&metric::NODES_OVERHEAD, &overhead),
            ];
            for (metric, list) in lists {
                for (name, amount) in list.iter() {
                    page.gauge_of(metric, &labels, &[&resource(name)], number(amount));
                }
            }
            page.gauge_of(&metric::NODES_LIFETIME, &labels, &[], seconds(node.meta.created, self.now));
            self.write_node_conditions(node, page);
            allocatable = allocatable.clone().plus(&node.allocatable).unwrap_or(allocatable);
            for list in [daemons, others] {
                requested = requested.clone().plus(&list).unwrap_or(requested);
            }
        }
        for (name, amount) in allocatable.iter().filter(|(_, amount)| !amount.is_zero()) {
            let used = number(requested.amount(name.as_str())) / number(amount) * 100.0;
            page.gauge(&metric::CLUSTER_UTILIZATION, &[&resource(name)], used);
        }
    }

    /// Every well-known label by the last part of its key, and what else tells nodes apart.
    fn node_labels(&self, node: &Node) -> String {
        let mut keys: Vec<(String, &str)> = Vec::new();
        for key in self.labels.well_known() {
            let name = key.rsplit('/').next().unwrap_or_default().replace(['-', '.'], "_");
            if !keys.iter().any(|(known, _)| *known == name) {
                keys.push((name, node.meta.label(key).unwrap_or_default()));
            }
        }
        let names: Vec<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
        let values: Vec<&str> = keys.iter().map(|(_, value)| *value).collect();
        let well_known = pairs(&names, &values);
        let phase = if node.meta.is_deleting() {
            "Terminating"
        } else if node.is_ready() {
            "Running"
        } else {
            "Pending"
        };
        let managed = if self.is_managed(node) { "true" } else { "false" };
        format!("{well_known},{}", pairs(&["node_name", "phase", "managed"], &[node.name(), phase, managed]))
    }

    fn is_managed(&self, node: &Node) -> bool {
        node.meta.is_owned_by("karpenter.sh/v1", "NodeClaim") || node.meta.labels.contains_key(label::NODEPOOL)
    }

    fn write_pool(&self, pool: &StoredPool, page: &mut Page) {
        let name = &*pool.meta.name.name;
        for (resource_name, amount) in pool.status.resources.iter() {
            page.gauge(&metric::POOLS_USAGE, &[&resource(resource_name), name], number(amount));
        }
        if let Ok(spec) = &pool.spec {
            for (resource_name, amount) in spec.limits.iter() {
                page.gauge(&metric::POOLS_LIMIT, &[&resource(resource_name), name], number(amount));
            }
        }
        let claims = self.snapshot.claims().filter(|claim| claim.pool() == Some(name));
        let cost = claims.filter_map(|claim| self.price(claim)).try_fold(Price::ZERO, Price::checked_add);
        page.gauge(&metric::POOLS_COST, &[name], cost.unwrap_or(Price::ZERO).micros() as f64 / 1e6);
        self.write_conditions(
            &pool.meta,
            &pool.status.conditions.0,
            "",
            page,
            ("NodePool", [&metric::POOL_CONDITION_COUNT, &metric::POOL_CONDITION_SECONDS]),
        );
        self.write_terminating(&metric::POOL_TERMINATING, &pool.meta, "", page);
    }

    /// Of what the claim was launched as.
    fn price(&self, claim: &NodeClaim) -> Option<Price> {
        let label = |key: &str| claim.meta.label(key);
        let types = self.types.get(claim.pool()?)?;
        let found = types.iter().find(|found| Some(&*found.name) == label(label::INSTANCE_TYPE))?;
        let is_it = |key: &str, requirements: &kerf_model::requirement::Requirements| {
            label(key).is_some_and(|value| requirements.get(key).is_some_and(|wanted| wanted.has(value)))
        };
        let offering = found.offerings.iter().find(|offering| {
            is_it(label::ZONE, &offering.requirements) && is_it(label::CAPACITY_TYPE, &offering.requirements)
        })?;
        Some(offering.price)
    }

    fn write_pod(&self, pod: &Pod, page: &mut Page) {
        let ObjectName { namespace, name } = &pod.meta.name;
        let node = pod.node_name.as_deref().and_then(|name| self.snapshot.node(name));
        let of_node = |key| node.and_then(|node| node.meta.label(key)).unwrap_or_default();
        let flag = |is| if is { "true" } else { "false" };
        page.gauge(
            &metric::PODS_STATE,
            &[
                name,
                namespace,
                &owner(&pod.meta),
                pod.node_name.as_deref().unwrap_or_default(),
                flag(pod.node_name.is_some()),
                of_node(label::NODEPOOL),
                of_node(label::ZONE),
                of_node(label::ARCH),
                of_node(label::CAPACITY_TYPE),
                of_node(label::INSTANCE_TYPE),
                phase(pod.phase),
                flag(pod.phase == PodPhase::Running && !pod.is_unready),
                flag(node.is_some_and(|node| self.is_managed(node))),
            ],
            1.0,
        );
        if pod.is_terminal() {
            return;
        }
        let (is_bound, has_started) = (pod.node_name.is_some(), pod.phase == PodPhase::Running);
        let (age, devices) = (seconds(pod.meta.created, self.now), uses_devices(pod));
        if !is_bound {
            page.gauge(&metric::PODS_UNBOUND_TIME, &[name, namespace, devices], age);
        }
        if !has_started {
            page.gauge(&metric::PODS_UNSTARTED_TIME, &[name, namespace], age);
        }
        match self.waiting.get(&pod.meta.name) {
            None => {}
            Some(Waiting { since, decided: None }) => {
                page.gauge(&metric::PODS_UNDECIDED_TIME, &[name, namespace], seconds(*since, self.now));
            }
            Some(Waiting { decided: Some(decided), .. }) => {
                let ago = seconds(*decided, self.now);
                if !is_bound {
                    page.gauge(&metric::PODS_PROVISIONING_UNBOUND_TIME, &[name, namespace, devices], ago);
                }
                if !has_started {
                    page.gauge(&metric::PODS_PROVISIONING_UNSTARTED_TIME, &[name, namespace], ago);
                }
            }
        }
    }

    fn write_claim(&self, claim: &NodeClaim, page: &mut Page) {
        let key = class_label(&claim.node.class.label_key());
        let extra =
            pairs(&["karpenter_sh_nodepool", &key], &[claim.pool().unwrap_or_default(), &claim.node.class.name]);
        self.write_conditions(
            &claim.meta,
            &claim.status.conditions.0,
            &extra,
            page,
            ("NodeClaim", [&metric::CLAIM_CONDITION_COUNT, &metric::CLAIM_CONDITION_SECONDS]),
        );
        self.write_terminating(&metric::CLAIM_TERMINATING, &claim.meta, &extra, page);
    }

    fn write_node_conditions(&self, node: &Node, page: &mut Page) {
        let label = |key| node.meta.label(key).unwrap_or_default();
        let extra = pairs(
            &["karpenter_sh_nodepool", "karpenter_sh_initialized"],
            &[label(label::NODEPOOL), label(label::INITIALIZED)],
        );
        for condition in &node.conditions {
            let labels = ["", &**node.name(), &*condition.kind, condition.status.as_str(), &*condition.reason];
            page.gauge_of(&metric::NODE_CONDITION_COUNT, &extra, &labels, 1.0);
            page.gauge_of(&metric::NODE_CONDITION_SECONDS, &extra, &labels, seconds(condition.since, self.now));
        }
        self.write_terminating(&metric::NODE_TERMINATING, &node.meta, &extra, page);
    }

    fn write_conditions(
        &self,
        meta: &ObjectMeta,
        conditions: &[Condition],
        extra: &str,
        page: &mut Page,
        (kind, [count, lasting]): (&'static str, [&'static metric::Metric; 2]),
    ) {
        // Those without a kind in their name are for older dashboards.
        for condition in conditions {
            let labels = [
                "",
                &*meta.name.name,
                &*condition.kind,
                condition.status.as_str(),
                &*condition.reason,
                metric::GROUP,
                kind,
            ];
            let lasted = seconds(condition.since, self.now);
            page.gauge_of(count, extra, &labels[..5], 1.0);
            page.gauge_of(lasting, extra, &labels[..5], lasted);
            page.gauge_of(&metric::CONDITION_COUNT, extra, &labels, 1.0);
            page.gauge_of(&metric::CONDITION_SECONDS, extra, &labels, lasted);
        }
    }

    fn write_terminating(&self, metric: &'static metric::Metric, meta: &ObjectMeta, extra: &str, page: &mut Page) {
        if let Some(deleting) = meta.deleting {
            page.gauge_of(metric, extra, &["", &meta.name.name], seconds(deleting, self.now));
        }
    }
}

fn class_label(key: &str) -> String {
    key.replace(['/', '.', '-'], "_")
}

/// As a path of the API.
fn owner(meta: &ObjectMeta) -> String {
    let Some(owner) = meta.owners.first() else { return String::new() };
    let kind = owner.kind.to_lowercase();
    format!("/apis/{}/namespaces/{}/{kind}s/{}", owner.api_version, meta.name.namespace, owner.name)
}

const fn phase(phase: PodPhase) -> &'static str {
    match phase {
        PodPhase::Pending => "Pending",
        PodPhase::Running => "Running",
        PodPhase::Succeeded => "Succeeded",
        PodPhase::Failed => "Failed",
        PodPhase::Unknown => "Unknown",
    }
}

/// Requests too large to add up are left out.
fn sum(pods: &[&Arc<Pod>]) -> ResourceList {
    pods.iter().fold(ResourceList::new(), |total, pod| total.clone().plus(&pod.requests).unwrap_or(total))
}

fn resource(name: &ResourceName) -> String {
    name.as_str().replace('-', "_")
}

/// Cores, bytes, pieces.
fn number(amount: Quantity) -> f64 {
    amount.nanos() as f64 / 1e9
}
