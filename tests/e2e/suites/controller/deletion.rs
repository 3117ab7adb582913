//! The three things that people delete: a node, its claim, its pool.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kerf_api::node_claim::NodeClaim;
use kerf_api::node_pool::NodePool;
use kerf_e2e::world::{DRAIN_WITHIN, World};
use kerf_e2e::{eventually, throughout, within};
use kube::api::DeleteParams;
use serde_json::json;

pub async fn a_deleted_node_is_tainted_drained_and_replaced(world: &World<'_>) -> Result<()> {
    let (node, claim) = world.running_on_one_node(json!({}), 10, json!({})).await?;
    world.delete_node(&node).await?;
    world.until_tainted(&node).await?;
    world.until_replaced(&node, 10).await?;
    world.until_claim_gone(&claim.name).await?;
    world.clean_up().await
}

pub async fn a_deleted_claim_takes_its_node_along(world: &World<'_>) -> Result<()> {
    let (node, claim) = world.running_on_one_node(json!({}), 10, json!({})).await?;
    world.delete_claim(&claim.name).await?;
    world.until_tainted(&node).await?;
    world.until_replaced(&node, 10).await?;
    world.until_claim_gone(&claim.name).await?;
    world.clean_up().await
}

pub async fn a_deleted_pool_takes_everything_along(world: &World<'_>) -> Result<()> {
    let (node, claim) = world.running_on_one_node(json!({}), 10, json!({})).await?;
    let pools = world.api::<NodePool>();
    // As kubectl does it: the garbage collector deletes the claims once the pool is gone.
    pools.delete(&world.pool, &DeleteParams::background()).await?;
    eventually("the pool is gone", async || Ok(pools.get_opt(&world.pool).await?.is_none().then_some(()))).await?;
    world.until_claim_leaves(&claim.name).await?;
    world.until_tainted(&node).await?;
    world.until_nothing_is_left().await?;
    let pods = world.pods().await?;
    ensure!(pods.len() == 10, "{} pods wait for a pool", pods.len());
    world.clean_up().await
}

pub async fn a_pool_deleted_in_the_foreground_goes_last(world: &World<'_>) -> Result<()> {
    let (node, claim) = world.running_on_one_node(json!({}), 5, json!({})).await?;
    let pools = world.api::<NodePool>();
    pools.delete(&world.pool, &DeleteParams::foreground()).await?;
    world.until_claim_leaves(&claim.name).await?;
    world.until_tainted(&node).await?;
    let left = within(DRAIN_WITHIN, "the pool is gone", async || {
        let is_gone = pools.get_opt(&world.pool).await?.is_none();
        // Looked at after the pool, so that claims which go in between do no harm.
        Ok(if is_gone { Some(world.claims().await?.len()) } else { None })
    });
    ensure!(left.await? == 0, "the pool went before its claims");
    world.until_nothing_is_left().await?;
    world.clean_up().await
}

pub async fn an_orphaned_claim_keeps_its_node(world: &World<'_>) -> Result<()> {
    let (_, claim) = world.running_on_one_node(json!({}), 5, json!({})).await?;
    let pools = world.api::<NodePool>();
    pools.delete(&world.pool, &DeleteParams::orphan()).await?;
    eventually("the pool is gone", async || Ok(pools.get_opt(&world.pool).await?.is_none().then_some(()))).await?;
    throughout(Duration::from_secs(8), "the claim stays", async || {
        let found = world.api::<NodeClaim>().get_opt(&claim.name).await?;
        Ok(found.is_some_and(|found| found.metadata.deletion_timestamp.is_none()))
    })
    .await?;
    let claim = world.claims().await?.pop().context("the claim stays")?;
    ensure!(claim.object.metadata.owner_references.unwrap_or_default().is_empty(), "it still has an owner");
    world.delete_claim(&claim.name).await?;
    world.until_nothing_is_left().await?;
    world.clean_up().await
}
