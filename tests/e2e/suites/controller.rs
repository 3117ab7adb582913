//! `kerf controller` on a real API server: pods get nodes, and nodes go politely, whatever is deleted and whatever is killed.
//!
//! Cases run one after the other, because a controller acts on the whole cluster. Each starts its own.

use std::fs::File;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kerf_api::kwok_node_class::KwokNodeClass;
use kerf_api::node_claim::NodeClaim;
use kerf_api::node_pool::NodePool;
use kerf_api::{Provider, crds};
use kerf_e2e::{Case, case, eventually, install};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::sync::Mutex;

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Promised for the taint after a deletion.
const TAINT_WITHIN: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_deployment_gets_nodes_and_grows() -> Result<()> {
    with_controller(async |world| {
        world.deploy(20).await?;
        world.until_running(20).await?;
        world.scale(100).await?;
        world.until_running(100).await?;
        for claim in world.claims().await? {
            ensure!(!claim.is_deleting, "the claim {} goes though its pods run", claim.name);
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_deleted_node_is_tainted_at_once_drained_and_replaced() -> Result<()> {
    with_controller(async |world| {
        let node = world.running_on_one_node().await?;
        let nodes: Api<Node> = Api::all(world.case.client());
        nodes.delete(&node, &DeleteParams::default()).await?;
        world.until_tainted(&node).await?;
        world.until_replaced(&node).await
    })
    .await
}

#[tokio::test]
async fn a_deleted_claim_takes_its_node_along_politely() -> Result<()> {
    with_controller(async |world| {
        let node = world.running_on_one_node().await?;
        let claim = world.claims().await?.pop().context("the node has a claim")?;
        let claims: Api<NodeClaim> = Api::all(world.case.client());
        claims.delete(&claim.name, &DeleteParams::default()).await?;
        world.until_tainted(&node).await?;
        world.until_replaced(&node).await?;
        ensure!(claims.get_opt(&claim.name).await?.is_none(), "the claim {} is left over", claim.name);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_deleted_pool_takes_everything_along() -> Result<()> {
    with_controller(async |world| {
        let node = world.running_on_one_node().await?;
        let pools: Api<NodePool> = Api::all(world.case.client());
        // As kubectl does it: the garbage collector deletes the claims once the pool is gone.
        pools.delete(&world.pool, &DeleteParams::background()).await?;
        eventually("the pool is gone", async || Ok(pools.get_opt(&world.pool).await?.is_none().then_some(()))).await?;
        world.until_tainted(&node).await?;
        world.until_nothing_is_left().await
    })
    .await
}

#[tokio::test]
async fn a_drain_goes_on_after_the_controller_was_killed() -> Result<()> {
    with_controller(async |world| {
        let node = world.running_on_one_node().await?;
        let nodes: Api<Node> = Api::all(world.case.client());
        nodes.delete(&node, &DeleteParams::default()).await?;
        world.until_tainted(&node).await?;
        world.kerf.kill()?;
        ensure!(nodes.get_opt(&node).await?.is_some(), "the node went before the controller was killed");
        world.kerf = Kerf::start(&world.pool)?;
        world.until_replaced(&node).await
    })
    .await
}

#[tokio::test]
async fn a_controller_that_is_asked_to_stop_hands_over() -> Result<()> {
    with_controller(async |world| {
        let leases: Api<Lease> = Api::namespaced(world.case.client(), "default");
        let holder = async || -> Result<String> {
            let lease = leases.get(&world.pool).await?.spec.unwrap_or_default();
            Ok(lease.holder_identity.unwrap_or_default())
        };
        let first =
            eventually("the first leads", async || Ok(Some(holder().await?).filter(|name| !name.is_empty()))).await?;
        let mut second = Kerf::start(&world.pool)?;
        world.kerf.terminate().await?;
        let stopped = Instant::now();
        eventually("the second leads", async || {
            Ok(Some(holder().await?).filter(|name| !name.is_empty() && *name != first))
        })
        .await?;
        ensure!(stopped.elapsed() < Duration::from_secs(10), "it waited until the lease ran out");
        second.kill()
    })
    .await
}

struct World<'a> {
    case: &'a Case,
    /// Also the name of the lease, of the deployment and of the label on its pods.
    pool: String,
    kerf: Kerf,
}

struct Claim {
    name: String,
    is_deleting: bool,
}

/// A cluster with a pool and a running controller.
async fn with_controller(test: impl AsyncFnOnce(&mut World<'_>) -> Result<()>) -> Result<()> {
    let _turn = ONE_AT_A_TIME.lock().await;
    case(async |case| {
        let client = case.client();
        install(&client, &crds(Some(Provider::Kwok))).await?;
        let pool = case.unique("pool");
        let class: KwokNodeClass = serde_json::from_value(json!({
            "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": pool}, "spec": {},
        }))?;
        case.create(&class).await?;
        let reference = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": pool});
        let object: NodePool = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": pool},
            "spec": {"template": {
                "metadata": {"labels": {"e2e.kerf.example/pool": pool}},
                "spec": {"nodeClassRef": reference, "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                ]},
            }},
        }))?;
        case.create(&object).await?;
        let kerf = Kerf::start(&pool)?;
        let mut world = World { case, pool, kerf };
        let outcome = test(&mut world).await;
        // Leaves no node to the next case; a controller must still run for it.
        let cleaned = match outcome {
            Ok(()) => world.clean_up().await,
            Err(_) => Ok(()),
        };
        outcome.with_context(|| format!("the log is in {}", world.kerf.log.display())).and(cleaned)
    })
    .await
}

impl World<'_> {
    async fn deploy(&self, replicas: i32) -> Result<()> {
        let deployment: Deployment = serde_json::from_value(json!({
            "metadata": {"name": self.pool, "namespace": self.case.namespace()},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": self.pool}},
                "template": {
                    "metadata": {"labels": {"app": self.pool}},
                    "spec": {
                        "nodeSelector": {"e2e.kerf.example/pool": self.pool},
                        "containers": [{"name": "work", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
                    },
                },
            },
        }))?;
        self.case.create(&deployment).await.map(drop)
    }

    async fn scale(&self, replicas: i32) -> Result<()> {
        let patch = kube::api::Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let deployments = self.case.api::<Deployment>();
        deployments.patch(&self.pool, &kube::api::PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn pods(&self) -> Result<Vec<Pod>> {
        let pods = self.case.api::<Pod>();
        Ok(pods.list(&ListParams::default().labels(&format!("app={}", self.pool))).await?.items)
    }

    /// All run, and none of them is on its way out.
    async fn until_running(&self, count: usize) -> Result<()> {
        eventually(&format!("{count} pods run"), async || {
            let pods = self.pods().await?;
            let running = pods.iter().filter(|pod| {
                pod.metadata.deletion_timestamp.is_none()
                    && pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
            });
            let running = running.count();
            ensure!(running == count && pods.len() == count, "{running} of {} pods run", pods.len());
            Ok(Some(()))
        })
        .await
    }

    async fn nodes(&self) -> Result<Vec<Node>> {
        let nodes: Api<Node> = Api::all(self.case.client());
        Ok(nodes.list(&ListParams::default().labels(&format!("karpenter.sh/nodepool={}", self.pool))).await?.items)
    }

    async fn claims(&self) -> Result<Vec<Claim>> {
        let claims: Api<NodeClaim> = Api::all(self.case.client());
        let claims =
            claims.list(&ListParams::default().labels(&format!("karpenter.sh/nodepool={}", self.pool))).await?;
        let claim = |claim: NodeClaim| Claim {
            name: claim.name_any(),
            is_deleting: claim.metadata.deletion_timestamp.is_some(),
        };
        Ok(claims.items.into_iter().map(claim).collect())
    }

    /// Ten pods, which fit on one node.
    async fn running_on_one_node(&self) -> Result<String> {
        self.deploy(10).await?;
        self.until_running(10).await?;
        let nodes = self.nodes().await?;
        ensure!(nodes.len() == 1, "{} nodes for ten pods", nodes.len());
        Ok(nodes[0].name_any())
    }

    async fn until_tainted(&self, node: &str) -> Result<()> {
        let start = Instant::now();
        let nodes: Api<Node> = Api::all(self.case.client());
        eventually(&format!("the node {node} is tainted"), async || {
            let spec = nodes.get(node).await?.spec.unwrap_or_default();
            let mut taints = spec.taints.iter().flatten();
            Ok(taints.any(|taint| taint.key == "karpenter.sh/disrupted" && taint.effect == "NoSchedule").then_some(()))
        })
        .await?;
        ensure!(start.elapsed() <= TAINT_WITHIN, "tainted after {:?}", start.elapsed());
        Ok(())
    }

    /// The node is gone, its pods run elsewhere, and every node has its claim.
    async fn until_replaced(&self, old: &str) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.case.client());
        eventually(&format!("the node {old} is gone"), async || Ok(nodes.get_opt(old).await?.is_none().then_some(())))
            .await?;
        self.until_running(10).await?;
        eventually("there is one claim for each node", async || {
            let (nodes, claims) = (self.nodes().await?.len(), self.claims().await?.len());
            ensure!(nodes == claims && nodes > 0, "{nodes} nodes, {claims} claims");
            Ok(Some(()))
        })
        .await
    }

    async fn until_nothing_is_left(&self) -> Result<()> {
        eventually("no node and no claim is left", async || {
            let (nodes, claims) = (self.nodes().await?.len(), self.claims().await?.len());
            ensure!(nodes + claims == 0, "{nodes} nodes, {claims} claims");
            Ok(Some(()))
        })
        .await
    }

    async fn clean_up(&mut self) -> Result<()> {
        if !self.kerf.is_running()? {
            self.kerf = Kerf::start(&self.pool)?;
        }
        let gone =
            |answer: kube::Error| matches!(&answer, kube::Error::Api(status) if status.code == 404).then_some(());
        let deployments = self.case.api::<Deployment>();
        let pools: Api<NodePool> = Api::all(self.case.client());
        if let Err(error) = deployments.delete(&self.pool, &DeleteParams::background()).await {
            gone(error).context("cannot delete the deployment")?;
        }
        if let Err(error) = pools.delete(&self.pool, &DeleteParams::background()).await {
            gone(error).context("cannot delete the pool")?;
        }
        self.until_nothing_is_left().await
    }
}

/// The built program, running. Killed when it is dropped.
struct Kerf {
    process: Child,
    log: PathBuf,
}

impl Kerf {
    fn start(lease: &str) -> Result<Self> {
        let directory = std::env::var_os("KERF_E2E_DIRECTORY").map_or_else(std::env::temp_dir, PathBuf::from);
        let log = directory.join(format!("kerf-{lease}-{}.log", free_port()?));
        let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let program = program()?;
        let process = Command::new(&program)
            .args(["controller", "--provider", "kwok", "--bind-address", "127.0.0.1", "--log-level", "debug"])
            .args(["--leader-election-name", lease, "--leader-election-namespace", "default"])
            .args(["--metrics-port", &free_port()?.to_string(), "--health-probe-port", &free_port()?.to_string()])
            .stdout(output.try_clone()?)
            .stderr(output)
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { process, log })
    }

    /// As `kill -9` does.
    fn kill(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    fn is_running(&mut self) -> Result<bool> {
        Ok(self.process.try_wait()?.is_none())
    }

    /// As the kubelet ends a pod. It must end by itself, and well.
    async fn terminate(&mut self) -> Result<()> {
        let sent = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status()?;
        ensure!(sent.success(), "cannot send the signal");
        let status = eventually("the controller stops", async || Ok(self.process.try_wait()?)).await?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }
}

impl Drop for Kerf {
    fn drop(&mut self) {
        // One that has ended already is no trouble.
        drop(self.kill());
    }
}

/// From the run, or beside the suites' own program.
fn program() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("KERF_E2E_KERF") {
        return Ok(path.into());
    }
    let own = std::env::current_exe().context("cannot find the own program")?;
    let profile = own.parent().and_then(|deps| deps.parent()).context("the suites are built below a profile")?;
    let program = profile.join("kerf");
    ensure!(program.exists(), "there is no {}: build it with `cargo build -p kerf-cli`", program.display());
    Ok(program)
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
