//! Objects to check with.

use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::budget::BudgetList;
use kerf_model::cloud::Launched;
use kerf_model::cluster::{
    ClaimStatus, Condition, ConditionStatus, NodeClaim, ObjectMeta, ObjectName, Texts, condition_kind,
};
use kerf_model::duration::{GoDuration, NillableDuration};
use kerf_model::node_pool::{ConsolidationPolicy, Disruption, NodeClassRef, NodePool, NodeSpec, PoolSize};
use kerf_model::requirement::Requirements;
use kerf_model::resources::ResourceList;

/// A claim that asks for nothing but the requirements, labelled with its class as all claims are. Its uid follows from its
/// name.
pub fn claim(name: &str, class: &NodeClassRef, requirements: Requirements) -> NodeClaim {
    NodeClaim {
        meta: ObjectMeta {
            name: ObjectName::of_cluster(name),
            uid: format!("uid-of-{name}").into(),
            resource_version: Arc::from("1"),
            generation: 1,
            created: Timestamp::UNIX_EPOCH,
            deleting: None,
            labels: Texts::from([(class.label_key(), class.name.clone())]),
            annotations: Texts::new(),
            finalizers: Vec::new(),
            owners: Vec::new(),
        },
        node: node_spec(class, requirements),
        requests: ResourceList::new(),
        status: ClaimStatus::default(),
    }
}

/// A pool without limits.
pub fn pool(name: &str, class: &NodeClassRef) -> NodePool {
    NodePool {
        name: Arc::from(name),
        weight: 0,
        size: PoolSize::Dynamic,
        limits: ResourceList::new(),
        labels: Texts::new(),
        annotations: Texts::new(),
        node: node_spec(class, Requirements::new()),
        disruption: Disruption {
            enabled: true,
            policy: ConsolidationPolicy::WhenEmptyOrUnderutilized,
            consolidate_after: NillableDuration::After(GoDuration::ZERO),
            consolidation_enabled: true,
            drift_enabled: true,
            drift_force_evict: false,
            expiration_enabled: true,
            budgets: BudgetList::default(),
        },
        disabled: false,
    }
}

fn node_spec(class: &NodeClassRef, requirements: Requirements) -> NodeSpec {
    NodeSpec {
        class: class.clone(),
        requirements,
        taints: Vec::new(),
        startup_taints: Vec::new(),
        expire_after: NillableDuration::Never,
        termination_grace_period: None,
    }
}

/// The claim as it is after its launch was written down (sheet 04 §2.1).
pub(super) fn with_launch(mut claim: NodeClaim, launched: &Launched, now: Timestamp) -> NodeClaim {
    for (key, value) in &launched.labels {
        claim.meta.labels.entry(key.clone()).or_insert_with(|| value.clone());
    }
    claim.meta.annotations.extend(launched.annotations.clone());
    claim.status.provider_id = Some(launched.provider_id.clone());
    claim.status.capacity = launched.capacity.clone();
    claim.status.allocatable = launched.allocatable.clone();
    claim.status.conditions.0.push(Condition {
        kind: Arc::from(condition_kind::LAUNCHED),
        status: ConditionStatus::True,
        reason: Arc::from("Launched"),
        message: Arc::from(""),
        since: now,
        observed_generation: 1,
    });
    claim
}
