//! Several replicas: one acts, and another goes on when it stops.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kerf_e2e::turns::{Life, SHORT_WAITS};
use kerf_e2e::world::{World, world};
use kerf_e2e::{Kerf, eventually, throughout, within};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

#[tokio::test]
async fn a_replica_that_is_asked_to_stop_hands_over_at_once() -> Result<()> {
    world(Life::Own, async |world| {
        let mut first = replica(world)?;
        let holder = until_led(world, None).await?;
        let second = replica(world)?;
        second.until_ready().await.context("a replica that waits is ready")?;
        let (node, _) = world.running_on_one_node(json!({}), 10, json!({})).await?;
        world.delete_node(&node).await?;
        world.until_tainted(&node).await?;
        let asked = Instant::now();
        first.terminate().await?;
        until_led(world, Some(&holder)).await?;
        // A lease runs out after 15 seconds.
        ensure!(asked.elapsed() < Duration::from_secs(13), "it waited until the lease ran out");
        world.until_replaced(&node, 10).await?;
        world.clean_up().await
    })
    .await
}

#[tokio::test]
async fn a_replica_that_is_killed_is_followed_when_its_lease_runs_out() -> Result<()> {
    world(Life::Own, async |world| {
        let mut first = replica(world)?;
        let holder = until_led(world, None).await?;
        let _second = replica(world)?;
        let (node, _) = world.running_on_one_node(json!({}), 10, json!({})).await?;
        world.delete_node(&node).await?;
        world.until_tainted(&node).await?;
        first.kill()?;
        until_led(world, Some(&holder)).await?;
        world.until_replaced(&node, 10).await?;
        world.clean_up().await
    })
    .await
}

#[tokio::test]
async fn a_replica_that_loses_its_lease_stops_acting_and_comes_back() -> Result<()> {
    world(Life::Own, async |world| {
        let mut kerf = replica(world)?;
        let holder = until_led(world, None).await?;
        world.create_pool(json!({})).await?;
        kerf.until_ready().await?;
        // Somebody else takes it, for longer than it takes to see that nothing happens.
        let taken = json!({"spec": {"holderIdentity": "somebody_else", "leaseDurationSeconds": 20}});
        leases(world).patch(&world.pool, &PatchParams::default(), &Patch::Merge(taken)).await?;
        tokio::time::sleep(Duration::from_secs(4)).await;
        world.deploy(1, json!({})).await?;
        throughout(Duration::from_secs(6), "nothing is launched", async || Ok(world.claims().await?.is_empty()))
            .await?;
        ensure!(kerf.is_running()?, "it has ended: {}", kerf.told()?);
        let again = within(Duration::from_secs(60), "it leads again", async || {
            Ok(holder_of(world).await?.filter(|found| *found != "somebody_else"))
        })
        .await?;
        ensure!(again == holder, "{again} leads");
        world.until_running(1).await?;
        world.clean_up().await
    })
    .await
}

fn replica(world: &World<'_>) -> Result<Kerf> {
    let lease = ["--leader-election-name", &world.pool, "--leader-election-namespace", "default"];
    Kerf::start("replica", &[&lease[..], &SHORT_WAITS].concat())
}

fn leases(world: &World<'_>) -> Api<Lease> {
    Api::namespaced(world.case.client(), "default")
}

async fn holder_of(world: &World<'_>) -> Result<Option<String>> {
    let lease = leases(world).get_opt(&world.pool).await?;
    Ok(lease.and_then(|lease| lease.spec?.holder_identity).filter(|name| !name.is_empty()))
}

/// By somebody else than `before`.
async fn until_led(world: &World<'_>, before: Option<&str>) -> Result<String> {
    eventually("a replica leads", async || Ok(holder_of(world).await?.filter(|found| Some(found.as_str()) != before)))
        .await
}
