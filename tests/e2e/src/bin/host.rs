//! `host NODE ADDRESS PROGRAM`: a machine for pods that are programs.
//!
//! It joins the cluster of KUBECONFIG as a node and does a kubelet's work for the pods that are bound to it: starts the
//! program with the arguments and the environment of the pod's only container, as the pod's service account, asks its
//! readiness probe, starts it again when it ends, and lets it go with its pod. There is no container around it: no image,
//! no file system of its own, no limits; only the name of the host is the pod's. Ends when its standard input does.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Container, Node, Pod, ServiceAccount};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kerf_e2e::connect;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// The node controller gives a node up after forty seconds of silence.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Longer than any run.
const TOKEN_SECONDS: i64 = 24 * 3600;
/// A probe of a program on the same machine that takes longer has failed.
const PROBE_LIMIT: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, address, program] = arguments.as_slice() else { anyhow::bail!("usage: host NODE ADDRESS PROGRAM") };
    let mut host = Host {
        client: connect().await?,
        name: name.clone(),
        address: address.parse().context("ADDRESS is no IP address")?,
        program: program.into(),
        running: BTreeMap::new(),
    };
    host.join().await?;
    let mut end = tokio::io::stdin();
    let (mut told, mut nothing) = (None::<Instant>, [0; 1]);
    loop {
        if told.is_none_or(|told| told.elapsed() > HEARTBEAT) {
            // The API server may be away for a while: the next look tells.
            match host.tell_node().await {
                Ok(()) => told = Some(Instant::now()),
                Err(error) => eprintln!("cannot tell of the node: {error:#}"),
            }
        }
        if let Err(error) = host.look().await {
            eprintln!("cannot look at the pods: {error:#}");
        }
        let asked = tokio::time::timeout(BETWEEN_LOOKS, end.read(&mut nothing)).await;
        if matches!(asked, Ok(Ok(0))) {
            return Ok(());
        }
    }
}

struct Host {
    client: Client,
    name: String,
    address: IpAddr,
    program: PathBuf,
    /// By the pods' uid.
    running: BTreeMap<String, Running>,
}

struct Running {
    process: Child,
    since: String,
    restarts: i32,
    /// What was last written to the pod.
    told: Value,
    /// When its end was asked for.
    leaving: Option<Instant>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended already is no trouble.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Host {
    async fn join(&self) -> Result<()> {
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": self.name,
                "labels": {"kubernetes.io/os": "linux", "kubernetes.io/hostname": self.name},
            },
            // Only for what runs the cluster itself.
            "spec": {"taints": [{"key": "CriticalAddonsOnly", "effect": "NoSchedule"}]},
        });
        let nodes = Api::<Node>::all(self.client.clone());
        let params = PatchParams::apply("host").force();
        nodes.patch(&self.name, &params, &Patch::Apply(node)).await.context("cannot join the cluster")?;
        Ok(())
    }

    async fn tell_node(&self) -> Result<()> {
        let room = json!({"cpu": "2", "memory": "4Gi", "pods": "10"});
        let ready = json!({
            "type": "Ready", "status": "True", "reason": "HostReady", "message": "programs can run",
            "lastHeartbeatTime": now(),
        });
        let status = json!({"status": {"capacity": room, "allocatable": room, "conditions": [ready]}});
        let nodes = Api::<Node>::all(self.client.clone());
        nodes.patch_status(&self.name, &PatchParams::default(), &Patch::Strategic(status)).await?;
        Ok(())
    }

    async fn look(&mut self) -> Result<()> {
        let bound = ListParams::default().fields(&format!("spec.nodeName={}", self.name));
        let pods = Api::<Pod>::all(self.client.clone()).list(&bound).await?.items;
        self.running.retain(|uid, _| pods.iter().any(|pod| pod.uid().as_ref() == Some(uid)));
        for pod in pods {
            if let Err(error) = self.step(&pod).await {
                eprintln!("{}: {error:#}", pod.name_any());
            }
        }
        Ok(())
    }

    /// The next thing to do for a pod.
    async fn step(&mut self, pod: &Pod) -> Result<()> {
        let uid = pod.uid().context("a pod without a uid")?;
        let container =
            pod.spec.as_ref().and_then(|spec| spec.containers.first()).context("a pod without containers")?;
        if pod.metadata.deletion_timestamp.is_some() {
            return self.let_go(pod, &uid).await;
        }
        match self.running.get_mut(&uid) {
            None => {
                let process = self.start(pod, container).await?;
                let running = Running { process, since: now(), restarts: 0, told: Value::Null, leaving: None };
                self.running.insert(uid.clone(), running);
            }
            Some(running) => {
                if let Some(status) = running.process.try_wait()? {
                    eprintln!("{} ended: {status}", pod.name_any());
                    let process = self.start(pod, container).await?;
                    if let Some(running) = self.running.get_mut(&uid) {
                        (running.process, running.since) = (process, now());
                        running.restarts += 1;
                    }
                }
            }
        }
        self.tell_pod(pod, &uid, container).await
    }

    async fn tell_pod(&mut self, pod: &Pod, uid: &str, container: &Container) -> Result<()> {
        let ready = is_ready(self.address, container).await;
        let Some(running) = self.running.get_mut(uid) else { return Ok(()) };
        let condition = |kind: &str, is: bool| json!({"type": kind, "status": if is { "True" } else { "False" }});
        let conditions = [("Initialized", true), ("ContainersReady", ready), ("Ready", ready)];
        let status = json!({"status": {
            "phase": "Running", "podIP": self.address, "podIPs": [{"ip": self.address}], "startTime": running.since,
            "conditions": conditions.map(|(kind, is)| condition(kind, is)),
            "containerStatuses": [{
                "name": container.name, "image": container.image, "imageID": "", "ready": ready, "started": true,
                "restartCount": running.restarts, "state": {"running": {"startedAt": running.since}},
            }],
        }});
        if running.told != status {
            let pods = Api::<Pod>::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
            pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(&status)).await?;
            running.told = status;
        }
        Ok(())
    }

    async fn start(&self, pod: &Pod, container: &Container) -> Result<Child> {
        let namespace = pod.namespace().unwrap_or_default();
        let kubeconfig = self.kubeconfig(pod, &namespace).await?;
        let log = kubeconfig.with_extension("log");
        let output = File::options().create(true).append(true).open(&log);
        let output = output.with_context(|| format!("cannot write {}", log.display()))?;
        // A pod's host has the pod's name, and that is how a controller names itself in its lease.
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--uts", "sh", "-c"]);
        command.arg("echo \"$0\" > /proc/sys/kernel/hostname; exec \"$@\"").arg(pod.name_any()).arg(&self.program);
        command.args(container.args.iter().flatten()).args(["--bind-address", &self.address.to_string()]);
        for variable in container.env.iter().flatten() {
            command.env(&variable.name, variable.value.as_deref().unwrap_or_default());
        }
        command.env("KUBECONFIG", kubeconfig).env("LEADER_ELECTION_NAMESPACE", &namespace);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        command.spawn().context("cannot run unshare")
    }

    /// The cluster, as the pod's service account: a file beside the host's own.
    async fn kubeconfig(&self, pod: &Pod, namespace: &str) -> Result<PathBuf> {
        let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone());
        let request = TokenRequest {
            spec: Some(TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..TokenRequestSpec::default() }),
            ..TokenRequest::default()
        };
        let accounts = Api::<ServiceAccount>::namespaced(self.client.clone(), namespace);
        let account = account.as_deref().unwrap_or("default");
        let answer = accounts.create_token_request(account, &PostParams::default(), &request).await;
        let token = answer.context("cannot get a token")?.status.and_then(|status| status.token);
        let token = token.context("a token request without an answer")?;
        let own = PathBuf::from(std::env::var_os("KUBECONFIG").context("KUBECONFIG is not set")?);
        let text = std::fs::read_to_string(&own).with_context(|| format!("cannot read {}", own.display()))?;
        let (cluster, _) = text.split_once("users:").context("the kubeconfig has users")?;
        let path = own.with_file_name(format!("pod-{}.kubeconfig", pod.name_any()));
        std::fs::write(&path, format!("{cluster}users:\n- name: admin\n  user: {{token: {token}}}\n"))?;
        Ok(path)
    }

    /// Asks the program to end, ends it when its time is up, and then says that the pod is gone.
    async fn let_go(&mut self, pod: &Pod, uid: &str) -> Result<()> {
        if let Some(running) = self.running.get_mut(uid) {
            let ended = running.process.try_wait()?.is_some();
            let grace = u64::try_from(pod.metadata.deletion_grace_period_seconds.unwrap_or(30)).unwrap_or(0);
            match running.leaving {
                None if !ended => {
                    running.leaving = Some(Instant::now());
                    let sent = Command::new("kill").args(["-TERM", &running.process.id().to_string()]).status()?;
                    ensure!(sent.success(), "cannot ask it to end");
                    return Ok(());
                }
                Some(asked) if !ended && asked.elapsed() < Duration::from_secs(grace) => return Ok(()),
                None | Some(_) => drop(self.running.remove(uid)),
            }
        }
        let pods = Api::<Pod>::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
        pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await?;
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "a machine has a clock")]
fn now() -> String {
    k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// By its probe; without one it is ready as soon as it runs.
async fn is_ready(address: IpAddr, container: &Container) -> bool {
    let Some(probe) = container.readiness_probe.as_ref().and_then(|probe| probe.http_get.as_ref()) else { return true };
    let port = match &probe.port {
        IntOrString::Int(port) => Some(*port),
        IntOrString::String(name) => {
            let named = container.ports.iter().flatten().find(|port| port.name.as_ref() == Some(name));
            named.map(|port| port.container_port)
        }
    };
    let Some(port) = port.and_then(|port| u16::try_from(port).ok()) else { return false };
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect((address, port)).await?;
        let path = probe.path.as_deref().unwrap_or("/");
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        anyhow::Ok(answer.split_whitespace().nth(1) == Some("200"))
    };
    matches!(tokio::time::timeout(PROBE_LIMIT, ask).await, Ok(Ok(true)))
}
