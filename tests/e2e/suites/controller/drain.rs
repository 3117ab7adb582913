//! How pods leave a node, and what holds them.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kerf_e2e::turns::Life;
use kerf_e2e::world::{DRAIN_WITHIN, World, is_running};
use kerf_e2e::{eventually, throughout, within};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

/// How long a pod takes to stop, for the order to be seen.
const SLOW: &str = "3s";

pub async fn pods_leave_in_four_groups_one_after_the_other(world: &World<'_>) -> Result<()> {
    // In the order in which they have to go.
    let groups = [
        ("plain", "", false),
        ("plain-ds", "", true),
        ("critical", "system-cluster-critical", false),
        ("critical-ds", "system-node-critical", true),
    ];
    for (name, class, of_daemon_set) in groups.into_iter().rev() {
        let template = json!({
            "metadata": {"annotations": {"pod-delete.stage.kwok.x-k8s.io/delay": SLOW}, "labels": {"group": name}},
            "spec": {"priorityClassName": class, "terminationGracePeriodSeconds": 30},
        });
        if of_daemon_set {
            daemon_set(world, name, template).await?;
        } else {
            world.deploy_as(name, 2, template).await?;
        }
    }
    world.until_waiting(4).await?;
    world.create_pool(json!({})).await?;
    world.until_running(6).await?;
    let (node, claim) = world.only_node().await?;
    let there = world.pods().await?.iter().map(ResourceExt::name_any).collect::<Vec<_>>();
    world.delete_claim(&claim.name).await?;
    world.until_tainted(&node).await?;
    let rank =
        |pod: &Pod| groups.iter().position(|(name, ..)| pod.labels().get("group").is_some_and(|group| group == name));
    within(DRAIN_WITHIN, "the node is empty", async || {
        let pods = world.pods().await?;
        let old: Vec<_> = pods.iter().filter(|pod| there.contains(&pod.name_any())).collect();
        let first_there = old.iter().filter_map(|pod| rank(pod)).min();
        let last_going =
            old.iter().filter(|pod| pod.metadata.deletion_timestamp.is_some()).filter_map(|pod| rank(pod)).max();
        if last_going > first_there {
            // An answer, and not an error, which would count as "not yet".
            return Ok(Some(Err(anyhow!("group {last_going:?} goes while group {first_there:?} is still there"))));
        }
        Ok(old.is_empty().then_some(Ok(())))
    })
    .await??;
    world.until_node_gone(&node).await?;
    world.clean_up().await
}

pub async fn a_budget_holds_a_drain_until_its_deadline(world: &World<'_>) -> Result<()> {
    let budget: PodDisruptionBudget = serde_json::from_value(json!({
        "metadata": {"name": "all-of-them", "namespace": world.case.namespace()},
        "spec": {"minAvailable": "100%", "selector": {"matchLabels": {"app": world.pool}}},
    }))?;
    world.case.create(&budget).await?;
    let node = held_until_the_deadline(world, json!({})).await?;
    let told = world.until_told(&node, "FailedDraining").await?;
    ensure!(told.message.is_some_and(|text| !text.is_empty()));
    world.clean_up().await
}

pub async fn a_protected_pod_holds_a_drain_until_its_deadline(world: &World<'_>) -> Result<()> {
    held_until_the_deadline(world, json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}))
        .await?;
    world.clean_up().await
}

/// Thirty seconds for the node, of which a pod may take its last ten: nothing goes before twenty.
async fn held_until_the_deadline(world: &World<'_>, template: Value) -> Result<String> {
    let mut template = template;
    kerf_e2e::merge(&mut template, json!({"spec": {"terminationGracePeriodSeconds": 10}}));
    let (node, claim) = world
        .running_on_one_node(json!({"template": {"spec": {"terminationGracePeriod": "30s"}}}), 2, template)
        .await?;
    let there = world.pods().await?.iter().map(ResourceExt::name_any).collect::<Vec<_>>();
    let start = Instant::now();
    world.delete_claim(&claim.name).await?;
    world.until_tainted(&node).await?;
    let left = Duration::from_secs(17).saturating_sub(start.elapsed());
    throughout(left, "the pods run on", async || {
        let pods = world.pods().await?;
        Ok(pods.iter().filter(|pod| there.contains(&pod.name_any()) && is_running(pod)).count() == there.len())
    })
    .await?;
    world.until_node_gone(&node).await?;
    world.until_claim_gone(&claim.name).await?;
    // Its deadline, and what a controller needs that has to be started first.
    let limit = if world.life == Life::Steady { 45 } else { 60 };
    ensure!(start.elapsed() < Duration::from_secs(limit), "it took {:?}", start.elapsed());
    Ok(node)
}

pub async fn a_protected_pod_holds_a_drain_until_the_protection_is_taken_away(world: &World<'_>) -> Result<()> {
    let start = Instant::now();
    let protection = |value: &str| json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": value}}});
    world.deploy_as("always", 1, protection("true")).await?;
    world.deploy_as("a-while", 1, protection("25s")).await?;
    world.until_waiting(2).await?;
    world.create_pool(json!({})).await?;
    world.until_running(2).await?;
    let (node, claim) = world.only_node().await?;
    let there = world.pods().await?;
    let name = |app: &str| {
        let of_app = there.iter().find(|pod| pod.labels().get("app").is_some_and(|label| label == app));
        of_app.map(ResourceExt::name_any).unwrap_or_default()
    };
    world.delete_node(&node).await?;
    world.until_tainted(&node).await?;
    let pods = world.case.api::<Pod>();
    eventually("the pod whose time is over goes", async || {
        Ok(pods.get_opt(&name("a-while")).await?.is_none().then_some(()))
    })
    .await?;
    ensure!(start.elapsed() >= Duration::from_secs(24), "it went {:?} after its start at most", start.elapsed());
    throughout(Duration::from_secs(3), "the other stays", async || {
        Ok(pods.get_opt(&name("always")).await?.as_ref().is_some_and(is_running))
    })
    .await?;
    let without = Patch::Merge(json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": null}}}));
    pods.patch(&name("always"), &PatchParams::default(), &without).await?;
    world.until_node_gone(&node).await?;
    world.until_claim_gone(&claim.name).await?;
    world.clean_up().await
}

pub async fn a_pod_that_is_slow_to_stop_is_waited_for(world: &World<'_>) -> Result<()> {
    let slow = json!({
        "metadata": {"annotations": {"pod-delete.stage.kwok.x-k8s.io/delay": "12s"}},
        "spec": {"terminationGracePeriodSeconds": 30},
    });
    let (node, _) = world.running_on_one_node(json!({}), 1, slow).await?;
    let pod = world.pods().await?.remove(0).name_any();
    world.delete_node(&node).await?;
    let pods = world.case.api::<Pod>();
    eventually("the pod is asked to go", async || {
        Ok(pods.get(&pod).await?.metadata.deletion_timestamp.is_some().then_some(()))
    })
    .await?;
    throughout(Duration::from_secs(8), "the node waits for it", async || {
        Ok(world.api::<k8s_openapi::api::core::v1::Node>().get_opt(&node).await?.is_some())
    })
    .await?;
    world.until_replaced(&node, 1).await?;
    world.clean_up().await
}

async fn daemon_set(world: &World<'_>, name: &str, template: Value) -> Result<()> {
    let set: DaemonSet = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": world.case.namespace()},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": world.pod_template(name, template)},
    }))?;
    world.case.create(&set).await.map(drop)
}
