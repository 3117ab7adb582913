//! Nodes that cost more than their pods need.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kerf_e2e::within;
use kerf_e2e::world::{Claim, DRAIN_WITHIN, World};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::drift::until_followed;

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
    let (node, old) = world.running_on_one_node(soon, 12, json!({})).await?;
    world.scale(1).await?;
    until_followed(world, &old).await?;
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

/// Three nodes that are full of one pod each, and none that one of them could do without; all three pods fit on one that costs
/// less than the three.
pub async fn several_nodes_become_a_new_one(world: &World<'_>) -> Result<()> {
    let sizes = |sizes: Value| {
        json!([
            {"key": "karpenter.kwok.sh/instance-size", "operator": "In", "values": sizes},
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        ])
    };
    let small = json!({
        "disruption": {"consolidateAfter": "0s"},
        "template": {"spec": {"requirements": sizes(json!(["2"]))}},
    });
    world.create_pool(small).await?;
    world.deploy(3, json!({})).await?;
    world.until_running(3).await?;
    world.until_settled(3).await?;
    let old: Vec<_> = world.claims().await?.into_iter().map(|claim| claim.name).collect();
    world.patch_pool(json!({"spec": {"template": {"spec": {"requirements": sizes(json!(["2", "4"]))}}}})).await?;
    let new = within(DRAIN_WITHIN, "three claims go for one that comes", async || {
        let claims = world.claims().await?;
        let (going, coming): (Vec<_>, Vec<_>) = claims.into_iter().partition(|claim| old.contains(&claim.name));
        let commands: Vec<_> = going.iter().filter_map(Claim::command).collect();
        let is_one = commands.len() == 3 && commands.iter().all(|command| *command == commands[0]);
        ensure!(coming.is_empty() || is_one, "{} comes, and the commands are {commands:?}", coming.len());
        let [new] = &coming[..] else { return Ok(None) };
        ensure!(commands[0].contains(&format!("replacements={}", new.name)), "{} is not of {commands:?}", new.name);
        Ok(Some(new.name.clone()))
    })
    .await?;
    within(DRAIN_WITHIN, "the new claim is the only one", async || {
        let claims = world.claims().await?;
        Ok((claims.len() == 1 && claims[0].name == new).then_some(()))
    })
    .await?;
    world.until_running(3).await?;
    world.until_settled(1).await?;
    world.clean_up().await
}
