//! What the status of a maintenance window says: whether it holds actions back now, until when, on how many nodes, and
//! whether it is understood (sheet 03 §15.1).

use std::sync::Arc;

use kerf_model::cluster::{StoredWindow, WindowStatus, condition_kind as kind};
use kerf_model::effect::{Effect, Target, WindowPatch};

use crate::conditions::ConditionEditor;
use crate::events;
use crate::steps::Steps;
use crate::view::View;

pub fn next(window: &StoredWindow, view: View<'_>) -> Steps {
    if window.meta.is_deleting() {
        return Steps::default();
    }
    let mut conditions = ConditionEditor::of_window(window, view.now);
    let mut steps = Steps { wake: window.spec.next_transition(view.now), ..Steps::default() };
    match &window.problem {
        None => conditions.set_true(kind::READY),
        Some(problem) => {
            conditions.set_false(kind::READY, "Unreadable", problem);
            steps.effects.push(events::window_unreadable(window, problem));
        }
    }
    let status = WindowStatus {
        active: Some(window.spec.is_active(view.now)),
        next_transition: steps.wake,
        matched_nodes: Some(matched_nodes(window, view)),
        conditions: conditions.finish().unwrap_or_else(|| window.status.conditions.clone()),
    };
    if status != window.status {
        let patch = WindowPatch { resource_version: Arc::clone(&window.meta.resource_version), status };
        steps.effects.push(Effect::PatchWindow(Target::from(&window.meta), Box::new(patch)));
    }
    steps
}

/// Nodes of ours that it covers.
fn matched_nodes(window: &StoredWindow, view: View<'_>) -> i64 {
    let nodes = view.snapshot.nodes().filter(|node| view.settings.manages_node(node));
    let covered = nodes.filter(|node| window.spec.covers(&node.meta.labels)).count();
    i64::try_from(covered).unwrap_or(i64::MAX)
}
