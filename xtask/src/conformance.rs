//! `cargo xtask conformance`: the reference's own suites, on a bed, with Kerf in the reference's place.
//!
//! The suites are tests of the reference's module (`tests/conformance` pins it), run as they are. They know the cluster
//! only by its API, and want the controller to be a Deployment that they can give other settings. So Kerf is installed
//! from its manifest, and two hosts (`tests/e2e/src/bin/host.rs`) run the Deployment's pods as processes, with the rights
//! of its account and no more.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::json;

use crate::command::{self, cargo};
use crate::e2e::{Guard, start_bed};
use crate::places;
use crate::reference::{Program, SUITES};
use crate::testbed::access::Access;
use crate::testbed::state::Layout;
use crate::testbed::{build, go};
use crate::timing::human;

#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask conformance                              regression and disruption, one after the other: hours
  cargo xtask conformance disruption --focus Repair    specs whose text matches")]
pub struct Arguments {
    /// Which suites
    #[arg(default_values = ["regression", "disruption"])]
    suites: Vec<Suite>,
    /// Only specs whose whole text matches this regular expression
    #[arg(long, value_name = "REGEX")]
    focus: Option<String>,
    /// No specs whose whole text matches this regular expression
    #[arg(long, value_name = "REGEX")]
    skip: Option<String>,
    /// Feature gates of the controller; by default those with which the reference runs its suites
    #[arg(long, default_value = "NodeRepair=true,StaticCapacity=true,CapacityBuffer=true", value_name = "GATES")]
    feature_gates: String,
    /// End a suite that takes longer
    #[arg(long, default_value = "3h", value_name = "DURATION")]
    timeout: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Suite {
    /// Nodes for pods, standalone claims, buffers, static pools, admission, chaos
    Regression,
    /// Drift, expiry, repair, reboots, emptiness, the order of drains
    Disruption,
    /// Thousands of pods; wants a machine that does nothing else
    Performance,
}

impl Suite {
    const fn program(self) -> Program {
        match self {
            Self::Regression => Program::Regression,
            Self::Disruption => Program::Disruption,
            Self::Performance => Program::Performance,
        }
    }
}

/// Replicas of the manifest keep away from each other.
const HOSTS: u8 = 2;
/// A spec starts a controller of its own, which listens on port 8080 of every address, those of the hosts too.
const METRICS_ELSEWHERE: &str = "METRICS_PORT=8090";
const PROGRESS: Duration = Duration::from_secs(60);
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

pub fn run(arguments: &Arguments) -> Result<()> {
    // Before anything that takes minutes.
    go::version("conformance")?;
    let programs = SUITES.ensure_built("conformance")?;
    let binaries = build::ensure_built("conformance")?;
    // One by one: together they would be built with other features than elsewhere, and that takes minutes.
    command::run(&mut cargo(["build", "--quiet", "--release", "-p", "kerf-cli"]))?;
    command::run(&mut cargo(["build", "--quiet", "--release", "-p", "kerf-e2e", "--bins"]))?;
    let mut failed = Vec::new();
    for suite in &arguments.suites {
        let name = suite.program().name();
        let outcome = on_a_bed(*suite, arguments, &programs, &binaries)?;
        print!("{}", outcome.shown(name));
        ensure!(outcome.passed + outcome.failed.len() > 0, "no spec of the suite {name} was run");
        if !outcome.failed.is_empty() {
            failed.push(name);
        }
    }
    ensure!(failed.is_empty(), "specs failed in: {}", failed.join(", "));
    Ok(())
}

fn on_a_bed(suite: Suite, arguments: &Arguments, programs: &Path, binaries: &Path) -> Result<Outcome> {
    let name = format!("conformance-{}-{}", suite.program().name(), std::process::id());
    let layout = Layout::named(&name)?;
    let guard = Guard::post(&name)?;
    let outcome = start_bed(&name, &layout, binaries).and_then(|()| {
        let access = Access::to(&layout, binaries);
        let _hosts = install(&access, &layout, &arguments.feature_gates)?;
        let _scheduler = Running(start_spreading_scheduler(&access, &layout, binaries)?);
        run_suite(suite, arguments, &programs.join(suite.program().name()), &layout)
    });
    // What failed can be looked up in the logs of the bed.
    guard.relieve(outcome.as_ref().is_ok_and(|outcome| outcome.failed.is_empty()))?;
    outcome
}

/// As a person would install it, with other gates, on hosts of ours.
fn install(access: &Access, layout: &Layout, gates: &str) -> Result<Vec<Host>> {
    access.install_definitions()?;
    let manifest = places::root().join("deploy/manifests/kwok.yaml");
    let quiet = |arguments: &[&str]| command::run(access.kubectl(arguments).stdout(Stdio::null()));
    quiet(&["apply", "-f", &manifest.to_string_lossy()])?;
    let gates = format!("FEATURE_GATES={gates}");
    quiet(&["set", "env", "--namespace=kube-system", "deployment/karpenter", &gates, METRICS_ELSEWHERE])?;
    let hosts = (1..=HOSTS).map(|number| Host::start(number, layout)).collect::<Result<_>>()?;
    quiet(&["rollout", "status", "--namespace=kube-system", "deployment/karpenter", "--timeout=120s"])
        .with_context(|| format!("Kerf did not start: see {}", layout.directory().display()))?;
    Ok(hosts)
}

/// Ends with us: it watches its input.
struct Host(Child);

impl Host {
    fn start(number: u8, layout: &Layout) -> Result<Self> {
        let name = format!("host-{number}");
        // Each listens on an address of its own, also beside another run.
        let [.., high, low] = std::process::id().to_be_bytes();
        let address = format!("127.{}.{low}.{number}", high | 0x80);
        let log = layout.logs().join(format!("{name}.log"));
        let output = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
        let mut host = Command::new(command::built("release", "host")?);
        host.args([name, address]).arg(command::built("release", "kerf")?).env("KUBECONFIG", layout.kubeconfig());
        host.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output);
        Ok(Self(host.spawn().context("cannot start a host")?))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // One that has ended already is no trouble.
        let _ = self.0.wait();
    }
}

/// Where the reference's own runs have the scheduler's configuration. Specs about its default spread look for a pod with
/// this argument, and skip themselves without it.
const SCHEDULER_CONFIGURATION: &str = "/etc/kubernetes/karpenter-scheduler-config/kube-scheduler-config.yaml";

/// A second scheduler beside the bed's own, with the profile that those specs ask for, and a pod that tells of it.
fn start_spreading_scheduler(access: &Access, layout: &Layout, binaries: &Path) -> Result<Child> {
    let source = SUITES.reference_sources()?.join("test/suites/regression/testdata/kube-scheduler-config.yaml");
    let text = fs::read_to_string(&source).with_context(|| format!("cannot read {}", source.display()))?;
    let kubeconfig = layout.kubeconfig().display().to_string();
    // The profile of the bed's own scheduler stays with that one.
    let own =
        text.replace("/etc/kubernetes/scheduler.conf", &kubeconfig).replace("- schedulerName: default-scheduler", "");
    let configuration = layout.directory().join("spreading-scheduler.yaml");
    fs::write(&configuration, own).with_context(|| format!("cannot write {}", configuration.display()))?;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system", "labels": {"component": "kube-scheduler"}},
        "spec": {
            // It is there to be read: nobody runs it.
            "schedulerName": "nobody",
            "containers": [{"name": "kube-scheduler", "image": "none", "args": [format!("--config={SCHEDULER_CONFIGURATION}")]}],
        },
    });
    access.apply(&pod.to_string())?;
    let log = layout.logs().join("spreading-scheduler.log");
    let output = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
    let mut scheduler = Command::new(binaries.join("kube-scheduler"));
    scheduler.arg(format!("--config={}", configuration.display())).args(["--leader-elect=false", "--secure-port=0"]);
    scheduler.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    scheduler.spawn().context("cannot start a second scheduler")
}

fn run_suite(suite: Suite, arguments: &Arguments, program: &Path, layout: &Layout) -> Result<Outcome> {
    let name = suite.program().name();
    // Not on the bed's own, which goes with the bed.
    let directory = places::cache()?.join("kerf-conformance").join("reports");
    fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let (report, log) = (directory.join(format!("{name}.json")), directory.join(format!("{name}.log")));
    if report.exists() {
        fs::remove_file(&report)?;
    }
    let output = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
    let mut command = Command::new(program);
    command.args(["-test.timeout=0", "--ginkgo.v", "--ginkgo.no-color", "--ginkgo.grace-period=5m"]);
    command.arg(format!("--ginkgo.timeout={}", arguments.timeout));
    command.arg(format!("--ginkgo.json-report={}", report.display()));
    for (option, value) in [("focus", &arguments.focus), ("skip", &arguments.skip)] {
        command.args(value.as_ref().map(|value| format!("--ginkgo.{option}={value}")));
    }
    command.env("KUBECONFIG", layout.kubeconfig()).current_dir(&directory);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    println!("{name}: running, told in {}", log.display());
    let mut process = Running(command.spawn().context("cannot run the suite")?);
    let (start, mut shown) = (Instant::now(), Instant::now());
    while process.0.try_wait()?.is_none() {
        std::thread::sleep(BETWEEN_LOOKS);
        if shown.elapsed() > PROGRESS {
            shown = Instant::now();
            let told = fs::read_to_string(&log).unwrap_or_default();
            let ended = told.lines().filter(|line| line.starts_with("• ")).count();
            let failed = told.lines().filter(|line| line.starts_with("• [FAILED]")).count();
            println!("{name}: {ended} specs have ended after {}, {failed} of them failed", human(start.elapsed()));
        }
    }
    Outcome::read(&report, log, start.elapsed())
}

/// Not left running when we stop looking at it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a suite says of itself at its end.
struct Outcome {
    passed: usize,
    /// The spec's text, and why.
    failed: Vec<(String, String)>,
    /// Those that skip themselves, which is not passing.
    skipped: Vec<(String, String)>,
    took: Duration,
    log: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    #[serde(default)]
    spec_reports: Vec<Spec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Spec {
    leaf_node_type: String,
    leaf_node_text: String,
    #[serde(default)]
    container_hierarchy_texts: Option<Vec<String>>,
    state: String,
    #[serde(default)]
    failure: Failure,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Failure {
    message: String,
}

impl Outcome {
    fn read(report: &Path, log: PathBuf, took: Duration) -> Result<Self> {
        let text = fs::read(report).with_context(|| format!("the suite wrote no report: see {}", log.display()))?;
        let reports: Vec<Report> = serde_json::from_slice(&text).context("cannot read the suite's report")?;
        let mut outcome = Self { passed: 0, failed: Vec::new(), skipped: Vec::new(), took, log };
        for spec in reports.into_iter().flat_map(|report| report.spec_reports) {
            outcome.add(spec)?;
        }
        Ok(outcome)
    }

    fn add(&mut self, spec: Spec) -> Result<()> {
        let is_spec = spec.leaf_node_type == "It";
        let mut words = spec.container_hierarchy_texts.unwrap_or_default();
        words.push(spec.leaf_node_text);
        let text = words.join(" ");
        // The rest of a message is the state of objects, over pages.
        let why = spec.failure.message.lines().next().unwrap_or_default().to_owned();
        match spec.state.as_str() {
            "passed" => self.passed += usize::from(is_spec),
            // One that was not asked for has no message.
            "skipped" | "pending" if why.is_empty() => {}
            "skipped" | "pending" => self.skipped.push((text, why)),
            "failed" | "timedout" | "panicked" | "interrupted" | "aborted" => self.failed.push((text, why)),
            other => bail!("the suite's report has the state {other:?}, which is not known here"),
        }
        Ok(())
    }

    fn shown(&self, suite: &str) -> String {
        let mut text = format!(
            "\n{suite}: {} passed, {} failed, {} skipped themselves, in {}; told in {}\n",
            self.passed,
            self.failed.len(),
            self.skipped.len(),
            human(self.took),
            self.log.display()
        );
        for (word, specs) in [("FAILED", &self.failed), ("skipped", &self.skipped)] {
            for (spec, why) in specs {
                text.push_str(&format!("  {word}  {spec}\n          {why}\n"));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(state: &str, kind: &str, message: &str) -> Spec {
        let text = serde_json::json!({
            "LeafNodeType": kind, "LeafNodeText": "works", "ContainerHierarchyTexts": ["Drift"], "State": state,
            "Failure": {"Message": message},
        });
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn what_skips_itself_and_what_breaks_around_specs_is_not_passed() {
        let mut outcome =
            Outcome { passed: 0, failed: vec![], skipped: vec![], took: Duration::ZERO, log: PathBuf::from("log") };
        for spec in [
            spec("passed", "It", ""),
            spec("passed", "BeforeSuite", ""),
            spec("skipped", "It", ""),
            spec("skipped", "It", "not here"),
            spec("failed", "It", "Timed out\nand more"),
            spec("failed", "BeforeSuite", "no cluster"),
        ] {
            outcome.add(spec).unwrap();
        }
        assert!(outcome.add(spec("odd", "It", "")).is_err());
        let why = |list: &[(String, String)]| list.iter().map(|(_, why)| why.clone()).collect::<Vec<_>>();
        assert_eq!((outcome.passed, why(&outcome.skipped)), (1, vec!["not here".to_owned()]));
        assert_eq!(why(&outcome.failed), ["Timed out", "no cluster"]);
        assert!(
            outcome.shown("s").starts_with("\ns: 1 passed, 2 failed, 1 skipped themselves, in 0.0 s; told in log\n")
        );
    }
}
