//! EC2NodeClass: how machines on EC2 are launched.

#![allow(dead_code, reason = "derive describes the spec through copies of it that nothing reads, see optional_spec")]

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::optional_spec::optional_spec;
use crate::schema::NOT_EMPTY;

mod block_device;
mod network;
mod selector;
mod status;

pub use block_device::{BlockDevice, BlockDeviceMapping};
pub use network::{ConnectionTracking, MetadataOptions, NetworkInterface};
pub use selector::{
    AmiSelectorTerm, CapacityReservationSelectorTerm, PlacementGroupSelector, SecurityGroupSelectorTerm,
    SubnetSelectorTerm,
};
pub use status::{Ami, CapacityReservation, Ec2NodeClassStatus, SecurityGroup, Subnet};

/// How to launch machines.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "karpenter.k8s.aws",
    version = "v1",
    kind = "EC2NodeClass",
    root = "Ec2NodeClass",
    plural = "ec2nodeclasses",
    shortname = "ec2nc",
    shortname = "ec2ncs",
    doc = "EC2NodeClass says how machines on EC2 are launched: image, network, disks, permissions.",
    derive = "PartialEq",
    category = "karpenter",
    status = "Ec2NodeClassStatus",
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Role", type_ = "string", json_path = ".spec.role", priority = 1)
)]
#[serde(rename_all = "camelCase", remote = "Self")]
#[x_kube(
    validation = ("(has(self.role) && !has(self.instanceProfile)) || (!has(self.role) && has(self.instanceProfile))", "give either role or instanceProfile"),
    validation = ("!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'al2') ? (self.amiFamily == 'Custom' || self.amiFamily == 'AL2') : true)", "with an alias of al2, amiFamily must be AL2 or Custom"),
    validation = ("!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'al2023') ? (self.amiFamily == 'Custom' || self.amiFamily == 'AL2023') : true)", "with an alias of al2023, amiFamily must be AL2023 or Custom"),
    validation = ("!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'bottlerocket') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Bottlerocket') : true)", "with an alias of bottlerocket, amiFamily must be Bottlerocket or Custom"),
    validation = ("!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'windows2019') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Windows2019') : true)", "with an alias of windows2019, amiFamily must be Windows2019 or Custom"),
    validation = ("!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'windows2022') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Windows2022') : true)", "with an alias of windows2022, amiFamily must be Windows2022 or Custom"),
    validation = ("!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'windows2025') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Windows2025') : true)", "with an alias of windows2025, amiFamily must be Windows2025 or Custom"),
    validation = ("self.amiSelectorTerms.exists(x, has(x.alias)) ? true : has(self.amiFamily)", "without an alias, amiFamily is needed")
)]
pub struct Ec2NodeClassSpec {
    /// Which family of images the machines boot, and so how their user data is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "enum" = ["AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025"]
    ))]
    pub ami_family: Option<String>,
    /// Which images may be used; an image that any term selects may.
    #[schemars(length(min = 1, max = 30))]
    #[x_kube(
        validation = ("self.all(x, has(x.tags) || has(x.id) || has(x.name) || has(x.alias) || has(x.ssmParameter))", "each term needs tags, id, name, alias or ssmParameter"),
        validation = ("!self.exists(x, has(x.id) && (has(x.alias) || has(x.tags) || has(x.name) || has(x.owner)))", "a term with id cannot have alias, tags, name or owner"),
        validation = ("!self.exists(x, has(x.alias) && (has(x.id) || has(x.tags) || has(x.name) || has(x.owner)))", "a term with alias cannot have id, tags, name or owner"),
        validation = ("!(self.exists(x, has(x.alias)) && self.size() != 1)", "a term with alias must be the only one")
    )]
    pub ami_selector_terms: Vec<AmiSelectorTerm>,
    /// Whether machines get public addresses; absent leaves it to the subnet.
    #[serde(rename = "associatePublicIPAddress", skip_serializing_if = "Option::is_none")]
    pub associate_public_ip_address: Option<bool>,
    /// Disks of the machines; absent means the family's defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50))]
    #[x_kube(validation = ("self.filter(x, has(x.rootVolume)?x.rootVolume==true:false).size() <= 1", "only one mapping can be the root volume"))]
    pub block_device_mappings: Option<Vec<BlockDeviceMapping>>,
    /// Which capacity reservations may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 30))]
    #[x_kube(
        validation = ("self.all(x, has(x.tags) || has(x.id) || has(x.instanceMatchCriteria))", "each term needs tags, id or instanceMatchCriteria"),
        validation = ("self.size() != 0", "give at least one term, or leave the field out"),
        validation = ("!self.exists(x, has(x.id) && (has(x.tags) || has(x.ownerID) || has(x.instanceMatchCriteria)))", "a term with id cannot have tags, ownerID or instanceMatchCriteria")
    )]
    pub capacity_reservation_selector_terms: Option<Vec<CapacityReservationSelectorTerm>>,
    /// Idle timeouts of tracked connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_tracking: Option<ConnectionTracking>,
    /// Passed through to the launch request; reserved by EC2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Processor features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_options: Option<CpuOptions>,
    /// Whether metrics arrive every minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detailed_monitoring: Option<bool>,
    /// The instance profile of the machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = NOT_EMPTY)]
    pub instance_profile: Option<String>,
    /// What to do with the machine's local disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["RAID0"]))]
    pub instance_store_policy: Option<String>,
    /// How many address prefixes each machine gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ip_prefix_count: Option<i32>,
    /// Settings of the kubelet, any of its configuration fields. Checked by the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_object")]
    pub kubelet: Option<serde_json::Map<String, serde_json::Value>>,
    /// How the machine's metadata service answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {
        "httpEndpoint": "enabled",
        "httpProtocolIPv6": "disabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "required",
    }))]
    pub metadata_options: Option<MetadataOptions>,
    /// Network interfaces of the machines; absent means what the instance type offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 150))]
    #[x_kube(
        validation = ("self.size() == 0 || self.exists(x, x.deviceIndex == 0 && x.networkCardIndex == 0 && x.interfaceType == 'interface')", "a primary interface is needed: device 0 of card 0, of type interface"),
        validation = ("self.all(x, self.filter(y, x.networkCardIndex == y.networkCardIndex && x.deviceIndex == y.deviceIndex).size() == 1 && (x.interfaceType != 'efa-only' || self.filter(y, x.networkCardIndex == y.networkCardIndex && y.interfaceType == 'efa-only').size() == 1))", "card and device must differ between interfaces, with at most one efa-only on each card")
    )]
    pub network_interfaces: Option<Vec<NetworkInterface>>,
    /// The placement group of the machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement_group_selector: Option<PlacementGroupSelector>,
    /// The IAM role of the machines; the controller makes an instance profile for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = NOT_EMPTY)]
    pub role: Option<String>,
    /// Which security groups the machines join: all that any term selects.
    #[schemars(length(max = 30))]
    #[x_kube(
        validation = ("self.size() != 0", "at least one term is needed"),
        validation = ("self.all(x, has(x.tags) || has(x.id) || has(x.name))", "each term needs tags, id or name"),
        validation = ("!self.exists(x, has(x.id) && (has(x.tags) || has(x.name)))", "a term with id cannot have tags or name"),
        validation = ("!self.exists(x, has(x.name) && (has(x.tags) || has(x.id)))", "a term with name cannot have tags or id")
    )]
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    /// Which subnets machines may be launched into: all that any term selects.
    #[schemars(length(max = 30))]
    #[x_kube(
        validation = ("self.size() != 0", "at least one term is needed"),
        validation = ("self.all(x, has(x.tags) || has(x.id))", "each term needs tags or id"),
        validation = ("!self.exists(x, has(x.id) && has(x.tags))", "a term with id cannot have tags")
    )]
    pub subnet_selector_terms: Vec<SubnetSelectorTerm>,
    /// Tags put on everything that is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = ("self.all(k, k != '')", "tag keys must not be empty"),
        validation = ("self.all(k, k !='eks:eks-cluster-name')", "the tag eks:eks-cluster-name is set by the controller"),
        validation = ("self.all(k, !k.startsWith('kubernetes.io/cluster') )", "tags that start with kubernetes.io/cluster are set by the controller"),
        validation = ("self.all(k, k != 'karpenter.sh/nodepool')", "the tag karpenter.sh/nodepool is set by the controller"),
        validation = ("self.all(k, k !='karpenter.sh/nodeclaim')", "the tag karpenter.sh/nodeclaim is set by the controller"),
        validation = ("self.all(k, k !='karpenter.k8s.aws/ec2nodeclass')", "the tag karpenter.k8s.aws/ec2nodeclass is set by the controller")
    )]
    pub tags: Option<BTreeMap<String, String>>,
    /// What the machine runs when it boots, merged with what the family needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
}

optional_spec!(Ec2NodeClassSpec);

/// Processor features of the machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct CpuOptions {
    /// Whether machines may run virtual machines themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["enabled", "disabled"]))]
    pub nested_virtualization: Option<String>,
}

fn open_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "additionalProperties": { "x-kubernetes-preserve-unknown-fields": true },
        "x-kubernetes-preserve-unknown-fields": true,
    })
}
