//! What holds a disruption back.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kerf_api::maintenance_window::MaintenanceWindow;
use kerf_api::node_claim::NodeClaim;
use kerf_e2e::world::{Claim, POOL_LABEL, World, is_tainted};
use kerf_e2e::{eventually, throughout};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

/// Longer than a round and the look after it take.
const A_WHILE: Duration = Duration::from_secs(15);
const PROTECTED: &str = "karpenter.sh/do-not-disrupt";

pub async fn a_budget_of_none_keeps_an_empty_node(world: &World<'_>) -> Result<()> {
    empty_node_stays(world, json!([{"nodes": "0"}])).await
}

pub async fn a_budget_with_a_schedule_keeps_an_empty_node_in_its_time(world: &World<'_>) -> Result<()> {
    // Since midnight of every day, for a day: always.
    empty_node_stays(world, json!([{"nodes": "0", "schedule": "0 0 * * *", "duration": "24h"}, {"nodes": "100%"}]))
        .await
}

async fn empty_node_stays(world: &World<'_>, budgets: Value) -> Result<()> {
    let pool =
        json!({"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s", "budgets": budgets}});
    let (node, claim) = world.running_on_one_node(pool, 1, json!({})).await?;
    world.scale(0).await?;
    until(world, &claim, "Consolidatable").await?;
    stays(world, &node).await?;
    world.clean_up().await
}

pub async fn a_disruption_budget_of_the_pods_keeps_the_node(world: &World<'_>) -> Result<()> {
    let budget: PodDisruptionBudget = serde_json::from_value(json!({
        "metadata": {"name": "all-of-them", "namespace": world.case.namespace()},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": world.pool}}},
    }))?;
    world.case.create(&budget).await?;
    let (node, claim) = world.running_on_one_node(json!({}), 1, json!({})).await?;
    drift(world, &claim).await?;
    stays(world, &node).await?;
    world.until_told(&node, "DisruptionBlocked").await?;
    world.case.api::<PodDisruptionBudget>().delete("all-of-them", &Default::default()).await?;
    world.until_replaced(&node, 1).await?;
    world.clean_up().await
}

pub async fn a_protected_pod_keeps_the_node_until_it_is_not_any_more(world: &World<'_>) -> Result<()> {
    let protected = json!({"metadata": {"annotations": {PROTECTED: "true"}}});
    let (node, claim) = world.running_on_one_node(json!({}), 1, protected).await?;
    drift(world, &claim).await?;
    stays(world, &node).await?;
    let pod = world.pods().await?.pop().context("there is a pod")?.name_any();
    let without = Patch::Merge(json!({"metadata": {"annotations": {PROTECTED: null}}}));
    world.case.api::<Pod>().patch(&pod, &PatchParams::default(), &without).await?;
    world.until_node_gone(&node).await?;
    world.clean_up().await
}

pub async fn a_protected_node_stays_until_it_is_not_any_more(world: &World<'_>) -> Result<()> {
    let (node, claim) = world.running_on_one_node(json!({}), 1, json!({})).await?;
    let protect = async |value: Option<&str>| -> Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {PROTECTED: value}}}));
        world.api::<Node>().patch(&node, &PatchParams::default(), &patch).await?;
        Ok(())
    };
    protect(Some("true")).await?;
    drift(world, &claim).await?;
    stays(world, &node).await?;
    protect(None).await?;
    world.until_replaced(&node, 1).await?;
    world.clean_up().await
}

pub async fn a_maintenance_window_keeps_the_node(world: &World<'_>) -> Result<()> {
    let window: MaintenanceWindow = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "MaintenanceWindow", "metadata": {"name": world.pool},
        "spec": {
            "actions": ["Drift"],
            "schedules": [{"schedule": "0 0 * * *", "duration": "24h"}],
            "selector": {"matchLabels": {POOL_LABEL: world.pool}},
        },
    }))?;
    world.case.create(&window).await?;
    let (node, claim) = world.running_on_one_node(json!({}), 1, json!({})).await?;
    drift(world, &claim).await?;
    stays(world, &node).await?;
    eventually("the window says what it does", async || {
        let status = world.api::<MaintenanceWindow>().get(&world.pool).await?.status.unwrap_or_default();
        let ready = status.conditions.iter().flatten().find(|found| found.type_ == "Ready").map(|found| &*found.status);
        ensure!((status.active, status.matched_nodes, ready) == (Some(true), Some(1), Some("True")), "{status:?}");
        Ok(Some(()))
    })
    .await?;
    world.api::<MaintenanceWindow>().delete(&world.pool, &Default::default()).await?;
    world.until_replaced(&node, 1).await?;
    world.clean_up().await
}

pub async fn a_pool_with_drift_switched_off_keeps_the_node(world: &World<'_>) -> Result<()> {
    let switch = |on: bool| json!({"disruption": {"drift": {"enabled": on}}});
    let (node, claim) = world.running_on_one_node(switch(false), 1, json!({})).await?;
    drift(world, &claim).await?;
    stays(world, &node).await?;
    world.patch_pool(json!({"spec": switch(true)})).await?;
    world.until_replaced(&node, 1).await?;
    world.clean_up().await
}

/// Changes the pool, and waits until the claim says so.
async fn drift(world: &World<'_>, claim: &Claim) -> Result<()> {
    world
        .patch_pool(json!({"spec": {"template": {"metadata": {"labels": {"e2e.kerf.example/new": "label"}}}}}))
        .await?;
    until(world, claim, "Drifted").await
}

async fn until(world: &World<'_>, claim: &Claim, condition: &str) -> Result<()> {
    eventually(&format!("the claim {} is {condition}", claim.name), async || {
        Ok(Claim::from(world.api::<NodeClaim>().get(&claim.name).await?).is(condition).then_some(()))
    })
    .await
}

async fn stays(world: &World<'_>, node: &str) -> Result<()> {
    throughout(A_WHILE, "the node stays as it is", async || {
        let nodes = world.nodes().await?;
        Ok(nodes.len() == 1 && nodes[0].name_any() == node && !is_tainted(&nodes[0]))
    })
    .await
}
