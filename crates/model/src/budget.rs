//! Disruption budgets: how many nodes of a pool may be disrupted at once, and why.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use crate::cron::{CronError, Schedule};
use crate::duration::{GoDuration, ParseDurationError};
use crate::window::Window;

/// The reasons that budgets know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DisruptionReason {
    Underutilized,
    Empty,
    Drifted,
    Unhealthy,
}

/// The reasons that one budget is about.
///
/// An empty list in the object means all reasons, like an absent one. (In the reference it means none, so that a budget
/// of `0` with `reasons: []` protects nothing.)
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons(BTreeSet<DisruptionReason>);

/// How many nodes a budget leaves to disruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetNodes {
    Count(u32),
    /// Of the pool's nodes, rounded up; at most 100.
    Percent(u8),
}

/// One entry of a pool's `disruption.budgets`. Without a window it always applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    pub nodes: BudgetNodes,
    pub reasons: Reasons,
    pub window: Option<Window>,
}

/// A budget as text, straight from the object.
#[derive(Clone, Copy, Debug, Default)]
pub struct BudgetText<'t> {
    pub nodes: &'t str,
    pub reasons: &'t [&'t str],
    pub schedule: Option<&'t str>,
    pub duration: Option<&'t str>,
    /// An IANA name; UTC without it.
    pub time_zone: Option<&'t str>,
}

/// A budget that nobody can read. It allows nothing for its reasons, all day.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("budget is not usable")]
pub struct BrokenBudget {
    /// Those it names; all if one of them is unknown.
    pub reasons: Reasons,
    #[source]
    pub error: BudgetError,
}

/// Why a budget is not usable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    #[error("nodes is {text:?}: use a number or a percentage from 0% to 100%")]
    Nodes { text: String },
    #[error("{text:?} is no disruption reason (use Underutilized, Empty, Drifted or Unhealthy)")]
    Reason { text: String },
    #[error("schedule and duration need each other")]
    HalfAWindow,
    #[error("schedule is not usable")]
    Schedule(#[from] CronError),
    #[error("duration is not usable")]
    Duration(#[from] ParseDurationError),
}

/// All budgets of a pool. No budgets at all: no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetList(Vec<Result<Budget, BrokenBudget>>);

/// How many nodes may be disrupted. Sorts by generosity, so that the strictest is the minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Allowance {
    AtMost(u32),
    Unlimited,
}

impl DisruptionReason {
    pub const ALL: [Self; 4] = [Self::Underutilized, Self::Empty, Self::Drifted, Self::Unhealthy];

    /// As written in the API and in events.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Underutilized => "Underutilized",
            Self::Empty => "Empty",
            Self::Drifted => "Drifted",
            Self::Unhealthy => "Unhealthy",
        }
    }

    /// The metric label `reason`.
    pub const fn metric(self) -> &'static str {
        match self {
            Self::Underutilized => "underutilized",
            Self::Empty => "empty",
            Self::Drifted => "drifted",
            Self::Unhealthy => "unhealthy",
        }
    }
}

impl fmt::Display for DisruptionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl FromStr for DisruptionReason {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let known = Self::ALL.into_iter().find(|reason| reason.label() == text);
        known.ok_or_else(|| BudgetError::Reason { text: text.to_owned() })
    }
}

impl Reasons {
    pub const ALL: Self = Self(BTreeSet::new());

    pub fn include(&self, reason: DisruptionReason) -> bool {
        self.0.is_empty() || self.0.contains(&reason)
    }
}

impl FromIterator<DisruptionReason> for Reasons {
    fn from_iter<I: IntoIterator<Item = DisruptionReason>>(reasons: I) -> Self {
        Self(reasons.into_iter().collect())
    }
}

impl FromStr for BudgetNodes {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let digits = text.strip_suffix('%').unwrap_or(text);
        // The standard parser would take a sign as well.
        let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u32>().ok()).flatten();
        let nodes = match number {
            Some(count) if digits.len() == text.len() => Some(Self::Count(count)),
            Some(percent) => u8::try_from(percent).ok().filter(|percent| *percent <= 100).map(Self::Percent),
            None => None,
        };
        nodes.ok_or_else(|| BudgetError::Nodes { text: text.to_owned() })
    }
}

impl fmt::Display for BudgetNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl BudgetNodes {
    /// The number for a pool of this many counted nodes.
    pub fn of(self, pool_nodes: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => {
                let nodes = (u64::from(pool_nodes) * u64::from(percent)).div_ceil(100);
                u32::try_from(nodes).unwrap_or(u32::MAX)
            }
        }
    }
}

impl Budget {
    /// Reads one entry of the object. The error keeps the reasons, so that it can limit just those.
    pub fn parse(text: BudgetText<'_>) -> Result<Self, BrokenBudget> {
        let reasons: Reasons = text
            .reasons
            .iter()
            .map(|reason| reason.parse())
            .collect::<Result<_, _>>()
            .map_err(|error| BrokenBudget { reasons: Reasons::ALL, error })?;
        match parse_limits(text) {
            Ok((nodes, window)) => Ok(Self { nodes, reasons, window }),
            Err(error) => Err(BrokenBudget { reasons, error }),
        }
    }

    /// What it allows now, to a pool of this many counted nodes.
    pub fn allowance(&self, pool_nodes: u32, now: Timestamp) -> Allowance {
        match &self.window {
            Some(window) if !window.is_active(now) => Allowance::Unlimited,
            Some(_) | None => Allowance::AtMost(self.nodes.of(pool_nodes)),
        }
    }
}

fn parse_limits(text: BudgetText<'_>) -> Result<(BudgetNodes, Option<Window>), BudgetError> {
    let nodes = text.nodes.parse()?;
    let window = match (text.schedule, text.duration) {
        (None, None) => None,
        (Some(schedule), Some(duration)) => {
            let schedule = Schedule::parse(schedule)?;
            let schedule = match text.time_zone {
                Some(name) => schedule.in_time_zone(name)?,
                None => schedule,
            };
            Some(Window { schedule, duration: duration.parse::<GoDuration>()? })
        }
        (Some(_), None) | (None, Some(_)) => return Err(BudgetError::HalfAWindow),
    };
    Ok((nodes, window))
}

impl BudgetList {
    /// The strictest of the budgets that are about this reason. A broken one allows nothing, but only for its own reasons
    /// (in the reference it stops every reason of the pool).
    pub fn allowance(&self, reason: DisruptionReason, pool_nodes: u32, now: Timestamp) -> Allowance {
        let allowances = self.0.iter().map(|entry| match entry {
            Ok(budget) if budget.reasons.include(reason) => budget.allowance(pool_nodes, now),
            Err(broken) if broken.reasons.include(reason) => Allowance::AtMost(0),
            Ok(_) | Err(_) => Allowance::Unlimited,
        });
        allowances.min().unwrap_or(Allowance::Unlimited)
    }

    /// When a window of a budget next opens or closes, so that an allowance may change.
    pub fn next_transition(&self, now: Timestamp) -> Option<Timestamp> {
        self.usable().filter_map(|budget| budget.window.as_ref()?.next_transition(now)).min()
    }

    /// As they stand in the object.
    pub fn entries(&self) -> impl Iterator<Item = Result<&Budget, &BrokenBudget>> {
        self.0.iter().map(Result::as_ref)
    }

    pub fn usable(&self) -> impl Iterator<Item = &Budget> {
        self.entries().filter_map(Result::ok)
    }

    pub fn broken(&self) -> impl Iterator<Item = &BrokenBudget> {
        self.entries().filter_map(Result::err)
    }
}

impl FromIterator<Result<Budget, BrokenBudget>> for BudgetList {
    fn from_iter<I: IntoIterator<Item = Result<Budget, BrokenBudget>>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl Allowance {
    /// What is left when so many nodes are already being disrupted or not ready.
    pub fn minus(self, consumed: u32) -> Self {
        match self {
            Self::AtMost(nodes) => Self::AtMost(nodes.saturating_sub(consumed)),
            Self::Unlimited => Self::Unlimited,
        }
    }
}
