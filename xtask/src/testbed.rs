//! A real Kubernetes on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok for kubelets.
//!
//! Built from their Go modules (`tests/testbed`), never downloaded as binaries. Beds have names; any number can run.
//! Start reading at `start.rs`; `parts.rs` is what runs, `state.rs` what is remembered.

pub mod access;
pub mod build;
pub mod go;
mod parts;
mod ports;
mod process;
pub mod start;
pub mod state;
mod status;
pub mod stop;

use std::ffi::OsString;
use std::fs;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};

use crate::timing::human;
use parts::{KUBERNETES_VERSION, Part};
use start::Started;
use state::{Layout, Record};

#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask testbed up                           build (the first time) and start the bed `default`
  cargo xtask testbed kubectl get nodes            the bed's own kubectl, with its kubeconfig
  cargo xtask testbed up --name blue               a second one beside it
  cargo xtask testbed status -o json
  cargo xtask testbed down; cargo xtask testbed clean")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Args)]
struct Name {
    /// Which bed
    #[arg(long, default_value = "default")]
    name: String,
}

#[derive(Subcommand)]
enum Action {
    /// Start a bed and wait until it is ready; builds its parts the first time
    ///
    /// A bed that was stopped goes on with its data. Parts that died are started again.
    Up(Name),
    /// Stop a bed; its data and logs stay until `clean`
    Down(Name),
    /// Show the parts of a bed, or of all beds
    Status {
        /// Only this bed; the exit code is 1 when there is none
        #[arg(long)]
        name: Option<String>,
        /// For people or for programs
        #[arg(short, long, default_value = "table")]
        output: Output,
    },
    /// Run the bed's kubectl with its kubeconfig
    #[command(disable_help_flag = true)]
    Kubectl {
        #[command(flatten)]
        name: Name,
        /// Handed to kubectl as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Show the last lines of the logs
    Logs {
        #[command(flatten)]
        name: Name,
        /// Only this part
        part: Option<Part>,
        /// How many lines of each
        #[arg(long, default_value_t = 20)]
        lines: usize,
    },
    /// Remove what stopped beds left: data, logs, keys
    Clean {
        /// Only this bed
        #[arg(long)]
        name: Option<String>,
        /// Also the built binaries; the next `up` builds them again
        #[arg(long)]
        binaries: bool,
    },
    /// Take the bed down when standard input ends
    #[command(hide = true)]
    Guard(Name),
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Table,
    Json,
}

pub fn run(arguments: Arguments) -> Result<ExitCode> {
    match arguments.action {
        Action::Up(Name { name }) => up(&name)?,
        Action::Down(Name { name }) => down(&name)?,
        Action::Status { name, output } => return status(name, output),
        Action::Kubectl { name: Name { name }, arguments } => return kubectl(&name, &arguments),
        Action::Logs { name: Name { name }, part, lines } => logs(&name, part, lines)?,
        Action::Clean { name, binaries } => clean(name, binaries)?,
        Action::Guard(Name { name }) => crate::e2e::guard(&name)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn up(name: &str) -> Result<()> {
    let layout = Layout::named(name)?;
    let binaries = build::ensure_built("testbed")?;
    let begin = Instant::now();
    let _lock = state::lock_bed(name)?;
    let started = start::up(name, &layout, &binaries)?;
    let took = human(begin.elapsed());
    match started {
        Started::WasRunning => println!("the bed {name} is already running"),
        Started::Fresh => println!("the bed {name} is ready after {took}: Kubernetes v{KUBERNETES_VERSION}"),
        Started::Resumed => println!("the bed {name} goes on where it was stopped, ready after {took}"),
        Started::Repaired(parts) => {
            let names: Vec<_> = parts.iter().map(|part| part.name()).collect();
            println!("the bed {name} is whole again after {took}; started again: {}", names.join(", "));
        }
    }
    let option = if name == "default" { String::new() } else { format!(" --name {name}") };
    println!("  export KUBECONFIG={}", layout.kubeconfig().display());
    println!("  cargo xtask testbed kubectl{option} get nodes");
    println!("  cargo xtask testbed down{option}");
    Ok(())
}

fn down(name: &str) -> Result<()> {
    let _lock = state::lock_bed(name)?;
    let begin = Instant::now();
    let stopped = stop::down(&Layout::named(name)?)?;
    match stopped.len() {
        0 => println!("the bed {name} was not running"),
        parts => println!("the bed {name} is down: {parts} parts stopped in {}", human(begin.elapsed())),
    }
    Ok(())
}

fn status(name: Option<String>, output: Output) -> Result<ExitCode> {
    let names = match &name {
        Some(name) => vec![name.clone()],
        None => state::bed_names()?,
    };
    let mut beds = Vec::new();
    for name in &names {
        beds.extend(status::look(name)?);
    }
    match output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&beds)?),
        Output::Table if beds.is_empty() => println!("no bed: `cargo xtask testbed up` starts one"),
        Output::Table => beds.iter().for_each(|bed| print!("{}", status::render(bed))),
    }
    Ok(if name.is_some() && beds.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn kubectl(name: &str, arguments: &[OsString]) -> Result<ExitCode> {
    let layout = Layout::named(name)?;
    let record = Record::load(&layout)?.with_context(|| format!("there is no bed {name}: `cargo xtask testbed up`"))?;
    let mut kubectl = Command::new(record.binaries.join("kubectl"));
    let status =
        kubectl.args(arguments).env("KUBECONFIG", layout.kubeconfig()).status().context("cannot run kubectl")?;
    // A program that was killed has no code.
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn logs(name: &str, part: Option<Part>, lines: usize) -> Result<()> {
    let layout = Layout::named(name)?;
    if !layout.exists() {
        bail!("there is no bed {name}");
    }
    for part in part.map_or(Part::ALL.to_vec(), |part| vec![part]) {
        let log = layout.log(part);
        println!("==> {}\n{}\n", log.display(), start::last_lines(&log, lines));
    }
    Ok(())
}

fn clean(only: Option<String>, binaries: bool) -> Result<()> {
    let names = match only {
        Some(name) => vec![name],
        None => state::bed_names()?,
    };
    for name in names {
        let layout = Layout::named(&name)?;
        if !layout.exists() {
            println!("there is no bed {name}");
            continue;
        }
        let lock = state::lock_bed(&name)?;
        let is_running = Record::load(&layout)?.is_some_and(|record| !record.running().is_empty());
        if is_running {
            println!("the bed {name} is running, so it stays: `cargo xtask testbed down --name {name}` first");
        } else {
            lock.remove_bed(&layout)?;
            println!("removed {}", layout.directory().display());
        }
    }
    let builds = build::builds_directory()?;
    if binaries && builds.exists() {
        fs::remove_dir_all(&builds).with_context(|| format!("cannot remove {}", builds.display()))?;
        println!("removed {}", builds.display());
    }
    Ok(())
}
