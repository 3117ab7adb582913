//! Disruptions that come to nothing, or are cut off in the middle. A replacement with a startup taint stays in the middle for
//! as long as a case likes.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use kerf_api::node_claim::NodeClaim;
use kerf_e2e::turns::{Life, SHORT_WAITS};
use kerf_e2e::world::{COMMAND, Claim, DRAIN_WITHIN, World, is_tainted, world};
use kerf_e2e::{Kerf, throughout, within};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::drift::{clear_startup_taints, on_nodes_of_their_own};

/// A command has ten minutes. Nobody waits for them: the controller is stopped, and the record of the command says that it is
/// older than it is, as if nobody had been there for so long.
#[tokio::test]
async fn a_replacement_that_joins_and_never_starts_is_rolled_back() -> Result<()> {
    world(Life::Own, async |world| {
        let mut kerf = controller()?;
        let (node, old) = world.running_on_one_node(json!({}), 1, json!({})).await?;
        change_with_startup_taint(world).await?;
        until_coming(world, 1).await?;
        throughout(Duration::from_secs(10), "both wait", async || {
            let claims = world.claims().await?;
            let old = claims.iter().find(|claim| claim.name == old.name);
            Ok(claims.len() == 2 && old.is_some_and(|old| old.is_marked() && !old.is_deleting))
        })
        .await?;
        kerf.kill()?;
        let claims = world.claims().await?;
        let marked = claims.iter().find(|claim| claim.name == old.name).context("the old claim is there")?;
        // The sixth word is the time of the start.
        let record = marked.command().context("the old claim has a record")?;
        let mut words: Vec<&str> = record.split(' ').collect();
        *words.get_mut(5).context("a record says when it was made")? = "2026-01-01T00:00:00Z";
        let patch = json!({"metadata": {"annotations": {COMMAND: words.join(" ")}}});
        world.api::<NodeClaim>().patch(&old.name, &PatchParams::default(), &Patch::Merge(patch)).await?;

        let _kerf = controller()?;
        world.until_rolled_back(&node, &old.name).await?;
        let told = world.until_told(&old.name, "DisruptionFailed").await?.message.unwrap_or_default();
        ensure!(told.contains("not ready in time"), "it says {told:?}");
        world.until_running(1).await?;
        world.clean_up().await
    })
    .await
}

#[tokio::test]
async fn a_kill_while_replacements_are_coming_leaves_nothing_behind() -> Result<()> {
    world(Life::Own, async |world| {
        let mut kerf = controller()?;
        let old = on_nodes_of_their_own(world, 3, json!([{"nodes": "2"}])).await?;
        change_with_startup_taint(world).await?;
        until_coming(world, 2).await?;
        kerf.kill()?;
        let at_the_kill = world.claims().await?;
        let marked = at_the_kill.iter().filter(|claim| claim.is_marked() && !claim.is_deleting).count();
        let coming: Vec<&Claim> = at_the_kill.iter().filter(|claim| is_coming(claim)).collect();
        ensure!(marked == 2 && coming.len() == 2, "{marked} were marked, and {} were coming", coming.len());

        let _kerf = controller()?;
        within(DRAIN_WITHIN, "all nodes are new", async || {
            clear_startup_taints(world).await?;
            let (nodes, claims) = (world.nodes().await?, world.claims().await?);
            let going = nodes.iter().filter(|node| is_tainted(node)).count();
            if going > 2 {
                return Ok(Some(Err(anyhow!("{going} nodes go at once"))));
            }
            if let Some(lost) = at_the_kill.iter().find(|claim| is_forgotten(claim, &claims)) {
                return Ok(Some(Err(anyhow!("the command that takes {} away was given up", lost.name))));
            }
            Ok((!nodes.iter().any(|node| old.contains(&node.name_any()))).then_some(Ok(())))
        })
        .await??;
        world.until_running(3).await?;
        world.until_settled(3).await?;
        let left = world.claims().await?;
        for claim in coming {
            let is_used = left.iter().any(|found| found.name == claim.name);
            ensure!(is_used, "{} was on its way, and the new process did not wait for it", claim.name);
        }
        throughout(Duration::from_secs(5), "nothing more happens", async || {
            let claims = world.claims().await?;
            Ok(claims.len() == 3 && !claims.iter().any(Claim::is_marked))
        })
        .await?;
        world.clean_up().await
    })
    .await
}

/// Its nodes are replaced by such that join and are not initialised until somebody takes the taint away.
pub async fn change_with_startup_taint(world: &World<'_>) -> Result<()> {
    let taint = json!([{"key": "e2e.kerf.example/startup", "effect": "NoSchedule"}]);
    world.patch_pool(json!({"spec": {"template": {"spec": {"startupTaints": taint}}}})).await
}

/// So many claims are marked, and for each of them a node has joined and is not initialised.
pub async fn until_coming(world: &World<'_>, count: usize) -> Result<()> {
    within(DRAIN_WITHIN, &format!("{count} replacements are coming"), async || {
        let claims = world.claims().await?;
        let marked = claims.iter().filter(|claim| claim.command().is_some()).count();
        let coming = claims.iter().filter(|claim| is_coming(claim)).count();
        ensure!(marked == count && coming == count, "{marked} are marked, and {coming} are coming");
        Ok(Some(()))
    })
    .await
}

/// It had a command, is there, and has another or none.
fn is_forgotten(before: &Claim, claims: &[Claim]) -> bool {
    let found = claims.iter().find(|claim| claim.name == before.name);
    before.command().is_some() && found.is_some_and(|found| found.command() != before.command())
}

fn is_coming(claim: &Claim) -> bool {
    claim.is("Registered") && !claim.is("Initialized")
}

fn controller() -> Result<Kerf> {
    Kerf::start("interrupted", &[&["--disable-leader-election"][..], &SHORT_WAITS].concat())
}
