//! Disks of a machine.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// 1 to 59000Gi, 1 to 64000G, some of 1 to 58Ti, 1 to 64T. `Ti` and `T` alone pass too: that is the published schema.
const VOLUME_SIZE: &str = "^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}|64000)G|([1-9]||[1-5][0-7]|58)Ti|([1-9]||[1-5][0-9]|6[0-3]|64)T)$";

/// A disk and the device it appears as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct BlockDeviceMapping {
    /// The device name, such as `/dev/xvda`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// The volume behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ebs: Option<BlockDevice>,
    /// Whether this disk holds the kubelet's and the containers' files, and so decides the ephemeral storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<bool>,
}

/// A volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("has(self.snapshotID) || has(self.volumeSize)", "snapshotID or volumeSize is needed"),
    validation = ("!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')", "volumeInitializationRate needs a snapshotID")
)]
pub struct BlockDevice {
    /// Whether the volume goes with the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// Whether the volume is encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// Input and output operations per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops: Option<i64>,
    /// The key to encrypt with.
    #[serde(rename = "kmsKeyID", skip_serializing_if = "Option::is_none")]
    pub kms_key_id: Option<String>,
    /// The snapshot to start from.
    #[serde(rename = "snapshotID", skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// Throughput in MiB per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i64>,
    /// How fast the snapshot is read in, in MiB per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 300))]
    pub volume_initialization_rate: Option<i32>,
    /// The size, such as `100Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = VOLUME_SIZE))]
    pub volume_size: Option<String>,
    /// The kind of volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"]))]
    pub volume_type: Option<String>,
}
