//! The engine's writes, as requests to the store.

use jiff::Timestamp;
use kerf_api::write::{ApiWrite, Request, Subresource, Version};
use kerf_model::effect::WriteError;
use serde_json::Value;

use crate::store::{ApiError, Conflict, DeleteOptions, EvictionRefusal, Kind, Part, Patch, Store};

/// Each after the success of the one before.
pub fn execute_all(writes: &[ApiWrite], store: &mut Store, now: Timestamp) -> Result<(), WriteError> {
    let mut previous = None;
    for write in writes {
        previous = execute_one(write, previous, store, now)?;
    }
    Ok(())
}

/// The version of the object after the write, where it still has one.
fn execute_one(
    write: &ApiWrite,
    previous: Option<u64>,
    store: &mut Store,
    now: Timestamp,
) -> Result<Option<u64>, WriteError> {
    let kind = Kind::find(&write.kind.api_version(), write.kind.kind).ok_or(WriteError::NotFound)?;
    let done = match &write.request {
        Request::Create(body) => match store.create(kind, body.clone(), now) {
            Err(ApiError::AlreadyExists { .. }) => return Ok(None),
            other => other.map(|object| Some(object.version)),
        },
        Request::MergePatch { subresource, version, body } => {
            let mut body = body.clone();
            let version = match version {
                Version::Any => None,
                Version::Exactly(version) => Some(version.to_string()),
                Version::AfterPrevious => previous.map(|version| version.to_string()),
            };
            if let Some(version) = version {
                body["metadata"]["resourceVersion"] = Value::from(version);
            }
            let part = match subresource {
                Subresource::None => Part::Main,
                Subresource::Status => Part::Status,
            };
            store.patch(kind, &write.name, part, &Patch::Merge(body)).map(|object| Some(object.version))
        }
        Request::Delete { uid, grace_secs } => {
            let options = DeleteOptions { grace_seconds: *grace_secs, ..DeleteOptions::of_uid(uid.to_string()) };
            match store.delete(kind, &write.name, &options, now) {
                Err(ApiError::NotFound { .. } | ApiError::Conflict { cause: Conflict::Uid { .. }, .. }) => Ok(None),
                other => other.map(|_| None),
            }
        }
        Request::Evict { uid } => store.evict(&write.name, &DeleteOptions::of_uid(uid.to_string()), now).map(|_| None),
    };
    done.map_err(write_error)
}

fn write_error(error: ApiError) -> WriteError {
    let message = error.to_string();
    match error {
        ApiError::NotFound { .. } => WriteError::NotFound,
        ApiError::Conflict { .. } | ApiError::AlreadyExists { .. } => WriteError::Conflict,
        ApiError::Eviction(
            EvictionRefusal::BudgetSpent { .. }
            | EvictionRefusal::BudgetNotObserved { .. }
            | EvictionRefusal::SeveralBudgets,
        ) => WriteError::BudgetRefused { message },
        ApiError::Invalid { .. }
        | ApiError::BadRequest { .. }
        | ApiError::PatchRefused { .. }
        | ApiError::Forbidden { .. }
        | ApiError::UnsupportedPatch { .. } => WriteError::Invalid { message },
        ApiError::Expired(_) => WriteError::Unavailable { message },
    }
}
