//! Deletion: at once, after a grace, or when the last finalizer goes.

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::ObjectName;
use serde_json::{Value, json};

use super::object::{at, field, list, time_text};
use super::{ApiError, Conflict, Kind, Object, Store};

/// Holds an owner until its dependents are gone.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// Holds an owner until its dependents have forgotten it.
pub(super) const ORPHAN: &str = "orphan";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Only the object with this uid, not another that has taken its name.
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    /// For pods; their own `terminationGracePeriodSeconds` if absent.
    pub grace_seconds: Option<i64>,
    pub propagation: Propagation,
}

/// What happens to the objects that name this one as their owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Propagation {
    /// They are collected afterwards.
    #[default]
    Background,
    /// They go first.
    Foreground,
    /// They stay, and forget their owner.
    Orphan,
}

/// What a deletion left.
#[derive(Debug, Clone, PartialEq)]
pub enum Deleted {
    /// The object as it was last.
    Gone(Object),
    /// Finalizers or a grace hold it.
    Waiting(Object),
}

impl DeleteOptions {
    pub fn of_uid(uid: impl Into<String>) -> Self {
        Self { uid: Some(uid.into()), ..Self::default() }
    }

    pub fn with_grace(grace_seconds: i64) -> Self {
        Self { grace_seconds: Some(grace_seconds), ..Self::default() }
    }
}

impl Store {
    pub fn delete(
        &mut self,
        kind: Kind,
        name: &ObjectName,
        options: &DeleteOptions,
        now: Timestamp,
    ) -> Result<Deleted, ApiError> {
        let old = self.get(kind, name)?.clone();
        check_preconditions(&old, options)?;
        let grace = match grace_to_give(&old, options) {
            Grace::Unchanged => return Ok(Deleted::Waiting(old)),
            Grace::Given(grace) => grace,
        };
        let held_by = finalizers_after(&old, options.propagation);
        if grace == 0 && held_by.is_empty() {
            self.remove(&old);
            return Ok(Deleted::Gone(old));
        }
        let mut body = old.body().clone();
        let metadata = field(&mut body, "metadata");
        if !old.is_deleting() && old.generation() > 0 {
            *field(metadata, "generation") = json!(old.generation() + 1);
        }
        *field(metadata, "deletionTimestamp") =
            json!(time_text(asked_at(&old, now) + SignedDuration::from_secs(grace)));
        *field(metadata, "deletionGracePeriodSeconds") = json!(grace);
        if !held_by.is_empty() {
            *field(metadata, "finalizers") = json!(held_by);
        }
        // A second delete of something that only waits for its finalizers changes nothing.
        if body == *old.body() {
            return Ok(Deleted::Waiting(old));
        }
        Ok(Deleted::Waiting(self.store(kind, name.clone(), body)))
    }
}

/// Whether nothing holds the object any more.
pub(super) fn is_finished(body: &Value) -> bool {
    let grace = at(body, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
    let is_deleting = at(body, &["metadata", "deletionTimestamp"]).is_some();
    is_deleting && grace == 0 && list(body, &["metadata", "finalizers"]).is_empty()
}

enum Grace {
    Given(i64),
    /// It is already on its way out, and this request does not hurry it.
    Unchanged,
}

fn grace_to_give(old: &Object, options: &DeleteOptions) -> Grace {
    if old.is_deleting() {
        let current = old.number(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
        // A grace can only be shortened.
        return match options.grace_seconds {
            _ if current == 0 => Grace::Given(0),
            Some(shorter) if shorter < current => Grace::Given(shorter.max(0)),
            Some(_) | None => Grace::Unchanged,
        };
    }
    let has_grace = old.kind == Kind::Pod
        && at(old.body(), &["spec", "nodeName"]).and_then(Value::as_str).is_some_and(|node| !node.is_empty())
        && !matches!(old.text(&["status", "phase"]), Some("Succeeded" | "Failed"));
    if !has_grace {
        return Grace::Given(0);
    }
    let own = || old.number(&["spec", "terminationGracePeriodSeconds"]).unwrap_or(30);
    match options.grace_seconds.unwrap_or_else(own) {
        // Kubernetes reads a negative grace as the shortest that is not a kill.
        negative if negative < 0 => Grace::Given(1),
        grace => Grace::Given(grace),
    }
}

/// When the deletion was asked for first: a shortened grace counts from then.
fn asked_at(old: &Object, now: Timestamp) -> Timestamp {
    let grace = old.number(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
    old.time(&["metadata", "deletionTimestamp"]).map_or(now, |end| end - SignedDuration::from_secs(grace))
}

fn finalizers_after(old: &Object, propagation: Propagation) -> Vec<String> {
    let own = old.finalizers().filter(|finalizer| !matches!(*finalizer, FOREGROUND | ORPHAN)).map(str::to_owned);
    let added = match propagation {
        // What was asked for first stays, unless this request says otherwise.
        Propagation::Background => old.finalizers().find(|finalizer| matches!(*finalizer, FOREGROUND | ORPHAN)),
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    own.chain(added.map(str::to_owned)).collect()
}

fn check_preconditions(old: &Object, options: &DeleteOptions) -> Result<(), ApiError> {
    let conflict = |cause| Err(ApiError::Conflict { kind: old.kind, name: old.name.clone(), cause });
    if let Some(wanted) = &options.uid
        && *wanted != old.uid()
    {
        return conflict(Conflict::DeleteUid { wanted: wanted.clone(), actual: old.uid().to_owned() });
    }
    match &options.resource_version {
        Some(wanted) if *wanted != old.version.to_string() => {
            conflict(Conflict::DeleteVersion { wanted: wanted.clone(), actual: old.version.to_string() })
        }
        Some(_) | None => Ok(()),
    }
}
