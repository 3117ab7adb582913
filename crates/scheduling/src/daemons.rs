//! What daemons will take of a node before any other pod gets it.
//!
//! A daemon set's template does not say all: on their way through the API its pods get defaults from a LimitRange, or are
//! changed by webhooks. So the requests are those of its newest pod, once there is one (upstream's `GetDaemonSetPod`).
//! Without it every new node is too small by the difference, and the scheduler throws out for the daemon the very pod that
//! the node was launched for.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kerf_model::cluster::{DaemonSet, HostPort};
use kerf_model::label::LabelRules;
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::resources::ResourceList;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::taint::{Effect, Taint, ToleratedValue, Toleration, tolerates};

/// A daemon set with its node requirements compiled.
pub(crate) struct Daemon<'a> {
    set: &'a DaemonSet,
    requests: &'a ResourceList,
    /// One of them must hold.
    pub(crate) terms: Vec<Requirements>,
    tolerations: Vec<Toleration>,
}

impl<'a> Daemon<'a> {
    /// One whose requirements mean nothing runs nowhere, and is left out.
    pub(crate) fn all(cluster: &'a ClusterSnapshot, rules: &LabelRules) -> Vec<Self> {
        let newest = newest_pods(cluster);
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
            let requests = newest.get(&*set.meta.uid).map_or(&set.requests, |(_, requests)| requests);
            Some(Self { set, requests, terms, tolerations })
        });
        daemons.collect()
    }

    pub(crate) fn requests(&self) -> &'a ResourceList {
        self.requests
    }

    pub(crate) fn ports(&self) -> impl Iterator<Item = HostPort> {
        self.set.constraints.host_ports.iter().copied()
    }

    pub(crate) fn tolerates(&self, taints: &[Taint]) -> bool {
        tolerates(taints, &self.tolerations).is_ok()
    }
}

type Newest<'a> = ((Timestamp, &'a str), &'a ResourceList);

/// What the newest pod of each daemon set asks for, by the set's uid.
fn newest_pods(cluster: &ClusterSnapshot) -> BTreeMap<&str, Newest<'_>> {
    let mut newest: BTreeMap<&str, Newest<'_>> =
        cluster.daemon_sets().map(|set| (&*set.meta.uid, ((Timestamp::MIN, ""), &set.requests))).collect();
    if newest.is_empty() {
        return newest;
    }
    for pod in cluster.pods().filter(|pod| pod.is_of_daemon_set() && pod.is_active()) {
        let age = (pod.meta.created, &*pod.meta.name.name);
        for owner in pod.meta.owners.iter().filter(|owner| owner.controller) {
            if let Some(found) = newest.get_mut(&*owner.uid)
                && found.0 < age
            {
                *found = (age, &pod.requests);
            }
        }
    }
    newest
}

/// What a soft taint comes down to once nothing else helps.
pub(crate) fn tolerates_preferences() -> Toleration {
    Toleration { key: None, effect: Some(Effect::PreferNoSchedule), value: ToleratedValue::Any }
}
