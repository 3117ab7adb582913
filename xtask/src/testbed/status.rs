//! What a bed looks like right now, for people and for programs.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

use super::parts::Part;
use super::state::{Layout, Record};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub name: String,
    pub state: State,
    kubernetes_version: String,
    server: String,
    kubeconfig: PathBuf,
    directory: PathBuf,
    parts: Vec<PartStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Running,
    /// Some parts run, some do not: `up` repairs it.
    Broken,
    Stopped,
}

#[derive(Debug, Serialize)]
struct PartStatus {
    name: &'static str,
    version: String,
    /// Only while it runs.
    pid: Option<u32>,
    port: Option<u16>,
    log: PathBuf,
}

impl State {
    fn label(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Broken => "broken",
            Self::Stopped => "stopped",
        }
    }
}

/// None when there is no such bed.
pub fn look(name: &str) -> Result<Option<Status>> {
    let layout = Layout::named(name)?;
    let Some(record) = Record::load(&layout)? else {
        return Ok(None);
    };
    Ok(Some(describe(name, &layout, &record, &record.running())))
}

fn describe(name: &str, layout: &Layout, record: &Record, running: &[Part]) -> Status {
    let part_status = |part: Part| PartStatus {
        name: part.name(),
        version: part.version(&record.versions).to_owned(),
        pid: record.processes.get(&part).filter(|_| running.contains(&part)).map(|process| process.pid),
        port: part.port(&record.ports),
        log: layout.log(part),
    };
    Status {
        name: name.to_owned(),
        state: match running.len() {
            0 => State::Stopped,
            all if all == Part::ALL.len() => State::Running,
            _ => State::Broken,
        },
        kubernetes_version: record.versions.kubernetes.clone(),
        server: format!("https://127.0.0.1:{}", record.ports.api_server),
        kubeconfig: layout.kubeconfig(),
        directory: layout.directory().to_owned(),
        parts: Part::ALL.into_iter().map(part_status).collect(),
    }
}

pub fn render(status: &Status) -> String {
    let or_dash = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
    let mut text = format!("bed {}: {}\n", status.name, status.state.label());
    if status.state == State::Broken {
        let _ = writeln!(text, "  `cargo xtask testbed up --name {}` starts the missing parts again", status.name);
    }
    let _ = writeln!(text, "  kubernetes  v{} at {}", status.kubernetes_version, status.server);
    let _ = writeln!(text, "  kubeconfig  {}", status.kubeconfig.display());
    let _ = writeln!(text, "  {:24}  {:8}  {:>8}  {:>5}", "PART", "VERSION", "PID", "PORT");
    for part in &status.parts {
        let (pid, port) =
            (or_dash(part.pid.map(|pid| pid.to_string())), or_dash(part.port.map(|port| port.to_string())));
        let _ = writeln!(text, "  {:24}  {:8}  {pid:>8}  {port:>5}", part.name, part.version);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::parts::Versions;
    use crate::testbed::process::Process;
    use crate::testbed::state::Ports;

    fn status(running: &[Part]) -> Status {
        let mut process = Process::observe(std::process::id()).unwrap();
        process.pid = 42;
        let record = Record {
            binaries: "/cache".into(),
            versions: Versions { kubernetes: "1.36.3".into(), etcd: "3.6.8".into(), kwok: "0.8.0".into() },
            ports: Ports { etcd: 20001, etcd_peer: 20002, api_server: 20003, scheduler: 20004, kwok: 20005 },
            processes: Part::ALL.into_iter().map(|part| (part, process.clone())).collect(),
        };
        describe("blue", &Layout::at("/beds/blue".into()), &record, running)
    }

    #[test]
    fn a_running_bed_says_how_to_reach_it() {
        let expected = "\
bed blue: running
  kubernetes  v1.36.3 at https://127.0.0.1:20003
  kubeconfig  /beds/blue/kubeconfig
  PART                      VERSION        PID   PORT
  etcd                      3.6.8           42  20001
  kube-apiserver            1.36.3          42  20003
  kube-controller-manager   1.36.3          42      -
  kube-scheduler            1.36.3          42  20004
  kwok                      0.8.0           42  20005
";
        assert_eq!(render(&status(&Part::ALL)), expected);
    }

    #[test]
    fn a_half_dead_bed_is_called_broken_and_shows_no_pid_for_the_dead() {
        let text = render(&status(&[Part::Etcd]));
        assert!(text.starts_with("bed blue: broken\n  `cargo xtask testbed up --name blue` starts"), "{text}");
        assert!(text.contains("kwok                      0.8.0            -  20005"), "{text}");
    }

    #[test]
    fn programs_read_the_same() {
        let json = serde_json::to_value(status(&[])).unwrap();
        assert_eq!(json["state"], "stopped");
        assert_eq!(json["kubeconfig"], "/beds/blue/kubeconfig");
        assert_eq!(json["parts"][2]["port"], serde_json::Value::Null);
        assert_eq!(json["parts"][4]["name"], "kwok");
    }
}
