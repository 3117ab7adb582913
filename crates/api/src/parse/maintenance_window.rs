//! MaintenanceWindow.

use std::collections::BTreeSet;
use std::sync::Arc;

use kerf_model::cluster::{ObjectMeta, StoredWindow, WindowStatus};
use kerf_model::cron::{Dialect, Schedule};
use kerf_model::label::annotation;
use kerf_model::maintenance::{Action, MaintenanceWindow as Window};
use kerf_model::requirement::Expression;
use kerf_model::selector::Selector;
use kerf_model::window;
use kube::ResourceExt;

use crate::maintenance_window::{MaintenanceWindow, NodeSelector, WindowSchedule};

use super::metadata::{conditions, object_meta};
use super::problem::{Collector, Problem, Violation};
use super::{ParseError, Parsed};

/// A window of which a part cannot be read is refused as a whole: to its users it counts as active.
pub fn maintenance_window(window: &MaintenanceWindow) -> Result<Parsed<Window>, ParseError> {
    let mut problems = Collector::default();
    let spec = &window.spec;
    let mut actions = BTreeSet::new();
    for (index, action) in spec.actions.iter().enumerate() {
        let field = format!("spec.actions[{index}]");
        actions.extend(problems.take(&field, Action::named(action), Violation::Action).into_iter().flatten());
    }
    let schedules = spec.schedules.iter().flatten().enumerate();
    let schedules = schedules
        .filter_map(|(index, wire)| schedule(&format!("spec.schedules[{index}]"), wire, &mut problems))
        .collect();
    let selector = spec.selector.as_ref().map(|wire| selector(wire, &mut problems));
    let name: Arc<str> = window.name_any().into();
    let parsed = Window {
        name: Arc::clone(&name),
        schedules,
        outside_schedules: spec.outside_schedules.unwrap_or(false),
        actions,
        selector,
        until: window.annotations().get(annotation::FROZEN_UNTIL).and_then(|text| text.parse().ok()),
    };
    problems.finish("MaintenanceWindow", &name, Some(parsed))
}

/// With its status. A window that cannot be read counts as one.
pub fn stored_window(wire: &MaintenanceWindow) -> Parsed<StoredWindow> {
    let meta = object_meta(&wire.metadata);
    let status = wire.status.clone().unwrap_or_default();
    let status = WindowStatus {
        active: status.active,
        next_transition: status.next_transition_time.and_then(|time| time.as_str().parse().ok()),
        matched_nodes: status.matched_nodes,
        conditions: conditions(status.conditions.as_deref()),
    };
    match maintenance_window(wire) {
        Ok(Parsed { value, warnings }) => {
            Parsed { value: StoredWindow { meta, spec: value, problem: None, status }, warnings }
        }
        Err(error) => {
            let texts: Vec<String> = error.problems.iter().map(Problem::to_string).collect();
            let window = StoredWindow { status, ..unreadable_window(meta, &texts.join("; ")) };
            Parsed { value: window, warnings: error.problems }
        }
    }
}

/// What a window that cannot be read counts as: active, always and everywhere. Holding back is the mistake that can be
/// put right (sheet 03 §15.1).
pub fn unreadable_window(meta: ObjectMeta, problem: &str) -> StoredWindow {
    let spec = Window {
        name: Arc::clone(&meta.name.name),
        schedules: Vec::new(),
        outside_schedules: false,
        actions: BTreeSet::from(Action::ALL),
        selector: None,
        until: None,
    };
    StoredWindow { meta, spec, problem: Some(Arc::from(problem)), status: WindowStatus::default() }
}

fn schedule(field: &str, wire: &WindowSchedule, problems: &mut Collector) -> Option<window::Window> {
    let duration = problems.duration(&format!("{field}.duration"), &wire.duration);
    let (Some(text), true) = (wire.expression(), wire.cron.is_none() || wire.schedule.is_none()) else {
        problems.refuse(field, Violation::OneScheduleExpected);
        return None;
    };
    let schedule = Schedule::parse_as(text, Dialect::MaintenanceWindow).and_then(|schedule| match &wire.time_zone {
        Some(name) => schedule.in_time_zone(name),
        None => Ok(schedule),
    });
    let schedule = problems.take(field, schedule, Violation::Schedule)?;
    if !schedule.is_possible() {
        problems.refuse(field, Violation::NeverActive { schedule: text.to_owned() });
    }
    Some(window::Window { schedule, duration: duration? })
}

fn selector(wire: &NodeSelector, problems: &mut Collector) -> Selector {
    let mut expressions = Vec::new();
    for (index, expression) in wire.match_expressions.iter().flatten().enumerate() {
        let field = format!("spec.selector.matchExpressions[{index}].operator");
        if let Some(operator) = problems.take(&field, expression.operator.parse(), Violation::Operator) {
            let values = expression.values.as_deref().unwrap_or_default();
            expressions.push(Expression::new(&expression.key, operator, values));
        }
    }
    let labels = wire.match_labels.iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()));
    problems.take("spec.selector", Selector::new(labels, &expressions), Violation::Requirement).unwrap_or_default()
}
