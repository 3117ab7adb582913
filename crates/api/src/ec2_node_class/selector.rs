//! Terms that select what a launch uses: images, subnets, security groups, reservations, placement groups.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::status::{OWNER_ID, RESERVATION_ID};

// The first three are not anchored: a text that contains an id passes. That is the published schema.
const AMI_ID: &str = "ami-[0-9a-z]+";
const SUBNET_ID: &str = "subnet-[0-9a-z]+";
const SECURITY_GROUP_ID: &str = "sg-[0-9a-z]+";
const PLACEMENT_GROUP_ID: &str = "^pg-[0-9a-z]+$";

/// Selects images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmiSelectorTerm {
    /// A family and a version of its images, such as `al2023@latest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 30))]
    #[x_kube(
        validation = ("self.matches('^[a-zA-Z0-9]+@.+$')", "an alias has the form family@version"),
        validation = ("self.split('@')[0] in ['al2','al2023','bottlerocket','windows2019','windows2022','windows2025']", "the family must be al2, al2023, bottlerocket, windows2019, windows2022 or windows2025"),
        validation = ("self.split('@')[0] in ['windows2019','windows2022','windows2025'] ? self.split('@')[1] == 'latest' : true", "windows families have only the version latest")
    )]
    pub alias: Option<String>,
    /// The image's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = AMI_ID))]
    pub id: Option<String>,
    /// The image's name, with wildcards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The account that owns the image, or `self`, or an alias such as `amazon`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Name or ARN of a parameter that holds the image's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssm_parameter: Option<String>,
    /// Tags the image must have; `*` stands for any value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "tags")]
    pub tags: Option<BTreeMap<String, String>>,
}

/// Selects subnets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct SubnetSelectorTerm {
    /// The subnet's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = SUBNET_ID))]
    pub id: Option<String>,
    /// Tags the subnet must have; `*` stands for any value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "tags")]
    pub tags: Option<BTreeMap<String, String>>,
}

/// Selects security groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct SecurityGroupSelectorTerm {
    /// The group's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = SECURITY_GROUP_ID))]
    pub id: Option<String>,
    /// The group's name, which is not its `Name` tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Tags the group must have; `*` stands for any value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "tags")]
    pub tags: Option<BTreeMap<String, String>>,
}

/// Selects capacity reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservationSelectorTerm {
    /// The reservation's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = RESERVATION_ID))]
    pub id: Option<String>,
    /// Which instances may use the reservation: any that match, or only those launched for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["open", "targeted"]))]
    pub instance_match_criteria: Option<String>,
    /// The account that owns the reservation.
    #[serde(rename = "ownerID", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = OWNER_ID))]
    pub owner_id: Option<String>,
    /// Tags the reservation must have; `*` stands for any value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "tags")]
    pub tags: Option<BTreeMap<String, String>>,
}

/// Selects one placement group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = ("has(self.name) || has(self.id)", "name or id is needed"),
    validation = ("!(has(self.name) && has(self.id))", "name and id exclude each other")
)]
pub struct PlacementGroupSelector {
    /// The group's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = PLACEMENT_GROUP_ID))]
    pub id: Option<String>,
    /// The group's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
}

fn tags(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "type": "string" },
        "maxProperties": 20,
        "x-kubernetes-validations": [
            { "rule": "self.all(k, k != '' && self[k] != '')", "message": "tag keys and values must not be empty" },
        ],
    })
}
