//! Claims that no pool made.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use k8s_openapi::api::core::v1::Node;
use kerf_api::kwok_node_class::KwokNodeClass;
use kerf_api::node_claim::NodeClaim;
use kerf_e2e::world::{Claim, DRAIN_WITHIN, POOL_LABEL, World};
use kerf_e2e::{eventually, merge, throughout, within};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

pub async fn a_claim_without_a_pool_becomes_a_node(world: &World<'_>) -> Result<()> {
    create(world, json!({})).await?;
    let (node, claim) = world.only_node().await?;
    let node = world.api::<Node>().get(&node).await?;
    let label = |key: &str| node.labels().get(key).map(String::as_str).unwrap_or_default().to_owned();
    ensure!(label("karpenter.sh/capacity-type") == "on-demand", "it is {}", label("karpenter.sh/capacity-type"));
    ensure!(label("karpenter.sh/initialized") == "true" && label("karpenter.sh/registered") == "true");
    ensure!(label("node.kubernetes.io/instance-type") == "c-16x-amd64-linux", "the first of equal price");
    ensure!(!node.labels().contains_key("karpenter.sh/nodepool"), "it has no pool");
    ensure!(claim.object.status.as_ref().is_some_and(|status| status.provider_id.is_some()));
    world.delete_claim(&claim.name).await?;
    world.until_nothing_is_left().await
}

pub async fn labels_annotations_and_taints_reach_the_node(world: &World<'_>) -> Result<()> {
    create(
        world,
        json!({
            "metadata": {
                "annotations": {"e2e.kerf.example/note": "kept"},
                "labels": {"e2e.kerf.example/extra": "value"},
            },
            "spec": {
                "resources": {"requests": {"cpu": "3", "memory": "11Gi"}},
                "taints": [
                    {"key": "e2e.kerf.example/first", "value": "a", "effect": "NoSchedule"},
                    {"key": "e2e.kerf.example/second", "value": "b", "effect": "NoExecute"},
                ],
            },
        }),
    )
    .await?;
    let (node, claim) = world.only_node().await?;
    let node = world.api::<Node>().get(&node).await?;
    ensure!(node.annotations().get("e2e.kerf.example/note").is_some_and(|note| note == "kept"));
    ensure!(node.labels().get("e2e.kerf.example/extra").is_some_and(|value| value == "value"));
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let ours: Vec<_> = taints.filter(|taint| taint.key.starts_with("e2e.")).map(|taint| taint.key.as_str()).collect();
    ensure!(ours == ["e2e.kerf.example/first", "e2e.kerf.example/second"], "{ours:?}");
    let owners = node.owner_references();
    ensure!(owners.len() == 1, "{owners:?}");
    let owner = &owners[0];
    ensure!(
        owner.api_version == "karpenter.sh/v1" && owner.kind == "NodeClaim" && owner.name == claim.name,
        "{owner:?}"
    );
    ensure!(owner.block_owner_deletion == Some(true) && owner.controller.is_none(), "{owner:?}");
    world.delete_node(&node.name_any()).await?;
    world.until_nothing_is_left().await
}

pub async fn a_claim_whose_class_is_missing_is_deleted(world: &World<'_>) -> Result<()> {
    create(world, json!({"spec": {"nodeClassRef": {"name": "nowhere"}}})).await?;
    world.until_claim_gone(&world.pool).await?;
    world.until_told(&world.pool, "InsufficientCapacityError").await?;
    ensure!(world.nodes().await?.is_empty(), "it has left a node");
    Ok(())
}

pub async fn a_claim_whose_class_is_not_ready_is_deleted(world: &World<'_>) -> Result<()> {
    let not_ready = json!({"status": {"conditions": [{
        "type": "Ready", "status": "False", "reason": "Broken", "message": "for a test",
        "lastTransitionTime": "2024-01-01T01:01:01Z",
    }]}});
    let classes = world.api::<KwokNodeClass>();
    classes.patch_status(&world.pool, &PatchParams::default(), &Patch::Merge(not_ready)).await?;
    create(world, json!({})).await?;
    world.until_claim_gone(&world.pool).await?;
    ensure!(world.nodes().await?.is_empty(), "it has left a node");
    Ok(())
}

pub async fn a_claim_that_is_deleted_before_its_node_joins_leaves_no_node(world: &World<'_>) -> Result<()> {
    let slow = world.case.unique("slow");
    world.create_class(&slow, json!({"nodeRegistrationDelay": "12s"})).await?;
    create(world, json!({"spec": {"nodeClassRef": {"name": slow}}})).await?;
    eventually("the claim is launched", async || Ok(claim(world).await?.is("Launched").then_some(()))).await?;
    world.delete_claim(&world.pool).await?;
    world.until_claim_gone(&world.pool).await?;
    throughout(Duration::from_secs(15), "there is no node", async || Ok(world.nodes().await?.is_empty())).await
}

pub async fn a_node_that_cannot_join_costs_the_claim_its_life(world: &World<'_>) -> Result<()> {
    refuse_nodes(world).await?;
    create(world, json!({})).await?;
    eventually("the claim waits for its node", async || {
        let claim = claim(world).await?;
        let waits = |kind| claim.condition(kind).is_some_and(|condition| condition.status == "Unknown");
        Ok((claim.is("Launched") && waits("Registered") && waits("Initialized")).then_some(()))
    })
    .await?;
    // The sixty seconds that the suite allows for it, and no more.
    within(DRAIN_WITHIN, "the claim is given up", async || {
        Ok(world.api::<NodeClaim>().get_opt(&world.pool).await?.is_none().then_some(()))
    })
    .await
}

/// A claim named after the pool that there would be. `over` is merged over it.
async fn create(world: &World<'_>, over: Value) -> Result<()> {
    let mut object = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": world.pool, "labels": {POOL_LABEL: world.pool}},
        "spec": {"nodeClassRef": world.class_reference(), "requirements": [
            {"key": "node.kubernetes.io/instance-type", "operator": "In",
             "values": ["c-16x-amd64-linux", "c-16x-arm64-linux"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        ]},
    });
    merge(&mut object, over);
    let claim: NodeClaim = serde_json::from_value(object)?;
    world.case.create(&claim).await.map(drop)
}

async fn claim(world: &World<'_>) -> Result<Claim> {
    world.claims().await?.pop().context("the claim is there")
}

/// The server takes no node of this case.
pub async fn refuse_nodes(world: &World<'_>) -> Result<()> {
    let name = world.case.unique("refuse");
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nodes"]},
            ]},
            "validations": [{"expression": format!(
                "!has(object.metadata.labels) || !('{POOL_LABEL}' in object.metadata.labels) || object.metadata.labels['{POOL_LABEL}'] != '{}'",
                world.pool
            )}],
        },
    }))?;
    world.case.create(&policy).await?;
    let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(json!({
        "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]},
    }))?;
    world.case.create(&binding).await?;
    // A policy reaches the server's handlers some time after it was created, and nothing tells when.
    eventually("the policy is in force", async || {
        let mut node = kerf_e2e::fake_node(&world.case.unique("probe"));
        node.labels_mut().insert(POOL_LABEL.to_owned(), world.pool.clone());
        let dry = kube::api::PostParams { dry_run: true, ..Default::default() };
        Ok(world.api::<Node>().create(&dry, &node).await.is_err().then_some(()))
    })
    .await
}
