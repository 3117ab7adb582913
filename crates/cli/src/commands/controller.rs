//! `kerf controller`.

mod gates;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context;
use clap::{ArgAction, ValueEnum};
use kerf_cloud::{Catalogue, Provider as _};
use kerf_cloud_kwok::KwokProvider;
use kerf_controller::kwok::{KubeClasses, KubeNodes};
use kerf_controller::lease::LeaseOptions;
use kerf_controller::{Addresses, Options, run as run_controller};
use kerf_engine::Settings;
use kerf_lifecycle::ClassKind;
use kerf_model::duration::GoDuration;
use kerf_scheduling::{MinValuesPolicy, PreferencePolicy};
use kube::{Client, Config};
use tokio::signal::unix::{SignalKind, signal};
use tracing::level_filters::LevelFilter;
use tracing::{info, warn};

use crate::output::Outcome;
use gates::Gates;

/// Run Kerf in a cluster: give pending pods nodes, and let nodes go politely
///
/// The cluster is the one that KUBECONFIG names, or the one that the process runs in. Flags win over the environment
/// variables named beside them. Ends with 0 when asked to stop, and hands over to another replica.
#[derive(clap::Args)]
pub struct Args {
    /// Where nodes come from
    #[arg(long, value_enum, default_value = "kwok")]
    provider: ProviderName,
    /// A file with instance types, as JSON, instead of the built-in ones
    #[arg(long, env = "INSTANCE_TYPES_FILE_PATH", value_name = "FILE")]
    instance_types_file_path: Option<PathBuf>,
    /// Pods that come within this time of each other are looked at together
    #[arg(long, env = "BATCH_IDLE_DURATION", default_value = "1s", value_name = "DURATION")]
    batch_idle_duration: GoDuration,
    /// No pod waits longer than this for others
    #[arg(long, env = "BATCH_MAX_DURATION", default_value = "10s", value_name = "DURATION")]
    batch_max_duration: GoDuration,
    /// Whether preferences of pods are tried first
    #[arg(long, env = "PREFERENCE_POLICY", value_enum, default_value = "Respect", value_name = "POLICY")]
    preference_policy: Preferences,
    /// Whether a pool's minValues can prevent a node
    #[arg(long, env = "MIN_VALUES_POLICY", value_enum, default_value = "Strict", value_name = "POLICY")]
    min_values_policy: MinValues,
    /// Like `StaticCapacity=true`; several with commas
    #[arg(long, env = "FEATURE_GATES", default_value = "", value_name = "GATES")]
    feature_gates: String,
    /// The port of /metrics
    #[arg(long, env = "METRICS_PORT", default_value_t = 8080, value_name = "PORT")]
    metrics_port: u16,
    /// The port of /healthz and /readyz
    #[arg(long, env = "HEALTH_PROBE_PORT", default_value_t = 8081, value_name = "PORT")]
    health_probe_port: u16,
    /// The address of both ports
    #[arg(long, default_value = "0.0.0.0", value_name = "ADDRESS")]
    bind_address: IpAddr,
    /// Act without a lease: right only if there is one replica
    #[arg(long, env = "DISABLE_LEADER_ELECTION", action = ArgAction::Set, default_value = "false",
          default_missing_value = "true", num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    disable_leader_election: bool,
    /// The lease of the replica that acts
    #[arg(long, env = "LEADER_ELECTION_NAME", default_value = "karpenter-leader-election", value_name = "NAME")]
    leader_election_name: String,
    /// The lease's namespace; by default the one that the process runs in
    #[arg(long, env = "LEADER_ELECTION_NAMESPACE", default_value = "", value_name = "NAMESPACE")]
    leader_election_namespace: String,
    /// How much to tell
    #[arg(long, env = "LOG_LEVEL", value_enum, default_value = "info", value_name = "LEVEL")]
    log_level: LogLevel,
}

#[derive(Clone, Copy, ValueEnum)]
enum ProviderName {
    /// Nodes without machines
    Kwok,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Preferences {
    /// Tried, and dropped one after the other
    Respect,
    /// Not looked at
    Ignore,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum MinValues {
    /// It can
    Strict,
    /// It cannot
    BestEffort,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogLevel {
    Debug,
    Info,
    Error,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    start_logging(args.log_level);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    let outcome = runtime.block_on(act(args));
    // Threads that still wait for the network are not waited for.
    runtime.shutdown_background();
    outcome.map(|()| Outcome::Fine)
}

async fn act(args: &Args) -> anyhow::Result<()> {
    let config = Config::infer().await.context("cannot find a cluster: set KUBECONFIG, or run inside one")?;
    let namespace = match args.leader_election_namespace.as_str() {
        "" => config.default_namespace.clone(),
        namespace => namespace.to_owned(),
    };
    let client = Client::try_from(config).context("cannot make a client for the cluster")?;
    let ProviderName::Kwok = args.provider;
    let provider = KwokProvider::new(KubeNodes::new(client.clone()), catalogue(args)?);
    let lease = LeaseOptions { namespace, name: args.leader_election_name.clone(), identity: identity() };
    let options = Options {
        settings: settings(args, &provider),
        kinds: kerf_api::Provider::Kwok,
        lease: (!args.disable_leader_election).then_some(lease),
        addresses: Addresses {
            metrics: SocketAddr::new(args.bind_address, args.metrics_port),
            probes: SocketAddr::new(args.bind_address, args.health_probe_port),
        },
        version: env!("CARGO_PKG_VERSION"),
    };
    info!(version = options.version, provider = provider.name(), "starting");
    let classes = KubeClasses::new(client.clone());
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let stop = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        info!("asked to stop");
    };
    run_controller(options, client, (provider, classes), stop).await.context("the controller has failed")
}

fn settings(args: &Args, provider: &KwokProvider<KubeNodes>) -> Settings {
    let gates = Gates::parse(&args.feature_gates);
    for gate in &gates.unknown {
        warn!(gate, "this feature gate is not known and changes nothing");
    }
    for gate in &gates.without_effect {
        warn!(gate, "this feature is not there yet: its gate changes nothing");
    }
    let kind = provider.class_kind();
    let mut lifecycle =
        kerf_lifecycle::Settings::for_classes(vec![ClassKind { group: kind.group.into(), kind: kind.kind.into() }]);
    lifecycle.static_capacity = gates.static_capacity;
    let mut settings = Settings::new(lifecycle, provider.label_rules().clone());
    settings.batch_idle = args.batch_idle_duration.into();
    settings.batch_max = args.batch_max_duration.into();
    settings.scheduling.preferences = match args.preference_policy {
        Preferences::Respect => PreferencePolicy::Respect,
        Preferences::Ignore => PreferencePolicy::Ignore,
    };
    settings.scheduling.min_values = match args.min_values_policy {
        MinValues::Strict => MinValuesPolicy::Strict,
        MinValues::BestEffort => MinValuesPolicy::BestEffort,
    };
    settings
}

fn catalogue(args: &Args) -> anyhow::Result<Catalogue> {
    let Some(path) = args.instance_types_file_path.as_ref().filter(|path| !path.as_os_str().is_empty()) else {
        return Ok(Catalogue::kwok());
    };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Catalogue::from_json(&text).with_context(|| format!("cannot use the instance types of {}", path.display()))
}

/// The name of the pod is that of its host; with the process it is unique on a developer's machine too.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}_{}", host.trim(), std::process::id())
}

fn start_logging(level: LogLevel) {
    let level = match level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Error => LevelFilter::ERROR,
    };
    tracing_subscriber::fmt().json().flatten_event(true).with_max_level(level).init();
}
