//! What a label may be, as an algebra: every limit that pods, pools, instance types and offerings put on a node.
//!
//! A [`Requirement`] stands for a set of values of one label, and says whether the label may be absent.
//! [`Requirements`] holds one of them per key and answers whether two sides can meet.
//!
//! The rules are those of upstream's `scheduling.Requirement` (sheet 02 §4), with one repair. Upstream keeps no
//! difference between "must be absent" and "nothing is possible": `In [a]` and `In [b]` together become
//! `DoesNotExist`, and such a pod is given a node without the label. It also forgets that a label must exist
//! once a value is excluded: `Exists` and `NotIn [a]` together pass on a node without it. Here absence is
//! tracked on its own, so the first matches nothing and the second still asks for the label.

mod expression;
mod intersection;
mod range;
mod set;
mod values;

use std::fmt;
use std::sync::Arc;

use range::Range;
use values::Values;

pub use expression::{Expression, ExpressionError, Operator, UnknownOperator};
pub use set::{Incompatible, Requirements, UndefinedKeys};

/// Longer lists are cut when shown: a pool may name hundreds of instance types.
const SHOWN_VALUES: usize = 5;

/// The values that one label may have, and how many of them must stay to choose from.
///
/// Two requirements built from the same limits are equal whatever the order of building, except that a bound
/// at the end of the 64-bit integers is kept although it only says "an integer".
/// Cloning costs two reference counts; `has` is a binary search plus, with bounds, parsing one integer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    key: Arc<str>,
    allowed: Allowed,
    min_values: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Allowed {
    /// The label must not be there.
    Absent,
    /// One of these. With none of them the requirement is a contradiction.
    Only(Values),
    /// Any value in the range but these; `absent` says whether the label may be missing, which no bound allows.
    Except { values: Values, range: Range, absent: bool },
}

impl Allowed {
    fn nothing() -> Self {
        Self::Only(Values::default())
    }
}

impl Requirement {
    /// From its written parts.
    ///
    /// # Errors
    /// `In` without values, or a comparison without exactly one integer.
    pub fn new<S: AsRef<str>>(
        key: &str,
        operator: Operator,
        values: impl IntoIterator<Item = S>,
    ) -> Result<Self, ExpressionError> {
        Self::try_from(&Expression::new(key, operator, values))
    }

    /// The label has one of the values; without values nothing can meet it.
    pub fn one_of<S: AsRef<str>>(key: impl Into<Arc<str>>, values: impl IntoIterator<Item = S>) -> Self {
        Self { key: key.into(), allowed: Allowed::Only(values.into_iter().collect()), min_values: None }
    }

    /// The same of values that are shared already: none is copied.
    pub fn one_of_shared(key: impl Into<Arc<str>>, values: Vec<Arc<str>>) -> Self {
        Self { key: key.into(), allowed: Allowed::Only(Values::shared(values)), min_values: None }
    }

    /// The label is absent, or has a value that is not listed.
    pub fn none_of<S: AsRef<str>>(key: impl Into<Arc<str>>, values: impl IntoIterator<Item = S>) -> Self {
        let values = values.into_iter().collect();
        Self {
            key: key.into(),
            allowed: Allowed::Except { values, range: Range::default(), absent: true },
            min_values: None,
        }
    }

    /// The label has any value.
    pub fn exists(key: impl Into<Arc<str>>) -> Self {
        let allowed = Allowed::Except { values: Values::default(), range: Range::default(), absent: false };
        Self { key: key.into(), allowed, min_values: None }
    }

    /// The label is absent.
    pub fn does_not_exist(key: impl Into<Arc<str>>) -> Self {
        Self { key: key.into(), allowed: Allowed::Absent, min_values: None }
    }

    /// With the number of different values that must remain to choose from.
    #[must_use]
    pub fn with_min_values(self, min_values: Option<u32>) -> Self {
        Self { min_values, ..self }
    }

    /// The same limit on another label; for aliases.
    #[must_use]
    pub fn with_key(self, key: impl Into<Arc<str>>) -> Self {
        Self { key: key.into(), ..self }
    }

    pub fn key(&self) -> &Arc<str> {
        &self.key
    }

    pub fn min_values(&self) -> Option<u32> {
        self.min_values
    }

    /// The operator that comes closest. Bounds alone read as `Exists`, bounds with excluded values as `NotIn`.
    pub fn operator(&self) -> Operator {
        match &self.allowed {
            Allowed::Absent => Operator::DoesNotExist,
            Allowed::Only(_) => Operator::In,
            Allowed::Except { values, absent, .. } if *absent || !values.is_empty() => Operator::NotIn,
            Allowed::Except { .. } => Operator::Exists,
        }
    }

    /// The values behind [`operator`](Self::operator), sorted: allowed ones for `In`, excluded ones for `NotIn`.
    pub fn values(&self) -> &[Arc<str>] {
        match &self.allowed {
            Allowed::Absent => &[],
            Allowed::Only(values) | Allowed::Except { values, .. } => values.as_slice(),
        }
    }

    /// The smallest integer allowed, when there is such a bound.
    pub fn lower_bound(&self) -> Option<i64> {
        self.range().gte
    }

    /// The largest integer allowed, when there is such a bound.
    pub fn upper_bound(&self) -> Option<i64> {
        self.range().lte
    }

    /// How many values are allowed; `None` when there is no end to them.
    pub fn count(&self) -> Option<usize> {
        match &self.allowed {
            Allowed::Absent => Some(0),
            Allowed::Only(values) => Some(values.as_slice().len()),
            Allowed::Except { .. } => None,
        }
    }

    /// Whether the label may have this value.
    pub fn has(&self, value: &str) -> bool {
        match &self.allowed {
            Allowed::Absent => false,
            Allowed::Only(values) => values.contains(value),
            Allowed::Except { values, range, .. } => !values.contains(value) && range.contains(value),
        }
    }

    /// Whether the label may be missing.
    pub fn allows_absence(&self) -> bool {
        match &self.allowed {
            Allowed::Absent => true,
            Allowed::Only(_) => false,
            Allowed::Except { absent, .. } => *absent,
        }
    }

    /// Whether nothing can meet this: no value is allowed, and neither is absence.
    pub fn is_contradiction(&self) -> bool {
        matches!(&self.allowed, Allowed::Only(values) if values.is_empty())
    }

    /// A value for a node of our own making: the first of the listed ones, or else the smallest number that is
    /// a valid label value, not excluded and within bounds. `None` where there is none (`Lt 0`: no label value
    /// starts with a minus).
    ///
    /// Upstream draws the number at random, may draw an excluded one and panics on `Lt 0`. A fixed choice keeps
    /// a plan equal to what is done, and nodes of one pool alike.
    pub fn any(&self) -> Option<Arc<str>> {
        match &self.allowed {
            Allowed::Absent => None,
            Allowed::Only(values) => values.as_slice().first().cloned(),
            Allowed::Except { values, range, .. } => {
                let first = range.gte.unwrap_or(0).max(0);
                // Each excluded value can rule out one number, so this ends one step after the last of them.
                (first..=range.lte.unwrap_or(i64::MAX))
                    .map(|number| number.to_string())
                    .find(|number| !values.contains(number))
                    .map(|number| Arc::from(number.as_str()))
            }
        }
    }

    fn range(&self) -> Range {
        match &self.allowed {
            Allowed::Except { range, .. } => *range,
            Allowed::Absent | Allowed::Only(_) => Range::default(),
        }
    }
}

/// `team NotIn [a b] >=3 <=9 minValues 2`; only the first values of a long list.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = self.operator();
        write!(f, "{} {operator}", self.key)?;
        if matches!(operator, Operator::In | Operator::NotIn) {
            let (shown, hidden) = self.values().split_at(self.values().len().min(SHOWN_VALUES));
            write!(f, " [{}", shown.join(" "))?;
            if !hidden.is_empty() {
                write!(f, " and {} others", hidden.len())?;
            }
            f.write_str("]")?;
        }
        let range = self.range();
        if operator == Operator::NotIn && range.is_unbounded() && !self.allows_absence() {
            f.write_str(" Exists")?;
        }
        if let Some(gte) = range.gte {
            write!(f, " >={gte}")?;
        }
        if let Some(lte) = range.lte {
            write!(f, " <={lte}")?;
        }
        if let Some(min_values) = self.min_values {
            write!(f, " minValues {min_values}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
