//! What is asked of the provider, and its answers as the engine hears them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use kerf_cloud::{CloudError, InstanceTypes, Order, Provider};
use kerf_model::change::Input;
use kerf_model::cloud::{
    CloudDrift, HookAnswer, HookReport, Interruption, LaunchError, Launched, RebootAnswer, TerminateAnswer,
    UpdateAnswer,
};
use kerf_model::cluster::{NodeClaim, NodeClass, OfferingName, StoredPool};
use kerf_model::effect::Effect;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::metrics::{CloudCall, Metrics};

/// What the provider could not do for a claim is tried again after this.
const TRY_AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// Reads the part of a node class that is the provider's own.
pub trait ClassReader<C>: Send + Sync {
    fn read(&self, common: &NodeClass) -> impl Future<Output = Result<C, CloudError>> + Send;
}

pub struct Cloud<P, R> {
    provider: P,
    classes: R,
    metrics: Arc<Metrics>,
    /// The last answer for each pool: a provider that does not answer does not make a pool empty.
    types: Mutex<BTreeMap<Arc<str>, InstanceTypes>>,
    troubles: Troubles,
}

/// By claim: what the provider could not do for it, as told. The same trouble, tried again every few seconds for a quarter
/// of an hour, is told once.
#[derive(Debug, Default)]
struct Troubles(Mutex<BTreeMap<Arc<str>, String>>);

impl Troubles {
    /// More claims than are in trouble at once.
    const MANY: usize = 1_000;

    /// Whether it is news.
    fn is_new(&self, claim: &Arc<str>, trouble: &str) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.get(claim).is_some_and(|last| last == trouble) {
            return false;
        }
        // Claims that went in trouble are still in it.
        if told.len() >= Self::MANY {
            told.clear();
        }
        told.insert(Arc::clone(claim), trouble.to_owned());
        true
    }

    fn over(&self, claim: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(claim);
    }
}

impl<P, R> Cloud<P, R>
where
    P: Provider,
    R: ClassReader<P::Class>,
{
    pub fn new(provider: P, classes: R, metrics: Arc<Metrics>) -> Self {
        Self { provider, classes, metrics, types: Mutex::default(), troubles: Troubles::default() }
    }

    /// Counts and measures a call. `failed` names the error, if the answer is one.
    async fn timed<T>(
        &self,
        (controller, method, pool): (&'static str, &'static str, &str),
        call: impl Future<Output = T>,
        failed: impl FnOnce(&T) -> Option<&'static str>,
    ) -> T {
        let start = Instant::now();
        let answer = call.await;
        let call = CloudCall { controller, method, provider: self.provider.name(), pool };
        self.metrics.called(&call, start.elapsed(), failed(&answer));
        answer
    }

    pub async fn launch(&self, claim: &NodeClaim, class: Option<&NodeClass>) -> Result<Launched, LaunchError> {
        let class = self.class(class).await.map_err(|error| LaunchError::Failed {
            reason: "NodeClassUnreadable".into(),
            message: chain(&error).into(),
        })?;
        let call = ("nodeclaim.lifecycle", "Create", claim.pool().unwrap_or_default());
        let order = Order { claim, class: class.as_ref() };
        self.timed(call, self.provider.launch(order), |answer| answer.as_ref().err().map(launch_error)).await
    }

    /// When the claim has to be looked at again.
    pub async fn tend(&self, claim: &NodeClaim, class: Option<&NodeClass>, now: Timestamp) -> Option<Timestamp> {
        let tended = match self.class(class).await {
            Ok(class) => self.provider.tend(Order { claim, class: class.as_ref() }, now).await,
            Err(error) => Err(error),
        };
        match tended {
            Ok(at) => {
                self.troubles.over(claim.name());
                at
            }
            Err(error) => {
                let trouble = chain(&error);
                if self.troubles.is_new(claim.name(), &trouble) {
                    warn!(nodeclaim = &**claim.name(), error = trouble, "the provider could not tend a claim");
                }
                now.checked_add(TRY_AGAIN).ok()
            }
        }
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
                Ok(class) => {
                    let call = ("provisioner", "GetInstanceTypes", &**name);
                    self.timed(call, self.provider.instance_types(spec, &class), unknown).await
                }
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

    /// `None` if there is no answer; it is asked again.
    pub async fn drift(&self, claim: &NodeClaim, class: Option<&NodeClass>) -> Option<Option<CloudDrift>> {
        let class = answered(self.class(class).await)?;
        let call = ("nodeclaim.disruption", "IsDrifted", claim.pool().unwrap_or_default());
        answered(self.timed(call, self.provider.drift(Order { claim, class: class.as_ref() }), unknown).await)
    }

    /// All of the provider's registration hooks at once. `None` if there is no answer; they are asked again.
    pub async fn run_hooks(&self, claim: &NodeClaim, class: Option<&NodeClass>) -> Option<HookReport> {
        let class = answered(self.class(class).await)?;
        let order = Order { claim, class: class.as_ref() };
        let hooks = self.provider.registration_hooks().iter().map(|hook| async move {
            let call = ("nodeclaim.lifecycle", *hook, claim.pool().unwrap_or_default());
            let answer = self.timed(call, self.provider.run_hook(hook, order), unknown).await;
            let answer = answer.unwrap_or_else(|error| {
                warn!(nodeclaim = &**claim.name(), hook, error = chain(&error), "a registration hook failed");
                HookAnswer::Pending { again: TRY_AGAIN }
            });
            (Arc::from(*hook), answer)
        });
        Some(HookReport::of(join_all(hooks).await))
    }

    pub fn avoid(&self, offerings: Vec<OfferingName>) {
        info!(?offerings, "offerings to avoid");
        self.provider.avoid(offerings);
    }

    pub fn has_interruptions(&self) -> bool {
        self.provider.has_interruptions()
    }

    /// What the provider announces. `None` if it did not answer.
    pub async fn interruptions(&self) -> Option<Vec<Interruption>> {
        let call = ("interruption", "Interruptions", "");
        answered(self.timed(call, self.provider.interruptions(), unknown).await)
    }

    pub async fn update(&self, claim: &NodeClaim, class: Option<&NodeClass>) -> UpdateAnswer {
        let class = match self.class(class).await {
            Ok(class) => class,
            Err(error) => return UpdateAnswer::Failed { message: chain(&error).into() },
        };
        let call = ("nodeclaim.disruption", "Update", claim.pool().unwrap_or_default());
        let failed = |answer: &UpdateAnswer| match answer {
            UpdateAnswer::Done { .. } => None,
            UpdateAnswer::Failed { .. } | UpdateAnswer::Impossible { .. } => Some("unknown"),
        };
        let answer = self.timed(call, self.provider.update(Order { claim, class: class.as_ref() }), failed).await;
        info!(nodeclaim = &**claim.name(), answer = ?answer, "asked to change an instance as it runs");
        answer
    }

    /// Effects for the cloud, but for those that need the claim.
    pub async fn execute(&self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::Terminate { claim, provider_id } => {
                let answer = self.terminate("nodeclaim.lifecycle", &provider_id).await;
                info!(nodeclaim = %claim, provider_id = &*provider_id, answer = ?answer, "asked for the end of an instance");
                Some(Input::Terminated { claim, answer })
            }
            Effect::TerminateOrphan { provider_id } => {
                let answer = self.terminate("instance.garbagecollection", &provider_id).await;
                info!(provider_id = &*provider_id, answer = ?answer, "asked for the end of an instance without a claim");
                None
            }
            Effect::Reboot { claim, provider_id, operation } => {
                let answer = match self.provider.reboot(&provider_id, &operation).await {
                    Ok(()) => RebootAnswer::Accepted,
                    Err(error) => RebootAnswer::Failed { message: chain(&error).into() },
                };
                info!(nodeclaim = %claim, provider_id = &*provider_id, answer = ?answer, "asked for a reboot");
                Some(Input::Rebooted { claim, answer })
            }
            Effect::ListInstances => {
                let call = ("nodeclaim.garbagecollection", "List", "");
                answered(self.timed(call, self.provider.list(), unknown).await).map(Input::Instances)
            }
            Effect::FindInstance { provider_id } => {
                let call = ("node.termination", "Get", "");
                let exists = answered(self.timed(call, self.provider.find(&provider_id), unknown).await)?;
                Some(Input::InstanceFound { provider_id, exists })
            }
            Effect::CreateClaim(_)
            | Effect::PatchClaim(..)
            | Effect::DeleteClaim(_)
            | Effect::PatchNode(..)
            | Effect::DeleteNode(_)
            | Effect::PatchPool(..)
            | Effect::PatchOverlay(..)
            | Effect::PatchBuffer(..)
            | Effect::PatchWindow(..)
            | Effect::EvictPod(..)
            | Effect::DeletePod(..)
            | Effect::Publish(_)
            | Effect::Launch { .. }
            | Effect::PatchPod(..)
            | Effect::CheckDrift { .. }
            | Effect::RunHooks { .. }
            | Effect::UpdateInstance { .. } => None,
        }
    }

    async fn terminate(&self, controller: &'static str, provider_id: &str) -> TerminateAnswer {
        let failed = |answer: &TerminateAnswer| matches!(answer, TerminateAnswer::Failed { .. }).then_some("unknown");
        self.timed((controller, "Delete", ""), self.provider.terminate(provider_id), failed).await
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

/// The metric label `error`.
const fn launch_error(error: &LaunchError) -> &'static str {
    match error {
        LaunchError::InsufficientCapacity { .. } => "InsufficientCapacityError",
        LaunchError::ClassNotReady { .. } => "NodeClassNotReadyError",
        LaunchError::Failed { .. } => "CreateError",
    }
}

fn unknown<T, E>(answer: &Result<T, E>) -> Option<&'static str> {
    answer.is_err().then_some("unknown")
}

/// A question without an answer is asked again by the engine.
fn answered<T>(answer: Result<T, CloudError>) -> Option<T> {
    answer.inspect_err(|error| warn!(error = chain(error), "the provider did not answer")).ok()
}

/// An error and its causes, in one line. An error that already says its cause says it once: those of the Kubernetes client
/// repeat it at every level, with the whole answer of the server behind it.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = String::new();
    let mut link = Some(error);
    while let Some(error) = link {
        link = error.source();
        let own = error.to_string();
        let repeated = link.and_then(|cause| own.find(&cause.to_string()));
        let own = own[..repeated.unwrap_or(own.len())].trim_end_matches([':', ' ', '(']);
        if !text.is_empty() && !own.is_empty() {
            text.push_str(": ");
        }
        text.push_str(own);
    }
    text
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use kube::runtime::watcher;

    use super::*;

    #[test]
    fn the_log_had_the_servers_answer_three_times_in_one_line() {
        let status = Status::failure("storage is (re)initializing", "TooManyRequests").with_code(429).boxed();
        let error = watcher::Error::WatchStartFailed(kube::Error::Api(status));
        assert_eq!(
            chain(&error),
            "failed to start watching object: ApiError: storage is (re)initializing: TooManyRequests"
        );
    }

    #[test]
    fn a_node_that_admission_refused_filled_the_log_for_a_quarter_of_an_hour() {
        let (troubles, claim) = (Troubles::default(), Arc::from("a"));
        assert!(troubles.is_new(&claim, "refused"));
        assert!(!troubles.is_new(&claim, "refused"));
        assert!(troubles.is_new(&claim, "not reached"), "something else");
        troubles.over(&claim);
        assert!(troubles.is_new(&claim, "not reached"), "it had been well meanwhile");
    }

    #[test]
    fn an_error_that_does_not_say_its_cause_is_followed_by_it() {
        let error = CloudError { attempt: "list instances", source: "no route".into() };
        assert!(chain(&error).ends_with(": no route"), "{}", chain(&error));
    }
}
