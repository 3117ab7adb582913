//! A process that we started: recognised again by its id *and* its start time, because ids are used again.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::command;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// As the kernel tells it; only ever compared for equality.
    started: String,
}

impl Process {
    /// None when it is gone already.
    pub fn observe(pid: u32) -> Option<Self> {
        start_time(pid).map(|started| Self { pid, started })
    }

    pub fn is_running(&self) -> bool {
        start_time(self.pid).is_some_and(|started| started == self.started)
    }

    /// Asks it to stop, waits, and ends it when it does not. Returns once it is gone.
    pub fn stop(&self, patience: Duration) -> Result<()> {
        for signal in ["TERM", "KILL"] {
            if !self.is_running() {
                return Ok(());
            }
            if let Err(error) = self.signal(signal)
                && self.is_running()
            {
                return Err(error);
            }
            let deadline = Instant::now() + patience;
            while self.is_running() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        if self.is_running() {
            anyhow::bail!("the process {} does not end", self.pid);
        }
        Ok(())
    }

    /// By the shell's own `kill`, because the standard library cannot send signals to a process it did not start.
    fn signal(&self, signal: &str) -> Result<()> {
        command::capture(Command::new("sh").args(["-c", &format!("kill -{signal} {}", self.pid)])).map(drop)
    }
}

/// None when there is no such process, or only its corpse.
fn start_time(pid: u32) -> Option<String> {
    if fs::exists("/proc/self/stat").unwrap_or(false) {
        return from_proc_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?);
    }
    // Systems without /proc.
    let said = command::capture(Command::new("ps").args(["-o", "stat=,lstart=", "-p", &pid.to_string()])).ok()?;
    let (state, started) = said.trim().split_once(' ')?;
    (!state.starts_with('Z')).then(|| started.trim().to_owned())
}

/// `pid (name) state …`, where the name may contain anything, blanks and brackets too. The start time is field 22.
fn from_proc_stat(stat: &str) -> Option<String> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<_> = after_name.split_whitespace().collect();
    let [state, ..] = fields[..] else { return None };
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.get(22 - 3).map(|ticks| (*ticks).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "4711 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20 21";

    #[test]
    fn a_start_time_is_read_even_behind_a_strange_name() {
        assert_eq!(from_proc_stat(STAT).as_deref(), Some("987654"));
    }

    #[test]
    fn a_corpse_is_not_running() {
        assert_eq!(from_proc_stat(&STAT.replace(" S ", " Z ")), None);
    }

    #[test]
    fn another_process_with_the_same_id_is_not_ours() {
        let own = Process::observe(std::process::id()).unwrap();
        assert!(own.is_running());
        assert!(!Process { started: "another day".to_owned(), ..own }.is_running());
    }
}
