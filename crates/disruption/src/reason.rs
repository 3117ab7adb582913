//! Why a node stays: every gate of every method, as data. Text is made here and nowhere else.

mod text;

use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::budget::Allowance;
use kerf_model::cluster::ObjectName;
use kerf_model::maintenance;
use kerf_model::price::Price;
use kerf_scheduling::Host;

use crate::{ProposalId, Reason};

pub use text::ReasonText;

/// Why a node stays. Of several reasons the one that is told is that of the method that came furthest.
#[derive(Debug, Clone, PartialEq)]
pub enum KeepReason {
    // The cluster does not show a whole node.
    NotLaunched,
    NoNode,
    NotRegistered,
    NotInitialized,
    Rebooting,
    /// It was launched by a command that is still under way.
    Replacement {
        command: ProposalId,
    },

    // Somebody asked for it to stay.
    Nominated {
        until: Timestamp,
    },
    /// It was to go, and its marks could not be written.
    NotMarked {
        until: Timestamp,
    },
    DoNotDisrupt {
        annotation: &'static str,
        until: Option<Timestamp>,
    },
    DoNotConsolidate,
    DoNotRepair,
    /// `until` is `None` if it is for ever.
    ProtectedPod {
        pod: ObjectName,
        until: Option<Timestamp>,
    },
    PdbBlocks {
        pod: ObjectName,
        pdb: ObjectName,
    },
    SeveralPdbs {
        pod: ObjectName,
        pdbs: Vec<ObjectName>,
    },
    /// The evictions that the budget allows now are needed for other nodes of this round.
    PdbTaken {
        pdb: ObjectName,
    },
    Window {
        window: Arc<str>,
        action: maintenance::Action,
        until: Option<Timestamp>,
        /// Why it cannot be read, if it cannot: then it holds back everything.
        problem: Option<Arc<str>>,
    },
    BudgetSpent {
        pool: Arc<str>,
        reason: Reason,
        allowed: Allowance,
        consuming: u32,
    },

    // Its pool does not take part.
    NoPool,
    PoolMissing {
        pool: Arc<str>,
    },
    PoolInvalid {
        pool: Arc<str>,
        why: Arc<str>,
    },
    NoInstanceTypes {
        pool: Arc<str>,
    },
    PoolDisabled {
        pool: Arc<str>,
    },
    DisruptionDisabled {
        pool: Arc<str>,
    },
    ConsolidationDisabled {
        pool: Arc<str>,
    },
    DriftDisabled {
        pool: Arc<str>,
    },
    OnlyWhenEmpty {
        pool: Arc<str>,
    },
    StaticPool {
        pool: Arc<str>,
    },

    // Not yet.
    /// `None` until a time is known: the claim has no condition `Consolidatable`.
    NotSettled {
        until: Option<Timestamp>,
    },
    Tolerated {
        condition: Arc<str>,
        until: Timestamp,
    },
    BackedOff {
        pool: Arc<str>,
        reason: Reason,
        until: Timestamp,
    },
    Baking {
        pool: Arc<str>,
        until: Option<Timestamp>,
    },
    RolloutHalted {
        pool: Arc<str>,
        failures: u32,
    },
    RecentlyMoved {
        moves: u32,
        until: Timestamp,
    },
    /// Another move of this round or one under way lands on it.
    Destination {
        command: ProposalId,
    },
    /// Possible, but not in the same round as others that were better.
    NextRound,
    /// With the reference's choices a round ends with the first disruption that is found.
    NotExamined,

    // It is needed, or nothing better can be had.
    BuffersHere {
        pods: u32,
    },
    PodsHaveNoPlace {
        pods: Vec<(ObjectName, Arc<str>)>,
        more: usize,
    },
    DestinationNotReady {
        pod: ObjectName,
        host: Host,
    },
    TooManyReplacements {
        nodes: usize,
    },
    UnknownType,
    NoCapacityType,
    NoZone,
    UnknownPrice,
    /// `cheapest` is what its replacement may cost at worst.
    NoCheaper {
        price: Price,
        cheapest: Option<Price>,
    },
    MinValues {
        key: Arc<str>,
        wanted: u32,
        found: u32,
    },
    SpotToSpotDisabled,
    TooFewSpotTypes {
        found: usize,
        wanted: usize,
    },
    SameType,
    BelowFloor {
        savings: Price,
        floor: Price,
    },
    BelowScore {
        pool: Arc<str>,
        score: f64,
        threshold: f64,
    },
    WouldBeUndone,
    /// A replacement would not earn back what it costs to have both for a while. `until` is when it expires.
    ExpiresFirst {
        savings: Price,
        until: Timestamp,
    },

    // Static pools and repair.
    StaticScalesDown {
        pool: Arc<str>,
        running: u64,
        replicas: u64,
    },
    StaticAtLimit {
        pool: Arc<str>,
        limit: u64,
    },
    TooManyUnhealthy {
        pool: Arc<str>,
        unhealthy: u32,
        nodes: u32,
        allowed: u32,
    },
    /// Its pods would block the drain for ever, and nobody set a deadline.
    RepairNeedsDeadline {
        blocker: Box<KeepReason>,
    },
}

impl KeepReason {
    /// Metric label, JSON and CLI column.
    pub fn label(&self) -> &'static str {
        self.text().label
    }

    /// When it ends by itself, if that is known.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Nominated { until }
            | Self::NotMarked { until }
            | Self::Tolerated { until, .. }
            | Self::BackedOff { until, .. }
            | Self::RecentlyMoved { until, .. }
            | Self::ExpiresFirst { until, .. } => Some(*until),
            Self::DoNotDisrupt { until, .. }
            | Self::ProtectedPod { until, .. }
            | Self::Window { until, .. }
            | Self::NotSettled { until }
            | Self::Baking { until, .. } => *until,
            Self::RepairNeedsDeadline { blocker } => blocker.until(),
            Self::NotLaunched
            | Self::NoNode
            | Self::NotRegistered
            | Self::NotInitialized
            | Self::Rebooting
            | Self::Replacement { .. }
            | Self::DoNotConsolidate
            | Self::DoNotRepair
            | Self::PdbBlocks { .. }
            | Self::SeveralPdbs { .. }
            | Self::PdbTaken { .. }
            | Self::BudgetSpent { .. }
            | Self::NoPool
            | Self::PoolMissing { .. }
            | Self::PoolInvalid { .. }
            | Self::NoInstanceTypes { .. }
            | Self::PoolDisabled { .. }
            | Self::DisruptionDisabled { .. }
            | Self::ConsolidationDisabled { .. }
            | Self::DriftDisabled { .. }
            | Self::OnlyWhenEmpty { .. }
            | Self::StaticPool { .. }
            | Self::RolloutHalted { .. }
            | Self::Destination { .. }
            | Self::NextRound
            | Self::NotExamined
            | Self::BuffersHere { .. }
            | Self::PodsHaveNoPlace { .. }
            | Self::DestinationNotReady { .. }
            | Self::TooManyReplacements { .. }
            | Self::UnknownType
            | Self::NoCapacityType
            | Self::NoZone
            | Self::UnknownPrice
            | Self::NoCheaper { .. }
            | Self::MinValues { .. }
            | Self::SpotToSpotDisabled
            | Self::TooFewSpotTypes { .. }
            | Self::SameType
            | Self::BelowFloor { .. }
            | Self::BelowScore { .. }
            | Self::WouldBeUndone
            | Self::StaticScalesDown { .. }
            | Self::StaticAtLimit { .. }
            | Self::TooManyUnhealthy { .. } => None,
        }
    }
}
