//! What must hold when faults are off and everything has settled.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kerf_model::cluster::ObjectName;
use kerf_model::label;
use kerf_model::taint::Taint;

use super::{Broken, Checkers};
use crate::autoscaler::Autoscaler;
use crate::store::{Kind, Object, Store};
use crate::world::{taints, toleration};

impl Checkers {
    pub fn at_rest(&mut self, store: &Store, autoscaler: &Autoscaler, now: Timestamp) {
        let mut broken = leaks(store, autoscaler);
        broken.extend(nodes_without_claims(store));
        broken.extend(waiting_pods(store));
        broken.extend(missing_replicas(store));
        broken.extend(super::choices::leftovers(store));
        for broken in broken {
            self.report(broken, now);
        }
    }
}

fn leaks(store: &Store, autoscaler: &Autoscaler) -> Vec<Broken> {
    let claims: BTreeSet<&str> = store.all(Kind::NodeClaim).map(Object::uid).collect();
    let machines: Vec<_> = autoscaler.cloud().machines().filter(|machine| !machine.is_ending).collect();
    let leaked = machines.iter().filter(|machine| !claims.contains(machine.claim_uid));
    let mut broken: Vec<_> =
        leaked.map(|machine| Broken::InstanceLeaked { provider_id: machine.provider_id.to_owned() }).collect();
    let ids: BTreeSet<&str> = machines.iter().map(|machine| machine.provider_id).collect();
    let bare = store.all(Kind::NodeClaim).filter(|claim| {
        !claim.is_deleting() && claim.text(&["status", "providerID"]).is_none_or(|id| !ids.contains(id))
    });
    broken.extend(bare.map(|claim| Broken::ClaimWithoutInstance { claim: claim.name.to_string() }));
    broken
}

fn nodes_without_claims(store: &Store) -> impl Iterator<Item = Broken> {
    let ids: BTreeSet<&str> =
        store.all(Kind::NodeClaim).filter_map(|claim| claim.text(&["status", "providerID"])).collect();
    store
        .all(Kind::Node)
        .filter(move |node| {
            node.text(&["metadata", "labels", label::NODEPOOL]).is_some()
                && !node.is_deleting()
                && node.text(&["spec", "providerID"]).is_none_or(|id| !ids.contains(id))
        })
        .map(|node| Broken::NodeWithoutClaim { node: node.name.to_string() })
}

/// Pods that a pool without limits could take. The histories ask for little of a node but its taints, so this is enough.
fn waiting_pods(store: &Store) -> impl Iterator<Item = Broken> {
    let pools: Vec<&Object> = store
        .all(Kind::NodePool)
        .filter(|pool| !pool.is_deleting() && pool.at(&["spec", "limits"]).is_none())
        .filter(|pool| pool.at(&["spec", "replicas"]).is_none())
        .filter(|pool| pool.at(&["spec", "disabled"]) != Some(&serde_json::Value::Bool(true)))
        .collect();
    store
        .all(Kind::Pod)
        .filter(move |pod| {
            let is_waiting = pod.text(&["status", "phase"]) == Some("Pending") && !pod.is_deleting();
            is_waiting && pod.at(&["spec", "nodeName"]).is_none() && pools.iter().any(|pool| tolerates(pod, pool))
        })
        .map(|pod| Broken::PodLeftWaiting { pod: pod.name.to_string(), why: refusal(pod).to_owned() })
}

fn refusal(pod: &Object) -> &str {
    let scheduled = pod.list(&["status", "conditions"]).iter().find(|condition| condition["type"] == "PodScheduled");
    scheduled.and_then(|condition| condition["message"].as_str()).unwrap_or("nobody has tried")
}

fn tolerates(pod: &Object, pool: &Object) -> bool {
    let tolerations: Vec<_> = pod.list(&["spec", "tolerations"]).iter().filter_map(toleration).collect();
    let template = pool.at(&["spec", "template"]).cloned().unwrap_or_default();
    let taints: Vec<Taint> = taints(&template);
    taints.iter().all(|taint| tolerations.iter().any(|toleration| toleration.covers(taint)))
}

fn missing_replicas(store: &Store) -> Vec<Broken> {
    let mut broken = Vec::new();
    for kind in [Kind::Deployment, Kind::StatefulSet] {
        for workload in store.all(kind).filter(|workload| !workload.is_deleting()) {
            let wanted = workload.number(&["spec", "replicas"]).unwrap_or(1);
            let app = workload.text(&["spec", "selector", "matchLabels", "app"]);
            let pods = store.in_namespace(Kind::Pod, &workload.name.namespace);
            let of_workload = pods.filter(|pod| pod.text(&["metadata", "labels", "app"]) == app && !pod.is_deleting());
            let there = i64::try_from(of_workload.count()).unwrap_or(i64::MAX);
            // A StatefulSet makes and removes its pods one after the other: one that waits holds up the rest.
            let waits = kind == Kind::StatefulSet && is_any_waiting(store, workload);
            if there != wanted && !waits {
                broken.push(Broken::ReplicasMissing { workload: name(workload), wanted, there });
            }
        }
    }
    broken
}

fn is_any_waiting(store: &Store, workload: &Object) -> bool {
    let app = workload.text(&["spec", "selector", "matchLabels", "app"]);
    let pods = store.in_namespace(Kind::Pod, &workload.name.namespace);
    let mut pods = pods.filter(|pod| pod.text(&["metadata", "labels", "app"]) == app);
    pods.any(|pod| pod.text(&["status", "phase"]) != Some("Running") || pod.is_deleting())
}

fn name(object: &Object) -> String {
    let ObjectName { name, .. } = &object.name;
    format!("{}/{name}", object.kind.facts().plural)
}
