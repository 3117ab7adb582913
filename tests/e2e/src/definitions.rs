//! Custom resource definitions, installed and in force.

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};

use crate::eventually;

/// Installs them and waits until the server serves their kinds. Can be called by any number of tests at once.
pub async fn install(client: &Client, definitions: &[CustomResourceDefinition]) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let parameters = PatchParams::apply("kerf-e2e").force();
    for definition in definitions {
        let name = definition.name_any();
        let applied = api.patch(&name, &parameters, &Patch::Apply(definition)).await;
        applied.with_context(|| format!("the server refuses the definition {name}"))?;
    }
    for definition in definitions {
        let name = definition.name_any();
        eventually(&format!("{name} is established"), async || {
            Ok(api.get(&name).await?.status.as_ref().is_some_and(is_established).then_some(()))
        })
        .await?;
    }
    Ok(())
}

type Status = k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionStatus;

fn is_established(status: &Status) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|condition| condition.type_ == "Established" && condition.status == "True")
}
