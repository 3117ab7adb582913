//! What people and the cloud do meanwhile.

mod cloud;
mod nodes;
mod pools;
mod workloads;

use kerf_model::cluster::ObjectName;
use serde_json::Value;

use super::Stage;
use crate::random::Random;
use crate::store::{ApiError, DeleteOptions, Kind, Object, Part, Patch};

type Change = fn(&mut Stage, &mut Random) -> Result<(), ApiError>;

/// Each with its share.
const CHANGES: [(u64, Change); 21] = [
    (6, workloads::scale),
    (2, workloads::delete_pod),
    (2, workloads::toggle_protection),
    (1, workloads::toggle_cost),
    (1, workloads::edit_budget),
    (1, workloads::toggle_buffer),
    (3, nodes::delete_node),
    (2, nodes::delete_claim),
    (4, nodes::toggle_annotation),
    (2, nodes::relabel),
    (4, nodes::fall_ill),
    (2, nodes::recover),
    (1, pools::replace),
    (2, pools::resize),
    (3, pools::edit),
    (4, pools::switch),
    (1, pools::edit_class),
    (3, pools::toggle_window),
    (2, cloud::lose_instance),
    (3, cloud::interrupt),
    (2, cloud::run_short),
];

/// The process is ended, and another starts.
const RESTARTS: u64 = 1;

pub(super) fn change(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let shares: u64 = CHANGES.iter().map(|(share, _)| share).sum();
    let mut at = random.below(shares + RESTARTS);
    for (share, change) in CHANGES {
        if at < share {
            return change(stage, random);
        }
        at -= share;
    }
    let now = stage.world.now();
    let outage = jiff::SignedDuration::from_secs(random.between(15, 900));
    stage.autoscaler.borrow_mut().crash(outage, now);
    Ok(())
}

/// What went wrong with the cloud is over. Sick nodes stay sick, and windows, switches and protections stay as they are.
pub(super) fn end(stage: &mut Stage) {
    stage.autoscaler.borrow_mut().cloud_mut().set_shortages(Vec::new());
}

fn delete(stage: &mut Stage, kind: Kind, random: &mut Random) -> Result<(), ApiError> {
    let Some(object) = pick(stage, kind, random) else { return Ok(()) };
    let now = stage.world.now();
    stage.world.store_mut().delete(kind, &object.name, &DeleteOptions::default(), now).map(|_| ())
}

fn pick(stage: &Stage, kind: Kind, random: &mut Random) -> Option<Object> {
    random.pick(stage.world.store().all(kind).cloned().collect())
}

fn patch(stage: &mut Stage, kind: Kind, name: &ObjectName, body: Value) -> Result<(), ApiError> {
    stage.world.store_mut().patch(kind, name, Part::Main, &Patch::Merge(body)).map(|_| ())
}

/// Puts the annotation on, or takes it off.
fn toggle(stage: &mut Stage, object: &Object, key: &str, value: &str) -> Result<(), ApiError> {
    let value = match object.text(&["metadata", "annotations", key]) {
        Some(_) => Value::Null,
        None => Value::from(value),
    };
    patch(stage, object.kind, &object.name, serde_json::json!({"metadata": {"annotations": {key: value}}}))
}
