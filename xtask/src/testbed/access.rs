//! Talking to a running bed, with its own kubectl.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::state::Layout;
use crate::command::{self, cargo};

pub struct Access {
    kubeconfig: PathBuf,
    kubectl: PathBuf,
}

impl Access {
    /// `binaries` are those that the bed was built with.
    pub fn to(layout: &Layout, binaries: &Path) -> Self {
        Self { kubeconfig: layout.kubeconfig(), kubectl: binaries.join("kubectl") }
    }

    pub fn kubectl(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments);
        command
    }

    pub fn apply(&self, objects: &str) -> Result<()> {
        let mut kubectl = self.kubectl(&["apply", "--server-side", "-f", "-"]);
        let mut child = kubectl.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().context("cannot run kubectl")?;
        child.stdin.take().context("kubectl has an input")?.write_all(objects.as_bytes())?;
        ensure!(child.wait()?.success(), "kubectl did not apply");
        Ok(())
    }

    /// Kerf's definitions for nodes without machines.
    pub fn install_definitions(&self) -> Result<()> {
        let kerf = ["run", "--quiet", "--release", "-p", "kerf-cli", "--", "crds", "--provider", "kwok"];
        self.apply(&command::capture(&mut cargo(kerf))?)?;
        command::run(self.kubectl(&["wait", "--for=condition=Established", "crd", "--all"]).stdout(Stdio::null()))
    }
}
