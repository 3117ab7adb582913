//! A pool's template changes, and its nodes follow.

use anyhow::{Context, Result, anyhow, ensure};
use k8s_openapi::api::core::v1::Node;
use kerf_api::node_claim::NodeClaim;
use kerf_e2e::within;
use kerf_e2e::world::{Claim, DRAIN_WITHIN, World, is_tainted};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

pub async fn labels_roll_the_node(world: &World<'_>) -> Result<()> {
    rolls(world, json!({"metadata": {"labels": {"e2e.kerf.example/new": "label"}}})).await
}

pub async fn annotations_roll_the_node(world: &World<'_>) -> Result<()> {
    rolls(world, json!({"metadata": {"annotations": {"e2e.kerf.example/new": "annotation"}}})).await
}

pub async fn taints_roll_the_node(world: &World<'_>) -> Result<()> {
    rolls(world, json!({"spec": {"taints": [{"key": "e2e.kerf.example/new", "effect": "NoSchedule"}]}})).await
}

pub async fn startup_taints_roll_the_node(world: &World<'_>) -> Result<()> {
    rolls(world, json!({"spec": {"startupTaints": [{"key": "e2e.kerf.example/startup", "effect": "NoSchedule"}]}}))
        .await
}

pub async fn requirements_roll_the_node(world: &World<'_>) -> Result<()> {
    rolls(
        world,
        json!({"spec": {"requirements": [
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
        ]}}),
    )
    .await
}

/// The template changes; a replacement comes up, and only then the old node goes.
async fn rolls(world: &World<'_>, template: Value) -> Result<()> {
    let tolerant = json!({"spec": {"tolerations": [{"key": "e2e.kerf.example/new", "operator": "Exists"}]}});
    let (node, old) = world.running_on_one_node(json!({}), 3, tolerant).await?;
    world.patch_pool(json!({"spec": {"template": template}})).await?;
    let claims = world.api::<NodeClaim>();
    within(DRAIN_WITHIN, "the old node goes after the new one is ready", async || {
        clear_startup_taints(world).await?;
        let found = claims.get_opt(&old.name).await?.map(Claim::from);
        if found.is_some_and(|claim| !claim.is_deleting) {
            return Ok(None);
        }
        let is_ready = world.claims().await?.iter().any(|claim| claim.name != old.name && claim.is("Initialized"));
        let answer = if is_ready { Ok(()) } else { Err(anyhow!("the old claim goes before another is ready")) };
        Ok(Some(answer))
    })
    .await??;
    world.until_replaced(&node, 3).await?;
    world.only_node().await?;
    world.clean_up().await
}

/// As whoever put them there does when a node has started.
async fn clear_startup_taints(world: &World<'_>) -> Result<()> {
    for node in world.nodes().await? {
        let taints = node.spec.clone().and_then(|spec| spec.taints).unwrap_or_default();
        let is_registered = node.labels().contains_key("karpenter.sh/registered");
        if is_registered && taints.iter().any(|taint| taint.key == "e2e.kerf.example/startup") {
            let left: Vec<_> = taints.iter().filter(|taint| taint.key != "e2e.kerf.example/startup").collect();
            let version = node.resource_version();
            let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": left}});
            world.api::<Node>().patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        }
    }
    Ok(())
}

pub async fn one_at_a_time_if_the_budget_says_so(world: &World<'_>) -> Result<()> {
    let apart = json!({"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": world.pool}}},
    ]}}}});
    world.create_pool(json!({"disruption": {"budgets": [{"nodes": "1"}]}})).await?;
    world.deploy(3, apart).await?;
    world.until_running(3).await?;
    let old: Vec<_> = world.nodes().await?.iter().map(ResourceExt::name_any).collect();
    ensure!(old.len() == 3, "{} nodes", old.len());
    world
        .patch_pool(json!({"spec": {"template": {"metadata": {"labels": {"e2e.kerf.example/new": "label"}}}}}))
        .await?;
    within(DRAIN_WITHIN, "all nodes are new", async || {
        let nodes = world.nodes().await?;
        let going = nodes.iter().filter(|node| is_tainted(node)).count();
        if going > 1 {
            return Ok(Some(Err(anyhow!("{going} nodes go at once"))));
        }
        Ok((!nodes.iter().any(|node| old.contains(&node.name_any()))).then_some(Ok(())))
    })
    .await??;
    world.until_running(3).await?;
    world.clean_up().await
}

pub async fn a_replacement_that_never_joins_is_rolled_back(world: &World<'_>) -> Result<()> {
    let (node, old) = world.running_on_one_node(json!({}), 1, json!({})).await?;
    crate::controller::standalone::refuse_nodes(world).await?;
    world
        .patch_pool(json!({"spec": {"template": {"metadata": {"labels": {"e2e.kerf.example/new": "label"}}}}}))
        .await?;
    let nodes = world.api::<Node>();
    within(DRAIN_WITHIN, "the old node is marked", async || Ok(is_tainted(&nodes.get(&node).await?).then_some(())))
        .await?;
    // The replacement has sixty seconds to join, as the suite is set up.
    within(DRAIN_WITHIN, "the old node is not marked any more", async || {
        Ok((!is_tainted(&nodes.get(&node).await?)).then_some(()))
    })
    .await?;
    let claim = world.api::<NodeClaim>().get_opt(&old.name).await?.context("the old claim stays")?;
    ensure!(claim.metadata.deletion_timestamp.is_none(), "the old claim goes");
    world.clean_up().await
}
