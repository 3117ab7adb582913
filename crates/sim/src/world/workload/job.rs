//! Jobs: pods that are to end well a number of times.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{OwnerWatch, count, create_pod, delete_pod, is_active, pods_of};
use crate::store::object::{field, time_text};
use crate::store::{ApiError, Kind, Object, Store};
use crate::world::Actor;
use crate::world::condition::{Condition, Truth, change_status, set_condition};

pub struct Jobs(OwnerWatch);

impl Jobs {
    pub fn new() -> Self {
        Self(OwnerWatch::new(Kind::Job, Kind::Pod))
    }
}

impl Actor for Jobs {
    fn name(&self) -> &'static str {
        "jobs"
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        for job in self.0.changed_owners(store) {
            advance(store, &job, now)?;
        }
        Ok(())
    }

    fn next_due(&self) -> Option<Timestamp> {
        None
    }
}

fn advance(store: &mut Store, job: &Object, now: Timestamp) -> Result<(), ApiError> {
    if job.is_condition_true("Complete") || job.is_condition_true("Failed") {
        return Ok(());
    }
    let pods = pods_of(store, job);
    let phase = |phase: &str| count(&pods, |pod| pod.text(&["status", "phase"]) == Some(phase));
    let number = |name: &str| job.number(&["spec", name]);
    let (succeeded, failed, active) = (phase("Succeeded"), phase("Failed"), count(&pods, is_active));
    let parallelism = number("parallelism").unwrap_or(1);
    // Without a number of completions, the first that ends well ends the job.
    let missing = match number("completions") {
        Some(completions) => completions - succeeded,
        None if succeeded > 0 => 0,
        None => parallelism,
    };
    let has_failed = failed > number("backoffLimit").unwrap_or(6);
    let is_complete = missing <= 0;
    if has_failed {
        for pod in pods.iter().filter(|pod| is_active(pod)) {
            delete_pod(store, pod, now)?;
        }
    } else {
        for _ in active..missing.min(parallelism) {
            create_pod(store, job, edit, now)?;
        }
    }
    let active = count(&pods_of(store, job), is_active);
    change_status(store, Kind::Job, &job.name, |status| {
        for (name, number) in [("active", active), ("succeeded", succeeded), ("failed", failed)] {
            *field(status, name) = json!(number);
        }
        if status["startTime"].is_null() {
            *field(status, "startTime") = json!(time_text(now));
        }
        let ending = match (has_failed, is_complete) {
            (true, _) => Some(("Failed", "BackoffLimitExceeded")),
            (false, true) => Some(("Complete", "CompletionsReached")),
            (false, false) => None,
        };
        if let Some((type_, reason)) = ending {
            set_condition(status, &Condition { type_, is_true: Truth::True, reason, message: "" }, now);
        }
    })
}

fn edit(pod: &mut Value) {
    let spec = field(pod, "spec");
    // Kubernetes refuses a Job whose pods restart for ever; a template that does not say gets the other meaning.
    if spec["restartPolicy"] == "Always" {
        *field(spec, "restartPolicy") = json!("Never");
    }
}
