//! Node classes of any provider: whether they are ready is all that the core reads of them.

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::schema::Condition;

#[derive(Deserialize, Clone, Debug)]
pub struct SlimNodeClass {
    #[serde(deserialize_with = "super::metadata::slim")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub status: NodeClassStatus,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct NodeClassStatus {
    pub conditions: Vec<Condition>,
}

super::resource_of_any_kind!(SlimNodeClass, ClusterResourceScope);
