//! Every metric of `kerf controller`.

use kerf_controller::metrics::catalogue::ALL;

use super::{code, table_header, table_row};

const INTRODUCTION: &str = "\
# Metrics

`kerf controller` serves them at `/metrics` (port 8080), by Karpenter's names and with its labels. Durations are seconds, cpu is \
cores, everything else is in base units.

Series of nodes (`karpenter_nodes_…` with `resource_type`, and `karpenter_nodes_current_lifetime_seconds`) also have one label per \
well-known node label, by the last part of its key (`nodepool`, `zone`, `region`, `instance_type`, `arch`, `os`, `capacity_type`, …), \
and `node_name`, `phase`, `managed`. Series `operator_nodeclaim_…` and `operator_node_…` also have `karpenter_sh_nodepool`; those of \
claims have their class by its label key with `_` for `/`, `.` and `-`, those of nodes `karpenter_sh_initialized`.

With `--disable-cluster-state-observability` there is no series per pod, node, claim or pool.

";

pub fn page() -> String {
    let mut page = INTRODUCTION.to_string();
    page.push_str(&table_header(&["Metric", "Type", "Labels", "Meaning"]));
    for metric in ALL {
        let labels: Vec<String> = metric.labels.iter().map(|label| code(label)).collect();
        page.push_str(&table_row(&[&code(metric.name), metric.kind.word(), &labels.join(", "), metric.help]));
    }
    page
}
