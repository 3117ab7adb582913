//! The bed itself: every part does its work. When this suite fails, the others say nothing about Kerf.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kerf_e2e::turns::{Life, turn};
use kerf_e2e::{Answer, Case, ask, case, condition, config, eventually, fake_node, install};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;

#[tokio::test]
async fn a_posted_node_becomes_ready_and_runs_a_pod() -> Result<()> {
    case(async |case| {
        let node = ready_node(case, "node").await?;
        ensure!(
            node.status
                .as_ref()
                .is_some_and(|status| status.allocatable.as_ref().is_some_and(|room| room["cpu"].0 == "4"))
        );
        let pod = case.create(&pod_on(case, &node, "pod", json!({}))?).await?;
        let running = eventually("the pod runs", async || Ok(in_phase(case, &pod, "Running").await?)).await?;
        let spec = running.spec.context("a running pod has a spec")?;
        ensure!(spec.node_name == node.metadata.name, "bound to {:?}", spec.node_name);
        ensure!(running.status.is_some_and(|status| status.pod_ip.is_some()), "a running pod has an address");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_deleted_pod_stays_for_the_delay_that_it_asks_for() -> Result<()> {
    case(async |case| {
        let node = ready_node(case, "node").await?;
        let delay = json!({"annotations": {"pod-delete.stage.kwok.x-k8s.io/delay": "2s"}});
        let pod = case.create(&pod_on(case, &node, "slow", delay)?).await?;
        eventually("the pod runs", async || Ok(in_phase(case, &pod, "Running").await?)).await?;
        let deleted = Instant::now();
        let pods = case.api::<Pod>();
        pods.delete(&pod.name_any(), &DeleteParams::default()).await?;
        ensure!(
            pods.get(&pod.name_any()).await?.metadata.deletion_timestamp.is_some(),
            "it is there and knows that it goes"
        );
        eventually("the pod is gone", async || Ok(is_gone(&pods, &pod.name_any()).await?.then_some(()))).await?;
        // A second less than asked for: the server's and kwok's clocks tick in whole seconds.
        ensure!(deleted.elapsed() >= Duration::from_secs(1), "gone after {:?}", deleted.elapsed());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_completes() -> Result<()> {
    case(async |case| {
        let node = ready_node(case, "node").await?;
        let pod = pod_on(case, &node, "unused", json!({}))?.spec.context("the pod has a spec")?;
        let mut template = json!({"spec": pod});
        template["spec"]["restartPolicy"] = json!("Never");
        let job: Job = serde_json::from_value(json!({
            "metadata": {"name": "job", "namespace": case.namespace()},
            "spec": {"template": template},
        }))?;
        case.create(&job).await?;
        eventually("the job has succeeded", async || {
            let status = case.api::<Job>().get("job").await?.status;
            Ok((status.and_then(|status| status.succeeded) == Some(1)).then_some(()))
        })
        .await
    })
    .await
}

#[tokio::test]
async fn a_pod_marked_unhealthy_is_bound_but_never_ready() -> Result<()> {
    case(async |case| {
        let node = ready_node(case, "node").await?;
        let sick = json!({"labels": {"kwok.x-k8s.io/stage": "unhealthy"}});
        let pod = case.create(&pod_on(case, &node, "sick", sick)?).await?;
        let pod = eventually("the pod is unhealthy", async || Ok(in_phase(case, &pod, "Unknown").await?)).await?;
        let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
        ensure!(
            conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "False"),
            "{conditions:?}"
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_node_marked_unhealthy_keeps_the_condition_that_a_test_wrote() -> Result<()> {
    case(async |case| {
        let nodes: Api<Node> = Api::all(case.client());
        let name = ready_node(case, "sick").await?.name_any();
        let label = json!({"metadata": {"labels": {"kwok.x-k8s.io/stage": "unhealthy"}}});
        nodes.patch(&name, &PatchParams::default(), &Patch::Merge(label)).await?;
        let fault = json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Broken"}]}});
        nodes.patch_status(&name, &PatchParams::default(), &Patch::Strategic(fault)).await?;
        // kwok has seen the patch by the time that it has made a node ready which was posted later.
        ready_node(case, "later").await?;
        let node = nodes.get(&name).await?;
        let ready = condition(&node, "Ready").context("the node has the condition Ready")?;
        ensure!(ready.status == "False", "kwok made it ready again");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_an_owner_leaves_is_collected() -> Result<()> {
    case(async |case| {
        let map = |name: &str| -> Result<ConfigMap> {
            Ok(serde_json::from_value(json!({"metadata": {"name": name, "namespace": case.namespace()}}))?)
        };
        let owner = case.create(&map("owner")?).await?;
        let mut dependent = map("dependent")?;
        dependent.metadata.owner_references = Some(vec![owner.owner_ref(&()).context("the owner has a uid")?]);
        case.create(&dependent).await?;
        let maps = case.api::<ConfigMap>();
        maps.delete("owner", &DeleteParams::background()).await?;
        eventually("the dependent is collected", async || Ok(is_gone(&maps, "dependent").await?.then_some(()))).await
    })
    .await
}

#[tokio::test]
async fn the_server_is_verified_and_nothing_else_is_trusted() -> Result<()> {
    let _turn = turn(Life::None).await?;
    let verified = config().await?;
    ensure!(verified.cluster_url.scheme_str() == Some("https") && !verified.accept_invalid_certs);
    Client::try_from(verified.clone())?.apiserver_version().await.context("the bed's certificate is trusted")?;
    let mut trusts_nobody = verified;
    trusts_nobody.root_cert = Some(Vec::new());
    trusts_nobody.root_cert_file = None;
    let answer = Client::try_from(trusts_nobody)?.apiserver_version().await;
    ensure!(answer.is_err(), "a client that trusts nobody was answered");
    Ok(())
}

#[tokio::test]
async fn the_server_says_its_pinned_version() -> Result<()> {
    let _turn = turn(Life::None).await?;
    let version = kerf_e2e::connect().await?.apiserver_version().await?;
    ensure!((version.major.as_str(), version.minor.as_str()) == ("1", "36"), "{version:?}");
    Ok(())
}

#[tokio::test]
async fn a_definition_is_served_once_it_is_installed_and_its_rules_are_in_force() -> Result<()> {
    case(async |case| {
        let definition: CustomResourceDefinition = serde_json::from_value(json!({
            "metadata": {"name": "saws.e2e.kerf.example"},
            "spec": {
                "group": "e2e.kerf.example",
                "names": {"kind": "Saw", "plural": "saws"},
                "scope": "Cluster",
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": {
                        "teeth": {"type": "integer", "minimum": 1, "default": 24},
                    }}},
                }}}],
            },
        }))?;
        install(&case.client(), &[definition]).await?;
        let saw =
            |spec| json!({"apiVersion": "e2e.kerf.example/v1", "kind": "Saw", "metadata": {"name": "a"}, "spec": spec});
        let Answer::Accepted(stored) = ask(&case.client(), &saw(json!({}))).await? else {
            anyhow::bail!("a saw without teeth gets the default");
        };
        ensure!(stored["spec"]["teeth"] == 24, "{stored}");
        let Answer::Refused { message: why, .. } = ask(&case.client(), &saw(json!({"teeth": 0}))).await? else {
            anyhow::bail!("a toothless saw is refused");
        };
        ensure!(why.contains("spec.teeth"), "{why}");
        Ok(())
    })
    .await
}

async fn ready_node(case: &Case, stem: &str) -> Result<Node> {
    let name = case.create(&fake_node(&case.unique(stem))).await?.name_any();
    let nodes: Api<Node> = Api::all(case.client());
    eventually(&format!("the node {name} is ready"), async || {
        let node = nodes.get(&name).await?;
        Ok(condition(&node, "Ready").is_some_and(|ready| ready.status == "True").then_some(node))
    })
    .await
}

/// A pod that only this node can take.
fn pod_on(case: &Case, node: &Node, name: &str, metadata: serde_json::Value) -> Result<Pod> {
    let mut pod: Pod = serde_json::from_value(json!({
        "metadata": metadata,
        "spec": {
            "nodeSelector": BTreeMap::from([("kubernetes.io/hostname", node.name_any())]),
            "containers": [{"name": "work", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
        },
    }))?;
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.namespace = Some(case.namespace().to_owned());
    Ok(pod)
}

async fn in_phase(case: &Case, pod: &Pod, phase: &str) -> kube::Result<Option<Pod>> {
    let pod = case.api::<Pod>().get(&pod.name_any()).await?;
    let is_there = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(phase);
    Ok(is_there.then_some(pod))
}

async fn is_gone<K>(api: &Api<K>, name: &str) -> kube::Result<bool>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    Ok(api.get_opt(name).await?.is_none())
}
