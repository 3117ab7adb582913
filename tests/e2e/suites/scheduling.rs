//! Where pods go, with the real scheduler as the judge: all that can run do, nothing is launched in vain, and what cannot
//! run costs nothing.
//!
//! The cases share one controller and run side by side, each with its own namespace and pool.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{LimitRange, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate};
use kerf_api::capacity_buffer::CapacityBuffer;
use kerf_api::node_claim::NodeClaim;
use kerf_api::node_pool::NodePool;
use kerf_e2e::turns::Life;
use kerf_e2e::world::{DRAIN_WITHIN, POOL_LABEL, World, is_running, world};
use kerf_e2e::{eventually, throughout, within};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

/// Long enough for another round of the controller, had it anything to do.
const A_WHILE: Duration = Duration::from_secs(12);

fn own(app: &str) -> Value {
    json!({"matchLabels": {"app": app}})
}

fn node_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone())
}

/// Only nodes of four cores, so that sizes are known.
fn four_cores(more: Value) -> Value {
    let mut spec = json!({"template": {"spec": {"requirements": [
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]},
    ]}}});
    kerf_e2e::merge(&mut spec, more);
    spec
}

/// Every claim has become a node, every node was launched for a pod that runs there, and it stays so.
async fn nothing_in_vain(world: &World<'_>) -> Result<()> {
    eventually("every claim is ready, and its node runs a pod of the case", async || {
        let pods = world.pods().await?;
        let used: BTreeSet<String> = pods.iter().filter(|pod| is_running(pod)).filter_map(node_of).collect();
        for claim in world.claims().await? {
            let node = claim.node.clone().unwrap_or_default();
            ensure!(claim.is("Ready") && used.contains(&node), "{} with the node {node:?} is not used", claim.name);
        }
        Ok(Some(()))
    })
    .await?;
    let claims = world.claims().await?.len();
    throughout(A_WHILE, "no further claim is made", async || Ok(world.claims().await?.len() == claims)).await
}

async fn pods_by_node(world: &World<'_>) -> Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for node in world.pods().await?.iter().filter_map(node_of) {
        *counts.entry(node).or_default() += 1;
    }
    Ok(counts)
}

async fn zones(world: &World<'_>) -> Result<BTreeMap<String, String>> {
    let zone = |labels: &BTreeMap<String, String>| labels.get("topology.kubernetes.io/zone").cloned();
    let nodes = world.nodes().await?;
    Ok(nodes.iter().filter_map(|node| Some((node.name_any(), zone(node.labels())?))).collect())
}

#[tokio::test]
async fn pods_are_spread_over_zones() -> Result<()> {
    world(Life::Steady, async |world| {
        world.create_pool(json!({})).await?;
        let spread = json!([{
            "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": own(&world.pool),
        }]);
        world.deploy(6, json!({"spec": {"topologySpreadConstraints": spread}})).await?;
        world.until_running(6).await?;
        nothing_in_vain(world).await?;
        let zones = zones(world).await?;
        let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
        let by_node = pods_by_node(world).await?;
        for (node, count) in &by_node {
            *counts.entry(&zones[node]).or_default() += count;
        }
        let (most, least) = (counts.values().max(), counts.values().min());
        ensure!(counts.len() == 4 && most == Some(&2) && least == Some(&1), "six pods over four zones: {counts:?}");
        world.clean_up().await
    })
    .await
}

#[tokio::test]
async fn anti_affine_pods_get_a_node_each() -> Result<()> {
    world(Life::Steady, async |world| {
        world.create_pool(json!({})).await?;
        let term = json!([{"topologyKey": "kubernetes.io/hostname", "labelSelector": own(&world.pool)}]);
        let affinity = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}});
        world.deploy(4, json!({"spec": {"affinity": affinity}})).await?;
        world.until_running(4).await?;
        nothing_in_vain(world).await?;
        let by_node = pods_by_node(world).await?;
        ensure!(by_node.len() == 4 && world.claims().await?.len() == 4, "four pods on four nodes: {by_node:?}");
        world.clean_up().await
    })
    .await
}

#[tokio::test]
async fn pods_with_one_host_port_get_a_node_each() -> Result<()> {
    world(Life::Steady, async |world| {
        world.create_pool(json!({})).await?;
        let container = json!({"name": "work", "image": "none", "resources": {"requests": {"cpu": "1"}},
                               "ports": [{"containerPort": 80, "hostPort": 8080}]});
        world.deploy(3, json!({"spec": {"containers": [container]}})).await?;
        world.until_running(3).await?;
        nothing_in_vain(world).await?;
        ensure!(pods_by_node(world).await?.len() == 3, "three pods on three nodes");
        world.clean_up().await
    })
    .await
}

/// A node of four cores leaves 3900m. With a daemon of 1500m two pods of one core fit, not three.
#[tokio::test]
async fn there_is_room_for_daemons_beside_the_pods() -> Result<()> {
    world(Life::Steady, async |world| {
        let name = world.case.unique("agent");
        let daemon: DaemonSet = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": world.case.namespace()},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": {
                    "nodeSelector": {POOL_LABEL: world.pool}, "terminationGracePeriodSeconds": 1,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "d", "image": "none", "resources": {"requests": {"cpu": "1500m"}}}],
                }},
            },
        }))?;
        world.case.create(&daemon).await?;
        world.create_pool(four_cores(json!({}))).await?;
        world.deploy(4, json!({})).await?;
        within(DRAIN_WITHIN, "four pods and a daemon on each node run", async || {
            let (pods, nodes) = (world.pods().await?, world.nodes().await?.len());
            let running = |app: &str| pods.iter().filter(|pod| is_running(pod) && pod.labels()["app"] == app).count();
            let (work, daemons) = (running(&world.pool), running(&name));
            ensure!(work == 4 && daemons == nodes && nodes > 0, "{work} pods, {daemons} daemons, {nodes} nodes");
            Ok(Some(()))
        })
        .await?;
        nothing_in_vain(world).await?;
        ensure!(world.claims().await?.len() == 2, "two pods of one core fit beside the daemon");
        world.case.api::<DaemonSet>().delete(&name, &DeleteParams::background()).await?;
        world.clean_up().await
    })
    .await
}

/// The API server gives the pods what the range says: two cores, of which a node of four takes one pod.
#[tokio::test]
async fn pods_that_ask_for_nothing_get_what_the_limit_range_says() -> Result<()> {
    world(Life::Steady, async |world| {
        let range: LimitRange = serde_json::from_value(json!({
            "metadata": {"name": "range", "namespace": world.case.namespace()},
            "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "2"}, "default": {"cpu": "2"}}]},
        }))?;
        world.case.create(&range).await?;
        world.create_pool(four_cores(json!({}))).await?;
        let container = json!({"name": "work", "image": "none", "resources": null});
        world.deploy(3, json!({"spec": {"containers": [container]}})).await?;
        world.until_running(3).await?;
        nothing_in_vain(world).await?;
        ensure!(world.claims().await?.len() == 3, "a pod of two cores on each node of four");
        world.clean_up().await
    })
    .await
}

#[tokio::test]
async fn a_pod_follows_its_volume_to_its_zone() -> Result<()> {
    const ZONE: &str = "test-zone-c";
    world(Life::Steady, async |world| {
        let name = world.case.unique("data");
        let term = json!({"matchExpressions": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [ZONE]}]});
        let volume: PersistentVolume = serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/none"},
                "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "",
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
        }))?;
        world.case.create(&volume).await?;
        let claim: PersistentVolumeClaim = serde_json::from_value(json!({
            "metadata": {"name": "data", "namespace": world.case.namespace()},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": name,
                     "resources": {"requests": {"storage": "1Gi"}}},
        }))?;
        world.case.create(&claim).await?;
        world.create_pool(json!({})).await?;
        let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
        world.deploy(1, json!({"spec": {"volumes": volumes}})).await?;
        world.until_running(1).await?;
        nothing_in_vain(world).await?;
        let zones: Vec<String> = zones(world).await?.into_values().collect();
        ensure!(zones == [ZONE], "the node is in {zones:?}");
        world.clean_up().await
    })
    .await
}

#[tokio::test]
async fn the_heavier_of_two_pools_is_used() -> Result<()> {
    world(Life::Steady, async |world| {
        let heavy = format!("{}-heavy", world.pool);
        let pool: NodePool = serde_json::from_value(world.pool_object(&heavy, json!({"weight": 50})))?;
        world.deploy(5, json!({})).await?;
        // The pods wait for both, so that there is a choice.
        world.until_waiting(5).await?;
        world.case.create(&pool).await?;
        world.create_pool(json!({"weight": 10})).await?;
        world.until_running(5).await?;
        nothing_in_vain(world).await?;
        for claim in world.claims().await? {
            let pool = claim.object.labels().get("karpenter.sh/nodepool");
            ensure!(pool == Some(&heavy), "{} is of {pool:?}", claim.name);
        }
        world.api::<NodePool>().delete(&heavy, &DeleteParams::background()).await?;
        world.clean_up().await
    })
    .await
}

/// Two nodes of four cores are all that the limit leaves; each takes one pod of three.
#[tokio::test]
async fn a_pool_never_grows_beyond_its_limits() -> Result<()> {
    world(Life::Steady, async |world| {
        let container = json!({"name": "work", "image": "none", "resources": {"requests": {"cpu": "3"}}});
        world.deploy(6, json!({"spec": {"containers": [container]}})).await?;
        world.until_waiting(6).await?;
        world.create_pool(four_cores(json!({"limits": {"cpu": "8"}}))).await?;
        within(DRAIN_WITHIN, "two pods run", async || {
            Ok((world.pods().await?.iter().filter(|pod| is_running(pod)).count() == 2).then_some(()))
        })
        .await?;
        throughout(A_WHILE, "there are two claims", async || Ok(world.claims().await?.len() == 2)).await?;
        world.clean_up().await
    })
    .await
}

#[tokio::test]
async fn a_pod_that_can_never_run_holds_up_nobody_and_costs_nothing() -> Result<()> {
    world(Life::Steady, async |world| {
        let giant = world.case.unique("giant");
        let container = json!({"name": "work", "image": "none", "resources": {"requests": {"cpu": "1000"}}});
        world.deploy_as(&giant, 1, json!({"spec": {"containers": [container]}})).await?;
        world.deploy(3, json!({})).await?;
        world.until_waiting(4).await?;
        world.create_pool(json!({})).await?;
        within(DRAIN_WITHIN, "three pods run", async || {
            Ok((world.pods().await?.iter().filter(|pod| is_running(pod)).count() == 3).then_some(()))
        })
        .await?;
        nothing_in_vain(world).await?;
        let pods = world.case.api::<Pod>().list(&ListParams::default().labels(&format!("app={giant}"))).await?;
        let Some(pod) = pods.items.first() else { anyhow::bail!("the giant is gone") };
        ensure!(node_of(pod).is_none(), "it runs");
        let event = world.until_told(&pod.name_any(), "FailedScheduling").await?;
        ensure!(event.reason.as_deref() == Some("FailedScheduling"), "{event:?}");
        world.clean_up().await
    })
    .await
}

/// A node for pods that do not exist, and the status that says so.
#[tokio::test]
async fn a_capacity_buffer_keeps_room() -> Result<()> {
    world(Life::Steady, async |world| {
        world.create_pool(four_cores(json!({}))).await?;
        let template: PodTemplate = serde_json::from_value(json!({
            "metadata": {"name": "shape", "namespace": world.case.namespace()},
            "template": world.pod_template("shape", json!({})),
        }))?;
        world.case.create(&template).await?;
        let buffer: CapacityBuffer = serde_json::from_value(json!({
            "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
            "metadata": {"name": "room", "namespace": world.case.namespace()},
            "spec": {"podTemplateRef": {"name": "shape"}, "replicas": 3},
        }))?;
        world.case.create(&buffer).await?;
        let buffers = world.case.api::<CapacityBuffer>();
        within(DRAIN_WITHIN, "the buffer says that its room is there", async || {
            let status = json!(buffers.get("room").await?.status);
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            let is_there = conditions.iter().any(|found| found["type"] == "Provisioning" && found["status"] == "True");
            ensure!(is_there && status["replicas"] == 3, "{status}");
            Ok(Some(()))
        })
        .await?;
        let claims = world.claims().await?.len();
        ensure!(claims == 1 && world.pods().await?.is_empty(), "one node for three pods that are not there: {claims}");
        // They come, and find it.
        world.deploy(3, json!({})).await?;
        world.until_running(3).await?;
        let claims: kube::Api<NodeClaim> = world.api();
        ensure!(!claims.list(&ListParams::default()).await?.items.is_empty(), "the claims are there");
        buffers.delete("room", &DeleteParams::background()).await?;
        world.clean_up().await
    })
    .await
}
