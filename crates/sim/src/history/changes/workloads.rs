//! Pods and those who make them.

use kerf_model::cluster::ObjectName;
use kerf_model::label::annotation;
use serde_json::json;

use super::super::{Stage, cluster};
use super::{delete, patch, pick, toggle};
use crate::random::Random;
use crate::store::{ApiError, DeleteOptions, Kind};

pub(super) fn scale(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let kind = if random.one_in(5) { Kind::StatefulSet } else { Kind::Deployment };
    let Some(workload) = pick(stage, kind, random) else { return Ok(()) };
    patch(stage, kind, &workload.name, json!({"spec": {"replicas": random.between(0, 15)}}))
}

pub(super) fn delete_pod(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    delete(stage, Kind::Pod, random)
}

pub(super) fn toggle_protection(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let Some(pod) = pick(stage, Kind::Pod, random) else { return Ok(()) };
    toggle(stage, &pod, annotation::DO_NOT_DISRUPT, "true")
}

/// What an eviction costs, by our annotation or by Kubernetes' own.
pub(super) fn toggle_cost(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let Some(pod) = pick(stage, Kind::Pod, random) else { return Ok(()) };
    let key = random.of([annotation::DISRUPTION_COST, annotation::POD_DELETION_COST]);
    toggle(stage, &pod, key, random.of(["-134217728", "134217728", "1000"]))
}

pub(super) fn edit_budget(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let Some(budget) = pick(stage, Kind::PodDisruptionBudget, random) else { return Ok(()) };
    patch(stage, Kind::PodDisruptionBudget, &budget.name, json!({"spec": cluster::allowance(random)}))
}

pub(super) fn toggle_buffer(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let name = ObjectName::new("default", "room");
    let now = stage.world.now();
    let store = stage.world.store_mut();
    if store.get(Kind::CapacityBuffer, &name).is_ok() {
        return store.delete(Kind::CapacityBuffer, &name, &DeleteOptions::default(), now).map(drop);
    }
    store.create(Kind::CapacityBuffer, cluster::buffer(random), now).map(drop)
}
