//! What is asked of the provider, and its answers as the engine hears them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use kerf_cloud::{CloudError, InstanceTypes, Order, Provider};
use kerf_model::change::Input;
use kerf_model::cloud::{LaunchError, Launched};
use kerf_model::cluster::{NodeClaim, NodeClass, StoredPool};
use kerf_model::effect::Effect;
use tracing::{info, warn};

/// What the provider could not do for a claim is tried again after this.
const TEND_AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// Reads the part of a node class that is the provider's own.
pub trait ClassReader<C>: Send + Sync {
    fn read(&self, common: &NodeClass) -> impl Future<Output = Result<C, CloudError>> + Send;
}

pub struct Cloud<P, R> {
    provider: P,
    classes: R,
    /// The last answer for each pool: a provider that does not answer does not make a pool empty.
    types: Mutex<BTreeMap<Arc<str>, InstanceTypes>>,
}

impl<P, R> Cloud<P, R>
where
    P: Provider,
    R: ClassReader<P::Class>,
{
    pub fn new(provider: P, classes: R) -> Self {
        Self { provider, classes, types: Mutex::default() }
    }

    pub async fn launch(&self, claim: &NodeClaim, class: Option<&NodeClass>) -> Result<Launched, LaunchError> {
        let class = self.class(class).await.map_err(|error| LaunchError::Failed {
            reason: "NodeClassUnreadable".into(),
            message: chain(&error).into(),
        })?;
        self.provider.launch(Order { claim, class: class.as_ref() }).await
    }

    /// When the claim has to be looked at again.
    pub async fn tend(&self, claim: &NodeClaim, class: Option<&NodeClass>, now: Timestamp) -> Option<Timestamp> {
        let tended = match self.class(class).await {
            Ok(class) => self.provider.tend(Order { claim, class: class.as_ref() }, now).await,
            Err(error) => Err(error),
        };
        tended.unwrap_or_else(|error| {
            warn!(nodeclaim = &**claim.name(), error = chain(&error), "the provider could not tend a claim");
            now.checked_add(TEND_AGAIN).ok()
        })
    }

    pub async fn catalogue(
        &self,
        pools: &[(Arc<StoredPool>, Option<Arc<NodeClass>>)],
    ) -> BTreeMap<Arc<str>, InstanceTypes> {
        let mut answers = BTreeMap::new();
        for (pool, class) in pools {
            let (Ok(spec), Some(class)) = (&pool.spec, class) else { continue };
            let name = &pool.meta.name.name;
            let answer = match self.classes.read(class).await {
                Ok(class) => self.provider.instance_types(spec, &class).await,
                Err(error) => Err(error),
            };
            match answer {
                Ok(types) => drop(answers.insert(Arc::clone(name), types)),
                Err(error) => {
                    warn!(nodepool = &**name, error = chain(&error), "the instance types of a pool are not known");
                    let known = self.known();
                    answers.extend(known.get(name).map(|types| (Arc::clone(name), Arc::clone(types))));
                }
            }
        }
        self.known().clone_from(&answers);
        answers
    }

    /// Effects for the cloud, but for launches: those need the claim.
    pub async fn execute(&self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::Terminate { claim, provider_id } => {
                let answer = self.provider.terminate(&provider_id).await;
                info!(nodeclaim = %claim, provider_id = &*provider_id, answer = ?answer, "asked for an instance's end");
                Some(Input::Terminated { claim, answer })
            }
            Effect::TerminateOrphan { provider_id } => {
                let answer = self.provider.terminate(&provider_id).await;
                info!(provider_id = &*provider_id, answer = ?answer, "asked for the end of an instance without a claim");
                None
            }
            Effect::ListInstances => answered(self.provider.list().await).map(Input::Instances),
            Effect::FindInstance { provider_id } => {
                let exists = answered(self.provider.find(&provider_id).await)?;
                Some(Input::InstanceFound { provider_id, exists })
            }
            Effect::CreateClaim(_)
            | Effect::PatchClaim(..)
            | Effect::DeleteClaim(_)
            | Effect::PatchNode(..)
            | Effect::DeleteNode(_)
            | Effect::PatchPool(..)
            | Effect::EvictPod(_)
            | Effect::DeletePod(..)
            | Effect::Publish(_)
            | Effect::Launch { .. } => None,
        }
    }

    async fn class(&self, common: Option<&NodeClass>) -> Result<Option<P::Class>, CloudError> {
        match common {
            Some(common) => self.classes.read(common).await.map(Some),
            None => Ok(None),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<Arc<str>, InstanceTypes>> {
        self.types.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question without an answer is asked again by the engine.
fn answered<T>(answer: Result<T, CloudError>) -> Option<T> {
    answer.inspect_err(|error| warn!(error = chain(error), "the provider did not answer")).ok()
}

/// An error and its causes, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
