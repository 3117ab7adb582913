//! NodeOverlay: corrections to the prices and capacities of instance types.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::requirement::{Requirement, overlay_requirements};
use crate::schema::{Condition, Quantities, conditions};

const PRICE: &str = r"^\d+(\.\d+)?$";
const PRICE_ADJUSTMENT: &str = r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$";

/// Which instance types to correct, and how.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "karpenter.sh",
    version = "v1alpha1",
    kind = "NodeOverlay",
    plural = "nodeoverlays",
    shortname = "overlays",
    doc = "NodeOverlay corrects what the provider says about instance types: prices, and resources it does not know.",
    derive = "PartialEq",
    category = "karpenter",
    status = "NodeOverlayStatus",
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Weight", type_ = "integer", json_path = ".spec.weight", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!has(self.price) || !has(self.priceAdjustment)", "price and priceAdjustment exclude each other"))]
pub struct NodeOverlaySpec {
    /// Extended resources that the instance types have.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))", "cpu, memory, ephemeral-storage and pods cannot be overlaid"))]
    pub capacity: Option<Quantities>,
    /// The price to use instead of the provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = PRICE))]
    pub price: Option<String>,
    /// A signed amount or percentage to add to the provider's price.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = PRICE_ADJUSTMENT))]
    pub price_adjustment: Option<String>,
    /// Which instance types; none means all.
    #[schemars(schema_with = "overlay_requirements")]
    pub requirements: Vec<Requirement>,
    /// Where overlays disagree, the higher weight wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub weight: Option<i32>,
}

/// What the controller reports about the overlay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct NodeOverlayStatus {
    /// Whether the overlay is applied, and why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Option<Vec<Condition>>,
}
