//! Volumes.

use std::sync::Arc;

use k8s_openapi::api::core::v1::TopologySelectorTerm;
use kerf_model::cluster::{CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment};
use kerf_model::requirement::{Expression, Operator};
use kube::ResourceExt;

use crate::slim::{
    SlimCsiNode, SlimPersistentVolume, SlimPersistentVolumeClaim, SlimStorageClass, SlimVolumeAttachment,
};

use super::labels::node_term;
use super::metadata::object_meta;
use super::{Collector, ParseError, Parsed};

/// Set by the volume controller when both sides of a binding are written.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const EBS_DRIVER: &str = "ebs.csi.aws.com";

/// Drivers that took over from what was built into Kubernetes: volumes count under their names.
const TRANSLATED: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", EBS_DRIVER),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
];

pub fn persistent_volume_claim(wire: &SlimPersistentVolumeClaim) -> PersistentVolumeClaim {
    let text = |text: &Option<String>| text.as_deref().filter(|text| !text.is_empty()).map(Arc::from);
    PersistentVolumeClaim {
        meta: object_meta(&wire.metadata),
        volume: text(&wire.spec.volume_name),
        storage_class: text(&wire.spec.storage_class_name),
        is_bound: wire.annotations().contains_key(BIND_COMPLETED),
        is_lost: wire.status.phase == "Lost",
    }
}

pub fn persistent_volume(wire: &SlimPersistentVolume) -> Result<Parsed<PersistentVolume>, ParseError> {
    let mut problems = Collector::default();
    let spec = &wire.spec;
    let required = spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    let terms = required.iter().flat_map(|required| &required.node_selector_terms).enumerate();
    let terms = terms.map(|(index, wire)| {
        let field = format!("spec.nodeAffinity.required.nodeSelectorTerms[{index}]");
        node_term(&field, wire, &mut problems)
    });
    let node_terms = terms.filter(|term| !term.is_empty()).collect();
    let in_tree = spec.aws_elastic_block_store.as_ref().map(|_| EBS_DRIVER);
    let parsed = PersistentVolume {
        meta: object_meta(&wire.metadata),
        node_terms,
        driver: spec.csi.as_ref().map(|csi| csi.driver.as_str()).or(in_tree).map(Arc::from),
        is_local: spec.local.is_some() || spec.host_path.is_some(),
    };
    problems.finish("PersistentVolume", &wire.name_any(), Some(parsed))
}

pub fn storage_class(wire: &SlimStorageClass) -> StorageClass {
    let provisioner = wire.provisioner.as_str();
    let translated = TRANSLATED.iter().find(|(old, _)| *old == provisioner).map(|(_, new)| *new);
    let topologies = wire.allowed_topologies.iter().map(topology);
    StorageClass {
        meta: object_meta(&wire.metadata),
        provisioner: Arc::from(translated.unwrap_or(provisioner)),
        binds_immediately: wire.volume_binding_mode.as_deref() != Some("WaitForFirstConsumer"),
        topologies: topologies.filter(|term| !term.is_empty()).collect(),
    }
}

fn topology(wire: &TopologySelectorTerm) -> Vec<Expression> {
    let expressions = wire.match_label_expressions.iter().flatten();
    expressions.map(|wire| Expression::new(&wire.key, Operator::In, &wire.values)).collect()
}

/// A driver without a count has no limit (sheet 08 S3).
pub fn csi_node(wire: &SlimCsiNode) -> CsiNode {
    let drivers = &wire.spec.drivers;
    let limit = |driver: &k8s_openapi::api::storage::v1::CSINodeDriver| {
        let count = driver.allocatable.as_ref().and_then(|allocatable| allocatable.count)?;
        Some((Arc::from(driver.name.as_str()), u32::try_from(count).ok()?))
    };
    CsiNode {
        meta: object_meta(&wire.metadata),
        limits: drivers.iter().filter_map(limit).collect(),
        drivers: drivers.iter().map(|driver| Arc::from(driver.name.as_str())).collect(),
    }
}

pub fn volume_attachment(wire: &SlimVolumeAttachment) -> VolumeAttachment {
    VolumeAttachment {
        name: object_meta(&wire.metadata).name,
        node: Arc::from(wire.spec.node_name.as_str()),
        volume: wire.spec.source.persistent_volume_name.as_deref().map(Arc::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_volume_knows_its_place_and_its_driver() {
        let parse = |spec| {
            let wire = json!({"metadata": {"name": "v"}, "spec": spec});
            persistent_volume(&serde_json::from_value(wire).unwrap()).unwrap().value
        };
        let term = |zone: &str| json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]});
        let terms = json!({"required": {"nodeSelectorTerms": [term("a"), {}, term("b")]}});
        let zonal = parse(json!({"csi": {"driver": "d", "volumeHandle": "h"}, "nodeAffinity": terms}));
        assert_eq!((zonal.node_terms.len(), zonal.driver.as_deref(), zonal.is_local), (2, Some("d"), false));
        let old = parse(json!({"awsElasticBlockStore": {"volumeID": "x"}}));
        assert_eq!((old.node_terms.len(), old.driver.as_deref()), (0, Some(EBS_DRIVER)));
        let local = parse(json!({"local": {"path": "/mnt"}}));
        assert!(local.is_local && local.driver.is_none());
    }

    #[test]
    fn a_claim_is_bound_when_the_volume_controller_says_so() {
        let parse = |metadata, phase: &str| {
            let spec = json!({"volumeName": "v", "storageClassName": ""});
            let wire = json!({"metadata": metadata, "spec": spec, "status": {"phase": phase}});
            persistent_volume_claim(&serde_json::from_value(wire).unwrap())
        };
        let half = parse(json!({"name": "c"}), "Pending");
        assert_eq!(
            (half.is_bound, half.is_lost, half.storage_class, half.volume.is_some()),
            (false, false, None, true)
        );
        let bound = parse(json!({"name": "c", "annotations": {BIND_COMPLETED: "yes"}}), "Lost");
        assert!(bound.is_bound && bound.is_lost);
    }

    #[test]
    fn a_storage_class_counts_under_the_driver_that_took_over() {
        let parse = |mode| {
            let topologies = json!([{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}, {}]);
            let wire = json!({
                "metadata": {"name": "s"}, "provisioner": "kubernetes.io/aws-ebs",
                "volumeBindingMode": mode, "allowedTopologies": topologies,
            });
            storage_class(&serde_json::from_value(wire).unwrap())
        };
        let class = parse(json!("WaitForFirstConsumer"));
        assert_eq!((&*class.provisioner, class.binds_immediately, class.topologies.len()), (EBS_DRIVER, false, 1));
        assert!(parse(json!(null)).binds_immediately);
    }

    #[test]
    fn a_driver_without_a_count_is_there_and_has_no_limit() {
        let drivers = json!([{"name": "x", "nodeID": "1", "allocatable": {"count": 25}}, {"name": "y", "nodeID": "1"}]);
        let wire = json!({"metadata": {"name": "n"}, "spec": {"drivers": drivers}});
        let node = csi_node(&serde_json::from_value(wire).unwrap());
        assert_eq!((node.drivers.len(), node.limits.get("x"), node.limits.get("y")), (2, Some(&25), None));
    }
}
