//! The trait that every cloud implements.
//!
//! One method per cloud effect of the engine, and each may be called again after a crash, a lost answer or a restart:
//! an order that was carried out before is found and not carried out twice. Nothing here waits for a machine: what takes
//! time is asked about again.

use std::fmt;

use jiff::Timestamp;
use kerf_model::cloud::{
    CloudDrift, HookAnswer, Instance, Interruption, LaunchError, Launched, RepairPolicy, TerminateAnswer, UpdateAnswer,
};
use kerf_model::cluster::{ClassReadiness, NodeClaim, NodeClass, OfferingName};
use kerf_model::label::LabelRules;
use kerf_model::node_pool::{NodeClassRef, NodePool};

use crate::catalogue::InstanceTypes;

/// A cloud that nodes can come from.
///
/// Methods that call out return futures that any runtime can drive; implementations write them as `async fn`.
pub trait Provider: Send + Sync {
    /// The provider's node class, parsed: what all classes have in common, and its own settings.
    type Class: AsRef<NodeClass> + Send + Sync;

    /// For logs and metrics.
    fn name(&self) -> &'static str;

    /// The one kind of node class it serves. Pools and claims of other kinds are somebody else's.
    fn class_kind(&self) -> ClassKind;

    fn label_rules(&self) -> &LabelRules;

    /// When its nodes count as sick; see [`RepairPolicy`] for the rules of the set.
    fn repair_policies(&self) -> Vec<RepairPolicy>;

    /// What the pool could launch with the class, in an order that does not change. Types that cannot be had now are
    /// listed too: nodes of them may exist.
    fn instance_types(
        &self,
        pool: &NodePool,
        class: &Self::Class,
    ) -> impl Future<Output = Result<InstanceTypes, CloudError>> + Send;

    /// Makes the instance of a claim, or finds the one that was made for this claim (by its uid) before.
    fn launch(&self, order: Order<'_, Self::Class>) -> impl Future<Output = Result<Launched, LaunchError>> + Send;

    /// Asks for the end of an instance. Asked again until it is gone; an instance that never was is gone.
    fn terminate(&self, provider_id: &str) -> impl Future<Output = TerminateAnswer> + Send;

    /// Whether the instance still exists.
    fn find(&self, provider_id: &str) -> impl Future<Output = Result<bool, CloudError>> + Send;

    /// All our instances of this cluster.
    fn list(&self) -> impl Future<Output = Result<Vec<Instance>, CloudError>> + Send;

    /// Whether it has reasons of its own to call a claim drifted. Those that have none are never asked.
    fn has_drift(&self) -> bool {
        false
    }

    /// Why it would make the claim's instance otherwise today; `None` if it would not, and for a claim without an
    /// instance or a class.
    fn drift(
        &self,
        order: Order<'_, Self::Class>,
    ) -> impl Future<Output = Result<Option<CloudDrift>, CloudError>> + Send {
        let _ = order;
        std::future::ready(Ok(None))
    }

    /// Names of what must be done for the node of a claim before pods may run on it, beyond what all nodes need. Those
    /// that have none are never asked.
    fn registration_hooks(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether one of [`Provider::registration_hooks`] is done with a claim whose node has joined. Asked again while it is
    /// not, and after a crash also when it was.
    fn run_hook(
        &self,
        hook: &str,
        order: Order<'_, Self::Class>,
    ) -> impl Future<Output = Result<HookAnswer, CloudError>> + Send {
        let source = format!("this provider has no hook {hook}: {}", order.claim.name()).into();
        std::future::ready(Err(CloudError { attempt: "run a registration hook", source }))
    }

    /// Changes a claim's running instance to what it would be today, where the last answer of [`Provider::drift`] said
    /// that this needs no new instance. Asked for twice it changes nothing more.
    fn update(&self, order: Order<'_, Self::Class>) -> impl Future<Output = UpdateAnswer> + Send {
        let message = format!("this provider changes no running instances: {}", order.claim.name()).into();
        std::future::ready(UpdateAnswer::Impossible { message })
    }

    /// Boots an instance again. Asked for twice under one operation it is done once; answers when the order is taken,
    /// and not when it is carried out.
    fn reboot(&self, provider_id: &str, operation: &str) -> impl Future<Output = Result<(), CloudError>> + Send {
        let _ = operation;
        let source = format!("this provider does not reboot instances: {provider_id}").into();
        std::future::ready(Err(CloudError { attempt: "reboot an instance", source }))
    }

    /// Nothing is to be launched from these offerings until it is told otherwise: the cloud has just taken an instance
    /// back there. Replaces what was told before.
    fn avoid(&self, offerings: Vec<OfferingName>) {
        drop(offerings);
    }

    /// Whether there may ever be interruptions. Those that have none are never asked.
    fn has_interruptions(&self) -> bool {
        false
    }

    /// What the cloud has announced since the last call; calling again says that those before were taken in. After a
    /// crash some may be announced twice.
    fn interruptions(&self) -> impl Future<Output = Result<Vec<Interruption>, CloudError>> + Send;

    /// What the provider itself has to do about a claim over time: KWOK posts its Node, AWS will name its instance.
    /// Called with the claim as it is now, when it has changed and at the time given in the last answer; `None` says
    /// that there is nothing to do before the next change.
    fn tend(
        &self,
        order: Order<'_, Self::Class>,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<Timestamp>, CloudError>> + Send;
}

/// A claim, and the class it names.
#[derive(Debug)]
pub struct Order<'a, C> {
    pub claim: &'a NodeClaim,
    /// `None` if there is no such class.
    pub class: Option<&'a C>,
}

/// A kind of node class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassKind {
    pub group: &'static str,
    pub kind: &'static str,
}

/// Something asked of the cloud that came to nothing. It is asked again later.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempt}")]
pub struct CloudError {
    /// What was tried, like `list instances`.
    pub attempt: &'static str,
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl<'a, C: AsRef<NodeClass>> Order<'a, C> {
    /// The class to launch with, by the rules of all providers. What a class of unknown readiness means is up to each.
    ///
    /// # Errors
    /// A class that is missing or about to go counts as lack of capacity: the pods are scheduled anew, to other pools if
    /// need be.
    pub fn usable_class(&self) -> Result<&'a C, LaunchError> {
        let name = &self.claim.node.class.name;
        let no_capacity =
            |what| LaunchError::InsufficientCapacity { message: format!("the node class {name} {what}").into() };
        let class = self.class.ok_or_else(|| no_capacity("does not exist"))?;
        let common = class.as_ref();
        if common.meta.is_deleting() {
            return Err(no_capacity("is being deleted"));
        }
        match &common.readiness {
            ClassReadiness::NotReady { message, .. } => Err(LaunchError::ClassNotReady { message: message.clone() }),
            ClassReadiness::Ready | ClassReadiness::Unknown => Ok(class),
        }
    }
}

// Not derived: that would ask the class to be Copy.
impl<C> Clone for Order<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Order<'_, C> {}

impl ClassKind {
    pub fn is_kind_of(self, class: &NodeClassRef) -> bool {
        *class.group == *self.group && *class.kind == *self.kind
    }

    /// The label that names the class on claims and nodes. A node that carries it is one of ours.
    pub fn label(self) -> String {
        format!("{}/{}", self.group, self.kind.to_lowercase())
    }
}

impl fmt::Display for ClassKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind, self.group)
    }
}
