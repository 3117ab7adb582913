//! Disruptions that are proposed but not validated yet.

use std::fmt;
use std::sync::Arc;

use jiff::SignedDuration;
use kerf_model::cloud::Repair;
use kerf_model::cluster::Pod;
use kerf_model::effect::Target;
use kerf_model::node_pool::ConsolidationPolicy;
use kerf_model::price::Price;
use kerf_scheduling::{Host, PlannedClaim};

use crate::hash::fnv;
use crate::{Reason, View};

/// Nodes that should go together, and what must be there before they do.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// The same for the same method and nodes, in every round and after a restart.
    pub id: ProposalId,
    pub method: Method,
    pub reason: Reason,
    /// Never empty.
    pub candidates: Vec<Candidate>,
    pub action: Action,
    /// Existing hosts that will get the pods. To be nominated, so that nobody else takes the room or the host.
    pub lands_on: Vec<LandsOn>,
    /// Per hour; `None` where the method is not about money, or a price is unknown.
    pub savings: Option<Price>,
    /// How long to wait before [`validate`](crate::validate) is asked; zero means that it can be asked at once.
    pub hold: SignedDuration,
}

/// An existing host and the pods that are expected there.
#[derive(Debug, Clone)]
pub struct LandsOn {
    pub host: Host,
    pub pods: Vec<Arc<Pod>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProposalId(Arc<str>);

/// How it was found. In the order in which methods are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    Repair,
    Emptiness,
    StaticDrift,
    Drift,
    Rebalance,
    MultiNode,
    SingleNode,
}

/// A node that should go.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub claim: Target,
    pub node: Target,
    pub pool: Arc<str>,
    pub instance_type: Option<Arc<str>>,
    pub zone: Option<Arc<str>>,
    pub capacity_type: Option<Arc<str>>,
    /// Per hour, if it is known.
    pub price: Option<Price>,
    /// Pods that will have to run elsewhere.
    pub pods: Vec<Target>,
    /// If it goes because it is sick.
    pub repair: Option<Repair>,
    /// Of its pool, where the method is a consolidation.
    pub consolidation_policy: Option<ConsolidationPolicy>,
}

/// What becomes of the candidates. "Nothing" is the absence of a proposal.
#[derive(Debug, Clone)]
pub enum Action {
    /// Their pods fit elsewhere.
    Delete,
    /// These first, then the candidates go.
    Replace(Vec<PlannedClaim>),
    /// Delete without a replacement, because the replacement needs the place that the node holds.
    TerminateFirst(TerminateFirst),
    /// The node stays, and boots again.
    Reboot { condition: Arc<str>, condition_reason: Arc<str>, grace: Option<SignedDuration> },
}

/// Why a node must go before its replacement can come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TerminateFirst {
    NoReservedCapacity,
    StaticAtLimit,
}

impl Proposal {
    /// Claims that it removes or reboots.
    pub fn claims(&self) -> impl Iterator<Item = &Arc<str>> {
        self.candidates.iter().map(|candidate| &candidate.claim.name.name)
    }

    /// Nodes to launch before the candidates go.
    pub fn replacements(&self) -> &[PlannedClaim] {
        match &self.action {
            Action::Replace(claims) => claims,
            Action::Delete | Action::TerminateFirst(_) | Action::Reboot { .. } => &[],
        }
    }
}

/// What a method says about a proposal; the rest follows from its nodes.
pub(crate) struct OfProposal {
    pub(crate) method: Method,
    pub(crate) action: Action,
    pub(crate) savings: Option<Price>,
    pub(crate) repair: Option<Repair>,
}

impl OfProposal {
    pub(crate) fn new(method: Method, action: Action) -> Self {
        Self { method, action, savings: None, repair: None }
    }

    pub(crate) fn build(self, mut candidates: Vec<Candidate>, lands_on: Vec<LandsOn>, view: &View<'_>) -> Proposal {
        for candidate in &mut candidates {
            candidate.repair = self.repair.clone();
            candidate.consolidation_policy = candidate.consolidation_policy.filter(|_| self.method.is_consolidation());
        }
        Proposal {
            id: ProposalId::of(self.method, &self.action, &candidates),
            method: self.method,
            reason: self.method.reason(),
            hold: if self.method.is_consolidation() { view.settings.hold } else { SignedDuration::ZERO },
            candidates,
            action: self.action,
            lands_on,
            savings: self.savings,
        }
    }
}

impl ProposalId {
    pub(crate) fn of(method: Method, action: &Action, candidates: &[Candidate]) -> Self {
        let mut uids: Vec<&str> = candidates.iter().map(|candidate| &*candidate.claim.uid).collect();
        uids.sort_unstable();
        let parts = [method.label(), action.label()].into_iter().chain(uids);
        Self(Arc::from(format!("{:016x}", fnv(parts))))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// From where it was written down.
impl From<&str> for ProposalId {
    fn from(text: &str) -> Self {
        Self(Arc::from(text))
    }
}

impl fmt::Display for ProposalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Method {
    pub const ALL: [Self; 7] = [
        Self::Repair,
        Self::Emptiness,
        Self::StaticDrift,
        Self::Drift,
        Self::Rebalance,
        Self::MultiNode,
        Self::SingleNode,
    ];

    /// Stable; for JSON, the CLI and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Repair => "repair",
            Self::Emptiness => "emptiness",
            Self::StaticDrift => "static_drift",
            Self::Drift => "drift",
            Self::Rebalance => "rebalance",
            Self::MultiNode => "multi_node_consolidation",
            Self::SingleNode => "single_node_consolidation",
        }
    }

    /// For the reference page.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Repair => "Sick, by the provider's repair policies; needs the gate NodeRepair.",
            Self::Emptiness => "Without pods that matter.",
            Self::StaticDrift => "Drifted, in a pool with a fixed number of replicas.",
            Self::Drift => "Drifted: not what their pool and node class ask for any more.",
            Self::Rebalance => "Spot, and advised to be left by the cloud; only with the rebalance action Replace.",
            Self::MultiNode => "Several whose pods fit elsewhere, or on fewer or cheaper nodes.",
            Self::SingleNode => "One whose pods fit elsewhere, or on something cheaper.",
        }
    }

    /// What its nodes count as in budgets.
    pub const fn reason(self) -> Reason {
        match self {
            Self::Repair => Reason::Unhealthy,
            Self::Emptiness => Reason::Empty,
            Self::StaticDrift | Self::Drift | Self::Rebalance => Reason::Drifted,
            Self::MultiNode | Self::SingleNode => Reason::Underutilized,
        }
    }

    /// The metric label `consolidation_type`.
    pub const fn consolidation_type(self) -> &'static str {
        match self {
            Self::Emptiness => "empty",
            Self::MultiNode => "multi",
            Self::SingleNode => "single",
            Self::Repair | Self::StaticDrift | Self::Drift | Self::Rebalance => "",
        }
    }

    pub fn is_drift(self) -> bool {
        match self {
            Self::Drift | Self::StaticDrift => true,
            Self::Repair | Self::Emptiness | Self::Rebalance | Self::MultiNode | Self::SingleNode => false,
        }
    }

    /// For which reason its pools are left alone when replacements fail. Emptiness has none.
    pub(crate) fn backs_off(self) -> Option<Reason> {
        match self {
            Self::Repair => Some(Reason::Unhealthy),
            Self::Drift | Self::StaticDrift | Self::Rebalance => Some(Reason::Drifted),
            Self::MultiNode | Self::SingleNode => Some(Reason::Underutilized),
            Self::Emptiness => None,
        }
    }

    pub fn is_consolidation(self) -> bool {
        !self.consolidation_type().is_empty()
    }
}

impl Action {
    /// The metric label `decision`.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Replace(_) => "replace",
            Self::TerminateFirst(_) => "terminate-first",
            Self::Reboot { .. } => "reboot",
        }
    }
}

impl TerminateFirst {
    /// The metric label `terminate_first_reason`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::NoReservedCapacity => "no-reserved-capacity",
            Self::StaticAtLimit => "static-at-limit",
        }
    }
}
