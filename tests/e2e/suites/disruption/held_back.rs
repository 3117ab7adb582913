//! What holds a disruption back.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kerf_api::maintenance_window::MaintenanceWindow;
use kerf_api::node_claim::NodeClaim;
use kerf_e2e::world::{Claim, POOL_LABEL, World, is_tainted};
use kerf_e2e::{eventually, merge, throughout};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::drift::{apart, on_nodes_of_their_own};

/// Longer than a round takes.
const A_WHILE: Duration = Duration::from_secs(15);
/// Of a consolidation, a round and the look after it, which comes fifteen seconds later.
const A_LOOK_LATER: Duration = Duration::from_secs(40);
/// A minute of the 29th of February, when no suite runs.
const LEAP_DAY: &str = "0 0 29 2 *";
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
    stays_for(A_LOOK_LATER, world, &node).await?;
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
    create_window(world, "Drift", json!({"matchLabels": {POOL_LABEL: world.pool}})).await?;
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

pub async fn budgets_of_every_kind_hold_drift_back(world: &World<'_>) -> Result<()> {
    let (node, claim) = world.running_on_one_node(json!({}), 1, json!({})).await?;
    let allow = async |budgets: &Value| world.patch_pool(json!({"spec": {"disruption": {"budgets": budgets}}})).await;
    let all = json!({"nodes": "100%"});
    let held_back = [
        json!([{"nodes": "0"}]),
        json!([{"nodes": "0%"}, all]),
        json!([{"nodes": "0", "reasons": ["Empty", "Drifted"]}, all]),
        // Since midnight of every day, for a day: always.
        json!([{"nodes": "0", "schedule": "0 0 * * *", "duration": "24h"}, all]),
    ];
    allow(&held_back[0]).await?;
    drift(world, &claim).await?;
    for budgets in &held_back {
        allow(budgets).await?;
        stays(world, &node).await.with_context(|| format!("the budgets are {budgets}"))?;
    }
    // None of these counts: not for this reason, and not at this time.
    let others = json!([
        {"nodes": "0", "reasons": ["Empty", "Underutilized"]},
        {"nodes": "0", "schedule": LEAP_DAY, "duration": "1m"},
        {"nodes": "1", "reasons": ["Drifted"]},
    ]);
    allow(&others).await?;
    world.until_replaced(&node, 1).await?;
    world.clean_up().await
}

pub async fn a_disabled_pool_keeps_its_node_and_gets_none(world: &World<'_>) -> Result<()> {
    let (node, claim) = world.running_on_one_node(json!({}), 1, json!({})).await?;
    world.patch_pool(json!({"spec": {"disabled": true}})).await?;
    drift(world, &claim).await?;
    world.deploy_as("another", 1, apart(world)).await?;
    world.until_waiting(1).await?;
    stays(world, &node).await?;
    world.patch_pool(json!({"spec": {"disabled": null}})).await?;
    world.until_replaced(&node, 2).await?;
    world.clean_up().await
}

pub async fn a_pool_that_gives_up_no_node_still_gets_new_ones(world: &World<'_>) -> Result<()> {
    let (node, claim) = world.running_on_one_node(json!({}), 1, json!({})).await?;
    world.patch_pool(json!({"spec": {"disableDeprovisioning": true}})).await?;
    drift(world, &claim).await?;
    world.deploy_as("another", 1, apart(world)).await?;
    world.until_running(2).await?;
    throughout(A_WHILE, "both nodes stay as they are", async || {
        let nodes = world.nodes().await?;
        Ok(nodes.len() == 2 && nodes.iter().any(|found| found.name_any() == node) && !nodes.iter().any(is_tainted))
    })
    .await?;
    world.patch_pool(json!({"spec": {"disableDeprovisioning": false}})).await?;
    world.until_replaced(&node, 2).await?;
    world.clean_up().await
}

pub async fn a_pool_with_consolidation_switched_off_keeps_an_empty_node(world: &World<'_>) -> Result<()> {
    let switch = |on: bool| json!({"consolidation": {"enabled": on}, "consolidateAfter": "0s"});
    let (node, _) = world.running_on_one_node(json!({"disruption": switch(false)}), 1, json!({})).await?;
    world.scale(0).await?;
    world.until_running(0).await?;
    stays_for(A_LOOK_LATER, world, &node).await?;
    world.patch_pool(json!({"spec": {"disruption": switch(true)}})).await?;
    world.until_node_gone(&node).await?;
    world.clean_up().await
}

pub async fn a_pool_with_expiration_switched_off_keeps_an_old_node(world: &World<'_>) -> Result<()> {
    let pool = json!({"disruption": {"expiration": {"enabled": false}}});
    outlives_its_time(world, pool, async || {
        world.patch_pool(json!({"spec": {"disruption": {"expiration": {"enabled": true}}}})).await
    })
    .await
}

pub async fn a_maintenance_window_keeps_an_old_node(world: &World<'_>) -> Result<()> {
    create_window(world, "Expiration", json!({"matchLabels": {POOL_LABEL: world.pool}})).await?;
    outlives_its_time(world, json!({}), async || close_window(world).await).await
}

/// Until something changes.
async fn outlives_its_time(world: &World<'_>, pool: Value, release: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    let mut pool = pool;
    merge(&mut pool, json!({"template": {"spec": {"expireAfter": "10s"}}}));
    let (node, claim) = world.running_on_one_node(pool, 1, json!({})).await?;
    // What comes later does not expire, and is no reason to go for what is there.
    world
        .patch_pool(json!({"spec": {
            "disruption": {"budgets": [{"nodes": "0", "reasons": ["Drifted"]}]},
            "template": {"spec": {"expireAfter": "Never"}},
        }}))
        .await?;
    throughout(A_WHILE + A_WHILE, "the node stays as it is", async || {
        let (nodes, claims) = (world.nodes().await?, world.claims().await?);
        let stays = claims.len() == 1 && claims[0].name == claim.name && !claims[0].is_deleting;
        Ok(stays && nodes.len() == 1 && !is_tainted(&nodes[0]))
    })
    .await?;
    release().await?;
    world.until_replaced(&node, 1).await?;
    world.clean_up().await
}

/// Of two drifted nodes the one that has the label stays, until the window's schedule is another.
pub async fn a_maintenance_window_keeps_those_it_selects_in_its_time(world: &World<'_>) -> Result<()> {
    let old = on_nodes_of_their_own(world, 2, json!([{"nodes": "100%"}])).await?;
    let [kept, other] = &old[..] else { bail!("two nodes, and not {old:?}") };
    let label = Patch::Merge(json!({"metadata": {"labels": {"e2e.kerf.example/kept": world.pool}}}));
    world.api::<Node>().patch(kept, &PatchParams::default(), &label).await?;
    create_window(world, "Drift", json!({"matchLabels": {"e2e.kerf.example/kept": world.pool}})).await?;
    eventually("the window is known", async || {
        let status = world.api::<MaintenanceWindow>().get(&world.pool).await?.status.unwrap_or_default();
        Ok((status.active == Some(true) && status.matched_nodes == Some(1)).then_some(()))
    })
    .await?;
    world
        .patch_pool(json!({"spec": {"template": {"metadata": {"labels": {"e2e.kerf.example/new": "label"}}}}}))
        .await?;
    world.until_node_gone(other).await?;
    world.until_running(2).await?;
    throughout(A_WHILE, "the selected node stays as it is", async || {
        Ok(!is_tainted(&world.api::<Node>().get(kept).await?))
    })
    .await?;
    close_window(world).await?;
    world.until_replaced(kept, 2).await?;
    world.clean_up().await
}

/// Open all day, every day.
async fn create_window(world: &World<'_>, action: &str, selector: Value) -> Result<()> {
    let window: MaintenanceWindow = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "MaintenanceWindow", "metadata": {"name": world.pool},
        "spec": {
            "actions": [action],
            "schedules": [{"schedule": "0 0 * * *", "duration": "24h"}],
            "selector": selector,
        },
    }))?;
    world.case.create(&window).await.map(drop)
}

/// By an edit of its schedule.
async fn close_window(world: &World<'_>) -> Result<()> {
    let never_now = json!({"spec": {"schedules": [{"schedule": LEAP_DAY, "duration": "1m"}]}});
    let windows = world.api::<MaintenanceWindow>();
    windows.patch(&world.pool, &PatchParams::default(), &Patch::Merge(never_now)).await?;
    Ok(())
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
    stays_for(A_WHILE, world, node).await
}

async fn stays_for(time: Duration, world: &World<'_>, node: &str) -> Result<()> {
    throughout(time, "the node stays as it is", async || {
        let nodes = world.nodes().await?;
        Ok(nodes.len() == 1 && nodes[0].name_any() == node && !is_tainted(&nodes[0]))
    })
    .await
}
