//! Volumes, as far as they bind a pod to a place or count against a node's limits.

use k8s_openapi::api::core::v1::{
    CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm, VolumeNodeAffinity,
};
use k8s_openapi::api::storage::v1::{CSINode, CSINodeDriver, StorageClass, VolumeAttachment, VolumeAttachmentSource};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use serde::de::IgnoredAny;

#[derive(Resource, Deserialize, Clone, Debug)]
#[resource(inherit = PersistentVolumeClaim)]
pub struct SlimPersistentVolumeClaim {
    #[serde(deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: ClaimSpec,
    #[serde(default)]
    pub status: ClaimStatus,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSpec {
    pub volume_name: Option<String>,
    pub storage_class_name: Option<String>,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct ClaimStatus {
    pub phase: String,
}

#[derive(Resource, Deserialize, Clone, Debug)]
#[resource(inherit = PersistentVolume)]
pub struct SlimPersistentVolume {
    #[serde(deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: VolumeSpec,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeSpec {
    pub node_affinity: Option<VolumeNodeAffinity>,
    pub csi: Option<CSIPersistentVolumeSource>,
    pub aws_elastic_block_store: Option<Present>,
    pub local: Option<Present>,
    pub host_path: Option<Present>,
}

/// A part of which only its presence matters.
#[derive(Deserialize, Clone, Debug)]
pub struct Present(IgnoredAny);

#[derive(Resource, Deserialize, Clone, Debug)]
#[resource(inherit = StorageClass)]
#[serde(rename_all = "camelCase")]
pub struct SlimStorageClass {
    #[serde(deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub provisioner: String,
    pub volume_binding_mode: Option<String>,
    #[serde(default)]
    pub allowed_topologies: Vec<TopologySelectorTerm>,
}

#[derive(Resource, Deserialize, Clone, Debug)]
#[resource(inherit = CSINode)]
pub struct SlimCsiNode {
    #[serde(deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: CsiNodeSpec,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct CsiNodeSpec {
    pub drivers: Vec<CSINodeDriver>,
}

#[derive(Resource, Deserialize, Clone, Debug)]
#[resource(inherit = VolumeAttachment)]
pub struct SlimVolumeAttachment {
    #[serde(deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
    pub spec: AttachmentSpec,
}

#[derive(Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentSpec {
    pub node_name: String,
    pub source: VolumeAttachmentSource,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_volume_is_told_from_a_csi_volume() {
        let volume = |spec| -> SlimPersistentVolume {
            serde_json::from_value(serde_json::json!({"metadata": {"name": "pv"}, "spec": spec})).unwrap()
        };
        let local = volume(serde_json::json!({"local": {"path": "/mnt"}, "capacity": {"storage": "1Gi"}}));
        assert!(local.spec.local.is_some() && local.spec.csi.is_none());
        let csi = volume(serde_json::json!({"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "v"}}));
        assert_eq!(csi.spec.csi.unwrap().driver, "ebs.csi.aws.com");
    }

    #[test]
    fn a_driver_without_a_count_keeps_that() {
        let node: SlimCsiNode = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "a"},
            "spec": {"drivers": [
                {"name": "x", "nodeID": "1", "allocatable": {"count": 25}},
                {"name": "y", "nodeID": "1"},
            ]},
        }))
        .unwrap();
        let counts: Vec<_> =
            node.spec.drivers.iter().map(|driver| driver.allocatable.as_ref().and_then(|a| a.count)).collect();
        assert_eq!(counts, [Some(25), None]);
    }
}
