//! What people and the cloud do meanwhile.

use kerf_model::cluster::ObjectName;
use serde_json::{Value, json};

use super::{Stage, cluster};
use crate::random::Random;
use crate::store::{ApiError, DeleteOptions, Kind, Object, Part, Patch};

pub(super) fn change(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    match random.below(27) {
        0..=5 => scale(stage, random),
        6..=7 => delete(stage, Kind::Pod, random),
        8..=10 => delete(stage, Kind::Node, random),
        11..=12 => delete(stage, Kind::NodeClaim, random),
        13 => replace_pool(stage, random),
        14 => raise_limits(stage, random),
        15..=16 => toggle_protection(stage, random),
        17..=18 => {
            lose_instance(stage, random);
            Ok(())
        }
        19..=21 => edit_template(stage, random),
        22..=23 => toggle_window(stage, random),
        24..=25 => protect_node(stage, random),
        _ => {
            let now = stage.world.now();
            let outage = jiff::SignedDuration::from_secs(random.between(15, 900));
            stage.autoscaler.borrow_mut().crash(outage, now);
            Ok(())
        }
    }
}

fn scale(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let kind = if random.one_in(5) { Kind::StatefulSet } else { Kind::Deployment };
    let Some(workload) = pick(stage, kind, random) else { return Ok(()) };
    patch(stage, kind, &workload.name, json!({"spec": {"replicas": random.between(0, 15)}}))
}

fn delete(stage: &mut Stage, kind: Kind, random: &mut Random) -> Result<(), ApiError> {
    let Some(object) = pick(stage, kind, random) else { return Ok(()) };
    let now = stage.world.now();
    stage.world.store_mut().delete(kind, &object.name, &DeleteOptions::default(), now).map(|_| ())
}

/// A pool goes, and another of its name comes at once: another uid, other claims.
fn replace_pool(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let Some(pool) = pick(stage, Kind::NodePool, random) else { return Ok(()) };
    let index = pool.name.name.rsplit('-').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    let now = stage.world.now();
    stage.world.store_mut().delete(Kind::NodePool, &pool.name, &DeleteOptions::default(), now)?;
    match stage.world.store_mut().create(Kind::NodePool, cluster::pool(index, random), now) {
        // It may wait for finalizers.
        Ok(_) | Err(ApiError::AlreadyExists { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Only up: below what there is, a limit says nothing about what was launched before.
fn raise_limits(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let Some(pool) = pick(stage, Kind::NodePool, random) else { return Ok(()) };
    let limits = match (pool.text(&["spec", "limits", "cpu"]), pool.text(&["spec", "limits", "nodes"])) {
        (Some(_), _) => json!({"cpu": random.between(40, 80).to_string()}),
        (None, Some(_)) => json!({"nodes": random.between(4, 8).to_string()}),
        (None, None) => return Ok(()),
    };
    patch(stage, Kind::NodePool, &pool.name, json!({"spec": {"limits": limits}}))
}

fn toggle_protection(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let Some(pod) = pick(stage, Kind::Pod, random) else { return Ok(()) };
    let key = kerf_model::label::annotation::DO_NOT_DISRUPT;
    let value = match pod.text(&["metadata", "annotations", key]) {
        Some(_) => Value::Null,
        None => json!("true"),
    };
    patch(stage, Kind::Pod, &pod.name, json!({"metadata": {"annotations": {key: value}}}))
}

/// Its nodes drift.
fn edit_template(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let Some(pool) = pick(stage, Kind::NodePool, random) else { return Ok(()) };
    let edit = json!({"example.com/edit": random.between(0, 1_000_000).to_string()});
    patch(stage, Kind::NodePool, &pool.name, json!({"spec": {"template": {"metadata": {"annotations": edit}}}}))
}

fn toggle_window(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let index = random.between(0, 1);
    let name = ObjectName::of_cluster(format!("window-{index}"));
    let now = stage.world.now();
    if stage.world.store().get(Kind::MaintenanceWindow, &name).is_ok() {
        return stage
            .world
            .store_mut()
            .delete(Kind::MaintenanceWindow, &name, &DeleteOptions::default(), now)
            .map(drop);
    }
    let window = cluster::window(index, random);
    stage.world.store_mut().create(Kind::MaintenanceWindow, window, now).map(drop)
}

fn protect_node(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let Some(node) = pick(stage, Kind::Node, random) else { return Ok(()) };
    let key = kerf_model::label::annotation::DO_NOT_DISRUPT;
    let value = match node.text(&["metadata", "annotations", key]) {
        Some(_) => Value::Null,
        None => json!("true"),
    };
    patch(stage, Kind::Node, &node.name, json!({"metadata": {"annotations": {key: value}}}))
}

fn lose_instance(stage: &mut Stage, random: &mut Random) {
    let now = stage.world.now();
    let mut autoscaler = stage.autoscaler.borrow_mut();
    let ids = autoscaler.cloud().machines().map(|machine| machine.provider_id.to_owned()).collect();
    if let Some(id) = random.pick(ids) {
        autoscaler.cloud_mut().lose(&id, now);
    }
}

fn pick(stage: &Stage, kind: Kind, random: &mut Random) -> Option<Object> {
    random.pick(stage.world.store().all(kind).cloned().collect())
}

fn patch(stage: &mut Stage, kind: Kind, name: &ObjectName, body: Value) -> Result<(), ApiError> {
    stage.world.store_mut().patch(kind, name, Part::Main, &Patch::Merge(body)).map(|_| ())
}
