//! Nodes that cost more than their pods need.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kerf_e2e::within;
use kerf_e2e::world::{DRAIN_WITHIN, World};
use kube::api::{Patch, PatchParams};
use serde_json::json;

pub async fn an_empty_node_goes(world: &World<'_>) -> Result<()> {
    let soon = json!({"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5s"}});
    let (node, claim) = world.running_on_one_node(soon, 2, json!({})).await?;
    world.scale(0).await?;
    world.until_node_gone(&node).await?;
    world.until_claim_gone(&claim.name).await?;
    world.clean_up().await
}

pub async fn a_node_that_is_too_large_is_replaced_by_a_cheaper_one(world: &World<'_>) -> Result<()> {
    let soon = json!({"disruption": {"consolidateAfter": "0s"}});
    let (node, _) = world.running_on_one_node(soon, 12, json!({})).await?;
    world.scale(1).await?;
    world.until_replaced(&node, 1).await?;
    let (_, claim) = world.only_node().await?;
    let labels = claim.object.metadata.labels.unwrap_or_default();
    let kind = labels.get("node.kubernetes.io/instance-type").cloned().unwrap_or_default();
    ensure!(kind.starts_with("c-2x-"), "one pod of one cpu runs on {kind}");
    world.clean_up().await
}

pub async fn three_nodes_become_one(world: &World<'_>) -> Result<()> {
    let apps = ["first", "second", "third"];
    for app in apps {
        world.deploy_as(app, 3, json!({})).await?;
    }
    world.until_waiting(9).await?;
    let small = json!({
        "disruption": {"consolidateAfter": "0s"},
        "template": {"spec": {"requirements": [
            {"key": "karpenter.kwok.sh/instance-size", "operator": "In", "values": ["4"]},
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        ]}},
    });
    world.create_pool(small).await?;
    world.until_running(9).await?;
    ensure!(world.nodes().await?.len() == 3, "three cpus fit on a node, and nine are asked for");
    for app in apps {
        let one = Patch::Merge(json!({"spec": {"replicas": 1}}));
        world.case.api::<Deployment>().patch(app, &PatchParams::default(), &one).await?;
    }
    within(DRAIN_WITHIN, "one node is left", async || {
        let (nodes, claims) = (world.nodes().await?.len(), world.claims().await?.len());
        ensure!(nodes == 1 && claims == 1, "{nodes} nodes, {claims} claims");
        Ok(Some(()))
    })
    .await?;
    world.until_running(3).await?;
    world.clean_up().await
}
