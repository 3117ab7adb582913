//! What the cloud announces: with the KWOK provider, a label on the Node.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kerf_e2e::turns::{Life, SHORT_WAITS};
use kerf_e2e::world::{World, is_tainted, world};
use kerf_e2e::{Kerf, eventually, throughout};
use kube::api::{Patch, PatchParams};
use serde_json::json;

/// The taint of a node that the cloud advises to leave.
const ADVISED: &str = "kerf.sh/rebalance-recommended";

/// No budget stands in its way.
pub async fn a_node_whose_machine_will_be_taken_away_goes_ahead_of_it(world: &World<'_>) -> Result<()> {
    let (node, claim) =
        world.running_on_one_node(json!({"disruption": {"budgets": [{"nodes": "0"}]}}), 2, json!({})).await?;
    announce(world, &node, "spot_interrupted").await?;
    world.until_told(&claim.name, "SpotInterrupted").await?;
    world.until_replaced(&node, 2).await?;
    world.clean_up().await
}

/// By default an advice is told, no more.
pub async fn a_node_that_should_be_left_stays_unless_asked_otherwise(world: &World<'_>) -> Result<()> {
    let (node, claim) = world.running_on_one_node(json!({}), 1, json!({})).await?;
    announce(world, &node, "rebalance_recommendation").await?;
    world.until_told(&claim.name, "SpotRebalanceRecommendation").await?;
    throughout(Duration::from_secs(15), "the node stays as it is", async || {
        let node = world.api::<Node>().get(&node).await?;
        Ok(!is_tainted(&node) && !is_advised(&node))
    })
    .await?;
    world.clean_up().await
}

#[tokio::test]
async fn a_node_that_should_be_left_takes_nothing_new_if_asked_so() -> Result<()> {
    world(Life::Own, async |world| {
        let arguments = ["--disable-leader-election", "--rebalance-action", "Cordon"];
        let _kerf = Kerf::start("cordon", &[&arguments[..], &SHORT_WAITS].concat())?;
        let (node, _) = world.running_on_one_node(json!({}), 1, json!({})).await?;
        announce(world, &node, "rebalance_recommendation").await?;
        eventually("the node is fenced", async || Ok(is_advised(&world.api::<Node>().get(&node).await?).then_some(())))
            .await?;
        // There is room on it, and still the next pod goes elsewhere.
        world.scale(2).await?;
        world.until_running(2).await?;
        let mut on: Vec<_> = world.pods().await?.into_iter().filter_map(|pod| pod.spec?.node_name).collect();
        on.sort();
        on.dedup();
        ensure!(on.len() == 2, "both pods run on {on:?}");
        world.clean_up().await
    })
    .await
}

async fn announce(world: &World<'_>, node: &str, what: &str) -> Result<()> {
    let label = Patch::Merge(json!({"metadata": {"labels": {"kwok.kerf.sh/interruption": what}}}));
    world.api::<Node>().patch(node, &PatchParams::default(), &label).await?;
    Ok(())
}

fn is_advised(node: &Node) -> bool {
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.any(|taint| taint.key == ADVISED)
}
