//! What the KWOK provider needs of a cluster: calls on Nodes, and the KWOKNodeClass.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Node as WireNode;
use kerf_api::kwok_node_class::KwokNodeClass;
use kerf_api::parse::{self, Shapes};
use kerf_api::slim::SlimNode;
use kerf_api::text::DurationText;
use kerf_cloud::CloudError;
use kerf_cloud_kwok::{KwokClass, NodeApi};
use kerf_model::cluster::{Node, NodeClass};
use kerf_model::effect::{Target, WriteError};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client};
use serde_json::Value;

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

    fn api(&self) -> Api<SlimNode> {
        Api::all(self.client.clone())
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
        self.api().get_opt(name).await.map_err(write_error)?.map(|node| read(&node)).transpose()
    }

    async fn list(&self) -> Result<Vec<Node>, WriteError> {
        let mut nodes = Vec::new();
        let mut parameters = ListParams::default().limit(PAGE);
        loop {
            let page = self.api().list(&parameters).await.map_err(write_error)?;
            for node in &page.items {
                nodes.push(read(node)?);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters = ListParams::default().limit(PAGE).continue_token(&token),
                None => return Ok(nodes),
            }
        }
    }

    async fn list_labelled(&self, key: &str) -> Result<Vec<Node>, WriteError> {
        let page = self.api().list(&ListParams::default().labels(key)).await.map_err(write_error)?;
        page.items.iter().map(read).collect()
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

fn read(node: &SlimNode) -> Result<Node, WriteError> {
    let parsed = parse::node(node, &mut Shapes::default());
    parsed.map(|parsed| parsed.value).map_err(|error| WriteError::Invalid { message: error.to_string() })
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
