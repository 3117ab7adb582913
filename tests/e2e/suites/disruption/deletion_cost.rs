//! Which pods a workload that shrinks gives up first: what is written on pods (gate `PodDeletionCostManagement`).

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kerf_e2e::turns::Life;
use kerf_e2e::world::{DRAIN_WITHIN, World, world};
use kerf_e2e::{Kerf, within};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const OURS: &str = "kerf.sh/deletion-cost";

#[tokio::test]
async fn a_cost_is_written_on_pods_and_taken_away_again_and_a_persons_is_left_alone() -> Result<()> {
    world(Life::Own, async |world| {
        let on = ["--disable-leader-election", "--feature-gates", "PodDeletionCostManagement=true"];
        let mut kerf = Kerf::start("deletion-cost", &on)?;
        world.running_on_one_node(json!({"disruption": {"consolidateAfter": "1h"}}), 2, json!({})).await?;
        until_costs(world, &[(Some("-1"), Some("-1")), (Some("-1"), Some("-1"))]).await?;
        let pod = world.pods().await?.first().map(ResourceExt::name_any).context("there is a pod")?;
        let own = Patch::Merge(json!({"metadata": {"annotations": {COST: "5", OURS: null}}}));
        world.case.api::<Pod>().patch(&pod, &PatchParams::default(), &own).await?;
        kerf.kill()?;
        let _kerf = Kerf::start("no-deletion-cost", &["--disable-leader-election"])?;
        until_costs(world, &[(None, None), (Some("5"), None)]).await?;
        world.clean_up().await
    })
    .await
}

/// What stands on the pods, in any order.
async fn until_costs(world: &World<'_>, expected: &[(Option<&str>, Option<&str>)]) -> Result<()> {
    within(DRAIN_WITHIN, "the pods have their costs", async || {
        let pods = world.pods().await?;
        let text = |pod: &Pod, key: &str| pod.annotations().get(key).cloned();
        let mut found: Vec<_> = pods.iter().map(|pod| (text(pod, COST), text(pod, OURS))).collect();
        found.sort();
        let owned = |value: &Option<&str>| value.map(str::to_owned);
        let expected: Vec<_> = expected.iter().map(|(cost, ours)| (owned(cost), owned(ours))).collect();
        ensure!(found == expected, "{found:?}");
        Ok(Some(()))
    })
    .await
}
