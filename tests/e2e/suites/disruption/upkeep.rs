//! Pools of a fixed size, and sick nodes.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kerf_e2e::world::{DRAIN_WITHIN, World, is_tainted};
use kerf_e2e::{throughout, within};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::drift::until_followed;

pub async fn a_static_pool_has_as_many_nodes_as_it_says(world: &World<'_>) -> Result<()> {
    world.create_pool(json!({"replicas": 2, "disruption": null, "limits": {"nodes": 5}})).await?;
    until_nodes(world, 2).await?;
    world.patch_pool(json!({"spec": {"replicas": 4}})).await?;
    until_nodes(world, 4).await?;
    world.patch_pool(json!({"spec": {"replicas": 1}})).await?;
    until_nodes(world, 1).await?;
    let (node, old) = world.only_node().await?;
    world
        .patch_pool(json!({"spec": {"template": {"metadata": {"labels": {"e2e.kerf.example/new": "label"}}}}}))
        .await?;
    until_followed(world, &old).await?;
    world.until_node_gone(&node).await?;
    until_nodes(world, 1).await?;
    world.clean_up().await
}

pub async fn a_sick_node_is_replaced(world: &World<'_>) -> Result<()> {
    let (node, old) = world.running_on_one_node(json!({}), 2, json!({})).await?;
    fall_ill(world, &node).await?;
    until_followed(world, &old).await?;
    world.until_replaced(&node, 2).await?;
    world.clean_up().await
}

/// It stays the same node, with another boot id, and its pods run.
pub async fn a_node_that_needs_it_is_booted_again(world: &World<'_>) -> Result<()> {
    let (node, claim) = world.running_on_one_node(json!({}), 2, json!({})).await?;
    fault(world, &node, "KWOKRebootRequired", "True").await?;
    // Thirty seconds are tolerated.
    within(DRAIN_WITHIN, "the node has booted again", async || {
        let found = world.claims().await?.into_iter().find(|found| found.name == claim.name);
        let rebooting = found.as_ref().and_then(|found| found.condition("Rebooting")).map(|found| found.reason.clone());
        let boot_id =
            world.api::<Node>().get(&node).await?.status.and_then(|status| status.node_info).map(|info| info.boot_id);
        let is_new = boot_id.as_ref().is_some_and(|id| id.starts_with("kwok-"));
        ensure!(is_new && rebooting.as_deref() == Some("RebootSucceeded"), "{rebooting:?} {boot_id:?}");
        Ok(Some(()))
    })
    .await?;
    world.until_told(&claim.name, "RebootObserved").await?;
    fault(world, &node, "KWOKRebootRequired", "False").await?;
    world.until_running(2).await?;
    let (same, _) = world.only_node().await?;
    ensure!(same == node && !is_tainted(&world.api::<Node>().get(&node).await?), "{same} instead of {node}");
    let found = world.claims().await?.into_iter().find(|found| found.name == claim.name);
    let times = found.and_then(|found| found.object.annotations().get("kerf.sh/reboots").cloned());
    ensure!(times.as_ref().is_some_and(|times| !times.contains(',')), "booted more than once: {times:?}");
    world.clean_up().await
}

pub async fn too_many_sick_nodes_are_left_alone(world: &World<'_>) -> Result<()> {
    world.create_pool(json!({"replicas": 5, "disruption": null, "limits": {"nodes": 6}})).await?;
    until_nodes(world, 5).await?;
    let nodes: Vec<_> = world.nodes().await?.iter().map(ResourceExt::name_any).collect();
    for node in &nodes[..2] {
        fall_ill(world, node).await?;
    }
    // Thirty seconds are tolerated; two of five are more than a fifth.
    throughout(Duration::from_secs(45), "the sick nodes stay", async || {
        let found = world.nodes().await?;
        Ok(found.len() == 5 && !found.iter().any(is_tainted))
    })
    .await?;
    world.until_told(&nodes[0], "NodeRepairBlocked").await?;
    world.clean_up().await
}

async fn until_nodes(world: &World<'_>, count: usize) -> Result<()> {
    within(DRAIN_WITHIN, &format!("there are {count} nodes"), async || {
        let (nodes, claims) = (world.nodes().await?, world.claims().await?);
        let ready = claims.iter().filter(|claim| claim.is("Ready") && !claim.is_deleting).count();
        ensure!(
            nodes.len() == count && claims.len() == count && ready == count,
            "{} nodes, {ready} ready",
            nodes.len()
        );
        Ok(Some(()))
    })
    .await
}

/// The condition that KWOK's repair policies know for tests.
async fn fall_ill(world: &World<'_>, node: &str) -> Result<()> {
    fault(world, node, "KWOKUnhealthy", "True").await
}

async fn fault(world: &World<'_>, node: &str, kind: &str, status: &str) -> Result<()> {
    let fault = json!({"status": {"conditions": [{"type": kind, "status": status, "reason": "ForATest"}]}});
    world.api::<Node>().patch_status(node, &PatchParams::default(), &Patch::Strategic(fault)).await?;
    Ok(())
}
