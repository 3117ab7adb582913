//! Pods that wait get nodes.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kerf_api::node_pool::NodePool;
use kerf_e2e::eventually;
use kerf_e2e::world::World;
use kube::ResourceExt;
use serde_json::json;

pub async fn a_hundred_pods_get_nodes_and_run(world: &World<'_>) -> Result<()> {
    world.create_pool(json!({})).await?;
    world.deploy(20, json!({})).await?;
    world.until_running(20).await?;
    world.scale(100).await?;
    world.until_running(100).await?;
    for claim in world.claims().await? {
        ensure!(!claim.is_deleting, "the claim {} goes though its pods run", claim.name);
    }
    let on_our_nodes = |pod: &Pod, nodes: &[String]| {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        node.is_some_and(|node| nodes.contains(node))
    };
    let nodes: Vec<_> = world.nodes().await?.iter().map(ResourceExt::name_any).collect();
    ensure!(world.pods().await?.iter().all(|pod| on_our_nodes(pod, &nodes)), "a pod runs elsewhere");
    world.clean_up().await
}

pub async fn a_pool_says_what_it_has_and_whether_its_class_is_ready(world: &World<'_>) -> Result<()> {
    world.running_on_one_node(json!({}), 10, json!({})).await?;
    let pools = world.api::<NodePool>();
    let until = async |what: &str, look: &dyn Fn(&NodePool) -> bool| {
        eventually(what, async || Ok(look(&pools.get(&world.pool).await?).then_some(()))).await
    };
    let condition = |pool: &NodePool, kind: &str, status: &str, reason: &str| {
        let mut conditions = pool.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions
            .any(|found| found.type_ == kind && found.status == status && (reason.is_empty() || found.reason == reason))
    };
    until("the pool is ready", &|pool| condition(pool, "Ready", "True", "")).await?;
    until("the pool has its hash", &|pool| {
        pool.annotations().get("karpenter.sh/nodepool-hash-version").is_some_and(|version| version == "v3")
    })
    .await?;
    until("the pool counts its node", &|pool| {
        let status = json!(pool.status);
        status["nodes"] == 1 && status["resources"]["nodes"] == "1"
    })
    .await?;
    world.api::<kerf_api::kwok_node_class::KwokNodeClass>().delete(&world.pool, &Default::default()).await?;
    until("the pool misses its class", &|pool| condition(pool, "NodeClassReady", "False", "NodeClassNotFound")).await?;
    // A node does not need its class to go.
    world.clean_up().await
}
