//! The built program, running.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::eventually;

/// One process of `kerf controller`. Killed when it is dropped.
pub struct Kerf {
    process: Child,
    log: PathBuf,
    metrics_port: u16,
    probes_port: u16,
}

impl Kerf {
    /// With these arguments beside those that every controller on a bed needs.
    pub fn start(name: &str, arguments: &[&str]) -> Result<Self> {
        Self::start_as(name, arguments, None)
    }

    /// As the user of this kubeconfig, instead of the bed's administrator.
    pub fn start_as(name: &str, arguments: &[&str], kubeconfig: Option<&Path>) -> Result<Self> {
        let (metrics_port, probes_port) = (free_port()?, free_port()?);
        let directory = std::env::var_os("KERF_E2E_DIRECTORY").map_or_else(std::env::temp_dir, PathBuf::from);
        let log = directory.join(format!("kerf-{name}-{metrics_port}.log"));
        let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let program = program()?;
        let mut command = Command::new(&program);
        if let Some(kubeconfig) = kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        let process = command
            .args(["controller", "--provider", "kwok", "--bind-address", "127.0.0.1", "--log-level", "debug"])
            .args(["--metrics-port", &metrics_port.to_string(), "--health-probe-port", &probes_port.to_string()])
            .args(arguments)
            .stdout(output.try_clone()?)
            .stderr(output)
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { process, log, metrics_port, probes_port })
    }

    pub fn log(&self) -> &Path {
        &self.log
    }

    /// What it has told so far.
    pub fn told(&self) -> Result<String> {
        std::fs::read_to_string(&self.log).with_context(|| format!("cannot read {}", self.log.display()))
    }

    /// As `kill -9` does.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.process.try_wait()?.is_none())
    }

    /// As the kubelet ends a pod. It must end by itself, and well.
    pub async fn terminate(&mut self) -> Result<()> {
        let sent = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status()?;
        ensure!(sent.success(), "cannot send the signal");
        let status = eventually("the controller stops", async || Ok(self.process.try_wait()?)).await?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }

    pub async fn metrics(&self) -> Result<String> {
        get(self.metrics_port, "/metrics").await.map(|(_, text)| text)
    }

    /// The status and the text of a probe, such as `/readyz`.
    pub async fn probe(&self, path: &str) -> Result<(u16, String)> {
        get(self.probes_port, path).await
    }

    pub async fn until_ready(&self) -> Result<()> {
        eventually("the controller is ready", async || {
            let (status, text) = self.probe("/readyz").await?;
            ensure!(status == 200, "it says {status}: {}", text.trim());
            Ok(Some(()))
        })
        .await
    }
}

impl Drop for Kerf {
    fn drop(&mut self) {
        // One that has ended already is no trouble.
        drop(self.kill());
    }
}

/// What the program prints for these arguments, as JSON. For commands that look at the cluster and end.
pub fn kerf_json(arguments: &[&str]) -> Result<Value> {
    let output = Command::new(program()?).args(arguments).args(["-o", "json"]).stdin(Stdio::null()).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kerf {} ended with {}: {errors}", arguments.join(" "), output.status);
    serde_json::from_slice(&output.stdout).with_context(|| format!("kerf {} printed no JSON", arguments.join(" ")))
}

/// A plain HTTP request to loopback.
async fn get(port: u16, path: &str) -> Result<(u16, String)> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("it does not speak HTTP")?;
    let status = head.split_whitespace().nth(1).and_then(|code| code.parse().ok()).context("it has no status")?;
    Ok((status, body.to_owned()))
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
