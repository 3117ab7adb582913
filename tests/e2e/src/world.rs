//! A pool with a workload of its own, in a cluster where Kerf runs: what the cases about nodes stand on.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kerf_api::kwok_node_class::KwokNodeClass;
use kerf_api::node_claim::NodeClaim;
use kerf_api::node_pool::NodePool;
use kerf_api::{Provider, crds};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::turns::{Life, turn};
use crate::{Case, case_in, eventually, install, merge, within};

/// Promised for the taint after a deletion.
pub const TAINT_WITHIN: Duration = Duration::from_secs(3);
/// For a drain and all that follows from it; more than [`eventually`] has, for a controller that is killed meanwhile: of an
/// eviction that is cut off in the middle, the budget counts the pod as gone for two minutes, while the pod stays.
pub const DRAIN_WITHIN: Duration = Duration::from_secs(240);

pub struct World<'a> {
    pub case: &'a Case,
    /// Also the name of its class, of the deployment and of the label on its pods and nodes.
    pub pool: String,
    pub life: Life,
}

/// A claim as cases look at it.
#[derive(Debug, Clone)]
pub struct Claim {
    pub name: String,
    pub is_deleting: bool,
    pub node: Option<String>,
    pub object: NodeClaim,
}

/// The label by which a case finds its own nodes.
pub const POOL_LABEL: &str = "e2e.kerf.example/pool";

/// The annotation of a claim that goes: all that a new process has to know of the command.
pub const COMMAND: &str = "kerf.sh/disruption-command";

/// A cluster with a class and a controller of this life.
pub async fn world(life: Life, test: impl AsyncFnOnce(&World<'_>) -> Result<()>) -> Result<()> {
    let turn = turn(life).await?;
    case_in(&turn, async |case| {
        install(&case.client(), &crds(Some(Provider::Kwok))).await?;
        let world = World { case, pool: case.unique("pool"), life };
        world.create_class(&world.pool, json!({})).await?;
        test(&world).await
    })
    .await
}

impl World<'_> {
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::ClusterResourceScope, DynamicType = ()>,
    {
        Api::all(self.case.client())
    }

    pub async fn create_class(&self, name: &str, spec: Value) -> Result<()> {
        let class: KwokNodeClass = serde_json::from_value(json!({
            "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": name}, "spec": spec,
        }))?;
        self.case.create(&class).await.map(drop)
    }

    pub fn class_reference(&self) -> Value {
        json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": self.pool})
    }

    /// The pool of the case: on demand, never expiring, with this merged over its spec.
    pub async fn create_pool(&self, spec: Value) -> Result<()> {
        let pool: NodePool = serde_json::from_value(self.pool_object(&self.pool, spec))?;
        self.case.create(&pool).await.map(drop)
    }

    pub fn pool_object(&self, name: &str, spec: Value) -> Value {
        let mut object = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
            "spec": {
                "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "Never",
                               "budgets": [{"nodes": "100%"}]},
                "template": {
                    "metadata": {"labels": {POOL_LABEL: self.pool}},
                    "spec": {"nodeClassRef": self.class_reference(), "expireAfter": "Never", "requirements": [
                        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    ]},
                },
            },
        });
        merge(&mut object["spec"], spec);
        object
    }

    pub async fn patch_pool(&self, patch: Value) -> Result<()> {
        let pools: Api<NodePool> = self.api();
        pools.patch(&self.pool, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Pods of one cpu that only the pool of the case can take, with this merged over their template.
    pub async fn deploy(&self, replicas: i32, template: Value) -> Result<()> {
        self.deploy_as(&self.pool, replicas, template).await
    }

    pub async fn deploy_as(&self, name: &str, replicas: i32, template: Value) -> Result<()> {
        let deployment: Deployment = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": self.case.namespace()},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": self.pod_template(name, template),
            },
        }))?;
        self.case.create(&deployment).await.map(drop)
    }

    pub fn pod_template(&self, app: &str, over: Value) -> Value {
        let mut template = json!({
            "metadata": {"labels": {"app": app}},
            "spec": {
                "nodeSelector": {POOL_LABEL: self.pool},
                "terminationGracePeriodSeconds": 2,
                "containers": [{"name": "work", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
            },
        });
        merge(&mut template, over);
        template
    }

    pub async fn scale(&self, replicas: i32) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.case.api::<Deployment>().patch(&self.pool, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    pub async fn pods(&self) -> Result<Vec<Pod>> {
        let pods = self.case.api::<Pod>();
        Ok(pods.list(&ListParams::default()).await?.items)
    }

    /// So many pods run, there are no others, and none of them is on its way out.
    pub async fn until_running(&self, count: usize) -> Result<()> {
        within(DRAIN_WITHIN, &format!("{count} pods run"), async || {
            let pods = self.pods().await?;
            let running = pods.iter().filter(|pod| is_running(pod)).count();
            ensure!(running == count && pods.len() == count, "{running} of {} pods run", pods.len());
            Ok(Some(()))
        })
        .await
    }

    pub async fn nodes(&self) -> Result<Vec<Node>> {
        let nodes: Api<Node> = self.api();
        Ok(nodes.list(&ListParams::default().labels(&format!("{POOL_LABEL}={}", self.pool))).await?.items)
    }

    pub async fn claims(&self) -> Result<Vec<Claim>> {
        let claims: Api<NodeClaim> = self.api();
        let claims = claims.list(&ListParams::default().labels(&format!("{POOL_LABEL}={}", self.pool))).await?;
        Ok(claims.items.into_iter().map(Claim::from).collect())
    }

    /// So many pods, which fit on one node of a pool with this spec, and the claim of that node.
    pub async fn running_on_one_node(&self, pool: Value, pods: i32, template: Value) -> Result<(String, Claim)> {
        self.deploy(pods, template).await?;
        let count = usize::try_from(pods)?;
        // Before there is a pool, so that they are looked at together however busy the cluster is.
        self.until_waiting(count).await?;
        self.create_pool(pool).await?;
        self.until_running(count).await?;
        self.only_node().await
    }

    /// The scheduler has found no place for so many pods.
    pub async fn until_waiting(&self, count: usize) -> Result<()> {
        eventually(&format!("{count} pods wait"), async || {
            let pods = self.pods().await?;
            let waiting = pods.iter().filter(|pod| {
                let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
                conditions.any(|found| found.type_ == "PodScheduled" && found.status == "False")
            });
            Ok((waiting.count() == count).then_some(()))
        })
        .await
    }

    pub async fn only_node(&self) -> Result<(String, Claim)> {
        eventually("there is one node, and its claim is ready", async || {
            let (mut nodes, mut claims) = (self.nodes().await?, self.claims().await?);
            ensure!(nodes.len() == 1 && claims.len() == 1, "{} nodes, {} claims", nodes.len(), claims.len());
            let (Some(node), Some(claim)) = (nodes.pop(), claims.pop()) else { return Ok(None) };
            Ok(claim.is("Ready").then(|| (node.name_any(), claim)))
        })
        .await
    }

    pub async fn delete_node(&self, name: &str) -> Result<()> {
        self.api::<Node>().delete(name, &DeleteParams::background()).await?;
        Ok(())
    }

    pub async fn delete_claim(&self, name: &str) -> Result<()> {
        self.api::<NodeClaim>().delete(name, &DeleteParams::background()).await?;
        Ok(())
    }

    /// As promised: within three seconds, unless the controller is not there half of the time. That one may also be so
    /// quick between two of our looks that the node is gone already.
    pub async fn until_tainted(&self, node: &str) -> Result<()> {
        let start = Instant::now();
        let nodes: Api<Node> = self.api();
        eventually(&format!("the node {node} is tainted"), async || {
            let is_tainted = match nodes.get_opt(node).await? {
                Some(node) => is_tainted(&node),
                None => self.life == Life::Killed,
            };
            Ok(is_tainted.then_some(()))
        })
        .await?;
        let is_in_time = start.elapsed() <= TAINT_WITHIN || self.life != Life::Steady;
        ensure!(is_in_time, "tainted after {:?}", start.elapsed());
        Ok(())
    }

    /// Somebody else deletes it in his own time: the cluster's garbage collector hears of new kinds every half minute.
    pub async fn until_claim_leaves(&self, name: &str) -> Result<()> {
        let claims: Api<NodeClaim> = self.api();
        within(DRAIN_WITHIN, &format!("the claim {name} is on its way out"), async || {
            Ok(claims.get(name).await?.metadata.deletion_timestamp.map(drop))
        })
        .await
    }

    pub async fn until_node_gone(&self, name: &str) -> Result<()> {
        let nodes: Api<Node> = self.api();
        within(DRAIN_WITHIN, &format!("the node {name} is gone"), async || {
            Ok(nodes.get_opt(name).await?.is_none().then_some(()))
        })
        .await
    }

    pub async fn until_claim_gone(&self, name: &str) -> Result<()> {
        let claims: Api<NodeClaim> = self.api();
        within(DRAIN_WITHIN, &format!("the claim {name} is gone"), async || {
            Ok(claims.get_opt(name).await?.is_none().then_some(()))
        })
        .await
    }

    /// The node is gone, its pods run elsewhere, and every node has its claim.
    pub async fn until_replaced(&self, old: &str, pods: usize) -> Result<()> {
        self.until_node_gone(old).await?;
        self.until_running(pods).await?;
        eventually("there is one claim for each node", async || {
            let (nodes, claims) = (self.nodes().await?.len(), self.claims().await?.len());
            ensure!(nodes == claims && nodes > 0, "{nodes} nodes, {claims} claims");
            Ok(Some(()))
        })
        .await
    }

    /// Nothing is under way any more: so many nodes with a claim each, all of them ready, and no mark of a disruption.
    pub async fn until_settled(&self, count: usize) -> Result<()> {
        within(DRAIN_WITHIN, &format!("{count} nodes are left in peace"), async || {
            let (nodes, claims) = (self.nodes().await?, self.claims().await?);
            ensure!(nodes.len() == count && claims.len() == count, "{} nodes, {} claims", nodes.len(), claims.len());
            let restless = claims.iter().find(|claim| claim.is_deleting || claim.is_marked() || !claim.is("Ready"));
            let name = restless.map(|claim| &claim.name);
            ensure!(name.is_none(), "{name:?} is marked, not ready or on its way out");
            let tainted = nodes.iter().find(|node| is_tainted(node)).map(ResourceExt::name_any);
            ensure!(tainted.is_none(), "{tainted:?} is tainted");
            Ok(Some(()))
        })
        .await
    }

    /// The only node is as if it had never been chosen, and what was to replace it is gone.
    pub async fn until_rolled_back(&self, node: &str, claim: &str) -> Result<()> {
        self.until_settled(1).await?;
        let (nodes, claims) = (self.nodes().await?, self.claims().await?);
        ensure!(nodes.iter().any(|found| found.name_any() == node), "the node {node} is gone");
        ensure!(claims.iter().any(|found| found.name == claim), "the claim {claim} is gone");
        Ok(())
    }

    pub async fn until_nothing_is_left(&self) -> Result<()> {
        within(DRAIN_WITHIN, "no node and no claim is left", async || {
            let (nodes, claims) = (self.nodes().await?.len(), self.claims().await?.len());
            ensure!(nodes + claims == 0, "{nodes} nodes, {claims} claims");
            Ok(Some(()))
        })
        .await
    }

    /// Takes the workload and the pool away, and sees everything go. Leaves no node to the next case.
    pub async fn clean_up(&self) -> Result<()> {
        let deployments = self.case.api::<Deployment>();
        deployments.delete_collection(&DeleteParams::background(), &ListParams::default()).await?;
        let gone = |error: kube::Error| matches!(&error, kube::Error::Api(status) if status.code == 404).then_some(());
        if let Err(error) = self.api::<NodePool>().delete(&self.pool, &DeleteParams::background()).await {
            gone(error).context("cannot delete the pool")?;
        }
        self.until_nothing_is_left().await
    }

    /// Whether somebody was told so about the object.
    pub async fn until_told(&self, object: &str, reason: &str) -> Result<Event> {
        let events: Api<Event> = Api::all(self.case.client());
        let selector = format!("involvedObject.name={object},reason={reason}");
        eventually(&format!("an event {reason} about {object}"), async || {
            Ok(events.list(&ListParams::default().fields(&selector)).await?.items.pop())
        })
        .await
    }
}

impl From<NodeClaim> for Claim {
    fn from(object: NodeClaim) -> Self {
        let node = object.status.as_ref().and_then(|status| status.node_name.clone());
        Self { name: object.name_any(), is_deleting: object.metadata.deletion_timestamp.is_some(), node, object }
    }
}

impl Claim {
    /// Whether the condition is true.
    pub fn is(&self, condition: &str) -> bool {
        self.condition(condition).is_some_and(|found| found.status == "True")
    }

    pub fn condition(&self, kind: &str) -> Option<&kerf_api::schema::Condition> {
        let mut conditions = self.object.status.as_ref()?.conditions.iter().flatten();
        conditions.find(|condition| condition.type_ == kind)
    }

    /// As one that a disruption is about to take away.
    pub fn is_marked(&self) -> bool {
        self.condition("DisruptionReason").is_some() || self.command().is_some()
    }

    /// What is written about the command that takes it away.
    pub fn command(&self) -> Option<&str> {
        self.object.metadata.annotations.as_ref()?.get(COMMAND).map(String::as_str)
    }
}

pub fn is_running(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
        && pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
}

/// With the taint that keeps pods away from a node that goes.
pub fn is_tainted(node: &Node) -> bool {
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.any(|taint| taint.key == "karpenter.sh/disrupted" && taint.effect == "NoSchedule")
}
