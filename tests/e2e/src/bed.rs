//! The connection to the bed that `cargo xtask e2e` started.

use anyhow::{Context, Result, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Only ever the cluster that was named: a developer's own cluster must not become a test bed by accident.
pub async fn config() -> Result<Config> {
    let Some(path) = std::env::var_os("KUBECONFIG").filter(|path| !path.is_empty()) else {
        bail!(
            "KUBECONFIG is not set: run the suites with `cargo xtask e2e`, or point it at a bed of `cargo xtask testbed up`"
        );
    };
    let file = Kubeconfig::read_from(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    config.with_context(|| format!("cannot use {}", path.display()))
}

pub async fn connect() -> Result<Client> {
    Client::try_from(config().await?).context("cannot make a client for the bed")
}
