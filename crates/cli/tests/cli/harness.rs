//! One way to run the binary: `kerf("validate -f -").stdin("…").exits(0)`.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// No run here takes more than two seconds unoptimised on two cores; a run that takes this long hangs.
const BOUND: Duration = Duration::from_secs(60);

pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

pub struct Kerf {
    command: Command,
    stdin: Vec<u8>,
    shown: String,
}

/// The arguments as typed, separated by blanks.
pub fn kerf(arguments: &str) -> Kerf {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kerf"));
    command.args(arguments.split_whitespace()).env_remove("CLUSTER_CA_BUNDLE").env("COLUMNS", "100");
    Kerf { command, stdin: Vec::new(), shown: format!("kerf {arguments}") }
}

impl Kerf {
    /// Arguments with blanks in them.
    pub fn args(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        self
    }

    pub fn stdin(mut self, input: impl AsRef<[u8]>) -> Self {
        self.stdin = input.as_ref().to_vec();
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn current_dir(mut self, path: &Path) -> Self {
        self.command.current_dir(path);
        self
    }

    /// Runs it and checks what holds for every run: it ends in time, by itself, with a known code, and without a panic.
    pub fn run(mut self) -> Run {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the binary was built");
        let mut input = child.stdin.take().unwrap();
        let bytes = std::mem::take(&mut self.stdin);
        // On a thread, because a full pipe would block; a child that does not read to the end is no concern of the test.
        thread::spawn(move || input.write_all(&bytes));
        let stdout = read_to_end(child.stdout.take().unwrap());
        let stderr = read_to_end(child.stderr.take().unwrap());
        let (Ok(stdout), Ok(stderr)) = (stdout.recv_timeout(BOUND), stderr.recv_timeout(BOUND)) else {
            child.kill().unwrap();
            panic!("{}: no end after {BOUND:?}", self.shown);
        };
        let run = Run { code: code(child.wait().unwrap()), stdout, stderr };
        assert!(!run.stderr.contains("panicked"), "{}: {}", self.shown, run.stderr);
        assert!((0..=2).contains(&run.code), "{}: exit code {}: {}", self.shown, run.code, run.stderr);
        run
    }

    pub fn exits(self, expected: i32) -> Run {
        let shown = self.shown.clone();
        let run = self.run();
        let Run { code, stdout, stderr } = &run;
        assert_eq!(*code, expected, "{shown}\n--- stdout\n{stdout}\n--- stderr\n{stderr}");
        run
    }

    /// Runs it with a standard output that nobody reads.
    pub fn run_into_closed_pipe(mut self) -> Run {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = self.command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        Run {
            code: code(output.status),
            stdout: String::new(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Run {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

/// A signal is no exit code; -1 fails every comparison.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(-1)
}

fn read_to_end(mut source: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).unwrap();
        // A receiver that is gone has given up on the run already.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// An empty directory for one test.
pub fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        fs::remove_dir_all(&path).unwrap();
    }
    fs::create_dir_all(&path).unwrap();
    path
}

/// File name to content, for a directory and those below it.
pub fn write_files(directory: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub fn class(name: &str) -> String {
    format!("apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {{name: {name}}}\n")
}

/// A NodePool, with more lines for its `spec`.
pub fn pool(name: &str, more: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: {name}}}\nspec:\n  template:\n    spec:\n      \
         nodeClassRef: {{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}\n      requirements: []\n{more}"
    )
}
