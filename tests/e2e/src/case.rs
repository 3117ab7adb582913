//! One test's place in the shared cluster.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ObjectMeta, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::turns::{Life, Turn, turn};
use crate::{connect, eventually};

/// A namespace of its own, and a memory of what was created outside it.
pub struct Case {
    client: Client,
    namespace: String,
    outside: Mutex<Vec<(ApiResource, String)>>,
}

/// Runs a test in a fresh case and removes what it created, whether it passed or not. No controller runs meanwhile.
///
/// A test that panics leaves its objects behind; prefer `anyhow::ensure!` to `assert!`.
pub async fn case(test: impl AsyncFnOnce(&Case) -> Result<()>) -> Result<()> {
    let turn = turn(Life::None).await?;
    case_in(&turn, test).await
}

/// The same, for those who have the bed already.
pub async fn case_in(_turn: &Turn, test: impl AsyncFnOnce(&Case) -> Result<()>) -> Result<()> {
    let case = Case::open().await?;
    let outcome = test(&case).await;
    let cleaned = case.close().await;
    outcome.and(cleaned)
}

impl Case {
    async fn open() -> Result<Self> {
        let client = connect().await?;
        let wanted = Namespace {
            // The server makes the name unique, also against cases of other runs.
            metadata: ObjectMeta { generate_name: Some("case-".to_owned()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        let created = Api::all(client.clone()).create(&PostParams::default(), &wanted).await;
        let namespace = created.context("cannot create a namespace for the case")?.name_any();
        // Pods are refused until the controller manager has made the account that they run under.
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace);
        eventually("the namespace has its service account", async || Ok(accounts.get_opt("default").await?)).await?;
        Ok(Self { client, namespace, outside: Mutex::default() })
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A name for something outside the namespace that no other case uses: `node-case-x7k2p`.
    pub fn unique(&self, stem: &str) -> String {
        format!("{stem}-{}", self.namespace)
    }

    /// The API of a kind, in the case's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Creates it where its metadata says. What has no namespace is remembered and removed at the end.
    pub async fn create<K>(&self, object: &K) -> Result<K>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug,
    {
        let kind = ApiResource::erase::<K>(&());
        let api = match object.meta().namespace.as_deref() {
            Some(namespace) => Api::<DynamicObject>::namespaced_with(self.client(), namespace, &kind),
            None => Api::all_with(self.client(), &kind),
        };
        let wanted: DynamicObject = serde_json::from_value(serde_json::to_value(object)?)?;
        let created = api.create(&PostParams::default(), &wanted).await;
        let created = created.with_context(|| format!("cannot create the {} {}", kind.kind, wanted.name_any()))?;
        if created.metadata.namespace.is_none() {
            self.remember(kind, created.name_any());
        }
        created.try_parse().context("the server answered with something else than was created")
    }

    fn remember(&self, kind: ApiResource, name: String) {
        // A test that panicked elsewhere does not make the list wrong.
        self.outside.lock().unwrap_or_else(PoisonError::into_inner).push((kind, name));
    }

    /// Does not wait for the end of the deletion: names are never used again.
    async fn close(self) -> Result<()> {
        let outside = self.outside.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (kind, name) in outside.into_iter().rev() {
            let api = Api::<DynamicObject>::all_with(self.client.clone(), &kind);
            delete_if_there(&api, &name).await.with_context(|| format!("cannot remove the {} {name}", kind.kind))?;
        }
        let namespaces: Api<Namespace> = Api::all(self.client);
        delete_if_there(&namespaces, &self.namespace).await.context("cannot remove the namespace of the case")
    }
}

async fn delete_if_there<K>(api: &Api<K>, name: &str) -> kube::Result<()>
where
    K: Clone + Debug + DeserializeOwned,
{
    match api.delete(name, &DeleteParams::background()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop),
    }
}
