//! What can be wrong with an admitted object. The text of every violation is made here.

use std::fmt;

use kerf_model::budget::BudgetError;
use kerf_model::cron::CronError;
use kerf_model::duration::{GoDuration, NillableDuration, ParseDurationError};
use kerf_model::label::{LabelSyntaxError, Restricted};
use kerf_model::maintenance::UnknownAction;
use kerf_model::node_pool::UnknownConsolidationPolicy;
use kerf_model::price::ParsePriceError;
use kerf_model::quantity::{ParseQuantityError, Quantity};
use kerf_model::requirement::{ExpressionError, UnknownOperator};
use kerf_model::resources::{ResourceList, ResourceName, ResourceOverflow};
use kerf_model::taint::Taint;

use crate::rule_book::RuleId;
use crate::schema::Quantities;

use super::Parsed;

/// An object that cannot be used, and everything that is wrong with it.
#[derive(Debug)]
pub struct ParseError {
    pub kind: &'static str,
    pub name: String,
    pub problems: Vec<Problem>,
}

/// A rule that a field breaks.
#[derive(Debug)]
pub struct Problem {
    /// Like `spec.template.spec.requirements[0].key`.
    pub field: String,
    pub violation: Violation,
}

#[derive(Debug, thiserror::Error)]
pub enum Violation {
    #[error(transparent)]
    Duration(ParseDurationError),
    #[error(transparent)]
    Quantity(ParseQuantityError),
    #[error(transparent)]
    Price(ParsePriceError),
    #[error("overlays add extended resources only")]
    NotExtended,
    #[error("not a label key: {0}")]
    LabelKey(LabelSyntaxError),
    #[error("not a label value: {0}")]
    LabelValue(LabelSyntaxError),
    #[error(transparent)]
    Restricted(Restricted),
    #[error("karpenter.sh/nodepool is set by the controller")]
    PoolLabel,
    #[error(transparent)]
    Operator(UnknownOperator),
    #[error(transparent)]
    Requirement(ExpressionError),
    #[error("{needed} different values must stay possible (minValues), and {given} are given")]
    MinValues { needed: u32, given: usize },
    #[error("none of the values is known; known are {}", .known.join(", "))]
    NoKnownValue { known: &'static [&'static str] },
    #[error("{} {} not known and ignored; known are {}", .unknown.join(", "), is_or_are(.unknown), .known.join(", "))]
    UnknownValues { unknown: Vec<String>, known: &'static [&'static str] },
    #[error("labels and requirements together become the requirements of a claim: {count} of at most {limit}")]
    TooManyRequirements { count: usize, limit: usize },
    #[error("unknown effect {0:?}: it is NoSchedule, PreferNoSchedule or NoExecute")]
    Effect(String),
    #[error("{0} is there twice: key and effect tell taints apart")]
    DuplicateTaint(Taint),
    #[error("the budget is not usable and allows nothing: {}", with_causes(.0))]
    Budget(BudgetError),
    #[error("the schedule {schedule:?} never comes, so the budget limits nothing")]
    BudgetNeverActive { schedule: String },
    #[error("an empty list of reasons means all reasons here, and none to Karpenter: leave it out, or name them")]
    EmptyReasons,
    #[error("{}", with_causes(.0))]
    Schedule(CronError),
    #[error("the schedule {schedule:?} never comes")]
    NeverActive { schedule: String },
    #[error("schedule or cron must be given, not both")]
    OneScheduleExpected,
    #[error(transparent)]
    Action(UnknownAction),
    #[error(transparent)]
    ConsolidationPolicy(UnknownConsolidationPolicy),
    #[error("{0} is out of range")]
    OutOfRange(i64),
    #[error("{0:?} is not known here")]
    Unknown(String),
    #[error(transparent)]
    TooMuch(ResourceOverflow),
    #[error("does not decode: {0}")]
    Undecodable(String),
}

impl Violation {
    pub fn id(&self) -> RuleId {
        match self {
            Self::Duration(_) => RuleId::Duration,
            Self::Quantity(_) => RuleId::Quantity,
            Self::Price(_) => RuleId::Price,
            Self::NotExtended => RuleId::NotExtended,
            Self::LabelKey(_) => RuleId::LabelKey,
            Self::LabelValue(_) => RuleId::LabelValue,
            Self::Restricted(_) => RuleId::RestrictedLabel,
            Self::PoolLabel => RuleId::PoolLabel,
            Self::Operator(_) => RuleId::Operator,
            Self::Requirement(_) => RuleId::Requirement,
            Self::MinValues { .. } => RuleId::MinValues,
            Self::NoKnownValue { .. } => RuleId::NoKnownValue,
            Self::UnknownValues { .. } => RuleId::UnknownValues,
            Self::TooManyRequirements { .. } => RuleId::TooManyRequirements,
            Self::Effect(_) => RuleId::Effect,
            Self::DuplicateTaint(_) => RuleId::DuplicateTaint,
            Self::Budget(_) => RuleId::Budget,
            Self::BudgetNeverActive { .. } => RuleId::BudgetNeverActive,
            Self::EmptyReasons => RuleId::EmptyReasons,
            Self::Schedule(_) => RuleId::Schedule,
            Self::NeverActive { .. } => RuleId::NeverActive,
            Self::OneScheduleExpected => RuleId::OneScheduleExpected,
            Self::Action(_) => RuleId::Action,
            Self::ConsolidationPolicy(_) => RuleId::ConsolidationPolicy,
            Self::OutOfRange(_) => RuleId::OutOfRange,
            Self::Unknown(_) => RuleId::UnknownValue,
            Self::TooMuch(_) => RuleId::TooMuch,
            Self::Undecodable(_) => RuleId::Undecodable,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.violation)
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems: Vec<String> = self.problems.iter().map(Problem::to_string).collect();
        write!(f, "{} {} is not usable: {}", self.kind, self.name, problems.join("; "))
    }
}

impl std::error::Error for ParseError {}

/// Gathers problems while an object is read; decides at the end whether it is usable.
#[derive(Default)]
pub(super) struct Collector {
    fatal: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Collector {
    pub fn refuse(&mut self, field: impl Into<String>, violation: Violation) {
        self.fatal.push(Problem { field: field.into(), violation });
    }

    pub fn warn(&mut self, field: impl Into<String>, violation: Violation) {
        self.warnings.push(Problem { field: field.into(), violation });
    }

    /// The value, or `None` with the problem noted.
    pub fn take<T, E>(&mut self, field: &str, result: Result<T, E>, violation: fn(E) -> Violation) -> Option<T> {
        result.map_err(|error| self.refuse(field, violation(error))).ok()
    }

    pub fn duration(&mut self, field: &str, text: &str) -> Option<GoDuration> {
        self.take(field, text.parse(), Violation::Duration)
    }

    pub fn nillable_duration(&mut self, field: &str, text: &str) -> Option<NillableDuration> {
        self.take(field, text.parse(), Violation::Duration)
    }

    pub fn resources(&mut self, field: &str, quantities: Option<&Quantities>) -> ResourceList {
        let mut list = ResourceList::new();
        for (name, text) in quantities.into_iter().flatten() {
            let amount = text.to_string().parse::<Quantity>();
            if let Some(amount) = self.take(&format!("{field}[{name}]"), amount, Violation::Quantity) {
                list.insert(ResourceName::from(name.clone()), amount);
            }
        }
        list
    }

    /// All of them, for an object that is used whatever is wrong with it.
    pub fn into_problems(self) -> impl Iterator<Item = Problem> {
        self.fatal.into_iter().chain(self.warnings)
    }

    /// `value` is `None` only if a problem was noted.
    pub fn finish<T>(self, kind: &'static str, name: &str, value: Option<T>) -> Result<Parsed<T>, ParseError> {
        match value {
            Some(value) if self.fatal.is_empty() => Ok(Parsed { value, warnings: self.warnings }),
            Some(_) | None => {
                let problems = self.fatal.into_iter().chain(self.warnings).collect();
                Err(ParseError { kind, name: name.to_owned(), problems })
            }
        }
    }
}

fn is_or_are(values: &[String]) -> &'static str {
    if values.len() == 1 { "is" } else { "are" }
}

/// The error and what it stands on, in one line: a condition message has no source chain.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
