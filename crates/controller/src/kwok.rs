//! What the KWOK provider needs of a cluster: calls on Nodes, and the KWOKNodeClass.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Node as WireNode;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kerf_api::kwok_node_class::KwokNodeClass;
use kerf_api::parse::{self, Shapes};
use kerf_api::slim::SlimNode;
use kerf_api::text::DurationText;
use kerf_cloud::CloudError;
use kerf_cloud_kwok::{KwokClass, NodeApi};
use kerf_model::cluster::{Node, NodeClass};
use kerf_model::effect::{Target, WriteError};
use kerf_model::resources::ResourceList;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Resource};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tracing::warn;

use crate::cloud::ClassReader;
use crate::requests::write_error;

/// Pages of this many nodes, as kube's own watches ask for.
const PAGE: u32 = 500;

pub struct KubeNodes {
    client: Client,
}

/// Asks the server, once for every version of a class: every claim is tended with it, again and again.
pub struct KubeClasses {
    client: Client,
    /// By name.
    read: Mutex<BTreeMap<Arc<str>, ReadClass>>,
}

/// What a version of a class says.
struct ReadClass {
    version: String,
    delay: Option<DurationText>,
}

impl KubeNodes {
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    fn api(&self) -> Api<ListedNode> {
        Api::all(self.client.clone())
    }
}

/// A Node, or what is known of one that cannot be read. It is there all the same: its instance is alive, and can be ended.
#[derive(Resource, Clone, Debug)]
#[resource(inherit = WireNode)]
struct ListedNode {
    metadata: ObjectMeta,
    provider_id: Option<String>,
    readable: Result<Box<SlimNode>, String>,
}

impl<'de> Deserialize<'de> for ListedNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let readable = SlimNode::deserialize(&value).map(Box::new).map_err(|error| error.to_string());
        let metadata = value.get("metadata").and_then(|metadata| ObjectMeta::deserialize(metadata).ok());
        let metadata = metadata.unwrap_or_else(|| ObjectMeta {
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            labels: value.pointer("/metadata/labels").and_then(|labels| Deserialize::deserialize(labels).ok()),
            ..ObjectMeta::default()
        });
        Ok(Self { metadata, provider_id: text("/spec/providerID"), readable })
    }
}

impl NodeApi for KubeNodes {
    async fn create(&self, node: Value) -> Result<(), WriteError> {
        let node: WireNode =
            serde_json::from_value(node).map_err(|error| WriteError::Invalid { message: error.to_string() })?;
        let api: Api<WireNode> = Api::all(self.client.clone());
        api.create(&PostParams::default(), &node).await.map(drop).map_err(write_error)
    }

    async fn get(&self, name: &str) -> Result<Option<Node>, WriteError> {
        Ok(self.api().get_opt(name).await.map_err(write_error)?.map(|node| read(&node)))
    }

    async fn list(&self) -> Result<Vec<Node>, WriteError> {
        let mut nodes = Vec::new();
        let mut parameters = ListParams::default().limit(PAGE);
        loop {
            let page = self.api().list(&parameters).await.map_err(write_error)?;
            nodes.extend(page.items.iter().map(read));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters = ListParams::default().limit(PAGE).continue_token(&token),
                None => return Ok(nodes),
            }
        }
    }

    async fn list_labelled(&self, key: &str) -> Result<Vec<Node>, WriteError> {
        let page = self.api().list(&ListParams::default().labels(key)).await.map_err(write_error)?;
        Ok(page.items.iter().map(read).collect())
    }

    async fn set_boot_id(&self, node: &str, boot_id: &str) -> Result<(), WriteError> {
        let api: Api<WireNode> = Api::all(self.client.clone());
        let patch = Patch::Strategic(serde_json::json!({"status": {"nodeInfo": {"bootID": boot_id}}}));
        api.patch_status(node, &PatchParams::default(), &patch).await.map(drop).map_err(write_error)
    }

    async fn delete(&self, node: &Target) -> Result<(), WriteError> {
        let preconditions = Preconditions { uid: Some(node.uid.to_string()), resource_version: None };
        let parameters = DeleteParams::default().preconditions(preconditions);
        let api: Api<WireNode> = Api::all(self.client.clone());
        match api.delete(&node.name.name, &parameters).await.map_err(write_error) {
            // Another node has taken its name.
            Err(WriteError::Conflict) => Err(WriteError::NotFound),
            other => other.map(drop),
        }
    }
}

/// One that cannot be read has its name, its labels and its id, and nothing else: the others are not touched by it.
fn read(listed: &ListedNode) -> Node {
    let parsed = listed.readable.as_ref().map_err(ToString::to_string).and_then(|node| {
        parse::node(node, &mut Shapes::default()).map(|parsed| parsed.value).map_err(|error| error.to_string())
    });
    parsed.unwrap_or_else(|error| {
        let meta = parse::object_meta(&listed.metadata);
        warn!(node = %meta.name, error, "a node cannot be read; that it is there counts");
        Node {
            meta,
            provider_id: listed.provider_id.as_deref().filter(|id| !id.is_empty()).map(Arc::from),
            taints: Vec::new(),
            unschedulable: false,
            capacity: ResourceList::new(),
            allocatable: ResourceList::new(),
            conditions: Vec::new(),
            boot_id: None,
        }
    })
}

impl KubeClasses {
    pub fn new(client: Client) -> Self {
        Self { client, read: Mutex::default() }
    }

    async fn delay(&self, common: &NodeClass) -> Result<Option<DurationText>, kube::Error> {
        let name = &common.class.name;
        let known = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = known().get(name)
            && *read.version == *common.meta.resource_version
        {
            return Ok(read.delay.clone());
        }
        let api: Api<KwokNodeClass> = Api::all(self.client.clone());
        // One that has gone since the engine saw it says so in its common part soon.
        let Some(class) = api.get_opt(name).await? else { return Ok(None) };
        let (version, delay) =
            (class.metadata.resource_version.unwrap_or_default(), class.spec.node_registration_delay);
        known().insert(Arc::clone(name), ReadClass { version, delay: delay.clone() });
        Ok(delay)
    }
}

impl ClassReader<KwokClass> for KubeClasses {
    async fn read(&self, common: &NodeClass) -> Result<KwokClass, CloudError> {
        let failed = |source| CloudError { attempt: "read the node class", source };
        let delay = self.delay(common).await.map_err(|error| failed(error.into()))?;
        KwokClass::new(common.clone(), delay.as_ref().map(DurationText::as_str)).map_err(|error| failed(error.into()))
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kerf_cloud::{Catalogue, Provider};
    use kerf_cloud_kwok::{INTERRUPTION, KwokProvider};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    fn node(name: &str, status: &Value, spec: &Value) -> Value {
        let mut spec = spec.clone();
        spec["providerID"] = json!(format!("kwok://{name}"));
        json!({
            "metadata": {
                "name": name, "uid": name, "creationTimestamp": "2026-11-16T12:00:00Z",
                "labels": {"karpenter.kwok.sh/kwoknodeclass": "default", INTERRUPTION: "spot_interrupted"},
            },
            "spec": spec,
            "status": status,
        })
    }

    /// Nothing was collected, and no interruption was heard of, as long as one node had an amount that is none.
    #[tokio::test]
    async fn one_node_that_could_not_be_read_hid_all_others() {
        let items = [
            node("well", &json!({}), &json!({})),
            node("no-amount", &json!({"capacity": {"cpu": "many"}}), &json!({})),
            node("no-node", &json!({}), &json!({"taints": "none"})),
        ];
        let list =
            json!({"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items});
        let service = tower::service_fn(move |_: Request<Body>| {
            let body = Body::from(list.to_string().into_bytes());
            async { Ok::<_, std::convert::Infallible>(Response::new(body)) }
        });
        let provider = KwokProvider::new(KubeNodes::new(Client::new(service, "default")), Catalogue::kwok());
        let alive = ["kwok://well", "kwok://no-amount", "kwok://no-node"];
        let listed = provider.list().await.unwrap();
        assert_eq!(listed.iter().map(|one| &*one.provider_id).collect::<Vec<_>>(), alive);
        let announced = provider.interruptions().await.unwrap();
        assert_eq!(announced.iter().map(|one| &*one.provider_id).collect::<Vec<_>>(), alive);
        assert!(listed.iter().all(|one| one.launched.to_string() == "2026-11-16T12:00:00Z"));
    }
}
