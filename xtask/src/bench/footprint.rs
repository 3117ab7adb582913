//! `cargo xtask bench footprint`: what a controller costs the machine that it runs on.
//!
//! Both controllers run on a real API server with the same load, one after the other, each on a bed of its own: 500 pods
//! that want a host each and 4,500 that fit beside them make 500 nodes. Read from the kernel: resident memory and CPU time
//! of the controller's process.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::report::{mebibytes, ratio, table};
use crate::command::{self, cargo};
use crate::e2e::Guard;
use crate::reference::{PEER, Program};
use crate::testbed::access::Access;
use crate::testbed::state::Layout;
use crate::testbed::{build, go};

#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask bench footprint                              500 nodes, 5,000 pods
  cargo xtask bench footprint --nodes 50 -o json           a tenth of it, as one object")]
pub struct Arguments {
    /// How many nodes; each gets ten pods
    #[arg(long, default_value_t = 500)]
    nodes: usize,
    /// How long to watch the controller once all pods run
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    quiet: u64,
    /// Give up when the pods do not run after this long
    #[arg(long, default_value_t = 1200, value_name = "SECONDS")]
    patience: u64,
    /// `json`: one object instead of the table
    #[arg(short, long, value_parser = ["json"])]
    output: Option<String>,
}

const PODS_PER_NODE: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Reference,
}

#[derive(Debug, Clone, Serialize)]
struct Figures {
    nodes: usize,
    /// From the load until all pods run.
    settled_s: f64,
    /// CPU time of the controller until then, and cores that it uses on the mean afterwards.
    cpu_s: f64,
    quiet_cores: f64,
    /// Resident before the load, when all is quiet at the end, and the most in between.
    idle_bytes: u64,
    quiet_bytes: u64,
    peak_bytes: u64,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    // Before anything that takes minutes.
    ensure!(fs::exists("/proc/self/stat")?, "cargo xtask bench footprint reads /proc, which this system does not have");
    go::version("bench footprint")?;
    PEER.ensure_built("bench footprint")?;
    let binaries = build::ensure_built("bench footprint")?;
    command::run(&mut cargo(["build", "--quiet", "--release", "-p", "kerf-cli"]))?;
    let ours = measure(Side::Ours, arguments, &binaries)?;
    let theirs = measure(Side::Reference, arguments, &binaries)?;
    let pods = arguments.nodes * PODS_PER_NODE;
    let memory = [(ours.quiet_bytes, theirs.quiet_bytes), (ours.peak_bytes, theirs.peak_bytes)];
    let [quiet, peak] = memory.map(|(ours, theirs)| ours as f64 / theirs.max(1) as f64);
    let cpu = ours.cpu_s / theirs.cpu_s;
    if arguments.output.is_some() {
        let object = json!({
            "workload": format!("{}-nodes-{pods}-pods", arguments.nodes),
            "ratio_memory": quiet, "ratio_peak_memory": peak, "ratio_cpu": cpu, "ours": ours, "reference": theirs,
        });
        println!("{object}");
        return Ok(());
    }
    println!("{} nodes, {pods} pods\n{}", arguments.nodes, shown(&ours, &theirs, [quiet, peak, cpu]));
    Ok(())
}

fn shown(ours: &Figures, theirs: &Figures, [quiet, peak, cpu]: [f64; 3]) -> String {
    let row = |name: &str, show: &dyn Fn(&Figures) -> String, by: Option<f64>| {
        vec![name.to_owned(), show(ours), show(theirs), ratio(by)]
    };
    let rows = [
        ["", "Kerf", "reference", "ratio"].map(str::to_owned).to_vec(),
        row("memory, idle", &|figures| mebibytes(figures.idle_bytes), None),
        row("memory, all pods running", &|figures| mebibytes(figures.quiet_bytes), Some(quiet)),
        row("memory, peak", &|figures| mebibytes(figures.peak_bytes), Some(peak)),
        row("CPU until all pods run", &|figures| format!("{:.1} s", figures.cpu_s), Some(cpu)),
        row("cores afterwards", &|figures| format!("{:.3}", figures.quiet_cores), None),
        row("all pods run after", &|figures| format!("{:.0} s", figures.settled_s), None),
        row("nodes", &|figures| figures.nodes.to_string(), None),
    ];
    table(&rows)
}

fn measure(side: Side, arguments: &Arguments, binaries: &Path) -> Result<Figures> {
    let (title, bed) = match side {
        Side::Ours => ("Kerf", format!("bench-ours-{}", std::process::id())),
        Side::Reference => ("the reference", format!("bench-reference-{}", std::process::id())),
    };
    eprintln!("{title}: starting a bed");
    let layout = Layout::named(&bed)?;
    let guard = Guard::post(&bed)?;
    let outcome = crate::e2e::start_bed(&bed, &layout, binaries).and_then(|()| {
        let bed = Bed { access: Access::to(&layout, binaries) };
        bed.prepare()?;
        let mut controller = Controller::start(side, &layout)?;
        let figures = watch(title, &bed, &mut controller, arguments);
        figures.with_context(|| format!("the log of {title} is in {}", controller.log.display()))
    });
    guard.relieve(outcome.is_ok())?;
    outcome
}

fn watch(title: &str, bed: &Bed, controller: &mut Controller, arguments: &Arguments) -> Result<Figures> {
    // It has read what there is and made its indices.
    std::thread::sleep(Duration::from_secs(15));
    let idle_bytes = controller.usage()?.resident_bytes;
    let pods = arguments.nodes * PODS_PER_NODE;
    eprintln!("{title}: {pods} pods for {} nodes", arguments.nodes);
    let (start, before) = (Instant::now(), controller.usage()?);
    bed.load(arguments.nodes)?;
    let mut running = 0;
    while running < pods {
        ensure!(start.elapsed().as_secs() < arguments.patience, "{running} of {pods} pods run");
        std::thread::sleep(Duration::from_secs(2));
        running = bed.running_pods()?;
        eprintln!("{title}: {running} of {pods} pods run after {:.0} s", start.elapsed().as_secs_f64());
        controller.usage()?;
    }
    let (settled_s, settled) = (start.elapsed().as_secs_f64(), controller.usage()?);
    eprintln!("{title}: watching it for {} s", arguments.quiet);
    std::thread::sleep(Duration::from_secs(arguments.quiet));
    let quiet = controller.usage()?;
    Ok(Figures {
        nodes: bed.nodes()?,
        settled_s,
        cpu_s: settled.cpu_s - before.cpu_s,
        quiet_cores: (quiet.cpu_s - settled.cpu_s) / arguments.quiet.max(1) as f64,
        idle_bytes,
        quiet_bytes: quiet.resident_bytes,
        peak_bytes: quiet.peak_bytes,
    })
}

/// A bed with the load on it.
struct Bed {
    access: Access,
}

impl Bed {
    /// The definitions, and a pool of small nodes that goes on as long as pods need it.
    fn prepare(&self) -> Result<()> {
        self.access.install_definitions()?;
        let class = json!({
            "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"},
            "spec": {},
        });
        let requirement = |key: &str, values: &[&str]| json!({"key": key, "operator": "In", "values": values});
        let pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
            "spec": {
                "template": {"spec": {
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                    "expireAfter": "Never",
                    "requirements": [
                        requirement("kubernetes.io/os", &["linux"]),
                        requirement("karpenter.sh/capacity-type", &["on-demand"]),
                        requirement("karpenter.kwok.sh/instance-cpu", &["4"]),
                    ],
                }},
                "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
            },
        });
        self.access.apply(&json!({"apiVersion": "v1", "kind": "List", "items": [class, pool]}).to_string())
    }

    /// A pod per node that wants its host for itself, and nine that fit beside it.
    fn load(&self, nodes: usize) -> Result<()> {
        let term = json!({
            "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "alone"}},
        });
        let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        let alone = deployment("alone", nodes, &apart);
        let beside = deployment("beside", nodes * (PODS_PER_NODE - 1), &json!({}));
        self.access.apply(&json!({"apiVersion": "v1", "kind": "List", "items": [alone, beside]}).to_string())
    }

    fn running_pods(&self) -> Result<usize> {
        let running = ["get", "pods", "--field-selector=status.phase=Running", "-o", "name", "--chunk-size=0"];
        Ok(command::capture(&mut self.access.kubectl(&running))?.lines().count())
    }

    fn nodes(&self) -> Result<usize> {
        Ok(command::capture(&mut self.access.kubectl(&["get", "nodes", "-o", "name"]))?.lines().count())
    }
}

fn deployment(name: &str, replicas: usize, affinity: &serde_json::Value) -> serde_json::Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "affinity": affinity,
                    "containers": [{
                        "name": "work", "image": "none", "resources": {"requests": {"cpu": "380m", "memory": "256Mi"}},
                    }],
                },
            },
        },
    })
}

/// A controller that runs. Ended when it is dropped.
struct Controller {
    process: Child,
    log: PathBuf,
}

#[derive(Debug, Clone, Copy)]
struct Usage {
    resident_bytes: u64,
    peak_bytes: u64,
    cpu_s: f64,
}

impl Controller {
    fn start(side: Side, layout: &Layout) -> Result<Self> {
        let ports = [free_port()?, free_port()?].map(|port| port.to_string());
        let mut program = match side {
            Side::Ours => {
                let mut kerf = Command::new(command::built("release", "kerf")?);
                kerf.args(["controller", "--provider", "kwok", "--bind-address", "127.0.0.1"]);
                kerf
            }
            Side::Reference => PEER.program(Program::KwokController, "bench footprint")?,
        };
        program.env("KUBECONFIG", layout.kubeconfig());
        for (name, value) in [
            ("SYSTEM_NAMESPACE", "kube-system"),
            ("LEADER_ELECTION_NAMESPACE", "kube-system"),
            ("KARPENTER_SERVICE", "karpenter"),
            ("METRICS_PORT", &ports[0]),
            ("HEALTH_PROBE_PORT", &ports[1]),
            ("LOG_LEVEL", "info"),
        ] {
            program.env(name, value);
        }
        let log = layout.logs().join("controller.log");
        let output = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
        program.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let process = program.spawn().context("cannot start the controller")?;
        Ok(Self { process, log })
    }

    /// What the kernel says of it. Fails when it has ended.
    fn usage(&mut self) -> Result<Usage> {
        if let Some(status) = self.process.try_wait()? {
            bail!("the controller ended ({status})");
        }
        let pid = self.process.id();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).context("cannot read the process' memory")?;
        let kilobytes = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches("kB").trim().parse().ok()
        };
        let bytes = |name| kilobytes(name).map(|amount| amount * 1024).with_context(|| format!("no {name} in status"));
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("cannot read the process' times")?;
        let cpu_s = cpu_seconds(&stat).context("cannot understand the process' times")?;
        Ok(Usage { resident_bytes: bytes("VmRSS:")?, peak_bytes: bytes("VmHWM:")?, cpu_s })
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // One that has ended already is no trouble.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// User and system time; a tick is a hundredth of a second on every Linux that we know.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let field = |at: usize| after_name.split_whitespace().nth(at - 3)?.parse::<f64>().ok();
    Some((field(14)? + field(15)?) / 100.0)
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_behind_a_strange_name() {
        let stat = "4711 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 13 14 15 16 17 18 987654 20 21";
        assert_eq!(cpu_seconds(stat), Some(3.0));
    }
}
