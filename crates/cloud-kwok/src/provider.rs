//! Claims in, Nodes out.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use kerf_cloud::catalogue::KWOK_LABELS;
use kerf_cloud::choice::choose;
use kerf_cloud::{Catalogue, ClassKind, CloudError, InstanceTypes, Order, Provider};
use kerf_model::cloud::{
    Instance, Interruption, InterruptionCause, LaunchError, Launched, RepairPolicy, TerminateAnswer,
};
use kerf_model::cluster::{Node, NodeClaim, OfferingName, Texts};
use kerf_model::effect::{Target, WriteError};
use kerf_model::label::LabelRules;
use kerf_model::node_pool::NodePool;

use crate::api::NodeApi;
use crate::class::{CLASS_KIND, Due, KwokClass, due};
use crate::{node, repair};

#[derive(Debug)]
pub struct KwokProvider<A> {
    api: A,
    catalogue: Catalogue,
    rules: LabelRules,
    class_label: String,
    avoided: Mutex<Vec<OfferingName>>,
}

/// On a Node: what is announced about its instance, like `spot_interrupted`.
pub const INTERRUPTION: &str = "kwok.kerf.sh/interruption";

/// Of a spot instance, at AWS.
const NOTICE: SignedDuration = SignedDuration::from_mins(2);

/// Why the Node of a claim is not there.
#[derive(Debug, thiserror::Error)]
enum PostError {
    #[error("another node has the name {0}")]
    NameTaken(String),
    #[error("nothing can be chosen for the claim")]
    NoChoice(#[source] LaunchError),
    #[error("the API did not take the node")]
    Api(#[source] WriteError),
}

impl<A: NodeApi> KwokProvider<A> {
    pub fn new(api: A, catalogue: Catalogue) -> Self {
        let rules = LabelRules::core()
            .with_restricted_domain(CLASS_KIND.group)
            .with_well_known(KWOK_LABELS)
            .with_well_known(catalogue.label_keys().into_iter().map(AsRef::as_ref));
        Self { api, catalogue, rules, class_label: CLASS_KIND.label(), avoided: Mutex::default() }
    }

    /// Without what is to be avoided.
    fn types(&self) -> InstanceTypes {
        let avoided = self.avoided.lock().unwrap_or_else(PoisonError::into_inner);
        match avoided.is_empty() {
            true => Arc::clone(self.catalogue.types()),
            false => self.catalogue.types().iter().map(|kind| kind.without(&avoided)).collect(),
        }
    }

    async fn post(&self, claim: &NodeClaim, provider_id: &str) -> Result<(), PostError> {
        // Not the name we would choose: the claim may have been launched by Karpenter.
        let name = node::name_in(provider_id).unwrap_or_default();
        if let Some(there) = self.api.get(name).await.map_err(PostError::Api)? {
            let is_same = there.provider_id.as_deref() == Some(provider_id);
            return if is_same { Ok(()) } else { Err(PostError::NameTaken(name.to_owned())) };
        }
        let choice = choose(self.catalogue.types(), claim).map_err(PostError::NoChoice)?;
        match self.api.create(node::to_post(claim, &choice, name)).await {
            // Posted since we looked; by whom, the next look tells.
            Ok(()) | Err(WriteError::Conflict) => Ok(()),
            Err(error) => Err(PostError::Api(error)),
        }
    }

    /// The Node behind an id, if it is there. Behind an id that is not of this cloud there is none: a claim with one must
    /// be able to go.
    async fn node_of(&self, provider_id: &str) -> Result<Option<Node>, WriteError> {
        let Some(name) = node::name_in(provider_id) else { return Ok(None) };
        let found = self.api.get(name).await?;
        Ok(found.filter(|node| node.provider_id.as_deref() == Some(provider_id)))
    }

    /// Others may run nodes on KWOK as well: only those with a class of ours are listed, because what is listed and has no
    /// claim is collected.
    fn instance(&self, node: &Node) -> Option<Instance> {
        let provider_id = node.provider_id.clone().filter(|id| node::name_in(id).is_some())?;
        node.meta.label(&self.class_label)?;
        Some(Instance { provider_id, launched: node.meta.created, is_terminating: node.meta.is_deleting() })
    }
}

impl<A: NodeApi> Provider for KwokProvider<A> {
    type Class = KwokClass;

    fn name(&self) -> &'static str {
        "kwok"
    }

    fn class_kind(&self) -> ClassKind {
        CLASS_KIND
    }

    fn label_rules(&self) -> &LabelRules {
        &self.rules
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        repair::policies()
    }

    /// The same for every pool.
    async fn instance_types(&self, _pool: &NodePool, _class: &KwokClass) -> Result<InstanceTypes, CloudError> {
        Ok(Arc::clone(self.catalogue.types()))
    }

    /// Writes nothing: see the crate's page.
    async fn launch(&self, order: Order<'_, KwokClass>) -> Result<Launched, LaunchError> {
        order.usable_class()?;
        let types = self.types();
        let choice = choose(&types, order.claim)?;
        let provider_id = order.claim.status.provider_id.clone();
        let (key, value) = node::FAKE_NODE;
        Ok(Launched {
            provider_id: provider_id.unwrap_or_else(|| node::provider_id(&node::node_name(order.claim))),
            image_id: None,
            capacity: choice.capacity(),
            allocatable: choice.allocatable(),
            labels: node::labels(order.claim, &choice),
            annotations: Texts::from([(Arc::from(key), Arc::from(value))]),
        })
    }

    /// Upstream deletes the claim and says that the instance is gone, so a Node whose claim never registered stays.
    async fn terminate(&self, provider_id: &str) -> TerminateAnswer {
        let failed = |message: String| TerminateAnswer::Failed { message: message.into() };
        let node = match self.node_of(provider_id).await {
            Ok(Some(node)) if !node.meta.is_deleting() => node,
            Ok(Some(_) | None) => return TerminateAnswer::Gone,
            Err(error) => return failed(error.to_string()),
        };
        match self.api.delete(&Target::from(&node.meta)).await {
            Ok(()) => TerminateAnswer::Accepted,
            Err(WriteError::NotFound) => TerminateAnswer::Gone,
            Err(error) => failed(error.to_string()),
        }
    }

    /// True while the Node is there, be it on its way out: it is drained like any other. Upstream says no as soon as the
    /// deletion has begun, and a Node that is not ready then loses its pods without a drain.
    async fn find(&self, provider_id: &str) -> Result<bool, CloudError> {
        let found = self.node_of(provider_id).await;
        found.map(|node| node.is_some()).map_err(|source| CloudError { attempt: "find a node", source: source.into() })
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        let nodes = self.api.list().await;
        let nodes = nodes.map_err(|source| CloudError { attempt: "list nodes", source: source.into() })?;
        Ok(nodes.iter().filter_map(|node| self.instance(node)).collect())
    }

    /// A new boot id is all that can be seen of a reboot. It is made of the operation, so that a repeat changes nothing.
    async fn reboot(&self, provider_id: &str, operation: &str) -> Result<(), CloudError> {
        let failed = |source: WriteError| CloudError { attempt: "reboot a node", source: source.into() };
        let node = self.node_of(provider_id).await.map_err(failed)?;
        let node = node.ok_or(WriteError::NotFound).map_err(failed)?;
        self.api.set_boot_id(node.name(), &format!("kwok-{operation}")).await.map_err(failed)
    }

    fn avoid(&self, offerings: Vec<OfferingName>) {
        *self.avoided.lock().unwrap_or_else(PoisonError::into_inner) = offerings;
    }

    fn has_interruptions(&self) -> bool {
        true
    }

    /// Whoever wants to see one labels the Node. It is announced as long as the label is there, so that none is lost.
    async fn interruptions(&self) -> Result<Vec<Interruption>, CloudError> {
        let nodes = self.api.list_labelled(INTERRUPTION).await;
        let nodes = nodes.map_err(|source| CloudError { attempt: "list interrupted nodes", source: source.into() })?;
        let announced = nodes.iter().filter_map(|node| {
            let cause = InterruptionCause::named(node.meta.label(INTERRUPTION)?)?;
            let provider_id = self.instance(node)?.provider_id;
            Some(Interruption { provider_id, cause, notice: NOTICE })
        });
        Ok(announced.collect())
    }

    /// Posts the Node when it is due. One that goes before it has joined is posted again, as a kubelet would.
    async fn tend(&self, order: Order<'_, KwokClass>, now: Timestamp) -> Result<Option<Timestamp>, CloudError> {
        let Order { claim, class } = order;
        let Some(provider_id) = claim.status.provider_id.as_deref().filter(|id| node::name_in(id).is_some()) else {
            return Ok(None);
        };
        match due(claim, class) {
            Due::Never => Ok(None),
            Due::At(later) if now < later => Ok(Some(later)),
            Due::At(_) => {
                let posted = self.post(claim, provider_id).await;
                posted.map_err(|source| CloudError { attempt: "post the node of a claim", source: source.into() })?;
                Ok(None)
            }
        }
    }
}
