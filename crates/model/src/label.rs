//! Label, annotation and taint names that Kerf shares with Karpenter, how such names are spelled,
//! and which of them users may put on a node.

mod rules;
mod syntax;

pub use rules::{LabelRules, Restricted};
pub use syntax::{LabelSyntaxError, check_qualified_name, check_value};

/// The pool that a node belongs to.
pub const NODEPOOL: &str = "karpenter.sh/nodepool";
/// `on-demand`, `spot` or `reserved`.
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// Set once the node has joined and carries its labels and taints.
pub const REGISTERED: &str = "karpenter.sh/registered";
/// Set once the node can run pods.
pub const INITIALIZED: &str = "karpenter.sh/initialized";
/// Put by users: the taints of the claim are not copied to the node.
pub const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";

/// Takes a node out of the service load balancers.
pub const EXCLUDE_FROM_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// Held on claims and nodes until their instance is gone.
pub const TERMINATION_FINALIZER: &str = "karpenter.sh/termination";

/// Labels of nodes that no claim carries: requirements name them only so that daemons and pods can be compared.
pub const OF_NODES_ONLY: [&str; 3] = [HOSTNAME, REGISTERED, INITIALIZED];

pub const HOSTNAME: &str = "kubernetes.io/hostname";
pub const ARCH: &str = "kubernetes.io/arch";
pub const OS: &str = "kubernetes.io/os";
pub const RESERVATION_ID: &str = "karpenter.sh/reservation-id";
pub const ZONE: &str = "topology.kubernetes.io/zone";
pub const REGION: &str = "topology.kubernetes.io/region";
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";

/// Values of [`CAPACITY_TYPE`].
pub mod capacity_type {
    pub const ON_DEMAND: &str = "on-demand";
    pub const SPOT: &str = "spot";
    pub const RESERVED: &str = "reserved";
}

/// Annotations that every provider shares (sheet 01 §5, sheet 08 A3).
pub mod annotation {
    /// On pods: `true` or a duration. On nodes and claims: exactly `true`.
    pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
    /// On nodes: exactly `true`.
    pub const DO_NOT_REPAIR: &str = "karpenter.sh/do-not-repair";
    /// On pods: what an eviction costs, a 32-bit integer.
    pub const DISRUPTION_COST: &str = "karpenter.sh/disruption-cost";
    /// Kubernetes' own eviction cost, read where [`DISRUPTION_COST`] is absent.
    pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    /// Kerf's own, on pods: the [`POD_DELETION_COST`] that we wrote. Another value beside it is somebody else's.
    pub const OUR_COST: &str = "kerf.sh/deletion-cost";
    pub const NODEPOOL_HASH: &str = "karpenter.sh/nodepool-hash";
    pub const NODEPOOL_HASH_VERSION: &str = "karpenter.sh/nodepool-hash-version";
    /// Kerf's own: the hashes behind [`NODEPOOL_HASH`], one per field.
    pub const NODEPOOL_FIELD_HASHES: &str = "kerf.sh/nodepool-field-hashes";
    /// Kerf's own, on a claim that is to go: the command, so that a restart takes it up.
    pub const COMMAND: &str = "kerf.sh/disruption-command";
    /// Kerf's own, on a claim made to replace others: for which command, and which.
    pub const REPLACES: &str = "kerf.sh/replaces";
    /// Kerf's own, on a maintenance window: when it is over for good, RFC 3339.
    pub const FROZEN_UNTIL: &str = "kerf.sh/frozen-until";
    /// Kerf's own, on a pool whose drift goes in waves: how far the roll-out has come.
    pub const ROLLOUT: &str = "kerf.sh/rollout";
    /// Kerf's own, on a claim that was launched to save money: when, and when those that it replaced were. Like
    /// [`REBOOTS`].
    pub const CONSOLIDATIONS: &str = "kerf.sh/consolidations";
    /// Kerf's own, on a claim: when its node was rebooted to cure it, RFC 3339 with commas between them.
    pub const REBOOTS: &str = "kerf.sh/reboots";
    /// The moment after which a drain is forced, RFC 3339.
    pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
    pub const MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";
    /// Comma-separated and sorted: a claim is initialised only when each has published its devices.
    pub const REQUESTED_DRA_DRIVERS: &str = "karpenter.sh/requested-dra-drivers";
    /// On pods that exist only in a schedule: room that a capacity buffer keeps.
    pub const BUFFER_POD: &str = "karpenter.sh/capacity-buffer-fake-pod";
    pub const BUFFER_NAME: &str = "karpenter.sh/capacity-buffer-name";
    pub const BUFFER_NAMESPACE: &str = "karpenter.sh/capacity-buffer-namespace";
    pub const PRICE_OVERLAY_APPLIED: &str = "karpenter.sh/price-overlay-applied";
    pub const CAPACITY_OVERLAY_APPLIED: &str = "karpenter.sh/capacity-overlay-applied";
    /// The boot id seen before a reboot was asked for.
    pub const REBOOT_PRE_BOOT_ID: &str = "karpenter.sh/reboot-pre-boot-id";
    /// How long the drain before a reboot may take; absent means without limit.
    pub const REBOOT_TERMINATION_GRACE_PERIOD: &str = "karpenter.sh/reboot-termination-grace-period";
}

/// Keys of the taints that Kerf writes or waits for (sheet 01 §7, sheet 08 A4).
pub mod taint_key {
    /// On a node from its boot until it is registered.
    pub const UNREGISTERED: &str = "karpenter.sh/unregistered";
    /// On a node that is about to go.
    pub const DISRUPTED: &str = "karpenter.sh/disrupted";
    /// On a node that is being rebooted.
    pub const REBOOTING: &str = "karpenter.sh/rebooting";
    /// Kerf's own, on a node that the cloud advises to leave.
    pub const REBALANCE_RECOMMENDED: &str = "kerf.sh/rebalance-recommended";
    /// What v1beta1 put where v1 puts [`DISRUPTED`]; only ever removed.
    pub const LEGACY_DISRUPTION: &str = "karpenter.sh/disruption";
    pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
    pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
    pub const CLOUD_UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
    /// Start of the keys that the node readiness controller makes.
    pub const READINESS_PREFIX: &str = "readiness.k8s.io/";
}
