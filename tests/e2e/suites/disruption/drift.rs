//! A pool's template changes, and its nodes follow.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kerf_e2e::within;
use kerf_e2e::world::{Claim, DRAIN_WITHIN, World, is_running, is_tainted};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

pub async fn labels_roll_the_node(world: &World<'_>) -> Result<()> {
    rolls(world, json!({"metadata": {"labels": {"e2e.kerf.example/new": "label"}}})).await
}

pub async fn annotations_roll_the_node(world: &World<'_>) -> Result<()> {
    rolls(world, json!({"metadata": {"annotations": {"e2e.kerf.example/new": "annotation"}}})).await
}

pub async fn taints_roll_the_node(world: &World<'_>) -> Result<()> {
    rolls(world, json!({"spec": {"taints": [{"key": "e2e.kerf.example/new", "effect": "NoSchedule"}]}})).await
}

pub async fn startup_taints_roll_the_node(world: &World<'_>) -> Result<()> {
    rolls(world, json!({"spec": {"startupTaints": [{"key": "e2e.kerf.example/startup", "effect": "NoSchedule"}]}}))
        .await
}

pub async fn requirements_roll_the_node(world: &World<'_>) -> Result<()> {
    rolls(
        world,
        json!({"spec": {"requirements": [
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
        ]}}),
    )
    .await
}

/// The template changes; a replacement comes up, and only then the old node goes.
async fn rolls(world: &World<'_>, template: Value) -> Result<()> {
    let tolerant = json!({"spec": {"tolerations": [{"key": "e2e.kerf.example/new", "operator": "Exists"}]}});
    let (node, old) = world.running_on_one_node(json!({}), 3, tolerant).await?;
    world.patch_pool(json!({"spec": {"template": template}})).await?;
    until_followed(world, &old).await?;
    world.until_replaced(&node, 3).await?;
    world.only_node().await?;
    world.clean_up().await
}

/// The claim goes, and from the first look to the last never before another one is ready.
pub async fn until_followed(world: &World<'_>, old: &Claim) -> Result<()> {
    within(DRAIN_WITHIN, "the old claim is gone", async || {
        clear_startup_taints(world).await?;
        let claims = world.claims().await?;
        let is_there = claims.iter().any(|claim| claim.name == old.name);
        let answer = comes_first(&claims, &old.name);
        Ok((!is_there || answer.is_err()).then_some(answer))
    })
    .await?
}

/// At one look: if the old claim goes, another is initialised, and was so before. The times tell what happened between two
/// looks.
fn comes_first(claims: &[Claim], old: &str) -> Result<()> {
    let since = claims.iter().filter(|claim| claim.name != old && claim.is("Initialized"));
    let since = since.filter_map(|claim| claim.condition("Initialized")).map(|found| &*found.last_transition_time);
    let first = since.min();
    let Some(going) = claims.iter().find(|claim| claim.name == old) else {
        return first.map(drop).context("the old claim is gone before another is ready");
    };
    if !going.is_deleting {
        return Ok(());
    }
    let first = first.context("the old claim goes before another is ready")?;
    let object = serde_json::to_value(&going.object)?;
    let deleted = object["metadata"]["deletionTimestamp"].as_str().context("what is deleted says when")?;
    // Both in whole seconds, and in a form that sorts.
    ensure!(first <= deleted, "the old claim goes at {deleted}, and the new one is ready at {first}");
    Ok(())
}

/// As whoever put them there does when a node has started.
pub async fn clear_startup_taints(world: &World<'_>) -> Result<()> {
    for node in world.nodes().await? {
        let taints = node.spec.clone().and_then(|spec| spec.taints).unwrap_or_default();
        let is_registered = node.labels().contains_key("karpenter.sh/registered");
        if is_registered && taints.iter().any(|taint| taint.key == "e2e.kerf.example/startup") {
            let left: Vec<_> = taints.iter().filter(|taint| taint.key != "e2e.kerf.example/startup").collect();
            let version = node.resource_version();
            let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": left}});
            world.api::<Node>().patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        }
    }
    Ok(())
}

pub async fn one_at_a_time_if_the_budget_says_so(world: &World<'_>) -> Result<()> {
    let old = on_nodes_of_their_own(world, 3, json!([{"nodes": "1"}])).await?;
    let most = roll(world, &old).await?.most_going;
    ensure!(most == 1, "{most} nodes go at once");
    world.until_running(3).await?;
    world.clean_up().await
}

/// A third of three is one; a little more is two.
pub async fn as_many_at_once_as_the_share_rounded_up(world: &World<'_>) -> Result<()> {
    let old = on_nodes_of_their_own(world, 3, json!([{"nodes": "34%"}])).await?;
    let most = roll(world, &old).await?.most_going;
    ensure!(most == 2, "{most} nodes go at once");
    world.until_running(3).await?;
    world.clean_up().await
}

/// All nodes may go at once by their pool's budget; pods of two of them would be too many.
pub async fn a_budget_of_pods_counts_over_all_nodes(world: &World<'_>) -> Result<()> {
    keep_two_of_three(world).await?;
    let old = on_nodes_of_their_own(world, 3, json!([{"nodes": "100%"}])).await?;
    let seen = roll(world, &old).await?;
    ensure!(seen.least_ready >= 2, "{seen:?}");
    world.until_running(3).await?;
    world.clean_up().await
}

pub async fn pods_of_a_node_go_one_by_one_if_their_budget_says_so(world: &World<'_>) -> Result<()> {
    keep_two_of_three(world).await?;
    let (node, _) = world.running_on_one_node(json!({}), 3, json!({})).await?;
    let seen = roll(world, &[node]).await?;
    ensure!(seen.least_ready >= 2, "{seen:?}");
    world.until_running(3).await?;
    world.clean_up().await
}

async fn keep_two_of_three(world: &World<'_>) -> Result<()> {
    let budget: PodDisruptionBudget = serde_json::from_value(json!({
        "metadata": {"name": "two-of-three", "namespace": world.case.namespace()},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": world.pool}}},
    }))?;
    world.case.create(&budget).await.map(drop)
}

/// Pods that keep apart, and the names of their nodes.
pub async fn on_nodes_of_their_own(world: &World<'_>, pods: i32, budgets: Value) -> Result<Vec<String>> {
    world.create_pool(json!({"disruption": {"budgets": budgets}})).await?;
    world.deploy(pods, apart(world)).await?;
    let count = usize::try_from(pods)?;
    world.until_running(count).await?;
    world.until_settled(count).await?;
    Ok(world.nodes().await?.iter().map(ResourceExt::name_any).collect())
}

/// For a pod that takes no node with a pod of the case on it.
pub fn apart(world: &World<'_>) -> Value {
    json!({"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": world.pool}}},
    ]}}}})
}

/// What was seen at any moment of a roll-out.
#[derive(Debug)]
struct Seen {
    most_going: usize,
    least_ready: usize,
}

/// The template changes, and one look follows the other until none of these nodes is left.
async fn roll(world: &World<'_>, old: &[String]) -> Result<Seen> {
    let mut seen = Seen { most_going: 0, least_ready: world.pods().await?.len() };
    world
        .patch_pool(json!({"spec": {"template": {"metadata": {"labels": {"e2e.kerf.example/new": "label"}}}}}))
        .await?;
    within(DRAIN_WITHIN, "all nodes are new", async || {
        let (nodes, pods) = (world.nodes().await?, world.pods().await?);
        let going = nodes.iter().filter(|node| is_tainted(node)).count();
        let ready = pods.iter().filter(|pod| is_running(pod) && is_ready(pod)).count();
        seen = Seen { most_going: seen.most_going.max(going), least_ready: seen.least_ready.min(ready) };
        Ok((!nodes.iter().any(|node| old.contains(&node.name_any()))).then_some(()))
    })
    .await?;
    Ok(seen)
}

fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|found| found.type_ == "Ready" && found.status == "True")
}

pub async fn a_replacement_that_never_joins_is_rolled_back(world: &World<'_>) -> Result<()> {
    let (node, old) = world.running_on_one_node(json!({}), 1, json!({})).await?;
    crate::controller::standalone::refuse_nodes(world).await?;
    world
        .patch_pool(json!({"spec": {"template": {"metadata": {"labels": {"e2e.kerf.example/new": "label"}}}}}))
        .await?;
    within(DRAIN_WITHIN, "the old node is marked, and a replacement waits for its node", async || {
        let (nodes, claims) = (world.nodes().await?, world.claims().await?);
        let is_marked = claims.iter().any(|claim| claim.name == old.name && claim.is_marked());
        let waits = claims.iter().any(|claim| claim.name != old.name && claim.is("Launched"));
        Ok((is_marked && waits && nodes.iter().any(is_tainted)).then_some(()))
    })
    .await?;
    // The replacement has sixty seconds to join, as the suite is set up.
    world.until_rolled_back(&node, &old.name).await?;
    world.until_told(&old.name, "DisruptionFailed").await?;
    world.clean_up().await
}
