//! Ends that nobody asked for: age, and what is found without its other half.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kerf_api::node_claim::NodeClaim;
use kerf_e2e::world::{DRAIN_WITHIN, POOL_LABEL, World};
use kerf_e2e::{eventually, fake_node, within};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

pub async fn a_node_expires_and_its_pods_move(world: &World<'_>) -> Result<()> {
    expires(world, 1).await?;
    world.clean_up().await
}

pub async fn a_node_expires_although_a_budget_protects_its_pods(world: &World<'_>) -> Result<()> {
    let budget: PodDisruptionBudget = serde_json::from_value(json!({
        "metadata": {"name": "most-of-them", "namespace": world.case.namespace()},
        "spec": {"minAvailable": 4, "selector": {"matchLabels": {"app": world.pool}}},
    }))?;
    world.case.create(&budget).await?;
    expires(world, 5).await?;
    world.clean_up().await
}

async fn expires(world: &World<'_>, pods: i32) -> Result<()> {
    let pool = json!({
        "disruption": {"budgets": [{"nodes": "0", "reasons": ["Drifted"]}]},
        "template": {"spec": {"expireAfter": "25s"}},
    });
    let (node, claim) = world.running_on_one_node(pool, pods, json!({})).await?;
    // The next one stays.
    world.patch_pool(json!({"spec": {"template": {"spec": {"expireAfter": "Never"}}}})).await?;
    let claims = world.api::<NodeClaim>();
    within(DRAIN_WITHIN, "the claim expires", async || {
        let found = claims.get_opt(&claim.name).await?;
        Ok(found.is_none_or(|found| found.metadata.deletion_timestamp.is_some()).then_some(()))
    })
    .await?;
    world.until_replaced(&node, usize::try_from(pods)?).await?;
    let left = world.claims().await?;
    ensure!(left.len() == 1 && left[0].name != claim.name, "{} claims are left", left.len());
    Ok(())
}

pub async fn a_claim_without_an_instance_is_collected(world: &World<'_>) -> Result<()> {
    let claim: NodeClaim = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": world.pool, "labels": {POOL_LABEL: world.pool}},
        "spec": {"nodeClassRef": world.class_reference(), "requirements": [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c-2x-amd64-linux"]},
        ]},
    }))?;
    world.case.create(&claim).await?;
    let (node, _) = world.only_node().await?;
    // What a machine that has vanished looks like.
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": 1,
               "lastTransitionTime": "2024-01-01T01:01:01Z"})
    };
    let conditions = ["Launched", "Registered", "Initialized", "Ready"].map(condition);
    let status = json!({"status": {"providerID": "kwok://nowhere", "conditions": conditions}});
    world.api::<NodeClaim>().patch_status(&world.pool, &PatchParams::default(), &Patch::Merge(status)).await?;
    world.until_claim_gone(&world.pool).await?;
    // And the node, whose claim does not know it any more, is an instance without a claim.
    world.until_node_gone(&node).await
}

pub async fn an_instance_without_a_claim_is_collected(world: &World<'_>) -> Result<()> {
    let name = world.case.unique("orphan");
    let mut node = fake_node(&name);
    node.labels_mut().insert(POOL_LABEL.to_owned(), world.pool.clone());
    node.labels_mut().insert("karpenter.kwok.sh/kwoknodeclass".to_owned(), world.pool.clone());
    node.spec.get_or_insert_default().provider_id = Some(format!("kwok://{name}"));
    world.case.create(&node).await?;
    let mut foreign = fake_node(&world.case.unique("foreign"));
    foreign.spec.get_or_insert_default().provider_id = Some(format!("kwok://{}", foreign.name_any()));
    world.case.create(&foreign).await?;
    world.until_node_gone(&name).await?;
    eventually("the node of somebody else stays", async || Ok(world.api::<Node>().get_opt(&foreign.name_any()).await?))
        .await
        .map(drop)
        .context("a node without a class of ours is nobody's business")
}
