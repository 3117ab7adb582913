//! `kerf plan` and `kerf why`, which only look, say what the controller then does, or is doing. What it will do they are asked
//! while it is not there: then nothing changes between the answer and the deed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use kerf_e2e::turns::{GATES, Life, SHORT_WAITS};
use kerf_e2e::world::{Claim, DRAIN_WITHIN, World, world};
use kerf_e2e::{Kerf, eventually, kerf_json, within};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::drift::{clear_startup_taints, on_nodes_of_their_own};
use super::interrupted::{change_with_startup_taint, until_coming};

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

        // Nobody looks while most pods go, one of the nodes is protected, and the budget opens.
        let one = Patch::Merge(json!({"spec": {"replicas": 1}}));
        for app in apps {
            world.case.api::<Deployment>().patch(app, &PatchParams::default(), &one).await?;
        }
        world.until_running(3).await?;
        let protected = world.nodes().await?.pop().context("there is a node")?.name_any();
        let protect = Patch::Merge(json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}));
        world.api::<Node>().patch(&protected, &PatchParams::default(), &protect).await?;
        world.patch_pool(json!({"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}})).await?;
        let plan = kerf_json(&["plan"])?;
        let moves = plan["moves"].as_array().context("there are no moves")?;
        let mut gone = Vec::new();
        for planned in moves {
            ensure!(planned["reason"] == "Underutilized" || planned["reason"] == "Empty", "{planned}");
            gone.extend(planned["nodes"].as_array().into_iter().flatten().filter_map(|node| node["node"].as_str()));
        }
        ensure!(gone.len() == 2 && !gone.contains(&&*protected), "all pods fit on {protected}: {plan}");
        let why = kerf_json(&["why", "node", &protected])?;
        ensure!(why["verdict"] == "do_not_disrupt", "{protected}: {why}");
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

/// The controller runs, and waits for one of two replacements that its budget allows. Whoever asks, of the cluster or of a dump
/// of it, is told so.
pub async fn what_is_under_way_is_told_by_the_cluster_and_by_a_dump(world: &World<'_>) -> Result<()> {
    let old = on_nodes_of_their_own(world, 2, json!([{"nodes": "1"}])).await?;
    change_with_startup_taint(world).await?;
    until_coming(world, 1).await?;
    let claims = world.claims().await?;
    let coming: Vec<&str> = claims.iter().filter(|claim| !claim.is("Initialized")).map(|claim| &*claim.name).collect();
    let marked: Vec<&str> = claims.iter().filter(|claim| claim.is_marked()).map(|claim| &*claim.name).collect();
    ensure!(
        claims.len() == 3 && marked.len() == 1 && coming.len() == 1,
        "{marked:?} and {coming:?} of {}",
        claims.len()
    );
    let dump = Dump::take(world)?;
    let mut told = BTreeMap::new();
    for claim in &claims {
        let node = claim.node.as_deref().context("every claim has its node")?;
        let live = kerf_json(&["why", "node", node])?;
        let dumped = kerf_json(&["why", "node", node, "-f", dump.path()?])?;
        ensure!(live == dumped, "of {node} the cluster says {live}, and the dump {dumped}");
        let expected = match &*claim.name {
            name if marked.contains(&name) => "under_way",
            name if coming.contains(&name) => "replacement",
            _ => "budget_spent",
        };
        ensure!(live["verdict"] == expected, "{node} is {expected}: {live}");
        told.insert(claim.name.clone(), live["verdict"].clone());
    }
    for plan in [kerf_json(&["plan"])?, kerf_json(&["plan", "-f", dump.path()?])?] {
        for (claim, verdict) in &told {
            let planned = &plan["verdicts"][claim]["verdict"];
            ensure!(planned == verdict, "the plan says {planned} of {claim}, and why {verdict}");
        }
        let moves = plan["moves"].as_array().into_iter().flatten();
        let mut nodes = moves.flat_map(|planned| planned["nodes"].as_array().into_iter().flatten());
        let again = nodes.find(|node| told.keys().any(|claim| node["claim"] == **claim));
        ensure!(again.is_none(), "the plan has a move for {again:?}, and its pool allows none");
    }
    within(DRAIN_WITHIN, "the nodes are new", async || {
        clear_startup_taints(world).await?;
        Ok((!world.nodes().await?.iter().any(|node| old.contains(&node.name_any()))).then_some(()))
    })
    .await?;
    world.until_running(2).await?;
    world.clean_up().await
}

/// What `kubectl` prints of the cluster, in a file that goes away.
struct Dump(PathBuf);

impl Dump {
    fn take(world: &World<'_>) -> Result<Self> {
        let kinds = "nodes,nodeclaims,nodepools,kwoknodeclasses,pods,daemonsets,pdb,maintenancewindows";
        let kubectl = std::env::var_os("KERF_E2E_KUBECTL").context("the run says where kubectl is")?;
        let output = Command::new(kubectl).args(["get", kinds, "-A", "-o", "yaml"]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let path = std::env::temp_dir().join(format!("{}.yaml", world.pool));
        std::fs::write(&path, output.stdout)?;
        Ok(Self(path))
    }

    fn path(&self) -> Result<&str> {
        self.0.to_str().context("a path of plain text")
    }
}

impl Drop for Dump {
    fn drop(&mut self) {
        // One that stays is no harm.
        drop(std::fs::remove_file(&self.0));
    }
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
