//! `kerf controller`.

mod gates;
mod lenient;
mod logging;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context;
use clap::ValueEnum;
use kerf_api::change::Features;
use kerf_api::scheduler_config::default_constraints;
use kerf_cloud::{Catalogue, Provider as _};
use kerf_cloud_kwok::KwokProvider;
use kerf_controller::kwok::{KubeClasses, KubeNodes};
use kerf_controller::lease::LeaseOptions;
use kerf_controller::metrics::Build;
use kerf_controller::throttle::Throttle;
use kerf_controller::traffic::Traffic;
use kerf_controller::{Addresses, Clients, Options, run as run_controller};
use kerf_disruption::RebalanceAction;
use kerf_engine::Settings;
use kerf_lifecycle::ClassKind;
use kerf_model::duration::GoDuration;
use kerf_scheduling::{DefaultSpread, MinValuesPolicy, PreferencePolicy};
use kube::Config;
use kube::client::ClientBuilder;
use tokio::signal::unix::{SignalKind, signal};
use tracing::level_filters::LevelFilter;
use tracing::{info, warn};

use super::schedule::PolicyName;
use crate::output::Outcome;
use gates::Gates;
use lenient::{Setting, lenient, lenient_bool};

/// Run Kerf in a cluster: give pending pods nodes, and let nodes go politely
///
/// The cluster is the one that KUBECONFIG names, or the one that the process runs in. Flags win over the environment
/// variables named beside them; a number, duration or switch in a variable that cannot be read gives the default, with a
/// warning. Ends with 0 when asked to stop, and hands over to another replica.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  kerf controller --provider kwok
  kerf controller --log-level debug --feature-gates StaticCapacity=true
  kerf controller --leader-election-namespace kube-system --metrics-port 8080")]
pub struct Args {
    /// Where nodes come from
    #[arg(long, value_enum, default_value = "kwok")]
    provider: ProviderName,
    /// A file with instance types, as JSON, instead of the built-in ones
    #[arg(long, env = "INSTANCE_TYPES_FILE_PATH", value_name = "FILE")]
    instance_types_file_path: Option<PathBuf>,
    /// Pods that come within this time of each other are looked at together
    #[arg(long, env = "BATCH_IDLE_DURATION", default_value = "1s", value_name = "DURATION",
          value_parser = lenient::<GoDuration>())]
    batch_idle_duration: Setting<GoDuration>,
    /// No pod waits longer than this for others
    #[arg(long, env = "BATCH_MAX_DURATION", default_value = "10s", value_name = "DURATION",
          value_parser = lenient::<GoDuration>())]
    batch_max_duration: Setting<GoDuration>,
    /// Whether preferences of pods are tried first
    #[arg(long, env = "PREFERENCE_POLICY", value_enum, default_value = "Respect", value_name = "POLICY")]
    preference_policy: Preferences,
    /// Whether a pool's minValues can prevent a node
    #[arg(long, env = "MIN_VALUES_POLICY", value_enum, default_value = "Strict", value_name = "POLICY")]
    min_values_policy: MinValues,
    /// Pods that ask for devices through resource claims are left alone; there is no other way yet
    #[arg(long, env = "IGNORE_DRA_REQUESTS", default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_name = "BOOL", value_parser = lenient_bool())]
    ignore_dra_requests: Setting<bool>,
    /// What the cluster's scheduler assumes for pods that say nothing, as YAML or JSON:
    /// `podTopologySpread: {defaultConstraints: [...]}`
    #[arg(long, env = "SCHEDULER_CONFIG", default_value = "", value_name = "CONFIG")]
    scheduler_config: String,
    /// How nodes for pending pods are chosen
    #[arg(long, env = "SCHEDULING_POLICY", value_enum, default_value = "best", value_name = "POLICY")]
    scheduling_policy: PolicyName,
    /// How nodes are chosen for disruption
    #[arg(long, env = "DISRUPTION_POLICY", value_enum, default_value = "best", value_name = "POLICY")]
    disruption_policy: DisruptionPolicy,
    /// What a consolidation must save, as a share of what goes and in dollars per hour: like `5%:0.001`, `5%` or `0.01`;
    /// 0 is anything above nothing. Empty is `5%:0.001`, and 0 with the disruption policy `compatible`
    #[arg(long, env = "MINIMUM_SAVINGS", default_value = "", value_name = "SAVINGS")]
    minimum_savings: String,
    /// Sick nodes go at once, past budgets and protections, as in releases before 1.15 (with the gate NodeRepair)
    #[arg(long, env = "LEGACY_NODE_REPAIR", default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_name = "BOOL", value_parser = lenient_bool())]
    legacy_node_repair: Setting<bool>,
    /// What a recommendation of the cloud to leave a spot node means
    #[arg(long, env = "REBALANCE_ACTION", value_enum, default_value = "Ignore", value_name = "ACTION")]
    rebalance_action: Rebalance,
    /// Drift goes in waves of this share of a pool with this time between them, and halts when a replacement fails: like
    /// `10%:30m`, or `10%:30m:2` to halt after two failures. Empty is as fast as budgets allow
    #[arg(long, env = "DRIFT_WAVES", default_value = "", value_name = "WAVES")]
    drift_waves: String,
    /// Like `StaticCapacity=true`; several with commas
    #[arg(long, env = "FEATURE_GATES", default_value = "", value_name = "GATES")]
    feature_gates: String,
    /// A node that has not joined this long after its launch is given up
    #[arg(long, env = "REGISTRATION_TIMEOUT", default_value = "15m", value_name = "DURATION",
          value_parser = lenient::<GoDuration>())]
    registration_timeout: Setting<GoDuration>,
    /// How often instances and claims are compared, to collect what lost its other half
    #[arg(long, env = "GARBAGE_COLLECTION_INTERVAL", default_value = "2m", value_name = "DURATION",
          value_parser = lenient::<GoDuration>())]
    garbage_collection_interval: Setting<GoDuration>,
    /// The port of /metrics
    #[arg(long, env = "METRICS_PORT", default_value = "8080", value_name = "PORT", value_parser = lenient::<u16>())]
    metrics_port: Setting<u16>,
    /// The port of /healthz and /readyz
    #[arg(long, env = "HEALTH_PROBE_PORT", default_value = "8081", value_name = "PORT", value_parser = lenient::<u16>())]
    health_probe_port: Setting<u16>,
    /// The address of both ports
    #[arg(long, default_value = "0.0.0.0", value_name = "ADDRESS")]
    bind_address: IpAddr,
    /// No metrics of every pod, node and pool, and no events of their conditions: for large clusters
    #[arg(long, env = "DISABLE_CLUSTER_STATE_OBSERVABILITY", default_value = "false", default_missing_value = "true",
          num_args = 0..=1, require_equals = true, value_name = "BOOL", value_parser = lenient_bool())]
    disable_cluster_state_observability: Setting<bool>,
    /// Requests to the API per second, in the long run; the lease has its own
    #[arg(long, env = "KUBE_CLIENT_QPS", default_value = "200", value_name = "N", value_parser = lenient::<u32>())]
    kube_client_qps: Setting<u32>,
    /// Requests to the API at once
    #[arg(long, env = "KUBE_CLIENT_BURST", default_value = "300", value_name = "N", value_parser = lenient::<u32>())]
    kube_client_burst: Setting<u32>,
    /// Act without a lease: right only if there is one replica
    #[arg(long, env = "DISABLE_LEADER_ELECTION", default_value = "false", default_missing_value = "true",
          num_args = 0..=1, require_equals = true, value_name = "BOOL", value_parser = lenient_bool())]
    disable_leader_election: Setting<bool>,
    /// The lease of the replica that acts
    #[arg(long, env = "LEADER_ELECTION_NAME", default_value = "karpenter-leader-election", value_name = "NAME")]
    leader_election_name: String,
    /// The lease's namespace; by default the one that the process runs in
    #[arg(long, env = "LEADER_ELECTION_NAMESPACE", default_value = "", value_name = "NAMESPACE")]
    leader_election_namespace: String,
    /// How much to tell; empty is info
    #[arg(long, env = "LOG_LEVEL", value_enum, default_value = "info", value_name = "LEVEL")]
    log_level: LogLevel,
    /// Where the log goes: stdout, stderr or files, with commas between them
    #[arg(long, env = "LOG_OUTPUT_PATHS", default_value = "stdout", value_name = "PATHS")]
    log_output_paths: String,
    /// Where the log's own problems go
    #[arg(long, env = "LOG_ERROR_OUTPUT_PATHS", default_value = "stderr", value_name = "PATHS")]
    log_error_output_paths: String,
    #[command(flatten)]
    of_go: OfGo,
}

/// Settings of the reference that steer its runtime or its workers. They are taken, so that an installation can move as
/// it is, and change nothing.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of Karpenter that change nothing here")]
struct OfGo {
    /// There are no workers to scale
    #[arg(long, env = "CPU_REQUESTS", default_value = "1000", value_name = "MILLICORES", value_parser = lenient::<i64>())]
    cpu_requests: Setting<i64>,
    /// There is no garbage collector to steer
    #[arg(long, env = "MEMORY_LIMIT", default_value = "-1", value_name = "BYTES", allow_negative_numbers = true,
          value_parser = lenient::<i64>())]
    memory_limit: Setting<i64>,
    /// There is nothing under /debug/pprof
    #[arg(long, env = "ENABLE_PROFILING", default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_name = "BOOL", value_parser = lenient_bool())]
    enable_profiling: Setting<bool>,
    /// A replica that waits watches nothing
    #[arg(long, env = "DISABLE_CONTROLLER_WARMUP", default_value = "true", default_missing_value = "true",
          num_args = 0..=1, require_equals = true, value_name = "BOOL", value_parser = lenient_bool())]
    disable_controller_warmup: Setting<bool>,
    /// There is no webhook to be reached
    #[arg(long, env = "KARPENTER_SERVICE", default_value = "", value_name = "NAME")]
    karpenter_service: String,
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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DisruptionPolicy {
    /// Every node is looked at, for what is worth the evictions
    Best,
    /// The reference's order of methods and its choices
    Compatible,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Rebalance {
    /// It is told, no more
    Ignore,
    /// Nothing new goes onto the node
    Cordon,
    /// The node is replaced, replacement first, within its pool's budgets
    Replace,
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
    #[value(alias = "")]
    Info,
    Error,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let paths = logging::Paths { output: &args.log_output_paths, errors: &args.log_error_output_paths };
    logging::start(args.log_level.filter(), &paths)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    let outcome = runtime.block_on(act(args));
    // Threads that still wait for the network are not waited for.
    runtime.shutdown_background();
    outcome.map(|()| Outcome::Fine)
}

async fn act(args: &Args) -> anyhow::Result<()> {
    for ignored in args.ignored() {
        warn!(variable = ignored, "the environment has a value that cannot be read; the default counts");
    }
    let config = Config::infer().await.context("cannot find a cluster: set KUBECONFIG, or run inside one")?;
    let (server, namespace) = (config.cluster_url.to_string(), lease_namespace(args, &config));
    let clients = clients(args, config)?;
    let ProviderName::Kwok = args.provider;
    let provider = KwokProvider::new(KubeNodes::new(clients.work.clone()), catalogue(args)?);
    let lease = LeaseOptions { namespace, name: args.leader_election_name.clone(), identity: identity() };
    let settings = settings(args, &provider)?;
    let features = Features {
        node_overlays: settings.node_overlays,
        capacity_buffers: settings.capacity_buffers,
        default_spread: !settings.default_spread.is_empty(),
    };
    let options = Options {
        settings,
        kinds: kerf_api::Provider::Kwok,
        features,
        lease: (!args.disable_leader_election.value).then_some(lease),
        addresses: Addresses {
            metrics: SocketAddr::new(args.bind_address, args.metrics_port.value),
            probes: SocketAddr::new(args.bind_address, args.health_probe_port.value),
        },
        build: Build { version: env!("CARGO_PKG_VERSION"), commit: option_env!("KERF_COMMIT").unwrap_or_default() },
        observes_state: !args.disable_cluster_state_observability.value,
    };
    info!(version = options.build.version, provider = provider.name(), server, "starting");
    let classes = KubeClasses::new(clients.work.clone());
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let stop = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        info!("asked to stop");
    };
    run_controller(options, clients, (provider, classes), stop).await.context("the controller has failed")
}

/// The work has a limit, and the lease a client of its own: a flood of work must not cost the lease.
fn clients(args: &Args, mut config: Config) -> anyhow::Result<Clients> {
    let cannot = "cannot make a client for the cluster";
    // A refused eviction is an answer, and the engine decides when to ask again.
    config.default_retry = false;
    let throttle = Throttle::new(args.kube_client_qps.value, args.kube_client_burst.value);
    let traffic = Traffic::default();
    // What waits for its turn has not been sent yet, and is not counted as slow.
    let counted = |config| anyhow::Ok(ClientBuilder::try_from(config).context(cannot)?.with_layer(&traffic));
    let work = counted(config.clone())?.with_layer(&throttle).build();
    let lease = counted(config)?.build();
    Ok(Clients { work, lease, traffic })
}

/// Inside a cluster the pod's own namespace, which its account's files tell.
fn lease_namespace(args: &Args, config: &Config) -> String {
    match args.leader_election_namespace.as_str() {
        "" => config.default_namespace.clone(),
        namespace => namespace.to_owned(),
    }
}

fn settings(args: &Args, provider: &KwokProvider<KubeNodes>) -> anyhow::Result<Settings> {
    let gates = Gates::parse(&args.feature_gates).context("cannot use --feature-gates")?;
    for gate in &gates.without_effect {
        warn!(gate, "this feature is not there yet: its gate changes nothing");
    }
    let constraints = default_constraints(&args.scheduler_config).context("cannot use --scheduler-config")?;
    let kind = provider.class_kind();
    let mut lifecycle =
        kerf_lifecycle::Settings::for_classes(vec![ClassKind { group: kind.group.into(), kind: kind.kind.into() }]);
    lifecycle.provider_drift = provider.has_drift();
    lifecycle.registration_hooks = !provider.registration_hooks().is_empty();
    lifecycle.registration_timeout = args.registration_timeout.value.into();
    lifecycle.collect_every = args.garbage_collection_interval.value.into();
    let mut settings = Settings::new(lifecycle, provider.label_rules().clone());
    settings.node_overlays = gates.node_overlay;
    settings.capacity_buffers = gates.capacity_buffer;
    settings.default_spread = DefaultSpread { constraints };
    for (name, on) in &gates.named {
        if !settings.set_gate(name, *on) {
            warn!(gate = name, "this feature gate is not known and changes nothing");
        }
    }
    settings
        .repair_by(provider.repair_policies(), args.legacy_node_repair.value)
        .context("cannot use the provider's repair policies")?;
    settings.rebalance_by(match args.rebalance_action {
        Rebalance::Ignore => RebalanceAction::Ignore,
        Rebalance::Cordon => RebalanceAction::Cordon,
        Rebalance::Replace => RebalanceAction::Replace,
    });
    if !args.drift_waves.is_empty() {
        settings.disruption.waves = Some(args.drift_waves.parse().context("cannot use --drift-waves")?);
    }
    if args.disruption_policy == DisruptionPolicy::Compatible {
        settings.choose_as_the_reference();
    }
    if !args.minimum_savings.is_empty() {
        settings.disruption.floor = args.minimum_savings.parse().context("cannot use --minimum-savings")?;
    }
    settings.batch_idle = args.batch_idle_duration.value.into();
    settings.batch_max = args.batch_max_duration.value.into();
    settings.scheduling.policy = args.scheduling_policy.into();
    settings.scheduling.preferences = match args.preference_policy {
        Preferences::Respect => PreferencePolicy::Respect,
        Preferences::Ignore => PreferencePolicy::Ignore,
    };
    settings.scheduling.min_values = match args.min_values_policy {
        MinValues::Strict => MinValuesPolicy::Strict,
        MinValues::BestEffort => MinValuesPolicy::BestEffort,
    };
    Ok(settings)
}

fn catalogue(args: &Args) -> anyhow::Result<Catalogue> {
    let Some(path) = args.instance_types_file_path.as_ref().filter(|path| !path.as_os_str().is_empty()) else {
        return Ok(Catalogue::kwok());
    };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Catalogue::from_json(&text).with_context(|| format!("cannot use the instance types of {}", path.display()))
}

/// The name of the pod is that of its host, unless the pod uses its node's network: then only chance tells two replicas on
/// one node apart, whose processes may have the same number. As upstream, the name ends before the underscore.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}_{:016x}", host.trim(), chance())
}

/// Keys that the standard library draws from the system for every process.
fn chance() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Args {
    /// Variables that had no effect.
    fn ignored(&self) -> impl Iterator<Item = &str> {
        let go = &self.of_go;
        let ignored = [
            &self.batch_idle_duration.ignored,
            &self.batch_max_duration.ignored,
            &self.ignore_dra_requests.ignored,
            &self.registration_timeout.ignored,
            &self.garbage_collection_interval.ignored,
            &self.metrics_port.ignored,
            &self.health_probe_port.ignored,
            &self.disable_cluster_state_observability.ignored,
            &self.kube_client_qps.ignored,
            &self.kube_client_burst.ignored,
            &self.disable_leader_election.ignored,
            &go.cpu_requests.ignored,
            &go.memory_limit.ignored,
            &go.enable_profiling.ignored,
            &go.disable_controller_warmup.ignored,
            &self.legacy_node_repair.ignored,
        ];
        ignored.into_iter().flatten().map(String::as_str)
    }
}

impl LogLevel {
    fn filter(self) -> LevelFilter {
        match self {
            Self::Debug => LevelFilter::DEBUG,
            Self::Info => LevelFilter::INFO,
            Self::Error => LevelFilter::ERROR,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two replicas that share the network of their node had one name, and both held the lease.
    #[test]
    fn two_processes_of_one_host_have_two_names() {
        let identities: std::collections::BTreeSet<String> = (0..100).map(|_| identity()).collect();
        assert_eq!(identities.len(), 100);
        let hosts: std::collections::BTreeSet<&str> =
            identities.iter().filter_map(|identity| Some(identity.rsplit_once('_')?.0)).collect();
        assert_eq!(hosts.len(), 1, "{hosts:?}");
    }
}
