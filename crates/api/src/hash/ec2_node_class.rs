//! The hash of an EC2NodeClass: most of its spec, the AMI family it resolves to, and the cluster's CA bundle.
//!
//! Not in it: the selector terms for subnets, security groups, AMIs and capacity reservations, whose results are
//! compared instead, and `ipPrefixCount`, which the reference forgets.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::Hash;
use super::error::{Expected, HashError, HashProblem};
use super::fields::{FieldChange, FieldHashes, changes_between};
use super::go_hash::{GoValue, hash_set};
use super::kubelet_text::kubelet_text;
use super::layout::{FieldLayout, Kind, Leaf, StructLayout, nillable, plain, read_fields};
use super::stamp::Seal;

/// Which inputs a hash was made from. Older ones than `v4` (before Karpenter 1.1) cannot be recomputed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ec2HashVersion {
    /// Karpenter 1.1 to 1.11: spec and AMI family.
    V4,
    /// Karpenter 1.12 to 1.14: also the CA bundle.
    V5,
    /// Karpenter 1.15: the kubelet configuration is a text of its own, no longer part of the spec.
    V6,
}

impl Ec2HashVersion {
    /// The one we write.
    pub const CURRENT: Self = Self::V6;
    pub const ALL: [Self; 3] = [Self::V4, Self::V5, Self::V6];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "v4",
            Self::V5 => "v5",
            Self::V6 => "v6",
        }
    }

    /// `None` for a version that we cannot recompute.
    pub fn from_annotation(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }
}

impl fmt::Display for Ec2HashVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Upstream: `EC2NodeClass.Hash`. `ca_bundle` is the base64 text that nodes get to trust the API server, empty when
/// unknown; version 4 does not look at it.
pub fn ec2_node_class_hash(class: &Value, version: Ec2HashVersion, ca_bundle: &str) -> Result<Hash, HashError> {
    let family = GoValue::Text(ami_family(class)?.to_owned());
    let ca_bundle = GoValue::Text(ca_bundle.to_owned());
    let members = match version {
        Ec2HashVersion::V4 => vec![spec_with_typed_kubelet(class)?, family],
        Ec2HashVersion::V5 => vec![spec_with_typed_kubelet(class)?, family, ca_bundle],
        Ec2HashVersion::V6 => {
            vec![spec_without_kubelet(class)?, family, ca_bundle, GoValue::Text(kubelet_as_text(class)?)]
        }
    };
    Ok(Hash(hash_set(&members)))
}

/// Hash and field hashes together: what an EC2NodeClass and its new claims carry.
pub fn ec2_node_class_seal(class: &Value, ca_bundle: &str) -> Result<Seal, HashError> {
    let version = Ec2HashVersion::CURRENT;
    let hash = ec2_node_class_hash(class, version, ca_bundle)?;
    let mut leaves = leaves(class)?;
    leaves.push(text_leaf("clusterCABundle", ca_bundle));
    Ok(Seal { hash, version: version.as_str(), fields: FieldHashes::new(hash, &leaves) })
}

/// The fields that drift, with both values. `spec.amiFamily` is the family that the class resolves to.
pub fn ec2_node_class_changes(old: &Value, new: &Value) -> Result<Vec<FieldChange>, HashError> {
    Ok(changes_between(&leaves(old)?, &leaves(new)?))
}

/// The fields that drift as they are now, by the names that field hashes have; a map as a whole.
pub fn ec2_node_class_fields(class: &Value) -> Result<BTreeMap<String, Value>, HashError> {
    Ok(leaves(class)?.into_iter().map(|leaf| (leaf.path, leaf.json.into_owned())).collect())
}

fn leaves(class: &Value) -> Result<Vec<Leaf<'_>>, HashError> {
    let mut leaves = SPEC.leaves(spec(class), "spec")?;
    leaves.push(text_leaf("spec.amiFamily", ami_family(class)?));
    if let Some(kubelet) = kubelet(class) {
        leaves.push(Leaf {
            path: "spec.kubelet".to_owned(),
            json: Cow::Borrowed(kubelet),
            value: GoValue::Text(kubelet_as_text(class)?),
        });
    }
    Ok(leaves)
}

fn text_leaf(path: &str, text: &str) -> Leaf<'static> {
    Leaf { path: path.to_owned(), json: Cow::Owned(text.into()), value: GoValue::Text(text.to_owned()) }
}

fn spec(class: &Value) -> &Value {
    &class["spec"]
}

fn kubelet(class: &Value) -> Option<&Value> {
    Some(&spec(class)["kubelet"]).filter(|kubelet| !kubelet.is_null())
}

fn spec_without_kubelet(class: &Value) -> Result<GoValue, HashError> {
    SPEC.read(spec(class)).map(GoValue::Struct).map_err(|error| error.inside("spec"))
}

/// The spec as it was up to version 5, with the kubelet configuration between the tags and the block devices.
fn spec_with_typed_kubelet(class: &Value) -> Result<GoValue, HashError> {
    let at = SPEC.fields.iter().position(|field| field.json_name == "blockDeviceMappings").unwrap_or(SPEC.fields.len());
    let (before, after) = SPEC.fields.split_at(at);
    let fields = before.iter().chain([&TYPED_KUBELET_FIELD]).chain(after);
    typed_kubelet_only(class)
        .and_then(|()| read_fields(SPEC.type_name, fields, spec(class)))
        .map(GoValue::Struct)
        .map_err(|error| error.inside("spec"))
}

/// Releases that wrote versions 4 and 5 pruned every other kubelet setting, so an object that has one was edited since.
fn typed_kubelet_only(class: &Value) -> Result<(), HashError> {
    let settings = kubelet(class).and_then(Value::as_object).into_iter().flatten();
    match settings.map(|(name, _)| name).find(|name| TYPED_KUBELET.fields.iter().all(|field| field.json_name != *name))
    {
        Some(name) => Err(HashError::here(HashProblem::NotTyped).inside(name).inside("kubelet")),
        None => Ok(()),
    }
}

fn kubelet_as_text(class: &Value) -> Result<String, HashError> {
    let settings = kubelet(class)
        .map(|kubelet| kubelet.as_object().ok_or(HashError::wrong_type(Expected::Object).inside("spec.kubelet")))
        .transpose()?;
    Ok(kubelet_text(settings))
}

/// The family that is written, else that of the alias: adding the family that the alias implies is no change.
/// Upstream: `EC2NodeClass.AMIFamily`, which ends the process on an alias it does not know.
fn ami_family(class: &Value) -> Result<&str, HashError> {
    const FAMILIES: [&str; 6] = ["AL2", "AL2023", "Bottlerocket", "Windows2019", "Windows2022", "Windows2025"];

    match &spec(class)["amiFamily"] {
        Value::Null => {}
        family => return family.as_str().ok_or(HashError::wrong_type(Expected::Text).inside("spec.amiFamily")),
    }
    let terms = spec(class)["amiSelectorTerms"].as_array().into_iter().flatten().enumerate();
    let mut aliases = terms.filter_map(|(index, term)| Some((index, term["alias"].as_str()?)));
    let Some((index, alias)) = aliases.find(|(_, alias)| !alias.is_empty()) else {
        return Ok("Custom");
    };
    let family = match alias.split('@').collect::<Vec<_>>().as_slice() {
        [family, _version] => FAMILIES.into_iter().find(|known| known.to_lowercase() == **family),
        _ => None,
    };
    family.ok_or_else(|| {
        HashError::here(HashProblem::NotAnAlias(alias.to_owned()))
            .inside(&format!("spec.amiSelectorTerms[{index}].alias"))
    })
}

static SPEC: StructLayout = StructLayout {
    type_name: "EC2NodeClassSpec",
    fields: &[
        nillable("placementGroupSelector", "PlacementGroupSelector", Kind::Struct(&PLACEMENT_GROUP_SELECTOR)),
        nillable("associatePublicIPAddress", "AssociatePublicIPAddress", Kind::Bool),
        nillable("userData", "UserData", Kind::Text),
        plain("role", "Role", Kind::Text),
        nillable("instanceProfile", "InstanceProfile", Kind::Text),
        nillable("tags", "Tags", Kind::Map(&Kind::Text)),
        nillable("blockDeviceMappings", "BlockDeviceMappings", Kind::Set(&Kind::Struct(&BLOCK_DEVICE_MAPPING))),
        nillable("instanceStorePolicy", "InstanceStorePolicy", Kind::Text),
        nillable("networkInterfaces", "NetworkInterfaces", Kind::Set(&Kind::Struct(&NETWORK_INTERFACE))),
        nillable("detailedMonitoring", "DetailedMonitoring", Kind::Bool),
        nillable("metadataOptions", "MetadataOptions", Kind::Struct(&METADATA_OPTIONS)),
        nillable("connectionTracking", "ConnectionTracking", Kind::Struct(&CONNECTION_TRACKING)),
        nillable("context", "Context", Kind::Text),
        nillable("cpuOptions", "CPUOptions", Kind::Struct(&CPU_OPTIONS)),
    ],
};

static PLACEMENT_GROUP_SELECTOR: StructLayout = StructLayout {
    type_name: "PlacementGroupSelector",
    fields: &[nillable("name", "Name", Kind::Text), nillable("id", "ID", Kind::Text)],
};

static BLOCK_DEVICE_MAPPING: StructLayout = StructLayout {
    type_name: "BlockDeviceMapping",
    fields: &[
        nillable("deviceName", "DeviceName", Kind::Text),
        nillable("ebs", "EBS", Kind::Struct(&BLOCK_DEVICE)),
        plain("rootVolume", "RootVolume", Kind::Bool),
    ],
};

static BLOCK_DEVICE: StructLayout = StructLayout {
    type_name: "BlockDevice",
    fields: &[
        nillable("deleteOnTermination", "DeleteOnTermination", Kind::Bool),
        nillable("encrypted", "Encrypted", Kind::Bool),
        nillable("iops", "IOPS", Kind::I64),
        nillable("kmsKeyID", "KMSKeyID", Kind::Text),
        nillable("snapshotID", "SnapshotID", Kind::Text),
        nillable("throughput", "Throughput", Kind::I64),
        nillable("volumeInitializationRate", "VolumeInitializationRate", Kind::I32),
        nillable("volumeSize", "VolumeSize", Kind::Quantity),
        nillable("volumeType", "VolumeType", Kind::Text),
    ],
};

static NETWORK_INTERFACE: StructLayout = StructLayout {
    type_name: "NetworkInterface",
    fields: &[
        plain("networkCardIndex", "NetworkCardIndex", Kind::I32),
        plain("deviceIndex", "DeviceIndex", Kind::I32),
        plain("interfaceType", "InterfaceType", Kind::Text),
    ],
};

static METADATA_OPTIONS: StructLayout = StructLayout {
    type_name: "MetadataOptions",
    fields: &[
        nillable("httpEndpoint", "HTTPEndpoint", Kind::Text),
        nillable("httpProtocolIPv6", "HTTPProtocolIPv6", Kind::Text),
        nillable("httpPutResponseHopLimit", "HTTPPutResponseHopLimit", Kind::I64),
        nillable("httpTokens", "HTTPTokens", Kind::Text),
    ],
};

static CONNECTION_TRACKING: StructLayout = StructLayout {
    type_name: "ConnectionTracking",
    fields: &[
        nillable("tcpEstablishedTimeout", "TCPEstablishedTimeout", Kind::I32),
        nillable("udpStreamTimeout", "UDPStreamTimeout", Kind::I32),
        nillable("udpTimeout", "UDPTimeout", Kind::I32),
    ],
};

static CPU_OPTIONS: StructLayout = StructLayout {
    type_name: "CPUOptions",
    fields: &[nillable("nestedVirtualization", "NestedVirtualization", Kind::Text)],
};

static TYPED_KUBELET_FIELD: FieldLayout = nillable("kubelet", "Kubelet", Kind::Struct(&TYPED_KUBELET));

static TYPED_KUBELET: StructLayout = StructLayout {
    type_name: "KubeletConfiguration",
    fields: &[
        nillable("clusterDNS", "ClusterDNS", Kind::Set(&Kind::Text)),
        nillable("maxPods", "MaxPods", Kind::I32),
        nillable("podsPerCore", "PodsPerCore", Kind::I32),
        nillable("systemReserved", "SystemReserved", Kind::Map(&Kind::Text)),
        nillable("kubeReserved", "KubeReserved", Kind::Map(&Kind::Text)),
        nillable("evictionHard", "EvictionHard", Kind::Map(&Kind::Text)),
        nillable("evictionSoft", "EvictionSoft", Kind::Map(&Kind::Text)),
        nillable("evictionSoftGracePeriod", "EvictionSoftGracePeriod", Kind::Map(&Kind::Duration)),
        nillable("evictionMaxPodGracePeriod", "EvictionMaxPodGracePeriod", Kind::I32),
        nillable("imageGCHighThresholdPercent", "ImageGCHighThresholdPercent", Kind::I32),
        nillable("imageGCLowThresholdPercent", "ImageGCLowThresholdPercent", Kind::I32),
        nillable("cpuCFSQuota", "CPUCFSQuota", Kind::Bool),
    ],
};
