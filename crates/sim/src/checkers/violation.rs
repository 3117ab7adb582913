//! What can be broken, and how it reads.

use std::fmt;

use jiff::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub broken: Broken,
    /// Virtual time.
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broken {
    /// More pods of a budget were taken than it allowed.
    BudgetExceeded {
        budget: String,
        taken: usize,
        allowed: i64,
    },
    /// A do-not-disrupt pod was taken without a deadline.
    ProtectedPodTaken {
        pod: String,
    },
    LimitExceeded {
        pool: String,
        resource: String,
        limit: String,
        total: String,
    },
    LaunchedTwice {
        claim_uid: String,
        instances: usize,
    },
    ClaimGoneBeforeInstance {
        claim_uid: String,
    },
    InstanceLeaked {
        provider_id: String,
    },
    ClaimWithoutInstance {
        claim: String,
    },
    NodeWithoutClaim {
        node: String,
    },
    /// A pool can take it, and it waits.
    PodLeftWaiting {
        pod: String,
        /// As the scheduler says.
        why: String,
    },
    ReplicasMissing {
        workload: String,
        wanted: i64,
        there: i64,
    },
    /// More nodes of a pool were disrupted by choice than its budgets allowed.
    NodeBudgetExceeded {
        pool: String,
        reason: String,
        disrupted: usize,
        allowed: usize,
    },
    /// A node was chosen though a maintenance window held it back.
    WindowIgnored {
        window: String,
        claim: String,
        reason: String,
    },
    DisabledPoolDisrupted {
        pool: String,
        claim: String,
    },
    /// What the pool has switched off was done to a node of it.
    SwitchedOff {
        pool: String,
        claim: String,
        reason: String,
    },
    /// A node was chosen though somebody asked for it.
    ProtectedNodeChosen {
        claim: String,
        annotation: String,
    },
    /// A node that is not sick, or not for long enough, was repaired.
    HealthyRepaired {
        claim: String,
    },
    /// So many nodes of a pool are sick that the cause must be elsewhere, and yet one was repaired.
    BreakerIgnored {
        pool: String,
        sick: usize,
        nodes: usize,
    },
    /// More nodes of a pool were chosen for drift than a wave may have, or while the last one proved itself.
    WaveExceeded {
        pool: String,
        going: usize,
        share: usize,
    },
    /// A roll-out went on though its replacements had failed.
    HaltIgnored {
        pool: String,
        claim: String,
    },
    /// A claim was deleted, and nobody can see why.
    DeletedForNothing {
        claim: String,
    },
    /// A claim was deleted because it had expired, though its pool or a window held that back.
    ExpiredTooEarly {
        claim: String,
        by: String,
    },
    /// A node of a static pool was taken by choice without one in its place.
    StaticNodeNotReplaced {
        claim: String,
    },
    StaticPoolTooSmall {
        pool: String,
        nodes: usize,
        replicas: usize,
    },
    StaticPoolTooLarge {
        pool: String,
        nodes: usize,
        limit: usize,
    },
    DisabledPoolGrew {
        pool: String,
        claim: String,
    },
    /// What somebody else had written as the deletion cost of a pod was overwritten.
    ForeignCostOverwritten {
        pod: String,
    },
    DeletedBeforeReplacement {
        claim: String,
        replacement: String,
    },
    /// What was done to save money made the cluster dearer; in millionths of a dollar per hour.
    CostRaised {
        command: String,
        before: i64,
        after: i64,
    },
    /// All pods had their places, nothing was to do but to save, and yet it got dearer; in millionths of a dollar per hour.
    ClusterDearer {
        before: i64,
        after: i64,
    },
    /// With faults off the pods of a workload are moved to save money, again and again.
    Flapping {
        workload: String,
        moved: usize,
        pods: usize,
    },
    TaintLeft {
        node: String,
    },
    MarkLeft {
        claim: String,
    },
    ReplacementOrphaned {
        claim: String,
    },
    /// With faults off something still changes.
    NeverSettles {
        changing: Vec<String>,
    },
    /// The simulated world itself came to a stop.
    WorldStopped {
        why: String,
    },
}

impl Broken {
    pub fn label(&self) -> &'static str {
        match self {
            Self::BudgetExceeded { .. } => "budget_exceeded",
            Self::ProtectedPodTaken { .. } => "protected_pod_taken",
            Self::LimitExceeded { .. } => "limit_exceeded",
            Self::LaunchedTwice { .. } => "launched_twice",
            Self::ClaimGoneBeforeInstance { .. } => "claim_gone_before_instance",
            Self::InstanceLeaked { .. } => "instance_leaked",
            Self::ClaimWithoutInstance { .. } => "claim_without_instance",
            Self::NodeWithoutClaim { .. } => "node_without_claim",
            Self::PodLeftWaiting { .. } => "pod_left_waiting",
            Self::ReplicasMissing { .. } => "replicas_missing",
            Self::NodeBudgetExceeded { .. } => "node_budget_exceeded",
            Self::WindowIgnored { .. } => "window_ignored",
            Self::DisabledPoolDisrupted { .. } => "disabled_pool_disrupted",
            Self::SwitchedOff { .. } => "switched_off",
            Self::ProtectedNodeChosen { .. } => "protected_node_chosen",
            Self::HealthyRepaired { .. } => "healthy_repaired",
            Self::BreakerIgnored { .. } => "breaker_ignored",
            Self::WaveExceeded { .. } => "wave_exceeded",
            Self::HaltIgnored { .. } => "halt_ignored",
            Self::DeletedForNothing { .. } => "deleted_for_nothing",
            Self::ExpiredTooEarly { .. } => "expired_too_early",
            Self::StaticNodeNotReplaced { .. } => "static_node_not_replaced",
            Self::StaticPoolTooSmall { .. } => "static_pool_too_small",
            Self::StaticPoolTooLarge { .. } => "static_pool_too_large",
            Self::DisabledPoolGrew { .. } => "disabled_pool_grew",
            Self::ForeignCostOverwritten { .. } => "foreign_cost_overwritten",
            Self::DeletedBeforeReplacement { .. } => "deleted_before_replacement",
            Self::CostRaised { .. } => "cost_raised",
            Self::ClusterDearer { .. } => "cluster_dearer",
            Self::Flapping { .. } => "flapping",
            Self::TaintLeft { .. } => "taint_left",
            Self::MarkLeft { .. } => "mark_left",
            Self::ReplacementOrphaned { .. } => "replacement_orphaned",
            Self::NeverSettles { .. } => "never_settles",
            Self::WorldStopped { .. } => "world_stopped",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}: {}", self.at, self.broken.label(), self.broken)
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BudgetExceeded { budget, taken, allowed } => {
                write!(f, "{taken} pods of the disruption budget {budget} were taken and {allowed} allowed")
            }
            Self::ProtectedPodTaken { pod } => {
                write!(f, "the do-not-disrupt pod {pod} was taken before any deadline")
            }
            Self::LimitExceeded { pool, resource, limit, total } => {
                write!(f, "the pool {pool} grew to {total} {resource} over its limit of {limit}")
            }
            Self::LaunchedTwice { claim_uid, instances } => {
                write!(f, "the claim {claim_uid} has {instances} live instances")
            }
            Self::ClaimGoneBeforeInstance { claim_uid } => {
                write!(f, "the claim {claim_uid} is gone and its instance lives")
            }
            Self::InstanceLeaked { provider_id } => write!(f, "the instance {provider_id} has no claim"),
            Self::ClaimWithoutInstance { claim } => write!(f, "the claim {claim} has no instance"),
            Self::NodeWithoutClaim { node } => write!(f, "the node {node} has no claim and does not go"),
            Self::PodLeftWaiting { pod, why } => write!(f, "the pod {pod} waits and a pool could take it: {why}"),
            Self::ReplicasMissing { workload, wanted, there } => {
                write!(f, "{workload} has {there} of {wanted} pods")
            }
            Self::NodeBudgetExceeded { pool, reason, disrupted, allowed } => {
                write!(f, "{disrupted} nodes of the pool {pool} are disrupted ({reason}) and {allowed} allowed")
            }
            Self::WindowIgnored { window, claim, reason } => {
                write!(f, "the claim {claim} was chosen ({reason}) in the window {window}")
            }
            Self::DisabledPoolDisrupted { pool, claim } => {
                write!(f, "the claim {claim} was chosen though its pool {pool} is not to be disrupted")
            }
            Self::SwitchedOff { pool, claim, reason } => {
                write!(f, "the claim {claim} was chosen ({reason}) though its pool {pool} has that switched off")
            }
            Self::ProtectedNodeChosen { claim, annotation } => {
                write!(f, "the node of {claim} was chosen in spite of {annotation}")
            }
            Self::HealthyRepaired { claim } => {
                write!(f, "the claim {claim} was repaired and is not sick for long enough")
            }
            Self::BreakerIgnored { pool, sick, nodes } => {
                write!(f, "a node of the pool {pool} was repaired while {sick} of its {nodes} nodes are sick")
            }
            Self::WaveExceeded { pool, going, share } => {
                write!(f, "{going} nodes of the pool {pool} are in a wave that may have {share}, or that still bakes")
            }
            Self::HaltIgnored { pool, claim } => {
                write!(f, "the claim {claim} was chosen (Drifted) though the roll-out of {pool} has failed")
            }
            Self::DeletedForNothing { claim } => write!(f, "the claim {claim} was deleted for no reason"),
            Self::ExpiredTooEarly { claim, by } => {
                write!(f, "the claim {claim} was deleted as expired though {by} held that back")
            }
            Self::StaticNodeNotReplaced { claim } => {
                write!(f, "the claim {claim} of a static pool was deleted without a replacement")
            }
            Self::StaticPoolTooSmall { pool, nodes, replicas } => {
                write!(f, "the static pool {pool} was shrunk to {nodes} nodes and wants {replicas}")
            }
            Self::StaticPoolTooLarge { pool, nodes, limit } => {
                write!(f, "the static pool {pool} grew to {nodes} nodes over its limit of {limit}")
            }
            Self::DisabledPoolGrew { pool, claim } => {
                write!(f, "the claim {claim} was made in the pool {pool}, which is disabled")
            }
            Self::ForeignCostOverwritten { pod } => {
                write!(f, "the deletion cost that somebody had given to the pod {pod} was overwritten")
            }
            Self::DeletedBeforeReplacement { claim, replacement } => {
                write!(f, "the claim {claim} was deleted before its replacement {replacement} was ready")
            }
            Self::CostRaised { command, before, after } => {
                write!(f, "the command {command} was to save and costs {after} instead of {before} millionths")
            }
            Self::ClusterDearer { before, after } => {
                write!(f, "nothing was to do but to save, and it costs {after} instead of {before} millionths")
            }
            Self::Flapping { workload, moved, pods } => {
                write!(f, "{moved} times a pod of {workload} was moved to save money, and it has {pods}")
            }
            Self::TaintLeft { node } => write!(f, "the node {node} is tainted and does not go"),
            Self::MarkLeft { claim } => write!(f, "the claim {claim} is marked and does not go"),
            Self::ReplacementOrphaned { claim } => {
                write!(f, "the claim {claim} replaces nothing, and nothing runs there")
            }
            Self::NeverSettles { changing } => write!(f, "with faults off these change: {}", changing.join(", ")),
            Self::WorldStopped { why } => f.write_str(why),
        }
    }
}
