//! What a reason says, means, and what to do about it.

use std::fmt;

use jiff::Timestamp;
use kerf_model::budget::Allowance;

use crate::KeepReason;

/// A reason as the reference page shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReasonText {
    /// Stable; what metrics, JSON and the CLI show.
    pub label: &'static str,
    pub meaning: &'static str,
    pub remedy: &'static str,
}

macro_rules! reasons {
    ($($variant:ident $label:literal, $meaning:literal, $remedy:literal;)*) => {
        impl KeepReason {
            /// Every reason that there is, in the order of the reference page.
            pub const ALL: &[ReasonText] =
                &[$(ReasonText { label: $label, meaning: $meaning, remedy: $remedy }),*];

            /// What stands about it on the reference page.
            pub fn text(&self) -> ReasonText {
                match self {
                    $(Self::$variant { .. } => ReasonText { label: $label, meaning: $meaning, remedy: $remedy },)*
                }
            }
        }
    };
}

reasons! {
    NotLaunched "not_launched", "The claim has no instance yet.", "Wait; if it does not go away, see the claim's conditions and events.";
    NoNode "no_node", "The instance has not joined the cluster as a node.", "Wait; if it does not go away, look at the instance's boot and network.";
    NotRegistered "not_registered", "The node has joined but does not carry its labels and taints yet.", "Wait; see the claim's condition Registered.";
    NotInitialized "not_initialized", "The node is not ready for pods yet: it is not Ready, keeps a startup taint, or lacks a resource.", "See the claim's condition Initialized, which names what is missing.";
    Rebooting "rebooting", "The node is being rebooted.", "Wait until it is back.";
    Replacement "replacement", "The node was launched by a disruption that is not done.", "Wait until the nodes that it replaces are gone.";
    Nominated "nominated", "A pending pod was promised room on this node.", "Wait; the promise ends by itself.";
    DoNotDisrupt "do_not_disrupt", "An annotation on the node asks that it stays.", "Remove the annotation when the node may go.";
    NotMarked "not_marked", "The node was to go a short while ago, and its taint, its claim's condition or its annotation could not be written.", "Wait, and see what refuses the writes: an admission webhook, a policy, a missing right.";
    DoNotConsolidate "do_not_consolidate", "The annotation karpenter.sh/do-not-consolidate on the node holds back consolidation. Drift is not held back.", "Remove the annotation when the node may be consolidated.";
    DoNotRepair "do_not_repair", "The node is sick, and the annotation karpenter.sh/do-not-repair on it asks not to touch it.", "Remove the annotation when the node may be repaired.";
    ProtectedPod "protected_pod", "A pod on the node has the annotation karpenter.sh/do-not-disrupt.", "Remove the annotation, give it a duration, or set terminationGracePeriod so that drift may go on.";
    PdbBlocks "pdb_blocks", "A PodDisruptionBudget allows no eviction of a pod on the node now.", "Look at the budget: are its pods ready, does it leave room for one eviction?";
    SeveralPdbs "several_pdbs", "A pod on the node is selected by several PodDisruptionBudgets; the eviction API refuses such pods always.", "Change the selectors so that each pod is under one budget.";
    PdbTaken "pdb_taken", "What a PodDisruptionBudget allows now is needed for other nodes that go first.", "Wait, or allow more in the budget.";
    Window "maintenance_window", "A maintenance window holds the action back on this node.", "Wait for its end, or change the window. One that cannot be read holds back everything until it is corrected.";
    BudgetSpent "budget_spent", "The pool's disruption budget leaves no node for this reason now: nodes that are disrupted or not ready count.", "Wait, raise the budget, or see how much of it is in use (kerf why nodepool) and when it allows more (kerf budget).";
    NoPool "no_pool", "The claim belongs to no pool, so that there are no rules to disrupt it by.", "Set the label karpenter.sh/nodepool, or manage the node by hand.";
    PoolMissing "pool_missing", "The pool that the node's label names does not exist.", "Create the pool, or relabel the node.";
    PoolInvalid "pool_invalid", "The pool's spec cannot be used.", "Correct the pool; its status and kerf validate say what is wrong.";
    NoInstanceTypes "no_instance_types", "The pool's instance types are not known.", "See whether its node class is ready and whether the cloud can be reached.";
    PoolDisabled "pool_disabled", "The pool is switched off with spec.disabled.", "Clear the field to go on.";
    DisruptionDisabled "disruption_disabled", "The pool has spec.disableDeprovisioning.", "Clear the field to go on.";
    ConsolidationDisabled "consolidation_disabled", "The pool consolidates nothing: consolidateAfter is Never, or disruption.consolidation.enabled is false.", "Set consolidateAfter to a duration.";
    DriftDisabled "drift_disabled", "The node is drifted, and drift is switched off for the pool or by the gate Drift.", "Set disruption.drift.enabled, or the gate.";
    OnlyWhenEmpty "only_when_empty", "The pool's consolidationPolicy is WhenEmpty, and the node has pods.", "Use WhenEmptyOrUnderutilized or Balanced if it may be consolidated.";
    StaticPool "static_pool", "The pool has a fixed number of replicas, and the node is one of them.", "Change spec.replicas to have fewer nodes.";
    NotSettled "not_settled", "Pods came or went on the node less than consolidateAfter ago.", "Wait, or shorten consolidateAfter.";
    Tolerated "tolerated", "The node is sick, but not for long enough to be repaired.", "Wait; the repair policy's toleration must pass.";
    BackedOff "backed_off", "Replacements for nodes of this pool failed a short while ago.", "Wait, and see why they failed.";
    Baking "baking", "The roll-out goes in waves, and the nodes of this wave must prove themselves before the next.", "Wait, or shorten the bake time.";
    RolloutHalted "rollout_halted", "The roll-out halted by itself: replacements failed to become ready.", "See why they failed; then change the pool or its class, which starts a new roll-out.";
    RecentlyMoved "recently_moved", "The node replaced one that was itself a replacement, and so on: one more move of the same pods so soon would be churn.", "Wait; if prices or sizes keep changing, use a longer consolidateAfter.";
    Destination "destination", "A disruption that is proposed or under way moves pods here.", "Wait until it is done.";
    NextRound "next_round", "The node could go, but not together with those that go first.", "Wait for the next rounds.";
    NotExamined "not_examined", "The disruption policy is compatible: something else was found first, and ended the round.", "Wait for the next rounds, or use the disruption policy best.";
    BuffersHere "buffers_here", "The node holds room for a capacity buffer.", "Lower the buffer if the room is not needed.";
    PodsHaveNoPlace "pods_have_no_place", "Without the node some of its pods could run nowhere, neither on other nodes nor on new ones.", "See the reason of each pod: its constraints, its volumes, the pools' limits and requirements.";
    DestinationNotReady "destination_not_ready", "A pod could only go to a node that is still starting.", "Wait until that node is ready.";
    TooManyReplacements "too_many_replacements", "The pods of the node would need several new nodes, and that is not cheaper.", "Nothing: the node is a good fit.";
    UnknownType "unknown_type", "The instance type of the node is not among those of its pool, so that it cannot be compared.", "Allow the type in the pool, or let drift replace the node.";
    NoCapacityType "no_capacity_type", "The node has no label karpenter.sh/capacity-type, so that its price is not known.", "Set the label.";
    NoZone "no_zone", "The node has no zone label, so that its price is not known.", "Set the label topology.kubernetes.io/zone.";
    UnknownPrice "unknown_price", "The price of the node is not known, so that no replacement can be called cheaper.", "See whether the provider knows the price of its type in its zone.";
    NoCheaper "no_cheaper", "The pods need a node, and nothing that could be launched for them is surely cheaper.", "Nothing: the node is the best fit.";
    MinValues "min_values", "Cheaper types exist, but too few different ones for the pool's minValues.", "Lower minValues, or allow more instance types.";
    SpotToSpotDisabled "spot_to_spot_disabled", "The node is spot, and replacing spot by cheaper spot is switched off.", "Set the gate SpotToSpotConsolidation.";
    TooFewSpotTypes "too_few_spot_types", "Fewer than 15 cheaper spot types could be launched: the new node would be interrupted or moved again soon.", "Allow more instance types.";
    SameType "same_type", "The replacement would be of a type that is among the nodes to be replaced: keeping one of them does the same.", "Nothing.";
    BelowFloor "below_floor", "The move saves less than the savings floor.", "Lower the floor if small savings are worth the evictions.";
    BelowScore "below_score", "The pool is Balanced, and the move saves too little for what it disrupts.", "Nothing, or use WhenEmptyOrUnderutilized.";
    WouldBeUndone "would_be_undone", "After the move the same pods could be moved again at once: it waits until one move does both.", "Wait for the next rounds.";
    ExpiresFirst "expires_first", "The node expires before a cheaper one would have saved what both cost together while pods move.", "Wait; when it expires its pods get what suits them then.";
    StaticScalesDown "static_scales_down", "The static pool has more nodes than replicas: it shrinks before it replaces.", "Wait.";
    StaticAtLimit "static_at_limit", "The static pool is at limits.nodes: there is no room for a replacement.", "Raise limits.nodes above replicas, or set the gate TerminateFirstDrift.";
    TooManyUnhealthy "too_many_unhealthy", "More than a fifth of the pool's nodes are sick: the cause is most likely not the nodes, so that none is repaired.", "Look for a common cause; repair goes on when fewer are sick.";
    RepairNeedsDeadline "repair_needs_deadline", "The node is sick and its pods block eviction: without a deadline the drain would never end.", "Set terminationGracePeriod on the pool, or see to the pods that block.";
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLaunched => f.write_str("its instance is not launched yet"),
            Self::NoNode => f.write_str("its instance has not joined as a node yet"),
            Self::NotRegistered => f.write_str("the node is not registered yet"),
            Self::NotInitialized => f.write_str("the node is not initialized"),
            Self::Rebooting => f.write_str("the node is being rebooted"),
            Self::Replacement { command } => write!(f, "it was launched by command {command}, which is not done"),
            Self::Nominated { until } => write!(f, "nominated for a pending pod until {until:.0}"),
            Self::NotMarked { until } => write!(f, "it could not be marked to go, and is left alone until {until:.0}"),
            Self::DoNotDisrupt { annotation, until } => {
                write!(f, "blocked by the annotation {annotation} of the node{}", Until(*until))
            }
            Self::DoNotConsolidate => {
                f.write_str("blocked by the annotation karpenter.sh/do-not-consolidate of the node")
            }
            Self::DoNotRepair => {
                f.write_str("sick, and blocked by the annotation karpenter.sh/do-not-repair of the node")
            }
            Self::ProtectedPod { pod, until } => {
                write!(f, "pod {pod} has the annotation karpenter.sh/do-not-disrupt{}", Until(*until))
            }
            Self::PdbBlocks { pod, pdb } => write!(f, "PDB {pdb} prevents the eviction of pod {pod}"),
            Self::SeveralPdbs { pod, pdbs } => {
                let names: Vec<String> = pdbs.iter().map(ToString::to_string).collect();
                write!(f, "pod {pod} is selected by several PDBs: {}", names.join(", "))
            }
            Self::PdbTaken { pdb } => write!(f, "the evictions that PDB {pdb} allows now are for other nodes"),
            Self::Window { window, action, until, problem: None } => {
                write!(f, "maintenance window {window} holds back {action}{}", Until(*until))
            }
            Self::Window { window, problem: Some(problem), .. } => {
                write!(f, "maintenance window {window} cannot be read and holds back everything: {problem}")
            }
            Self::BudgetSpent { pool, reason, allowed, consuming } => {
                let nodes = match allowed {
                    Allowance::AtMost(nodes) => *nodes,
                    Allowance::Unlimited => u32::MAX,
                };
                write!(f, "pool {pool} allows {nodes} at once for {reason}, {consuming} are disrupted or not ready")
            }
            Self::NoPool => f.write_str("the label karpenter.sh/nodepool is missing"),
            Self::PoolMissing { pool } => write!(f, "pool {pool} is not found"),
            Self::PoolInvalid { pool, why } => write!(f, "pool {pool} cannot be used: {why}"),
            Self::NoInstanceTypes { pool } => write!(f, "the instance types of pool {pool} are not known"),
            Self::PoolDisabled { pool } => write!(f, "pool {pool} is disabled"),
            Self::DisruptionDisabled { pool } => write!(f, "deprovisioning is disabled for pool {pool}"),
            Self::ConsolidationDisabled { pool } => write!(f, "pool {pool} has consolidation disabled"),
            Self::DriftDisabled { pool } => write!(f, "drifted, and drift is disabled for pool {pool}"),
            Self::OnlyWhenEmpty { pool } => write!(f, "pool {pool} consolidates only empty nodes"),
            Self::StaticPool { pool } => write!(f, "one of the replicas of the static pool {pool}"),
            Self::NotSettled { until: Some(until) } => write!(f, "pods came or went lately, settled at {until:.0}"),
            Self::NotSettled { until: None } => f.write_str("not consolidatable yet"),
            Self::Tolerated { condition, until } => write!(f, "condition {condition} is tolerated until {until:.0}"),
            Self::BackedOff { pool, reason, until } => {
                write!(f, "replacing nodes of pool {pool} as {} failed and waits until {until:.0}", reason.label())
            }
            Self::Baking { pool, until } => write!(f, "pool {pool} proves its last wave{}", Until(*until)),
            Self::RolloutHalted { pool, failures } => {
                write!(f, "the roll-out of pool {pool} halted: {failures} replacements failed to become ready")
            }
            Self::RecentlyMoved { moves, until } => {
                write!(f, "its pods were moved to new nodes {moves} times in a row, and stay until {until:.0}")
            }
            Self::Destination { command } => write!(f, "pods are moving here (command {command})"),
            Self::NextRound => f.write_str("could go, after others"),
            Self::NotExamined => f.write_str("not looked at: another disruption was found first"),
            Self::BuffersHere { pods } => write!(f, "holds {pods} pods of capacity buffers"),
            Self::PodsHaveNoPlace { pods, more } => {
                f.write_str("not all pods would have a place: ")?;
                for (index, (pod, why)) in pods.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "; " };
                    write!(f, "{separator}{pod}: {why}")?;
                }
                match more {
                    0 => Ok(()),
                    more => write!(f, "; and {more} other(s)"),
                }
            }
            Self::DestinationNotReady { pod, host } => {
                write!(f, "pod {pod} would go to {}, which is not initialized", host.name())
            }
            Self::TooManyReplacements { nodes } => write!(f, "would need {nodes} new nodes, which is not cheaper"),
            Self::UnknownType => f.write_str("its instance type is not known to its pool"),
            Self::NoCapacityType => f.write_str("the label karpenter.sh/capacity-type is missing"),
            Self::NoZone => f.write_str("the label topology.kubernetes.io/zone is missing"),
            Self::UnknownPrice => f.write_str("its price is not known"),
            Self::NoCheaper { price, cheapest: Some(cheapest) } => {
                write!(f, "can't replace with a cheaper node: it costs {price}, the cheapest that does {cheapest}")
            }
            Self::NoCheaper { price, cheapest: None } => {
                write!(f, "can't replace with a cheaper node: it costs {price}, and nothing else can be had")
            }
            Self::MinValues { key, wanted, found } => {
                write!(f, "filtering by price leaves {found} values of {key}, the pool wants {wanted}")
            }
            Self::SpotToSpotDisabled => f.write_str("replacing spot by cheaper spot is disabled"),
            Self::TooFewSpotTypes { found, wanted } => {
                write!(f, "{found} cheaper spot types are too few to replace a spot node, {wanted} are needed")
            }
            Self::SameType => f.write_str("its replacement would be of the same type"),
            Self::BelowFloor { savings, floor } => {
                write!(f, "saves {savings} per hour, less than the floor of {floor}")
            }
            Self::BelowScore { pool, score, threshold } => {
                write!(f, "scores {score:.2} in the Balanced pool {pool}, {threshold:.2} is needed")
            }
            Self::WouldBeUndone => f.write_str("its pods could be moved again at once"),
            Self::ExpiresFirst { savings, until } => {
                write!(f, "expires at {until:.0}, too soon for a replacement that saves {savings} per hour")
            }
            Self::StaticScalesDown { pool, running, replicas } => {
                write!(f, "static pool {pool} has {running} nodes for {replicas} replicas and shrinks first")
            }
            Self::StaticAtLimit { pool, limit } => write!(f, "static pool {pool} is at its limit of {limit} nodes"),
            Self::TooManyUnhealthy { pool, unhealthy, nodes, allowed } => {
                write!(f, "{unhealthy} of {nodes} nodes of pool {pool} are sick, more than {allowed} are not repaired")
            }
            Self::RepairNeedsDeadline { blocker } => write!(f, "sick, but without a deadline {blocker}"),
        }
    }
}

/// ` until …`, or nothing.
struct Until(Option<Timestamp>);

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(until) => write!(f, " until {until:.0}"),
            None => Ok(()),
        }
    }
}
