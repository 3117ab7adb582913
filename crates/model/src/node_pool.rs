//! Pools as a decision sees them: every text parsed, every default filled in.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::budget::BudgetList;
use crate::cluster::Texts;
use crate::duration::{GoDuration, NillableDuration};
use crate::label::{self, LabelRules};
use crate::requirement::Requirements;
use crate::resources::ResourceList;
use crate::taint::Taint;

/// Which nodes may be made, how many, and when they may be replaced.
#[derive(Debug)]
pub struct NodePool {
    pub name: Arc<str>,
    /// Pools of higher weight are tried first; 0 when the user gave none.
    pub weight: u32,
    pub size: PoolSize,
    /// Bounds on the pool's total; the resource `nodes` counts nodes.
    pub limits: ResourceList,
    pub labels: Texts,
    pub annotations: Texts,
    pub node: NodeSpec,
    pub disruption: Disruption,
    /// Takes no part in provisioning, voluntary disruption and expiration; its nodes keep running.
    pub disabled: bool,
}

impl NodePool {
    /// What the pool's claims are labelled with: the template's labels, pool and class, and a value for every label of the
    /// user's own that only a requirement names. `requirements` are the pool's, or narrower ones.
    pub fn claim_labels(&self, requirements: &Requirements, rules: &LabelRules) -> Texts {
        // Labels that stand in requirements only so that daemons and pods can be compared with them.
        let is_own = |key: &str| !rules.is_well_known(key) && !label::OF_NODES_ONLY.contains(&key);
        let own = requirements.iter().filter(|requirement| is_own(requirement.key()));
        let mut labels: Texts = own.filter_map(|own| Some((Arc::clone(own.key()), own.any()?))).collect();
        labels.extend(self.labels.clone());
        labels.insert(Arc::from(label::NODEPOOL), Arc::clone(&self.name));
        labels.insert(self.node.class.label_key(), Arc::clone(&self.node.class.name));
        labels
    }
}

/// What a node is to look like, in a pool's template and in a claim.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSpec {
    pub class: NodeClassRef,
    pub requirements: Requirements,
    pub taints: Vec<Taint>,
    /// Removed by their owners while the node starts; pods need not tolerate them.
    pub startup_taints: Vec<Taint>,
    pub expire_after: NillableDuration,
    /// How long a drain may take; `None` is for ever.
    pub termination_grace_period: Option<GoDuration>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeClassRef {
    pub group: Arc<str>,
    pub kind: Arc<str>,
    pub name: Arc<str>,
}

/// A provider's kind of node class: what tells its pools, claims and nodes from those of other controllers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassKind {
    pub group: Arc<str>,
    pub kind: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolSize {
    /// As many nodes as pods need.
    Dynamic,
    /// This many, whatever the pods need. Never consolidated.
    Static { replicas: u64 },
}

/// When nodes of a pool may be removed or replaced by choice.
#[derive(Debug)]
pub struct Disruption {
    /// Off: nothing of the pool is removed by choice, nor by expiry.
    pub enabled: bool,
    pub policy: ConsolidationPolicy,
    pub consolidate_after: NillableDuration,
    /// Off is `consolidate_after: Never` that keeps the configured time.
    pub consolidation_enabled: bool,
    /// Off: drift is still seen and shown, but not acted on.
    pub drift_enabled: bool,
    /// Drift chooses a node even if some of its pods block eviction; draining still honours them.
    pub drift_force_evict: bool,
    pub expiration_enabled: bool,
    pub budgets: BudgetList,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConsolidationPolicy {
    WhenEmpty,
    WhenEmptyOrUnderutilized,
    Balanced,
}

/// The text is none of the policies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown consolidation policy {0:?}: it is WhenEmpty, WhenEmptyOrUnderutilized or Balanced")]
pub struct UnknownConsolidationPolicy(pub String);

impl ConsolidationPolicy {
    pub const ALL: [Self; 3] = [Self::WhenEmpty, Self::WhenEmptyOrUnderutilized, Self::Balanced];

    pub const fn label(self) -> &'static str {
        match self {
            Self::WhenEmpty => "WhenEmpty",
            Self::WhenEmptyOrUnderutilized => "WhenEmptyOrUnderutilized",
            Self::Balanced => "Balanced",
        }
    }
}

impl FromStr for ConsolidationPolicy {
    type Err = UnknownConsolidationPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownConsolidationPolicy> {
        let known = Self::ALL.into_iter().find(|policy| policy.label() == text);
        known.ok_or_else(|| UnknownConsolidationPolicy(text.to_owned()))
    }
}

impl NodeClassRef {
    /// The label that tells claims and nodes of this kind of class: its presence makes a node ours.
    pub fn label_key(&self) -> Arc<str> {
        Arc::from(format!("{}/{}", self.group, self.kind.to_ascii_lowercase()))
    }
}

impl ClassKind {
    pub fn is_of(&self, class: &NodeClassRef) -> bool {
        self.group == class.group && self.kind == class.kind
    }

    /// See [`NodeClassRef::label_key`].
    pub fn label_key(&self) -> String {
        format!("{}/{}", self.group, self.kind.to_ascii_lowercase())
    }
}

impl fmt::Display for NodeClassRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}/{}", self.kind, self.group, self.name)
    }
}
