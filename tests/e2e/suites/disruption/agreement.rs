//! `kerf plan` and `kerf why`, which only look, say what the controller then does. They look while it is not there: then
//! nothing changes between the answer and the deed.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kerf_e2e::turns::{GATES, Life, SHORT_WAITS};
use kerf_e2e::world::{Claim, world};
use kerf_e2e::{Kerf, eventually, kerf_json};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

#[tokio::test]
async fn pods_get_the_nodes_that_the_plan_has_for_them() -> Result<()> {
    world(Life::Own, async |world| {
        world.deploy(5, json!({})).await?;
        world.deploy_as("gone", 1, json!({"spec": {"nodeSelector": {"topology.kubernetes.io/zone": "moon"}}})).await?;
        world.until_waiting(6).await?;
        world.create_pool(json!({})).await?;
        let plan = kerf_json(&["plan"])?;
        let launches = own(&plan["launches"], &world.pool);
        let planned: usize = launches.iter().map(|claim| texts(&claim["pods"]).count()).sum();
        ensure!(planned == 5, "the plan is {plan}");
        let pod = |name: &str| format!("{}/{name}", world.case.namespace());
        for waiting in world.pods().await? {
            let name = pod(&waiting.name_any());
            let why = kerf_json(&["why", "pod", &name])?;
            let has_place = launches.iter().any(|claim| texts(&claim["pods"]).any(|planned| planned == name));
            ensure!(why["verdict"] == if has_place { "planned" } else { "no_place" }, "{name}: {why}");
        }
        let _kerf = controller()?;
        eventually("the pods with a place run", async || {
            let running = world.pods().await?.iter().filter(|pod| kerf_e2e::world::is_running(pod)).count();
            Ok((running == 5).then_some(()))
        })
        .await?;
        let claims = world.claims().await?;
        ensure!(claims.len() == launches.len(), "{} claims for {launches:?}", claims.len());
        for claim in &claims {
            let on_it =
                world.pods().await?.into_iter().filter(|pod| {
                    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == claim.node.as_deref()
                });
            let mut on_it: Vec<String> = on_it.map(|found| pod(&found.name_any())).collect();
            on_it.sort();
            let planned = launches.iter().find(|launch| {
                let mut pods: Vec<&str> = texts(&launch["pods"]).collect();
                pods.sort_unstable();
                pods == on_it
            });
            let planned = planned.with_context(|| format!("no launch of the plan is for {on_it:?}: {launches:?}"))?;
            ensure!(is_of(claim, &planned["options"]), "{} is of another type than {planned}", claim.name);
        }
        world.case.api::<Deployment>().delete("gone", &DeleteParams::background()).await?;
        world.clean_up().await
    })
    .await
}

#[tokio::test]
async fn nodes_go_and_stay_as_the_plan_says() -> Result<()> {
    world(Life::Own, async |world| {
        let apps = ["small", "kept", "idle"];
        for app in apps {
            world.deploy_as(app, 3, json!({})).await?;
        }
        world.until_waiting(9).await?;
        let none = json!([{"nodes": "0"}]);
        let size = |values: Value| {
            json!([
                {"key": "karpenter.kwok.sh/instance-size", "operator": "In", "values": values},
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            ])
        };
        let pool = json!({
            "disruption": {"consolidateAfter": "0s", "budgets": none},
            "template": {"spec": {"requirements": size(json!(["4"]))}},
        });
        let mut kerf = controller()?;
        world.create_pool(pool).await?;
        world.until_running(9).await?;
        eventually("nothing but the budget keeps three nodes", async || {
            let claims = world.claims().await?;
            Ok((claims.len() == 3 && claims.iter().all(|claim| claim.is("Consolidatable"))).then_some(()))
        })
        .await?;
        kerf.terminate().await?;

        // Nobody looks while the pods of the first go, the second is protected, and the budget opens.
        let one = Patch::Merge(json!({"spec": {"replicas": 1}}));
        for app in apps {
            world.case.api::<Deployment>().patch(app, &PatchParams::default(), &one).await?;
        }
        world.until_running(3).await?;
        world.patch_pool(json!({"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}})).await?;
        let plan = kerf_json(&["plan"])?;
        let moves = plan["moves"].as_array().context("there are no moves")?;
        let mut gone = Vec::new();
        for planned in moves {
            ensure!(planned["reason"] == "Underutilized" || planned["reason"] == "Empty", "{planned}");
            gone.extend(planned["nodes"].as_array().into_iter().flatten().filter_map(|node| node["node"].as_str()));
        }
        ensure!(!gone.is_empty() && gone.len() < 3, "one of three nodes is enough: {plan}");
        for node in world.nodes().await? {
            let why = kerf_json(&["why", "node", &node.name_any()])?;
            let goes = gone.contains(&&*node.name_any());
            ensure!((why["verdict"] == "go") == goes, "{}: {why}, and the plan is {plan}", node.name_any());
        }

        let _kerf = controller()?;
        for node in &gone {
            world.until_node_gone(node).await?;
        }
        world.until_running(3).await?;
        let left: Vec<String> = world.nodes().await?.iter().map(ResourceExt::name_any).collect();
        ensure!(left.len() == 3 - gone.len(), "{left:?} are left, and the plan was {plan}");
        let report = kerf_json(&["plan"])?;
        ensure!(report["moves"] == json!([]), "and then there is nothing to do: {report}");
        world.clean_up().await
    })
    .await
}

fn controller() -> Result<Kerf> {
    let arguments: Vec<&str> =
        ["--disable-leader-election"].iter().chain(&SHORT_WAITS).chain(&GATES).copied().collect();
    Kerf::start("agreement", &arguments)
}

/// Launches of the pool of the case.
fn own(launches: &Value, pool: &str) -> Vec<Value> {
    launches.as_array().into_iter().flatten().filter(|claim| claim["pool"] == pool).cloned().collect()
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Whether the claim got the cheapest of the options. One price may have several types.
fn is_of(claim: &Claim, options: &Value) -> bool {
    let labels = claim.object.metadata.labels.clone().unwrap_or_default();
    let kind = labels.get("node.kubernetes.io/instance-type").map(String::as_str).unwrap_or_default();
    let options = || options.as_array().into_iter().flatten();
    let cheapest = options().next().map(|option| &option["hourlyPrice"]);
    options().any(|option| option["instanceType"] == kind && Some(&option["hourlyPrice"]) == cheapest)
}
