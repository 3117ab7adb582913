//! A claim of ours with everything that decisions ask about it, looked up once.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::{
    InstanceType, Node, NodeClaim, Offering, Pod, StoredPool, Texts, condition_kind as kind, disruption_cost,
    lifetime_left, reschedule_cost,
};
use kerf_model::duration::NillableDuration;
use kerf_model::effect::Target;
use kerf_model::label::{self, capacity_type};
use kerf_model::node_pool::NodePool;
use kerf_model::price::Price;

use crate::parallel::{Effort, in_parallel};
use crate::pdb::{Pdbs, protected};
use crate::{Candidate, KeepReason, Policy, View};

pub(crate) struct Subject<'a> {
    pub(crate) claim: &'a Arc<NodeClaim>,
    pub(crate) node: Option<&'a Arc<Node>>,
    /// The claim's, if the node says that it has one; whether there is such a pool is another question.
    pub(crate) pool_name: Option<Arc<str>>,
    pub(crate) stored: Option<&'a StoredPool>,
    /// What it is, if its pool knows the type.
    pub(crate) kind: Option<&'a InstanceType>,
    pub(crate) price: Option<Price>,
    /// All pods of the node.
    pub(crate) pods: Vec<&'a Arc<Pod>>,
    /// The first pod that blocks: protected by its owner, or by a budget.
    pub(crate) blocker: Option<KeepReason>,
    /// One for the node, plus what its pods cost to move.
    pub(crate) reschedule_cost: f64,
    pub(crate) lifetime_left: f64,
    /// What it costs per hour, for what moving its pods costs: the more, the rather it goes. 0 if unknown.
    pub(crate) savings_ratio: f64,
    is_marked: bool,
}

impl<'a> Subject<'a> {
    /// Every claim of ours, by name.
    pub(crate) fn all(view: &View<'a>, pdbs: &Pdbs<'a>) -> Vec<Self> {
        let ours: Vec<_> = view.snapshot.claims().filter(|claim| view.settings.manages(claim)).collect();
        in_parallel(&ours, Effort::LookUp, |claim| Self::of(claim, view, pdbs))
    }

    fn of(claim: &'a Arc<NodeClaim>, view: &View<'a>, pdbs: &Pdbs<'a>) -> Self {
        let node = view.snapshot.nodes_of(claim).next();
        let labels = labels_of(claim, node);
        // A node that was relabelled and not moved would be judged by one pool and replaced by another.
        let named = labels.get(label::NODEPOOL);
        let pool_name = named.map(|named| claim.pool().map_or_else(|| Arc::clone(named), Arc::from));
        let stored = pool_name.as_ref().and_then(|name| view.snapshot.pool(name)).map(AsRef::as_ref);
        let types = pool_name.as_ref().and_then(|name| view.types.get(name));
        let type_name = labels.get(label::INSTANCE_TYPE);
        let kind = types.and_then(|types| types.iter().find(|kind| Some(&kind.name) == type_name));
        let pods: Vec<_> = node.into_iter().flat_map(|node| view.snapshot.pods_on(node.name())).collect();
        let ours = view.settings.gates.pod_deletion_cost_management;
        let blocker = protected(pods.iter().copied(), view.now)
            .or_else(|| pods.iter().find_map(|pod| pdbs.blocker(pod, view.now)));
        let price = kind.and_then(|kind| price(kind, labels));
        let cost = reschedule_cost(pods.iter().copied(), ours);
        let lifetime_left = lifetime_left(claim, view.now);
        let weighed = match view.settings.policy {
            // Pods of a node that expires soon move soon anyway. The reference computes this and does not use it.
            Policy::Best => 1.0 + (cost - 1.0) * lifetime_left,
            Policy::Compatible => cost,
        };
        Self {
            claim,
            node,
            savings_ratio: price.map_or(0.0, |price| price.micros() as f64 / weighed),
            price,
            kind,
            stored,
            pool_name,
            blocker,
            reschedule_cost: cost,
            lifetime_left,
            is_marked: view.memory.marked.contains(claim.name()),
            pods,
        }
    }

    pub(crate) fn name(&self) -> &'a Arc<str> {
        self.claim.name()
    }

    /// The node's once it is registered, the claim's before.
    pub(crate) fn labels(&self) -> &'a Texts {
        labels_of(self.claim, self.node)
    }

    pub(crate) fn label(&self, key: &str) -> Option<&'a Arc<str>> {
        self.labels().get(key)
    }

    pub(crate) fn annotation(&self, key: &str) -> Option<&'a str> {
        self.node.and_then(|node| node.meta.annotation(key))
    }

    pub(crate) fn pool(&self) -> Option<&'a NodePool> {
        self.stored.and_then(|stored| stored.spec.as_ref().ok())
    }

    pub(crate) fn is(&self, condition: &str) -> bool {
        self.claim.status.conditions.is_true(condition)
    }

    pub(crate) fn is_rebooting(&self) -> bool {
        self.is(kind::REBOOTING)
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.node.is_some_and(|node| node.meta.label(label::REGISTERED) == Some("true"))
    }

    pub(crate) fn is_initialized(&self) -> bool {
        self.node.is_some_and(|node| is_initialized(node))
    }

    /// Whether it is on its way out, whoever wants that.
    pub(crate) fn is_going(&self) -> bool {
        self.is_marked
            || self.claim.meta.is_deleting()
            || self.is(kind::INSTANCE_TERMINATING)
            || self.node.is_some_and(|node| node.meta.is_deleting())
    }

    pub(crate) fn counts_in_budget(&self) -> bool {
        counts_in_budget(self.claim, self.node.map(AsRef::as_ref))
    }

    /// When `consolidateAfter` has passed since pods last came or went. `None` if the pool never waits, or for ever.
    pub(crate) fn settles_at(&self) -> Option<Timestamp> {
        let NillableDuration::After(after) = self.pool()?.disruption.consolidate_after else { return None };
        if after.is_zero() {
            return None;
        }
        let status = &self.claim.status;
        let initialized = || status.conditions.get(kind::INITIALIZED).map(|condition| condition.since);
        let since = status.last_pod_event.or_else(initialized)?;
        Some(since.checked_add(SignedDuration::from(after)).unwrap_or(Timestamp::MAX))
    }

    /// When its time is over, if that ends it. Windows may put it off.
    pub(crate) fn expires_at(&self) -> Option<Timestamp> {
        let NillableDuration::After(life) = self.claim.node.expire_after else { return None };
        let end = self.claim.meta.created.checked_add(SignedDuration::from(life)).unwrap_or(Timestamp::MAX);
        self.pool().is_some_and(|pool| pool.disruption.expiration_enabled).then_some(end)
    }

    /// What is needed to say what it costs and to compare it with others.
    pub(crate) fn check_known(&self) -> Result<(), KeepReason> {
        if self.kind.is_none() {
            return Err(KeepReason::UnknownType);
        }
        if self.label(label::CAPACITY_TYPE).is_none() {
            return Err(KeepReason::NoCapacityType);
        }
        match self.label(label::ZONE) {
            None => Err(KeepReason::NoZone),
            Some(_) => Ok(()),
        }
    }

    pub(crate) fn is_spot(&self) -> bool {
        self.label(label::CAPACITY_TYPE).is_some_and(|kind| &**kind == capacity_type::SPOT)
    }

    /// Pods that will have to run elsewhere.
    pub(crate) fn reschedulable(&self) -> impl Iterator<Item = &'a Arc<Pod>> {
        self.pods.iter().copied().filter(|pod| pod.is_reschedulable())
    }

    /// No pod that costs anything to move. There may still be some that cost nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.reschedule_cost <= 1.0
    }

    /// What a repair weighs (sheet 08 D5).
    pub(crate) fn disruption_cost(&self, view: &View<'_>) -> f64 {
        let ours = view.settings.gates.pod_deletion_cost_management;
        disruption_cost(self.claim, self.pods.iter().copied(), ours, view.now)
    }

    /// As a part of a proposal. `None` if it has no node: then it is no candidate.
    pub(crate) fn candidate(&self, moving: &[Arc<Pod>]) -> Option<Candidate> {
        let node = self.node?;
        Some(Candidate {
            claim: Target::from(&self.claim.meta),
            node: Target::from(&node.meta),
            pool: self.pool_name.clone()?,
            instance_type: self.label(label::INSTANCE_TYPE).cloned(),
            zone: self.label(label::ZONE).cloned(),
            capacity_type: self.label(label::CAPACITY_TYPE).cloned(),
            price: self.price,
            pods: moving.iter().map(|pod| Target::from(&pod.meta)).collect(),
            repair: None,
            consolidation_policy: self.pool().map(|pool| pool.disruption.policy),
        })
    }
}

/// Whether the node is one of those that its pool's budgets count: initialised, or booting again, and its instance not
/// on its way out.
pub fn counts_in_budget(claim: &NodeClaim, node: Option<&Node>) -> bool {
    let is = |condition| claim.status.conditions.is_true(condition);
    (node.is_some_and(is_initialized) || is(kind::REBOOTING)) && !is(kind::INSTANCE_TERMINATING)
}

fn is_initialized(node: &Node) -> bool {
    node.meta.label(label::INITIALIZED) == Some("true")
}

fn labels_of<'a>(claim: &'a NodeClaim, node: Option<&'a Arc<Node>>) -> &'a Texts {
    match node {
        Some(node) if node.meta.label(label::REGISTERED) == Some("true") => &node.meta.labels,
        Some(_) | None => &claim.meta.labels,
    }
}

/// Of the first offering in its zone and of its capacity type, whether it can be had now or not. Unknown is not free:
/// the reference takes 0, so that such a node is never replaced.
fn price(kind: &InstanceType, labels: &Texts) -> Option<Price> {
    let zone = labels.get(label::ZONE)?;
    let capacity_type = labels.get(label::CAPACITY_TYPE)?;
    let has =
        |key: &str, value: &str, offering: &Offering| offering.requirements.get(key).is_some_and(|own| own.has(value));
    let mut matching = kind.offerings.iter();
    matching
        .find(|offering| has(label::ZONE, zone, offering) && has(label::CAPACITY_TYPE, capacity_type, offering))
        .map(|offering| offering.price)
}
