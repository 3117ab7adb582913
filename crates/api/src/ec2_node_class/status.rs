//! What the selectors of an EC2NodeClass found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::requirement::{Requirement, reported_requirements};
use crate::schema::{Condition, atomic_conditions};
use crate::text::TimeText;

pub(super) const RESERVATION_ID: &str = "^cr-[0-9a-z]+$";
pub(super) const OWNER_ID: &str = "^[0-9]{12}$";

/// What the controller reports about the class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Ec2NodeClassStatus {
    /// The images found, newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amis: Option<Vec<Ami>>,
    /// The capacity reservations found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_reservations: Option<Vec<CapacityReservation>>,
    /// Whether the class is usable, and why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "atomic_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// The instance profile in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// The security groups found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_groups: Option<Vec<SecurityGroup>>,
    /// The subnets found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnets: Option<Vec<Subnet>>,
}

/// An image and the instance types it suits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Ami {
    /// Whether its owner has deprecated it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<bool>,
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What an instance type must satisfy to boot it.
    #[schemars(schema_with = "reported_requirements")]
    pub requirements: Vec<Requirement>,
}

/// A capacity reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct CapacityReservation {
    /// Its zone.
    pub availability_zone: String,
    /// When it ends, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<TimeText>,
    /// Its id.
    #[schemars(regex(pattern = RESERVATION_ID))]
    pub id: String,
    /// Which instances may use it.
    #[schemars(extend("enum" = ["open", "targeted"]))]
    pub instance_match_criteria: String,
    /// The instance type it reserves.
    pub instance_type: String,
    /// Whether its owner may take the capacity back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interruptible: Option<bool>,
    /// The account that owns it.
    #[serde(rename = "ownerID")]
    #[schemars(regex(pattern = OWNER_ID))]
    pub owner_id: String,
    /// What kind of reservation it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "default", "enum" = ["default", "capacity-block"]))]
    pub reservation_type: Option<String>,
    /// Whether it is about to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "active", "enum" = ["active", "expiring"]))]
    pub state: Option<String>,
}

/// A security group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct SecurityGroup {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Subnet {
    /// Its id.
    pub id: String,
    /// The name of its zone, which differs between accounts.
    pub zone: String,
    /// The id of its zone, which does not.
    #[serde(rename = "zoneID", skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
}
