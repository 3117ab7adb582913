//! What daemons will take of a node before any other pod gets it.

use kerf_model::cluster::{DaemonSet, HostPort};
use kerf_model::label::LabelRules;
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::resources::ResourceList;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::taint::{Effect, Taint, ToleratedValue, Toleration, tolerates};

/// A daemon set with its node requirements compiled.
pub(crate) struct Daemon<'a> {
    set: &'a DaemonSet,
    /// One of them must hold.
    pub(crate) terms: Vec<Requirements>,
    tolerations: Vec<Toleration>,
}

impl<'a> Daemon<'a> {
    /// One whose requirements mean nothing runs nowhere, and is left out.
    pub(crate) fn all(cluster: &'a ClusterSnapshot, rules: &LabelRules) -> Vec<Self> {
        let daemons = cluster.daemon_sets().filter(|set| !set.meta.is_deleting()).filter_map(|set| {
            let constraints = &set.constraints;
            let mut selector = Requirements::new();
            for (key, value) in &constraints.node_selector {
                selector.add(Requirement::one_of(key.clone(), [value]), rules);
            }
            let mut terms = Vec::new();
            for term in &constraints.required_node_terms {
                let mut both = selector.clone();
                both.merge(&Requirements::parse(term, rules).ok()?);
                terms.push(both);
            }
            if terms.is_empty() {
                terms.push(selector);
            }
            let mut tolerations = constraints.tolerations.clone();
            tolerations.push(tolerates_preferences());
            Some(Self { set, terms, tolerations })
        });
        daemons.collect()
    }

    pub(crate) fn requests(&self) -> &'a ResourceList {
        &self.set.requests
    }

    pub(crate) fn ports(&self) -> impl Iterator<Item = HostPort> {
        self.set.constraints.host_ports.iter().copied()
    }

    pub(crate) fn tolerates(&self, taints: &[Taint]) -> bool {
        tolerates(taints, &self.tolerations).is_ok()
    }
}

/// What a soft taint comes down to once nothing else helps.
pub(crate) fn tolerates_preferences() -> Toleration {
    Toleration { key: None, effect: Some(Effect::PreferNoSchedule), value: ToleratedValue::Any }
}
