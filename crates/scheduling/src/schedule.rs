//! What a solve answers.

use std::sync::Arc;

use kerf_model::cluster::{Owner, Pod, Texts};
use kerf_model::effect::NewClaim;
use kerf_model::node_pool::NodeSpec;
use kerf_model::price::Price;
use kerf_model::requirement::Requirements;
use kerf_model::resources::ResourceList;

use crate::refusal::Unplaced;

/// A place for every pod, or the reason why there is none. Every pod of the problem is in exactly one of the lists.
#[derive(Debug, Clone, Default)]
pub struct Schedule {
    /// Hosts that get pods, in the order of attempts: initialised ones first, then by name.
    pub on_existing: Vec<OnHost>,
    /// In the order in which they were opened.
    pub new_claims: Vec<PlannedClaim>,
    /// Pods alike share their reason.
    pub unplaced: Vec<(Arc<Pod>, Arc<Unplaced>)>,
}

/// Something that runs or will run pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    Node(Arc<str>),
    /// A claim whose node has not joined yet.
    Claim(Arc<str>),
}

#[derive(Debug, Clone)]
pub struct OnHost {
    pub host: Host,
    /// Whether pods can start there at once.
    pub is_initialized: bool,
    pub pods: Vec<Arc<Pod>>,
}

/// A node to launch.
#[derive(Debug, Clone)]
pub struct PlannedClaim {
    pub pool: Arc<str>,
    pub owner: Owner,
    pub labels: Texts,
    pub annotations: Texts,
    /// The pool's template as it was read, with the requirements narrowed to what its pods need and to the options.
    pub node: NodeSpec,
    /// What may be launched, the cheapest first. Never empty.
    pub options: Vec<TypeOption>,
    /// Its pods and daemons.
    pub requests: ResourceList,
    pub pods: Vec<Arc<Pod>>,
    /// Whether there are fewer different values to choose from than the pool wants.
    pub min_values_relaxed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeOption {
    pub instance_type: Arc<str>,
    /// Of its cheapest offering that could be launched for the claim.
    pub price: Price,
}

impl Host {
    pub fn name(&self) -> &Arc<str> {
        match self {
            Self::Node(name) | Self::Claim(name) => name,
        }
    }
}

impl PlannedClaim {
    pub fn requirements(&self) -> &Requirements {
        &self.node.requirements
    }

    /// Of the cheapest option.
    pub fn price(&self) -> Option<Price> {
        self.options.first().map(|option| option.price)
    }

    /// The claim to create. `annotations` are what only the caller knows, like the hash of the pool; they win.
    pub fn to_new_claim(&self, name: Arc<str>, annotations: Texts) -> NewClaim {
        let mut all = self.annotations.clone();
        all.extend(annotations);
        NewClaim {
            name,
            labels: self.labels.clone(),
            annotations: all,
            owner: Some(self.owner.clone()),
            node: self.node.clone(),
            requests: self.requests.clone(),
        }
    }
}
