//! Storage, as far as nodes and pods notice it: claims get volumes, volumes get attached and detached.
//!
//! A volume made for a waiting consumer belongs to the zone of its node, and can be mounted there only. A volume is
//! detached as soon as no pod on the node uses it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kerf_model::cluster::ObjectName;
use serde_json::{Value, json};

use super::condition::change_status;
use super::pod_reading::claim_name;
use super::{Actor, Watch};
use crate::store::object::field;
use crate::store::{ApiError, DeleteOptions, Kind, Object, Part, Store};

const ZONE: &str = "topology.kubernetes.io/zone";

pub struct Volumes {
    pods: Watch,
    claims: Watch,
}

impl Volumes {
    pub fn new() -> Self {
        Self { pods: Watch::new(Kind::Pod), claims: Watch::new(Kind::PersistentVolumeClaim) }
    }
}

impl Actor for Volumes {
    fn name(&self) -> &'static str {
        "volumes"
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        for claim in self.claims.touched(store) {
            let Ok(claim) = store.get(Kind::PersistentVolumeClaim, &claim.name).cloned() else { continue };
            if claim.text(&["spec", "volumeName"]).is_none() && !waits(store, &claim) {
                provision(store, &claim, None, now)?;
            }
        }
        let mut nodes = BTreeSet::new();
        for pod in self.pods.touched(store) {
            if pod.list(&["spec", "volumes"]).is_empty() {
                continue;
            }
            make_ephemeral_claims(store, &pod, now)?;
            nodes.extend(pod.text(&["spec", "nodeName"]).map(str::to_owned));
        }
        for node in nodes {
            bind_claims(store, &node, now)?;
            attach(store, &node, now)?;
        }
        Ok(())
    }

    fn next_due(&self) -> Option<Timestamp> {
        None
    }
}

/// The claims of pods on a node that still use them.
fn claims_on(store: &Store, node: &str) -> Vec<Object> {
    let pods =
        store.pods_on(node).filter(|pod| !matches!(pod.text(&["status", "phase"]), Some("Succeeded" | "Failed")));
    let names = pods.flat_map(|pod| {
        let volumes = pod.list(&["spec", "volumes"]).iter();
        let claims = volumes.filter_map(|volume| claim_name(&pod.name.name, volume));
        claims.map(|claim| ObjectName::new(pod.name.namespace.clone(), claim)).collect::<Vec<_>>()
    });
    let names: BTreeSet<_> = names.collect();
    names.iter().filter_map(|name| store.get(Kind::PersistentVolumeClaim, name).ok().cloned()).collect()
}

fn make_ephemeral_claims(store: &mut Store, pod: &Object, now: Timestamp) -> Result<(), ApiError> {
    if store.get(Kind::Pod, &pod.name).is_err() {
        return Ok(());
    }
    for volume in pod.list(&["spec", "volumes"]) {
        let Some(spec) = volume.pointer("/ephemeral/volumeClaimTemplate/spec") else { continue };
        let Some(name) = claim_name(&pod.name.name, volume) else { continue };
        let key = ObjectName::new(pod.name.namespace.clone(), name.as_str());
        if store.get(Kind::PersistentVolumeClaim, &key).is_err() {
            let owner = json!({
                "apiVersion": "v1", "kind": "Pod", "name": &*pod.name.name, "uid": pod.uid(),
                "controller": true, "blockOwnerDeletion": true,
            });
            let metadata = json!({"name": name, "namespace": &*pod.name.namespace, "ownerReferences": [owner]});
            store.create(Kind::PersistentVolumeClaim, json!({"metadata": metadata, "spec": spec}), now)?;
        }
    }
    Ok(())
}

fn bind_claims(store: &mut Store, node: &str, now: Timestamp) -> Result<(), ApiError> {
    let zone = store
        .get(Kind::Node, &ObjectName::of_cluster(node))
        .ok()
        .and_then(|node| node.text(&["metadata", "labels", ZONE]).map(str::to_owned));
    for claim in claims_on(store, node) {
        if claim.text(&["spec", "volumeName"]).is_none() {
            provision(store, &claim, zone.as_deref(), now)?;
        }
    }
    Ok(())
}

fn class_of<'s>(store: &'s Store, claim: &Object) -> Option<&'s Object> {
    store.get(Kind::StorageClass, &ObjectName::of_cluster(claim.text(&["spec", "storageClassName"])?)).ok()
}

/// Claims without a class wait for a volume that somebody makes by hand; so do those of a class that is not there.
fn waits(store: &Store, claim: &Object) -> bool {
    class_of(store, claim).is_none_or(|class| class.text(&["volumeBindingMode"]) == Some("WaitForFirstConsumer"))
}

fn provision(store: &mut Store, claim: &Object, zone: Option<&str>, now: Timestamp) -> Result<(), ApiError> {
    let Some(class) = class_of(store, claim) else { return Ok(()) };
    let name = format!("pvc-{}", claim.uid());
    let mut spec = json!({
        "storageClassName": &*class.name.name,
        "csi": {"driver": class.text(&["provisioner"]).unwrap_or_default(), "volumeHandle": name},
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": &*claim.name.namespace, "name": &*claim.name.name},
    });
    if let Some(zone) = zone {
        let term = json!({"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]});
        *field(&mut spec, "nodeAffinity") = json!({"required": {"nodeSelectorTerms": [term]}});
    }
    store.create(Kind::PersistentVolume, json!({"metadata": {"name": name}, "spec": spec}), now)?;
    let mut body = claim.body().clone();
    *field(field(&mut body, "spec"), "volumeName") = json!(name);
    store.update(Kind::PersistentVolumeClaim, &claim.name, Part::Main, body)?;
    let bound = |status: &mut Value| *field(status, "phase") = json!("Bound");
    change_status(store, Kind::PersistentVolumeClaim, &claim.name, bound)?;
    change_status(store, Kind::PersistentVolume, &ObjectName::of_cluster(name), bound)
}

/// One attachment per volume in use on the node, and no other.
fn attach(store: &mut Store, node: &str, now: Timestamp) -> Result<(), ApiError> {
    let wanted: BTreeSet<_> = claims_on(store, node)
        .iter()
        .filter_map(|claim| claim.text(&["spec", "volumeName"]).map(str::to_owned))
        .collect();
    let volume_of = |attachment: &Object| {
        attachment.text(&["spec", "source", "persistentVolumeName"]).unwrap_or_default().to_owned()
    };
    let here: Vec<_> = store
        .all(Kind::VolumeAttachment)
        .filter(|attachment| attachment.text(&["spec", "nodeName"]) == Some(node))
        .cloned()
        .collect();
    for attachment in here.iter().filter(|attachment| !wanted.contains(&volume_of(attachment))) {
        store.delete(Kind::VolumeAttachment, &attachment.name, &DeleteOptions::default(), now)?;
    }
    for volume in wanted {
        if here.iter().any(|attachment| volume_of(attachment) == volume) {
            continue;
        }
        let name = format!("csi-{volume}-{node}");
        let spec = json!({"nodeName": node, "attacher": "sim.kerf.dev", "source": {"persistentVolumeName": volume}});
        let made = store.create(Kind::VolumeAttachment, json!({"metadata": {"name": name}, "spec": spec}), now)?;
        let attached = |status: &mut Value| *field(status, "attached") = json!(true);
        change_status(store, Kind::VolumeAttachment, &made.name, attached)?;
    }
    Ok(())
}
