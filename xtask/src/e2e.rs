//! The end-to-end suites, on a bed of their own that goes away with them.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;

use crate::command::{self, cargo};
use crate::testbed::state::{self, Layout};
use crate::testbed::{build, go, start, stop};
use crate::timing::{Lap, table};

#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask e2e              every suite
  cargo xtask e2e api          the suite `api`; any part of a test's name will do
  cargo xtask e2e bed --keep   leave the bed running and say how to reach it")]
pub struct Arguments {
    /// Run only tests whose name contains this
    filter: Option<String>,
    /// Leave the bed running at the end
    #[arg(long)]
    keep: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    // Before anything that takes minutes.
    go::version("e2e")?;
    let mut laps = Vec::new();
    let outcome = run_steps(arguments, &mut laps);
    println!("\nwhere the time went:\n{}", table(&laps));
    outcome
}

fn run_steps(arguments: &Arguments, laps: &mut Vec<Lap>) -> Result<()> {
    // A suite that does not compile should not cost a bed.
    timed("compile the suites", laps, || find_tests(arguments.filter.as_deref()))?;
    let binaries = timed("build the bed's parts", laps, || build::ensure_built("e2e"))?;
    let name = format!("e2e-{}", std::process::id());
    let layout = Layout::named(&name)?;
    let guard = if arguments.keep { None } else { Some(Guard::post(&name)?) };
    let outcome = start_fresh(&name, &layout, &binaries, laps).and_then(|()| {
        // Many at once, because most of them wait most of the time. Those that cannot share the bed take turns themselves.
        let mut tests = suites(&["--", "--test-threads=12"]);
        tests.args(&arguments.filter);
        tests.env("KUBECONFIG", layout.kubeconfig());
        tests.env("KERF_E2E_BED", &name);
        tests.env("KERF_E2E_DIRECTORY", layout.directory());
        tests.env("KERF_E2E_KUBECTL", binaries.join("kubectl"));
        tests.env("KERF_E2E_XTASK", std::env::current_exe().context("cannot find the own program")?);
        timed("run the suites", laps, || command::run(&mut tests))
    });
    match guard {
        Some(guard) => timed("stop the bed", laps, || guard.relieve(outcome.is_ok()))?,
        None => println!(
            "\nthe bed {name} stays:\n  export KUBECONFIG={}\n  cargo xtask testbed down --name {name}",
            layout.kubeconfig().display()
        ),
    }
    outcome
}

/// Compiles, and fails when the filter leaves nothing to run: a suite with a misspelt name must not pass.
fn find_tests(filter: Option<&str>) -> Result<()> {
    command::run(&mut suites(&["--no-run"]))?;
    // The suite `controller` starts the program itself, and finds it beside the suites.
    command::run(&mut cargo(["build", "--workspace", "--bin", "kerf"]))?;
    let list = command::capture(suites(&["--quiet", "--", "--list"]).args(filter))?;
    let count = list.lines().filter(|line| line.ends_with(": test")).count();
    anyhow::ensure!(count > 0, "no test's name contains {:?}", filter.unwrap_or_default());
    println!("{count} tests to run");
    Ok(())
}

/// Built with the features of the whole workspace, so that what `cargo xtask test` compiled is used again.
fn suites(arguments: &[&str]) -> Command {
    let mut command = cargo(["test", "--workspace", "--test", "e2e"]);
    command.args(arguments);
    command
}

fn start_fresh(name: &str, layout: &Layout, binaries: &std::path::Path, laps: &mut Vec<Lap>) -> Result<()> {
    timed("start the bed", laps, || start_bed(name, layout, binaries))
}

/// A bed with nothing in it.
pub fn start_bed(name: &str, layout: &Layout, binaries: &std::path::Path) -> Result<()> {
    let mut lock = state::lock_bed(name)?;
    // Left by a failed run whose process id came round again.
    if layout.exists() {
        stop::down(layout)?;
        lock.remove_bed(layout)?;
        lock = state::lock_bed(name)?;
    }
    let _lock = lock;
    start::up(name, layout, binaries).map(drop)
}

fn timed<T>(name: &'static str, laps: &mut Vec<Lap>, step: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("\n==> {name}");
    let begin = Instant::now();
    let result = step();
    laps.push(Lap { name, took: begin.elapsed(), passed: result.is_ok() });
    result
}

/// A process that takes the bed down when we end, however we end: it notices by the end of the pipe between us. So Ctrl-C,
/// a failed test, a panic and even SIGKILL leave nothing running, without a signal handler.
pub struct Guard {
    process: Child,
    pipe: ChildStdin,
}

/// Written to the pipe when the bed's directory is not needed any more. Otherwise its logs are kept.
const ALL_IS_WELL: &[u8] = b"all is well";

impl Guard {
    pub fn post(name: &str) -> Result<Self> {
        let own = std::env::current_exe().context("cannot find the own program")?;
        let mut command = Command::new(own);
        command.args(["testbed", "guard", "--name", name]).stdin(Stdio::piped());
        // Out of reach of the Ctrl-C that ends us.
        command.process_group(0);
        let mut process = command.spawn().context("cannot start the guard of the bed")?;
        let pipe = process.stdin.take().context("the guard has a pipe")?;
        Ok(Self { process, pipe })
    }

    pub fn relieve(mut self, well: bool) -> Result<()> {
        if well {
            self.pipe.write_all(ALL_IS_WELL).context("cannot reach the guard of the bed")?;
        }
        drop(self.pipe);
        let status = self.process.wait().context("cannot wait for the guard of the bed")?;
        anyhow::ensure!(status.success(), "the bed was not taken down: see above");
        Ok(())
    }
}

/// The guard's own work.
pub fn guard(name: &str) -> Result<()> {
    let mut said = Vec::new();
    std::io::stdin().read_to_end(&mut said).context("cannot watch the run")?;
    let lock = state::lock_bed(name)?;
    let layout = Layout::named(name)?;
    stop::down(&layout)?;
    if said == ALL_IS_WELL {
        lock.remove_bed(&layout)?;
        eprintln!("the bed {name} is down and removed");
    } else {
        eprintln!("the bed {name} is down; its logs are in {}", layout.logs().display());
    }
    Ok(())
}
