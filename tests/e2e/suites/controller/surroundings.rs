//! What others see of the controller: probes, metrics, logs.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use kerf_e2e::turns::{GATES, Life};
use kerf_e2e::world::world;
use kerf_e2e::{Kerf, eventually};
use serde_json::{Value, json};

#[tokio::test]
async fn probes_metrics_and_logs_tell_what_happens() -> Result<()> {
    world(Life::Own, async |world| {
        let kerf = Kerf::start("surroundings", &["--disable-leader-election", "--feature-gates", "Teleport=true"])?;
        kerf.until_ready().await?;
        ensure!(kerf.probe("/healthz").await?.0 == 200);
        world.running_on_one_node(json!({"limits": {"cpu": 100}}), 3, json!({})).await?;
        let pool = format!("nodepool=\"{}\"", world.pool);
        eventually("the metrics count it", async || {
            let metrics = kerf.metrics().await?;
            for name in [
                "nodeclaims_created_total",
                "nodes_created_total",
                "nodepools_limit",
                "nodepools_usage",
                "nodepools_cost_total",
                "nodes_allocatable",
                "pods_state",
            ] {
                let counted = metrics
                    .lines()
                    .any(|line| line.starts_with(&format!("karpenter_{name}{{")) && line.contains(&pool));
                ensure!(counted, "there is no {name} of the pool");
            }
            ensure!(metrics.contains("karpenter_cluster_state_synced 1"));
            ensure!(metrics.contains("operator_nodeclaim_status_condition_count{"));
            ensure!(metrics.contains("client_go_request_total{code=\"201\",method=\"POST\"}"));
            ensure!(
                metrics.contains("group=\"karpenter.sh\",version=\"v1\",kind=\"nodeclaims\",subresource=\"status\"")
            );
            Ok(Some(()))
        })
        .await?;
        let metrics = kerf.metrics().await?;
        ensure!(metrics.lines().all(is_readable), "a line of the metrics is not `name{{labels}} value`");
        world.clean_up().await?;
        // It hears of the last end through its watch, as the case does, and maybe a moment later.
        let told = eventually("all of it is told", async || {
            let told = kerf.told()?;
            for message in [
                "launched nodeclaim",
                "registered nodeclaim",
                "initialized nodeclaim",
                "tainted node",
                "deleted node",
                "deleted nodeclaim",
            ] {
                ensure!(told.contains(&format!("\"message\":\"{message}\"")), "nobody said {message:?}");
            }
            // A line that is still being written is not judged.
            Ok(told.ends_with('\n').then_some(told))
        })
        .await?;
        for line in told.lines() {
            let line: Value = serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))?;
            ensure!(["level", "time", "logger", "message"].iter().all(|key| line[key].is_string()), "{line}");
        }
        ensure!(told.contains("Teleport"), "an unknown feature gate is told");
        Ok(())
    })
    .await
}

/// The manifest that people install: with the rights of its account everything works.
#[tokio::test]
async fn the_account_of_the_manifest_may_do_all_that_is_needed() -> Result<()> {
    world(Life::Own, async |world| {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/manifests/kwok.yaml");
        kubectl(&["apply", "-f", manifest])?;
        // The bed has nothing that could run its container.
        kubectl(&["scale", "-n", "kube-system", "deployment/karpenter", "--replicas=0"])?;
        let token = kubectl(&["create", "token", "-n", "kube-system", "karpenter"])?;
        let kubeconfig = kubeconfig_with(&world.pool, token.trim())?;
        let arguments = ["--leader-election-namespace", "kube-system", GATES[0], GATES[1]];
        let kerf = Kerf::start_as("account", &arguments, Some(&kubeconfig))?;
        let outcome = async {
            let deadline = json!({"template": {"spec": {"terminationGracePeriod": "20s"}}});
            let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
            let (node, _) = world.running_on_one_node(deadline, 3, protected).await?;
            world.delete_node(&node).await?;
            world.until_replaced(&node, 3).await?;
            world.clean_up().await
        };
        let outcome = outcome.await;
        // Before its rights are taken away with the manifest.
        let told = kerf.told()?;
        drop(kerf);
        std::fs::remove_file(&kubeconfig)?;
        kubectl(&["delete", "-f", manifest])?;
        // Other things are forbidden too: to create events in a namespace that goes.
        let forbidden: Vec<_> = told.lines().filter(|line| line.contains("is forbidden: User")).collect();
        ensure!(forbidden.is_empty(), "{}", forbidden.join("\n"));
        outcome
    })
    .await
}

fn kubectl(arguments: &[&str]) -> Result<String> {
    let program = std::env::var_os("KERF_E2E_KUBECTL").context("KERF_E2E_KUBECTL is not set: use `cargo xtask e2e`")?;
    let output = Command::new(program).args(arguments).output()?;
    ensure!(output.status.success(), "kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// The bed's, with another user.
fn kubeconfig_with(name: &str, token: &str) -> Result<PathBuf> {
    let own = PathBuf::from(std::env::var_os("KUBECONFIG").context("KUBECONFIG is not set")?);
    let text = std::fs::read_to_string(&own)?;
    let (before, _) = text.split_once("users:").context("the kubeconfig has users")?;
    let path = own.with_file_name(format!("kubeconfig-{name}"));
    std::fs::write(&path, format!("{before}users:\n- name: admin\n  user: {{token: {token}}}\n"))?;
    Ok(path)
}

fn is_readable(line: &str) -> bool {
    let Some((name, value)) = line.rsplit_once(' ') else { return false };
    line.starts_with('#') || (!name.is_empty() && value.parse::<f64>().is_ok())
}
