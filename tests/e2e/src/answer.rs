//! What the API server says to an object, without keeping it.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use kube::api::{ApiResource, DeleteParams, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

/// The server's verdict on an object.
#[derive(Debug)]
pub enum Answer {
    /// As the server would store it, defaults filled in.
    Accepted(Value),
    /// Why not, in the server's words, and the fields that it names.
    Refused { message: String, fields: BTreeSet<String> },
}

/// Which part of an object an update writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything but the status.
    Main,
    Status,
}

/// Asks by a dry run: everything is checked and nothing is stored, so cases need no cleaning up and can share names.
/// An object without a namespace is taken as one of the cluster.
pub async fn ask(client: &Client, object: &Value) -> Result<Answer> {
    let (api, object) = api_of(client, object)?;
    answer(api.create(&dry_run(), &object).await)
}

/// Asks about a change. There must be something to change, so the old object is stored for the moment.
pub async fn ask_to_update(client: &Client, old: &Value, new: &Value, part: Part) -> Result<Answer> {
    let (api, old) = api_of(client, old)?;
    let stored = api.create(&PostParams::default(), &old).await.context("the server refuses the old object")?;
    let (_, mut new) = api_of(client, new)?;
    // An update names the version that it replaces.
    new.metadata.resource_version = stored.metadata.resource_version.clone();
    let name = stored.name_any();
    let response = match part {
        Part::Main => api.replace(&name, &dry_run(), &new).await,
        Part::Status => api.replace_status(&name, &dry_run(), &new).await,
    };
    api.delete(&name, &DeleteParams::default()).await.context("cannot remove the old object")?;
    answer(response)
}

fn dry_run() -> PostParams {
    PostParams { dry_run: true, ..PostParams::default() }
}

fn api_of(client: &Client, object: &Value) -> Result<(Api<DynamicObject>, DynamicObject)> {
    let object: DynamicObject = serde_json::from_value(object.clone()).context("an object has a kind and metadata")?;
    let types = object.types.as_ref().context("an object has an apiVersion and a kind")?;
    let kind = GroupVersionKind::try_from(types).context("cannot understand the apiVersion")?;
    let resource = ApiResource::from_gvk(&kind);
    let api = match object.metadata.namespace.as_deref() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    Ok((api, object))
}

fn answer(response: kube::Result<DynamicObject>) -> Result<Answer> {
    match response {
        Ok(object) => Ok(Answer::Accepted(serde_json::to_value(object)?)),
        // 400 is a field of the wrong shape, 422 a broken rule, 403 an admission plugin's no. 404 is a kind that is not
        // installed: a mistake of the test, not a verdict on the object.
        Err(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 422) => {
            let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
            let fields = causes.iter().map(|cause| cause.field.clone()).collect();
            Ok(Answer::Refused { message: status.message.clone(), fields })
        }
        Err(error) => Err(error).context("cannot ask the server"),
    }
}
