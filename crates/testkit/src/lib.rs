//! Objects for tests: each has a name and what follows from it, and nothing else. A test says what it is about with
//! `..pod("web")`, or by editing what it was given.
//!
//! For tests only: `cargo xtask ci` fails when something that is shipped depends on it.

use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::{
    ClaimStatus, Condition, ConditionStatus, DoNotDisrupt, Node, NodeClaim, ObjectMeta, ObjectName, Pod, PodPhase,
    Texts,
};
use kerf_model::duration::NillableDuration;
use kerf_model::effect::NewClaim;
use kerf_model::node_pool::{NodeClassRef, NodeSpec};
use kerf_model::requirement::Requirements;
use kerf_model::resources::ResourceList;

/// Made at the beginning of time; its uid is `uid-NAME`.
pub fn meta(name: ObjectName) -> ObjectMeta {
    ObjectMeta {
        uid: Arc::from(format!("uid-{}", name.name)),
        name,
        resource_version: Arc::from("1"),
        generation: 1,
        created: Timestamp::UNIX_EPOCH,
        deleting: None,
        labels: Texts::new(),
        annotations: Texts::new(),
        finalizers: Vec::new(),
        owners: Vec::new(),
    }
}

pub fn texts<'t>(pairs: impl IntoIterator<Item = (&'t str, &'t str)>) -> Texts {
    pairs.into_iter().map(|(key, value)| (Arc::from(key), Arc::from(value))).collect()
}

/// The class `default` of a kind that nobody else has.
pub fn class() -> NodeClassRef {
    NodeClassRef { group: Arc::from("g"), kind: Arc::from("K"), name: Arc::from("default") }
}

pub fn node_spec() -> NodeSpec {
    NodeSpec {
        class: class(),
        requirements: Requirements::new(),
        taints: Vec::new(),
        startup_taints: Vec::new(),
        expire_after: NillableDuration::Never,
        termination_grace_period: None,
    }
}

/// A claim that nobody has looked at.
pub fn claim(name: &str) -> NodeClaim {
    NodeClaim {
        meta: meta(ObjectName::of_cluster(name)),
        node: node_spec(),
        requests: ResourceList::new(),
        status: ClaimStatus::default(),
    }
}

/// A claim that is asked for.
pub fn new_claim(name: &str) -> NewClaim {
    NewClaim {
        name: Arc::from(name),
        labels: Texts::new(),
        annotations: Texts::new(),
        owner: None,
        node: node_spec(),
        requests: ResourceList::new(),
        replaces_for: None,
    }
}

/// A node of which nothing is known.
pub fn node(name: &str) -> Node {
    Node {
        meta: meta(ObjectName::of_cluster(name)),
        provider_id: None,
        taints: Vec::new(),
        unschedulable: false,
        capacity: ResourceList::new(),
        allocatable: ResourceList::new(),
        conditions: Vec::new(),
        boot_id: None,
    }
}

/// A pod in the namespace `default` that is on no node, asks for nothing, and was not looked at by the scheduler.
pub fn pod(name: &str) -> Pod {
    Pod {
        meta: meta(ObjectName::new("default", name)),
        node_name: None,
        phase: PodPhase::Pending,
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

/// A condition that is true, for the reason of its own name.
pub fn condition(kind: &str, since: Timestamp) -> Condition {
    Condition {
        kind: Arc::from(kind),
        status: ConditionStatus::True,
        reason: Arc::from(kind),
        message: Arc::from(""),
        since,
        observed_generation: 1,
    }
}
