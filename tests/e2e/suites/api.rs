//! The API as users meet it: the real server takes the definitions, and answers every row of the table as the table says
//! and as offline admission says.

use anyhow::{Context, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kerf_api::admission::{Admission, Outcome};
use kerf_api::crds;
use kerf_e2e::table::{self, CrdSet, Expected, Request, Row};
use kerf_e2e::turns::{Life, turn};
use kerf_e2e::{Answer, Part, ask, ask_to_update, connect, converted, eventually, install};
use kube::api::{ApiResource, DeleteParams, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

/// One test for all sets, because they are definitions of the same kinds and take turns on the server.
#[tokio::test]
async fn the_server_the_table_and_offline_admission_agree() -> Result<()> {
    // It takes definitions away that others work with.
    let _turn = turn(Life::Own).await?;
    let client = connect().await?;
    let rows = table::rows()?;
    let mut asked = 0;
    let mut objections = Vec::new();
    for set in CrdSet::EVERY {
        let definitions = crds(set.provider());
        reinstall(&client, &definitions).await?;
        let admission = Admission::new(&definitions).context("offline admission takes the definitions")?;
        for row in rows.iter().filter(|row| row.sets.contains(&set)) {
            asked += 1;
            let found = objections_to(&client, &admission, row).await.with_context(|| row.name.clone())?;
            objections.extend(found.into_iter().map(|found| format!("[{set}] {} ({}): {found}", row.name, row.sheet)));
        }
    }
    // The definitions of every kind are in force now.
    let admission = Admission::new(&crds(None))?;
    let converted = converted::objects(&admission)?;
    for (file, object) in &converted {
        if let Answer::Refused { message, .. } = ask(&client, object).await? {
            objections.push(format!("{file}: the converted object is refused: {message}"));
        }
    }
    println!("{} converted objects", converted.len());
    println!("{} rows, {asked} questions to the server, {} objections", rows.len(), objections.len());
    ensure!(objections.is_empty(), "{} of {asked}:\n{}", objections.len(), objections.join("\n"));
    Ok(())
}

/// Removes definitions before it installs their successors: an update of a definition reaches the server's handlers some
/// time later and nothing tells when, while a new one is served only in its new form.
async fn reinstall(client: &Client, definitions: &[CustomResourceDefinition]) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in definitions {
        let name = definition.name_any();
        if api.get_opt(&name).await?.is_some() {
            api.delete(&name, &DeleteParams::default()).await?;
            eventually(&format!("{name} is gone"), async || Ok(api.get_opt(&name).await?.is_none().then_some(())))
                .await?;
        }
    }
    install(client, definitions).await?;
    for definition in definitions {
        let names = &definition.spec.names;
        for version in &definition.spec.versions {
            let kind = GroupVersionKind::gvk(&definition.spec.group, &version.name, &names.kind);
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
            // Established comes a moment before the first answer.
            eventually(&format!("{} are served", names.plural), async || {
                Ok(api.list(&Default::default()).await.map(|_| Some(()))?)
            })
            .await?;
        }
    }
    Ok(())
}

/// What is wrong with the three answers to a row: they must agree, and the server's object must be the expected one.
async fn objections_to(client: &Client, admission: &Admission, row: &Row) -> Result<Vec<String>> {
    let answer = ask_server(client, &row.request).await?;
    let offline = row.ask(admission);
    let mut found = Vec::new();
    if let Some(objection) = row.objection(&offline)? {
        found.push(format!("offline: {objection}"));
    }
    match (&row.expected, &answer) {
        (Expected::Accept { after }, Answer::Accepted(object)) => {
            if let Some(objection) = row.objection_after(after, object)? {
                found.push(format!("server: {objection}"));
            }
            if let Outcome::Accepted(accepted) = &offline {
                found.extend(difference(object, &accepted.object));
            }
        }
        (Expected::Accept { .. }, Answer::Refused { message, .. }) => {
            found.push(format!("server: rejected: {message}"));
        }
        (Expected::Reject { field, .. }, Answer::Accepted(_)) => {
            found.push(format!("server: accepted, although {field} is wrong"));
        }
        (Expected::Reject { field, rule }, Answer::Refused { fields, message }) => {
            // A number out of its type's range is reported without a field.
            if rule != "range" && !fields.contains(field) {
                found.push(format!("server: rejected, but not for {field}: {message}"));
            }
        }
    }
    Ok(found)
}

fn difference(server: &Value, offline: &Value) -> Option<String> {
    ["spec", "status"].into_iter().find(|part| server.get(part) != offline.get(part)).map(|part| {
        let text = |object: &Value| object.get(part).unwrap_or(&Value::Null).to_string();
        format!("{part} is {} on the server and {} offline", text(server), text(offline))
    })
}

async fn ask_server(client: &Client, request: &Request) -> Result<Answer> {
    match request {
        Request::Create(object) => ask(client, object).await,
        Request::Update { old, new } => ask_to_update(client, old, new, Part::Main).await,
        Request::UpdateStatus { old, new } => ask_to_update(client, old, new, Part::Status).await,
    }
}
