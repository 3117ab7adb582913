//! Every metric, by the reference's names where it has one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kerf_lifecycle::Note;
use kerf_model::cluster::{Node, NodeClaim};
use kerf_model::effect::NewClaim;
use kerf_model::label::NODEPOOL;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    BuildInfo,
    ClaimsCreated,
    ClaimsDisrupted,
    ClaimsTerminated,
    NodesCreated,
    NodesTerminated,
    NodeCount,
    Synced,
}

impl Name {
    /// Its name, whether it only grows, and what it tells.
    const fn describe(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::BuildInfo => ("karpenter_build_info", "gauge", "Always 1; the labels say what runs."),
            Self::ClaimsCreated => ("karpenter_nodeclaims_created_total", "counter", "Node claims created."),
            Self::ClaimsDisrupted => {
                ("karpenter_nodeclaims_disrupted_total", "counter", "Node claims given up, by reason.")
            }
            Self::ClaimsTerminated => ("karpenter_nodeclaims_terminated_total", "counter", "Node claims gone."),
            Self::NodesCreated => ("karpenter_nodes_created_total", "counter", "Nodes that joined for a claim."),
            Self::NodesTerminated => ("karpenter_nodes_terminated_total", "counter", "Nodes of claims gone."),
            Self::NodeCount => ("karpenter_cluster_state_node_count", "gauge", "Nodes known."),
            Self::Synced => ("karpenter_cluster_state_synced", "gauge", "1 once every kind has been listed."),
        }
    }
}

#[derive(Debug)]
pub struct Metrics(Mutex<Values>);

#[derive(Debug, Default)]
struct Values {
    /// By the labels as they are written.
    values: BTreeMap<Name, BTreeMap<String, u64>>,
    /// Notes are repeated as long as their effects are; each counts once per claim.
    counted: BTreeSet<(Arc<str>, &'static str)>,
}

impl Metrics {
    pub fn new(version: &str) -> Self {
        let metrics = Self(Mutex::default());
        {
            let mut values = metrics.values();
            values.set(Name::BuildInfo, &[("version", version), ("goarch", std::env::consts::ARCH)], 1);
            values.set(Name::Synced, &[], 0);
            values.set(Name::NodeCount, &[], 0);
        }
        metrics
    }

    pub fn is_synced(&self) -> bool {
        self.values().values.get(&Name::Synced).and_then(|values| values.get("")).is_some_and(|value| *value == 1)
    }

    pub(crate) fn set_synced(&self) {
        self.values().set(Name::Synced, &[], 1);
    }

    pub(crate) fn set_cluster(&self, nodes: usize) {
        self.values().set(Name::NodeCount, &[], nodes as u64);
    }

    pub(crate) fn claim_created(&self, claim: &NewClaim) {
        let pool = claim.labels.get(NODEPOOL).map(AsRef::as_ref).unwrap_or_default();
        self.values().count(Name::ClaimsCreated, &[("nodepool", pool)]);
    }

    pub(crate) fn claim_gone(&self, claim: &NodeClaim) {
        let mut values = self.values();
        values.count(Name::ClaimsTerminated, &[("nodepool", claim.pool().unwrap_or_default())]);
        values.counted.retain(|(uid, _)| *uid != claim.meta.uid);
    }

    pub(crate) fn node_gone(&self, node: &Node) {
        let pool = node.meta.label(NODEPOOL).unwrap_or_default();
        self.values().count(Name::NodesTerminated, &[("nodepool", pool)]);
    }

    /// Whether it is told for the first time.
    pub(crate) fn note(&self, note: &Note, pool: &str) -> bool {
        let (claim, what) = match note {
            Note::Registered { claim } => (claim, "registered"),
            Note::Initialized { claim } => (claim, "initialized"),
            Note::GivenUp { claim, .. } => (claim, "given up"),
        };
        let mut values = self.values();
        if !values.counted.insert((Arc::clone(&claim.uid), what)) {
            return false;
        }
        match note {
            Note::Registered { .. } => values.count(Name::NodesCreated, &[("nodepool", pool)]),
            Note::Initialized { .. } => {}
            Note::GivenUp { cause, .. } => {
                values.count(Name::ClaimsDisrupted, &[("nodepool", pool), ("reason", cause.label())]);
            }
        }
        true
    }

    /// In the text format of Prometheus.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, values) in &self.values().values {
            let (name, kind, help) = name.describe();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in values {
                let _ = match labels.as_str() {
                    "" => writeln!(text, "{name} {value}"),
                    labels => writeln!(text, "{name}{{{labels}}} {value}"),
                };
            }
        }
        text
    }

    fn values(&self) -> MutexGuard<'_, Values> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Values {
    fn set(&mut self, name: Name, labels: &[(&str, &str)], value: u64) {
        *self.at(name, labels) = value;
    }

    fn count(&mut self, name: Name, labels: &[(&str, &str)]) {
        *self.at(name, labels) += 1;
    }

    fn at(&mut self, name: Name, labels: &[(&str, &str)]) -> &mut u64 {
        // Names and labels of Kubernetes have no quotes, but a version could.
        let label = |(key, value): &(&str, &str)| format!("{key}=\"{}\"", value.escape_default());
        let labels: Vec<String> = labels.iter().map(label).collect();
        self.values.entry(name).or_default().entry(labels.join(",")).or_default()
    }
}

#[cfg(test)]
mod tests {
    use kerf_lifecycle::Cause;
    use kerf_model::cluster::ObjectName;
    use kerf_model::effect::Target;

    use super::*;

    #[test]
    fn a_note_that_is_repeated_counts_once() {
        let metrics = Metrics::new("1");
        let claim = Target { name: ObjectName::of_cluster("a"), uid: Arc::from("u") };
        let note = Note::GivenUp { claim, cause: Cause::Expired };
        assert!(metrics.note(&note, "general"));
        assert!(!metrics.note(&note, "general"));
        let line = "karpenter_nodeclaims_disrupted_total{nodepool=\"general\",reason=\"expired\"} 1\n";
        assert!(metrics.text().contains(line), "{}", metrics.text());
    }
}
