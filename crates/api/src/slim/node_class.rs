//! Node classes of any provider: whether they are ready is all that the core reads of them.

use std::borrow::Cow;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::ApiResource;
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

impl Resource for SlimNodeClass {
    type DynamicType = ApiResource;
    type Scope = ClusterResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
