//! Every metric that there is: its name, its labels, what it tells. The reference page is made from this file.
//!
//! Names and labels are the reference's (sheet 04 §9, sheet 08 L8), so that its dashboards and alerts go on working.

/// One metric.
#[derive(Debug, PartialEq)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Counter,
    Gauge,
    /// With the upper bounds of its buckets.
    Histogram(&'static [f64]),
    /// With the quantiles 0, 0.5, 0.9, 0.99 and 1, of all that was observed lately.
    Summary,
}

/// The API group of claims and pools.
pub const GROUP: &str = "karpenter.sh";

/// Durations from a few milliseconds to ten minutes.
const DURATIONS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 120.0,
    180.0, 300.0, 450.0, 600.0,
];
/// Of one call.
const CALLS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const DOUBLING_TO_1024: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
const DOUBLING_TO_2048: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0];
const DOUBLING_FROM_10: &[f64] = &[10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0];
const DOUBLING_TO_8192: &[f64] =
    &[0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0];
/// Of Balanced moves.
const SCORES: &[f64] = &[0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0];
/// From a quarter of an hour to thirty days.
const LIFETIMES: &[f64] = &[
    900.0,
    1800.0,
    2700.0,
    3600.0,
    7200.0,
    14400.0,
    21600.0,
    28800.0,
    43200.0,
    57600.0,
    86400.0,
    129_600.0,
    172_800.0,
    259_200.0,
    345_600.0,
    432_000.0,
    604_800.0,
    864_000.0,
    1_209_600.0,
    1_814_400.0,
    2_592_000.0,
];

/// Declares metrics and lists them all.
macro_rules! metrics {
    ($($constant:ident = $name:literal, $kind:expr, [$($label:literal),*], $help:literal;)*) => {
        $(pub static $constant: Metric = Metric { name: $name, kind: $kind, labels: &[$($label),*], help: $help };)*

        /// In the order of the page.
        pub static ALL: &[&Metric] = &[$(&$constant),*];
    };
}

use Kind::{Counter, Gauge, Histogram, Summary};

metrics! {
    BUILD_INFO = "karpenter_build_info", Gauge, ["version", "goversion", "goarch", "commit"],
        "Always 1; the labels say what runs. `goversion` is empty.";

    CLAIMS_CREATED = "karpenter_nodeclaims_created_total", Counter, ["reason", "nodepool", "min_values_relaxed"],
        "Node claims created.";
    CLAIMS_TERMINATED = "karpenter_nodeclaims_terminated_total", Counter, ["nodepool", "capacity_type", "zone"],
        "Node claims that are gone.";
    CLAIMS_DISRUPTED = "karpenter_nodeclaims_disrupted_total", Counter,
        ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"],
        "Node claims given up, by reason.";
    PODS_DISRUPTED = "karpenter_pods_disruption_initiated_total", Counter,
        ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"],
        "Pods that have to run elsewhere because their node's claim was given up.";
    CLAIMS_UNHEALTHY = "karpenter_nodeclaims_unhealthy_disrupted_total", Counter,
        ["condition", "nodepool", "capacity_type", "image_id", "termination_mode"],
        "Node claims given up because their node was sick; by the condition in snake case.";
    CLAIM_TERMINATION = "karpenter_nodeclaims_termination_duration_seconds", Histogram(DOUBLING_TO_2048), ["nodepool"],
        "From the deletion of a claim to its end.";
    INSTANCE_TERMINATION = "karpenter_nodeclaims_instance_termination_duration_seconds", Histogram(DOUBLING_TO_1024),
        ["nodepool"], "From the deletion of a claim to the end of its instance.";

    NODES_CREATED = "karpenter_nodes_created_total", Counter, ["nodepool", "zone"], "Nodes that joined for a claim.";
    NODES_TERMINATED = "karpenter_nodes_terminated_total", Counter, ["nodepool", "zone"],
        "Nodes of claims that are gone.";
    NODES_DRAINED = "karpenter_nodes_drained_total", Counter, ["nodepool"], "Nodes that were drained to the last pod.";
    NODE_TERMINATION = "karpenter_nodes_termination_duration_seconds", Summary, ["nodepool"],
        "From the deletion of a node to its end.";
    NODE_LIFETIME = "karpenter_nodes_lifetime_duration_seconds", Histogram(LIFETIMES), ["nodepool"],
        "From the creation of a node to its end.";
    NODES_REBOOTS = "karpenter_nodes_reboots_total", Counter, ["result"], "Reboots that should cure a node, by how they ended.";
    NODE_REBOOT = "karpenter_nodes_reboot_duration_seconds", Histogram(DOUBLING_FROM_10), ["result"],
        "From asking for a reboot to its end.";
    NODE_REBOOT_RECOVERY = "karpenter_nodes_reboot_recovery_duration_seconds", Histogram(DOUBLING_FROM_10), [],
        "From the order to boot until the node was ready again.";
    NODES_ALLOCATABLE = "karpenter_nodes_allocatable", Gauge, ["resource_type"], "What pods can use of the node.";
    NODES_POD_REQUESTS = "karpenter_nodes_total_pod_requests", Gauge, ["resource_type"],
        "What the pods on the node ask for, without those of daemon sets.";
    NODES_DAEMON_REQUESTS = "karpenter_nodes_total_daemon_requests", Gauge, ["resource_type"],
        "What the pods of daemon sets on the node ask for.";
    NODES_OVERHEAD = "karpenter_nodes_system_overhead", Gauge, ["resource_type"],
        "What of the node's capacity pods cannot use.";
    NODES_LIFETIME = "karpenter_nodes_current_lifetime_seconds", Gauge, [], "The age of the node.";
    CLUSTER_UTILIZATION = "karpenter_cluster_utilization_percent", Gauge, ["resource_type"],
        "How much of all nodes the requests of their pods take.";

    POOLS_LIMIT = "karpenter_nodepools_limit", Gauge, ["resource_type", "nodepool"], "The limits of the pool.";
    POOLS_USAGE = "karpenter_nodepools_usage", Gauge, ["resource_type", "nodepool"], "What the pool has.";
    POOLS_COST = "karpenter_nodepools_cost_total", Gauge, ["nodepool"],
        "Dollars per hour of the pool's nodes, as far as their prices are known.";

    PODS_STATE = "karpenter_pods_state", Gauge,
        ["name", "namespace", "owner", "node", "scheduled", "nodepool", "zone", "arch", "capacity_type", "instance_type",
         "phase", "ready", "managed"],
        "Always 1; one series per pod.";
    PODS_STARTUP = "karpenter_pods_startup_duration_seconds", Summary, [], "From a pod's creation until it runs.";
    PODS_BOUND = "karpenter_pods_bound_duration_seconds", Histogram(DURATIONS), ["dynamic_resources"],
        "From a pod's creation until it is bound.";
    PODS_DECISION = "karpenter_pods_scheduling_decision_duration_seconds", Histogram(DURATIONS), [],
        "From seeing that a pod has no place to deciding about it.";
    PODS_PROVISIONING_BOUND = "karpenter_pods_provisioning_bound_duration_seconds", Histogram(DURATIONS),
        ["dynamic_resources"], "From deciding about a pod until it is bound.";
    PODS_PROVISIONING_STARTUP = "karpenter_pods_provisioning_startup_duration_seconds", Histogram(DURATIONS), [],
        "From deciding about a pod until it runs.";
    PODS_UNBOUND_TIME = "karpenter_pods_unbound_time_seconds", Gauge, ["name", "namespace", "dynamic_resources"],
        "How long the pod has been waiting to be bound.";
    PODS_UNSTARTED_TIME = "karpenter_pods_unstarted_time_seconds", Gauge, ["name", "namespace"],
        "How long the pod has been waiting to run.";
    PODS_UNDECIDED_TIME = "karpenter_pods_provisioning_scheduling_undecided_time_seconds", Gauge, ["name", "namespace"],
        "How long the pod has been waiting for a decision.";
    PODS_PROVISIONING_UNBOUND_TIME = "karpenter_pods_provisioning_unbound_time_seconds", Gauge,
        ["name", "namespace", "dynamic_resources"], "How long ago it was decided about a pod that is not bound yet.";
    PODS_PROVISIONING_UNSTARTED_TIME = "karpenter_pods_provisioning_unstarted_time_seconds", Gauge,
        ["name", "namespace"], "How long ago it was decided about a pod that does not run yet.";
    PODS_EVICTIONS = "karpenter_pods_eviction_requests_total", Counter, ["code"],
        "Evictions asked for, by the server's answer.";
    PODS_DRAINED = "karpenter_pods_drained_total", Counter, ["reason"],
        "Evictions and deletions of pods, for their node goes or boots again, that the server has accepted.";

    STATE_NODES = "karpenter_cluster_state_node_count", Gauge, [], "Nodes known.";
    STATE_SYNCED = "karpenter_cluster_state_synced", Gauge, [],
        "1 while every kind has been listed and no watch is broken.";
    STATE_UNSYNCED = "karpenter_cluster_state_unsynced_time_seconds", Gauge, [],
        "For how long that has not been so.";

    SCHEDULER_DURATION = "karpenter_scheduler_scheduling_duration_seconds", Histogram(DURATIONS), ["controller"],
        "One look at the cluster that decided about pods.";
    SCHEDULER_QUEUE = "karpenter_scheduler_queue_depth", Gauge, ["controller"], "Pods that have no place yet.";
    SCHEDULER_UNSCHEDULABLE = "karpenter_scheduler_unschedulable_pods_count", Gauge, ["controller"],
        "Pods that no node, present or possible, can take.";
    SCHEDULER_IGNORED = "karpenter_scheduler_ignored_pods_count", Gauge, [],
        "Pods that wait and are not tried: what they ask for means nothing, or they opted out.";

    DISRUPTION_EVALUATION = "karpenter_voluntary_disruption_decision_evaluation_duration_seconds", Histogram(DURATIONS),
        ["reason", "consolidation_type"],
        "One look at the cluster that decided about disruption. The methods of a round share their work, and decisions have no clock: all together, and the labels are empty.";
    DISRUPTION_DECISIONS = "karpenter_voluntary_disruption_decisions_total", Counter,
        ["decision", "reason", "consolidation_type"], "Disruptions started.";
    DISRUPTION_DECISIONS_BY_POOL = "karpenter_voluntary_disruption_decisions_by_nodepool_total", Counter,
        ["nodepool", "decision", "reason", "consolidation_type"], "Disruptions started, by pool.";
    DISRUPTION_ELIGIBLE = "karpenter_voluntary_disruption_eligible_nodes", Gauge, ["reason"],
        "Nodes that could be chosen, before budgets; those of proposals that wait for their second look, too.";
    DISRUPTION_TIMEOUTS = "karpenter_voluntary_disruption_consolidation_timeouts_total", Counter, ["consolidation_type"],
        "Searches that were cut short. There is no such limit here: always 0.";
    DISRUPTION_WITHDRAWN = "karpenter_voluntary_disruption_failed_validations_total", Counter, ["consolidation_type"],
        "Nodes that were to go and did not, because the second look found something.";
    DISRUPTION_FAILED = "karpenter_voluntary_disruption_queue_failures_total", Counter,
        ["decision", "reason", "consolidation_type"],
        "Replacements that had not become ready when their disruption was rolled back.";
    DISRUPTION_TERMINATE_FIRST = "karpenter_voluntary_disruption_terminate_first_decisions_total", Counter,
        ["nodepool", "reason", "terminate_first_reason"], "Nodes removed before their replacement came.";
    DRIFT_BACK_OFFS = "karpenter_voluntary_disruption_drift_backoffs_total", Counter, ["nodepool"],
        "How often the drift of a pool was left alone for a while because a replacement failed.";
    POOLS_DRIFT_BACK_OFF = "karpenter_nodepools_drift_backoff_seconds", Gauge, ["nodepool"],
        "For how long the drift of the pool was left alone the last time; 0 when it goes on.";
    CONSOLIDATION_SCORE = "karpenter_consolidation_score", Histogram(SCORES), ["decision", "nodepool", "policy"],
        "Scores of moves from Balanced pools.";
    CONSOLIDATION_MOVES = "karpenter_consolidation_moves_total", Counter, ["decision", "nodepool", "policy"],
        "Consolidations of one or several nodes that were found, by whether they were approved: only Balanced pools refuse any.";
    POOLS_ALLOWED = "karpenter_nodepools_allowed_disruptions", Gauge, ["nodepool", "reason"],
        "How many nodes the pool's budgets allow to disrupt now. Without a limit: as many as it has.";
    POOLS_CONSUMING = "karpenter_nodepools_nodes_consuming_budgets", Gauge, ["nodepool", "reason"],
        "How many nodes are disrupted or broken already. `unhealthy`, here and above, only with the gate NodeRepair.";
    WINDOW_BLOCKS = "kerf_maintenance_window_blocks_total", Counter, ["window", "action"],
        "How often a look at the cluster left a node alone because of the window; an expiration that waits for it counts once.";
    WINDOW_ACTIVE = "kerf_maintenance_window_active", Gauge, ["window"],
        "1 while the window holds actions back, 0 otherwise.";

    POD_COSTS_PENDING = "karpenter_pod_deletion_cost_nodes_with_pending_annotation_writes", Gauge, ["nodepool"],
        "Nodes whose pods' deletion costs are still to be written.";
    POD_COST_WRITES = "karpenter_pod_deletion_cost_pod_annotation_writes_total", Counter, ["result"],
        "Deletion costs of pods written: updated, skipped_notfound, skipped_conflict, error. Those that are right already are not tried.";
    INTERRUPTIONS = "karpenter_interruption_received_messages_total", Counter, ["message_type"],
        "What the cloud announced about instances.";

    CLOUD_DURATION = "karpenter_cloudprovider_duration_seconds", Histogram(CALLS), ["controller", "method", "provider"],
        "Calls to the provider.";
    CLOUD_ERRORS = "karpenter_cloudprovider_errors_total", Counter,
        ["controller", "method", "provider", "error", "nodepool"], "Calls to the provider that failed.";

    CLAIM_CONDITION_COUNT = "operator_nodeclaim_status_condition_count", Gauge,
        ["namespace", "name", "type", "status", "reason"], "Always 1; one series per condition of a claim.";
    CLAIM_CONDITION_SECONDS = "operator_nodeclaim_status_condition_current_status_seconds", Gauge,
        ["namespace", "name", "type", "status", "reason"], "For how long the condition has been so.";
    CLAIM_CONDITION_TRANSITIONS = "operator_nodeclaim_status_condition_transitions_total", Counter,
        ["type", "status", "reason"], "How often a condition of a claim became so.";
    CLAIM_CONDITION_TRANSITION = "operator_nodeclaim_status_condition_transition_seconds", Histogram(DOUBLING_TO_8192),
        ["type", "status", "to_status"], "How long a condition of a claim was so before it changed.";
    CLAIM_TERMINATING = "operator_nodeclaim_termination_current_time_seconds", Gauge, ["namespace", "name"],
        "For how long the claim has been on its way out.";
    CLAIM_TERMINATED = "operator_nodeclaim_termination_duration_seconds", Histogram(DOUBLING_TO_8192), [],
        "From the deletion of a claim to its end.";
    POOL_CONDITION_COUNT = "operator_nodepool_status_condition_count", Gauge,
        ["namespace", "name", "type", "status", "reason"], "Always 1; one series per condition of a pool.";
    POOL_CONDITION_SECONDS = "operator_nodepool_status_condition_current_status_seconds", Gauge,
        ["namespace", "name", "type", "status", "reason"], "For how long the condition has been so.";
    POOL_CONDITION_TRANSITIONS = "operator_nodepool_status_condition_transitions_total", Counter,
        ["type", "status", "reason"], "How often a condition of a pool became so.";
    POOL_CONDITION_TRANSITION = "operator_nodepool_status_condition_transition_seconds", Histogram(DOUBLING_TO_8192),
        ["type", "status", "to_status"], "How long a condition of a pool was so before it changed.";
    POOL_TERMINATING = "operator_nodepool_termination_current_time_seconds", Gauge, ["namespace", "name"],
        "For how long the pool has been on its way out.";
    NODE_CONDITION_COUNT = "operator_node_status_condition_count", Gauge,
        ["namespace", "name", "type", "status", "reason"], "Always 1; one series per condition of a node.";
    NODE_CONDITION_SECONDS = "operator_node_status_condition_current_status_seconds", Gauge,
        ["namespace", "name", "type", "status", "reason"], "For how long the condition has been so.";
    NODE_CONDITION_TRANSITIONS = "operator_node_status_condition_transitions_total", Counter,
        ["type", "status", "reason"], "How often a condition of a node became so.";
    NODE_TERMINATING = "operator_node_termination_current_time_seconds", Gauge, ["namespace", "name"],
        "For how long the node has been on its way out.";
    NODE_TERMINATED = "operator_node_termination_duration_seconds", Histogram(DOUBLING_TO_8192), [],
        "From the deletion of a node to its end.";

    CONDITION_COUNT = "operator_status_condition_count", Gauge,
        ["namespace", "name", "type", "status", "reason", "group", "kind"],
        "Deprecated: as those with the kind in their name, for claims and pools.";
    CONDITION_SECONDS = "operator_status_condition_current_status_seconds", Gauge,
        ["namespace", "name", "type", "status", "reason", "group", "kind"],
        "Deprecated: as those with the kind in their name, for claims and pools.";
    CONDITION_TRANSITIONS = "operator_status_condition_transitions_total", Counter,
        ["type", "status", "reason", "group", "kind"],
        "Deprecated: as those with the kind in their name, for claims and pools.";
    CONDITION_TRANSITION = "operator_status_condition_transition_seconds", Histogram(DOUBLING_TO_8192),
        ["type", "status", "to_status", "group", "kind"],
        "Deprecated: as those with the kind in their name, for claims and pools.";

    RECONCILES = "controller_runtime_reconcile_total", Counter, ["controller", "result"],
        "Looks at the cluster: those that decided about pods (`provisioner`), about disruption (`disruption`), and all (`engine`); and effects that were carried out (`effects`).";
    RECONCILE_TIME = "controller_runtime_reconcile_time_seconds", Histogram(DURATIONS), ["controller"],
        "How long such a look, or an effect, took.";
    QUEUE_DEPTH = "workqueue_depth", Gauge, ["name"],
        "What the last look had to take in (`engine`), and effects that wait (`effects`).";
    QUEUE_ADDS = "workqueue_adds_total", Counter, ["name"], "What was taken in, and effects that were asked for.";

    RECONCILE_ERRORS = "controller_runtime_reconcile_errors_total", Counter, ["controller"],
        "Effects that failed: writes that were refused or not answered (`effects`).";
    WORKERS = "controller_runtime_active_workers", Gauge, ["controller"], "Effects under way (`effects`).";
    MOST_WORKERS = "controller_runtime_max_concurrent_reconciles", Gauge, ["controller"],
        "Effects that can be under way at once (`effects`).";
    REQUESTS = "client_go_request_total", Counter, ["code", "method"],
        "Requests to the API server by its answer; `<error>` if there was none.";
    REQUEST_TIME = "client_go_request_duration_seconds", Histogram(CALLS),
        ["verb", "group", "version", "kind", "subresource"], "How long the answer to a request took to begin.";

    LEADS = "leader_election_master_status", Gauge, ["name"], "1 on the replica that acts.";
    MEMORY = "process_resident_memory_bytes", Gauge, [], "Memory in use.";
    CPU = "process_cpu_seconds_total", Counter, [], "Processor time used.";
}

impl Kind {
    /// As the text format names it.
    pub const fn word(self) -> &'static str {
        match self {
            Counter => "counter",
            Gauge => "gauge",
            Histogram(_) => "histogram",
            Summary => "summary",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_say_what_they_are() {
        let names: BTreeSet<_> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), ALL.len());
        for metric in ALL {
            // The reference's cost is a gauge all the same.
            if metric.name != POOLS_COST.name {
                assert_eq!(metric.name.ends_with("_total"), metric.kind == Counter, "{}", metric.name);
            }
            assert!(metric.help.ends_with('.'), "{}", metric.name);
        }
    }
}
