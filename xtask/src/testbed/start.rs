//! Bringing a bed up: fresh, from where it was stopped, or by replacing the parts that died.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::build::{STAGE_CRD, module_directory};
use super::parts::{KWOK_CONFIGURATION, Part, Versions};
use super::ports;
use super::process::Process;
use super::state::{Layout, Record, lock_ports};
use crate::command;
use crate::timing::human;

/// A healthy part needs one to five seconds on two busy cores; this is for machines that are ten times slower.
const PATIENCE: Duration = Duration::from_secs(90);
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// What `up` found and did.
#[derive(Debug, PartialEq, Eq)]
pub enum Started {
    WasRunning,
    Fresh,
    Resumed,
    /// These had died.
    Repaired(Vec<Part>),
}

/// The caller holds the bed's lock.
pub fn up(name: &str, layout: &Layout, binaries: &Path) -> Result<Started> {
    let found = Record::load(layout)?;
    let running = found.as_ref().map(Record::running).unwrap_or_default();
    let mut record = match found {
        Some(_) if running.len() == Part::ALL.len() => return Ok(Started::WasRunning),
        // Parts that run keep their binaries and ports, and those that join them use the same.
        Some(record) if !running.is_empty() => record,
        old => settle(name, layout, binaries, old.as_ref())?,
    };
    let dead: Vec<_> = Part::ALL.into_iter().filter(|part| !running.contains(part)).collect();
    let started = match (running.is_empty(), layout.etcd_data().exists()) {
        (true, false) => Started::Fresh,
        (true, true) => Started::Resumed,
        (false, _) => Started::Repaired(dead.clone()),
    };
    let bed = Bed { layout, binaries: record.binaries.clone() };
    for part in dead {
        if part == Part::Kwok {
            bed.install_stages()?;
        }
        bed.start(part, &mut record)?;
    }
    Ok(started)
}

/// Chooses the ports and writes the files that the parts read.
fn settle(name: &str, layout: &Layout, binaries: &Path, old: Option<&Record>) -> Result<Record> {
    layout.create()?;
    let _lock = lock_ports()?;
    let ports = match old.map(|record| record.ports) {
        Some(ports) if ports::are_free(&ports) => ports,
        Some(_) | None => ports::pick(name)?,
    };
    let record =
        Record { binaries: binaries.to_owned(), versions: Versions::pinned(), ports, processes: BTreeMap::new() };
    record.save(layout)?;
    if !layout.service_account_key().exists() {
        command::capture(Command::new(binaries.join("keygen")).arg(layout.certificates()))?;
    }
    let token = random_token()?;
    write_private(&layout.tokens(), &format!("{token},admin,admin,\"system:masters\"\n"))?;
    write_private(&layout.kubeconfig(), &kubeconfig(name, layout, ports.api_server, &token))?;
    write_private(&layout.kwok_configuration(), KWOK_CONFIGURATION)?;
    Ok(record)
}

/// A bed whose files are written, and the binaries that it runs.
struct Bed<'a> {
    layout: &'a Layout,
    binaries: PathBuf,
}

impl Bed<'_> {
    /// Spawns it, records it, and waits until it answers.
    fn start(&self, part: Part, record: &mut Record) -> Result<()> {
        let begin = Instant::now();
        let log = self.layout.log(part);
        let open = OpenOptions::new().create(true).append(true).open(&log);
        let output = open.with_context(|| format!("cannot open {}", log.display()))?;
        let mut program = Command::new(self.binaries.join(part.name()));
        program.args(part.arguments(self.layout, &record.ports)).current_dir(self.layout.directory());
        program.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        // A group of its own: Ctrl-C in the terminal is meant for us, and a bed is stopped in order.
        program.process_group(0);
        let child = program.spawn().with_context(|| format!("cannot run {}", part.name()))?;
        let Some(process) = Process::observe(child.id()) else {
            bail!("{} ended at once; the end of {}:\n{}", part.name(), log.display(), last_lines(&log, 15));
        };
        record.processes.insert(part, process.clone());
        record.save(self.layout)?;
        self.wait_until_ready(part, &process, record)?;
        eprintln!("  {:24} ready after {}", part.name(), human(begin.elapsed()));
        Ok(())
    }

    fn wait_until_ready(&self, part: Part, process: &Process, record: &Record) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let problem = match self.ask(part, record) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let log = self.layout.log(part);
            let ending = || format!("the end of {}:\n{}", log.display(), last_lines(&log, 15));
            if !process.is_running() {
                bail!("{} ended while it started; {}", part.name(), ending());
            }
            if Instant::now() > deadline {
                bail!("{} is not ready after {}: {problem:#}; {}", part.name(), human(PATIENCE), ending());
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Whether the part does its work, asked in the way its users would notice.
    fn ask(&self, part: Part, record: &Record) -> Result<()> {
        match part {
            Part::Etcd => http_get(record.ports.etcd, "/health").and_then(|said| match said.contains("\"true\"") {
                true => Ok(()),
                false => bail!("it says {said}"),
            }),
            Part::ApiServer => self.kubectl(&["get", "--raw", "/readyz"]).map(drop),
            // It serves nothing itself: its first visible work is the account that every pod needs.
            Part::ControllerManager => self.kubectl(&["get", "serviceaccount", "default"]).map(drop),
            Part::Scheduler => {
                let server = format!("https://127.0.0.1:{}", record.ports.scheduler);
                self.kubectl(&["--server", &server, "get", "--raw", "/readyz"]).map(drop)
            }
            Part::Kwok => http_get(record.ports.kwok, "/healthz").map(drop),
        }
    }

    /// kwok reads its stages from the cluster, and a node that appears before them would stay as it is.
    fn install_stages(&self) -> Result<()> {
        let definition = self.binaries.join(STAGE_CRD);
        let stages = module_directory("stages");
        self.kubectl(&["apply", "--server-side", "-f", &definition.to_string_lossy()])?;
        self.kubectl(&["wait", "--for=condition=Established", "crd/stages.kwok.x-k8s.io", "--timeout=30s"])?;
        self.kubectl(&["apply", "--server-side", "-f", &stages.to_string_lossy()]).map(drop)
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let mut kubectl = Command::new(self.binaries.join("kubectl"));
        command::capture(kubectl.arg("--kubeconfig").arg(self.layout.kubeconfig()).args(arguments))
    }
}

/// The API server's own certificate is the authority, so the connection is verified and nothing else is trusted.
fn kubeconfig(name: &str, layout: &Layout, port: u16, token: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
current-context: {name}
clusters:
- name: {name}
  cluster:
    server: https://127.0.0.1:{port}
    certificate-authority: {authority}
contexts:
- name: {name}
  context: {{cluster: {name}, user: admin}}
users:
- name: admin
  user: {{token: {token}}}
",
        authority = serde_json::Value::from(layout.certificate().to_string_lossy()),
    )
}

fn random_token() -> Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).context("cannot read /dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn write_private(path: &Path, text: &str) -> Result<()> {
    let open = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    open.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The body of a plain HTTP answer, when its status is 200.
fn http_get(port: u16, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("it does not speak HTTP")?;
    let status = head.split_whitespace().nth(1).unwrap_or_default();
    if status != "200" {
        bail!("it answers {status}: {}", body.trim());
    }
    Ok(body.to_owned())
}

/// The end of a log, or why it cannot be shown: it goes into an error message, which must not fail itself.
pub fn last_lines(path: &Path, count: usize) -> String {
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    match text {
        Ok(text) => {
            let lines: Vec<_> = text.lines().collect();
            lines[lines.len().saturating_sub(count)..].join("\n")
        }
        Err(error) => format!("(cannot read {}: {error})", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubeconfig_verifies_the_server() {
        let text = kubeconfig("default", &Layout::at("/home/a b/bed".into()), 20001, "secret");
        assert!(text.contains("server: https://127.0.0.1:20001"), "{text}");
        assert!(text.contains("certificate-authority: \"/home/a b/bed/certificates/apiserver.crt\""), "{text}");
        assert!(!text.contains("insecure"), "{text}");
    }

    #[test]
    fn tokens_are_long_and_never_the_same() {
        let (first, second) = (random_token().unwrap(), random_token().unwrap());
        assert_eq!(first.len(), 32);
        assert_ne!(first, second);
    }
}
