//! Pools, their node class, and maintenance windows.

use kerf_model::cluster::ObjectName;
use serde_json::json;

use super::super::{Stage, pools};
use super::{patch, pick};
use crate::autoscaler::{IMAGE, TAGS};
use crate::random::Random;
use crate::store::{ApiError, DeleteOptions, Kind};

/// A pool goes, and another of its name comes at once: another uid, other claims.
pub(super) fn replace(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let Some(pool) = pick(stage, Kind::NodePool, random) else { return Ok(()) };
    let index = pool.name.name.rsplit('-').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    let now = stage.world.now();
    stage.world.store_mut().delete(Kind::NodePool, &pool.name, &DeleteOptions::default(), now)?;
    match stage.world.store_mut().create(Kind::NodePool, pools::pool(index, random), now) {
        // It may wait for finalizers.
        Ok(_) | Err(ApiError::AlreadyExists { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Other replicas, or limits that are raised: below what there is, a limit says nothing about what was launched before.
pub(super) fn resize(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let Some(pool) = pick(stage, Kind::NodePool, random) else { return Ok(()) };
    let replicas = pool.at(&["spec", "replicas"]);
    let spec = match (replicas, pool.text(&["spec", "limits", "cpu"]), pool.text(&["spec", "limits", "nodes"])) {
        (Some(_), ..) => json!({"replicas": random.between(0, 5)}),
        (None, Some(_), _) => json!({"limits": {"cpu": random.between(40, 80).to_string()}}),
        (None, None, Some(_)) => json!({"limits": {"nodes": random.between(4, 8).to_string()}}),
        (None, None, None) => return Ok(()),
    };
    patch(stage, Kind::NodePool, &pool.name, json!({"spec": spec}))
}

/// Its nodes drift.
pub(super) fn edit(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let Some(pool) = pick(stage, Kind::NodePool, random) else { return Ok(()) };
    patch(stage, Kind::NodePool, &pool.name, pools::edit(random))
}

pub(super) fn switch(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let Some(pool) = pick(stage, Kind::NodePool, random) else { return Ok(()) };
    patch(stage, Kind::NodePool, &pool.name, pools::switch(random))
}

/// Another image, for which nodes are replaced, or other tags, which they can be given as they run.
pub(super) fn edit_class(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let Some(class) = pick(stage, Kind::KwokNodeClass, random) else { return Ok(()) };
    let (key, value) = match random.one_in(2) {
        true => (IMAGE, format!("v1.36.{}", random.between(1, 9))),
        false => (TAGS, format!("cost={}", random.between(1, 9))),
    };
    patch(stage, Kind::KwokNodeClass, &class.name, json!({"metadata": {"annotations": {key: value}}}))
}

pub(super) fn toggle_window(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let index = random.between(0, 1);
    let name = ObjectName::of_cluster(format!("window-{index}"));
    let now = stage.world.now();
    let store = stage.world.store_mut();
    if store.get(Kind::MaintenanceWindow, &name).is_ok() {
        return store.delete(Kind::MaintenanceWindow, &name, &DeleteOptions::default(), now).map(drop);
    }
    store.create(Kind::MaintenanceWindow, pools::window(index, random), now).map(drop)
}
