//! The API server and etcd die under the controller, and come back.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kerf_e2e::turns::{Life, SHORT_WAITS};
use kerf_e2e::world::{DRAIN_WITHIN, World, world};
use kerf_e2e::{Kerf, parts, within};
use serde_json::json;

/// Longer than a lease is kept without being renewed.
const AWAY: Duration = Duration::from_secs(20);

const PODS: u8 = 10;

#[tokio::test]
async fn the_api_server_goes_away_in_the_middle_of_a_drain() -> Result<()> {
    survives("kube-apiserver").await
}

#[tokio::test]
async fn etcd_goes_away_in_the_middle_of_a_drain() -> Result<()> {
    survives("etcd").await
}

async fn survives(part: &'static str) -> Result<()> {
    world(Life::Own, async |world| {
        let lease = ["--leader-election-name", &world.pool, "--leader-election-namespace", "default"];
        let mut kerf = Kerf::start("outage", &[&lease[..], &SHORT_WAITS].concat())?;
        let slow = json!({
            "metadata": {"annotations": {"pod-delete.stage.kwok.x-k8s.io/delay": "5s"}},
            "spec": {"terminationGracePeriodSeconds": 30},
        });
        let (node, claim) = world.running_on_one_node(json!({}), PODS.into(), slow).await?;
        world.delete_claim(&claim.name).await?;
        world.until_tainted(&node).await?;
        parts::kill(part)?;
        tokio::time::sleep(AWAY).await;
        let (ready, _) = kerf.probe("/readyz").await?;
        let (alive, _) = kerf.probe("/healthz").await?;
        parts::mend()?;
        // It does not always see the pods that come to its nodes when the server is back, until it lists them anew.
        parts::kill("kwok")?;
        parts::mend()?;
        ensure!(ready != 200, "it says that it is ready while nothing can be seen");
        ensure!(alive == 200, "it is alive and says {alive}");
        ensure!(kerf.is_running()?, "it has ended; the log is in {}", kerf.log().display());
        settles(world, &node).await.with_context(|| format!("the log is in {}", kerf.log().display()))?;
        ensure!(kerf.is_running()?, "it has ended; the log is in {}", kerf.log().display());
        world.clean_up().await
    })
    .await
}

/// The drain ends, and nothing was launched twice: pods that come back in several batches may be on several nodes, but no
/// pod had a node planned for it more than once.
async fn settles(world: &World<'_>, node: &str) -> Result<()> {
    world.until_replaced(node, PODS.into()).await?;
    within(DRAIN_WITHIN, "every node is there for its own pods", async || {
        let (nodes, claims) = (world.nodes().await?.len(), world.claims().await?);
        ensure!(nodes == claims.len(), "{nodes} nodes, {} claims", claims.len());
        let mut planned = 0;
        for claim in &claims {
            let claim = serde_json::to_value(&claim.object)?;
            let pods = claim["spec"]["resources"]["requests"]["pods"].as_str().context("a claim for no pods")?;
            planned += pods.parse::<i32>()?;
        }
        ensure!(planned <= i32::from(PODS), "nodes were planned for {planned} pods");
        Ok(Some(()))
    })
    .await
}
