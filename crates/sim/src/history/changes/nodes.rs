//! Nodes and their claims: deleted, protected, moved to another pool, sick.

use kerf_model::label::{self, annotation};
use serde_json::json;

use super::super::Stage;
use super::super::settings::{SICK, STUCK};
use super::{delete, patch, pick, toggle};
use crate::autoscaler::CURED_BY_REBOOT;
use crate::random::Random;
use crate::store::{ApiError, Kind, Object};
use crate::world::{Condition, LOST, Truth, change_status, set_condition};

pub(super) fn delete_node(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    delete(stage, Kind::Node, random)
}

pub(super) fn delete_claim(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    delete(stage, Kind::NodeClaim, random)
}

pub(super) fn toggle_annotation(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let Some(node) = pick(stage, Kind::Node, random) else { return Ok(()) };
    let (key, value) = random.of([
        (annotation::DO_NOT_DISRUPT, "true"),
        (annotation::DO_NOT_DISRUPT, "45m"),
        ("karpenter.sh/do-not-deprovision", "true"),
        ("karpenter.sh/do-not-consolidate", "true"),
        (annotation::DO_NOT_REPAIR, "true"),
    ]);
    toggle(stage, &node, key, value)
}

/// By its node or its claim, to a pool that may not be there, or may not take it.
pub(super) fn relabel(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let kind = random.of([Kind::Node, Kind::Node, Kind::NodeClaim]);
    let Some(moved) = pick(stage, kind, random) else { return Ok(()) };
    let pool = format!("pool-{}", random.between(0, 3));
    patch(stage, kind, &moved.name, json!({"metadata": {"labels": {label::NODEPOOL: pool}}}))
}

/// It says so itself, or its kubelet falls silent though the machine is there.
pub(super) fn fall_ill(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let Some(node) = working(stage, random) else { return Ok(()) };
    let now = stage.world.now();
    if random.one_in(4) {
        return patch(stage, Kind::Node, &node.name, json!({"metadata": {"annotations": {LOST: "true"}}}));
    }
    let (type_, reason) = random.of([(SICK, "DiskDied"), (STUCK, CURED_BY_REBOOT), (STUCK, "Broken")]);
    let condition = Condition { type_, is_true: Truth::True, reason, message: "" };
    change_status(stage.world.store_mut(), Kind::Node, &node.name, |status| set_condition(status, &condition, now))
}

/// By itself: it was a false alarm.
pub(super) fn recover(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let is_sick = |node: &Object| [SICK, STUCK].iter().any(|kind| node.is_condition_true(kind));
    let sick = stage.world.store().all(Kind::Node).filter(|node| is_sick(node)).cloned().collect();
    let Some(node) = random.pick(sick) else { return Ok(()) };
    let now = stage.world.now();
    change_status(stage.world.store_mut(), Kind::Node, &node.name, |status| {
        for type_ in [SICK, STUCK] {
            set_condition(status, &Condition { type_, is_true: Truth::False, reason: "Well", message: "" }, now);
        }
    })
}

/// A node that has never worked is not missed when it falls ill: only its launch has failed.
fn working(stage: &Stage, random: &mut Random) -> Option<Object> {
    let nodes = stage.world.store().all(Kind::Node);
    let works = |node: &Object| node.text(&["metadata", "labels", label::INITIALIZED]) == Some("true");
    random.pick(nodes.filter(|node| works(node)).cloned().collect())
}
