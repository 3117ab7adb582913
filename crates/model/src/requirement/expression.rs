//! Requirements as objects write them: a key, an operator and values.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

use super::range::Range;
use super::values::Values;
use super::{Allowed, Requirement};

/// How the values of an expression limit a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Gt,
    Lt,
    Gte,
    Lte,
}

/// One entry of `requirements` or `matchExpressions`, not yet checked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Expression {
    pub key: Arc<str>,
    pub operator: Operator,
    pub values: Vec<Arc<str>>,
    pub min_values: Option<u32>,
}

/// Why an expression means nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExpressionError {
    #[error("{key}: operator {operator} needs at least one value")]
    NoValues { key: Arc<str>, operator: Operator },
    #[error("{key}: operator {operator} takes no values")]
    UnexpectedValues { key: Arc<str>, operator: Operator },
    #[error("{key}: operator {operator} needs exactly one value, not {count}")]
    NotOneValue { key: Arc<str>, operator: Operator, count: usize },
    #[error("{key}: operator {operator} needs an integer, not {value:?}")]
    NotAnInteger { key: Arc<str>, operator: Operator, value: Arc<str> },
    #[error("{key}: operator {operator} cannot be used in a selector")]
    UnsupportedOperator { key: Arc<str>, operator: Operator },
}

/// The text is none of the operators.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown operator {0:?}")]
pub struct UnknownOperator(pub Box<str>);

impl Operator {
    pub const ALL: [Self; 8] =
        [Self::In, Self::NotIn, Self::Exists, Self::DoesNotExist, Self::Gt, Self::Lt, Self::Gte, Self::Lte];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::Gt => "Gt",
            Self::Lt => "Lt",
            Self::Gte => "Gte",
            Self::Lte => "Lte",
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Operator {
    type Err = UnknownOperator;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|operator| operator.as_str() == text).ok_or_else(|| UnknownOperator(text.into()))
    }
}

impl Expression {
    pub fn new<S: AsRef<str>>(key: &str, operator: Operator, values: impl IntoIterator<Item = S>) -> Self {
        Self {
            key: Arc::from(key),
            operator,
            values: values.into_iter().map(|value| Arc::from(value.as_ref())).collect(),
            min_values: None,
        }
    }

    /// The one integer that a comparison needs.
    pub(crate) fn integer(&self) -> Result<i64, ExpressionError> {
        let [value] = self.values.as_slice() else {
            return Err(ExpressionError::NotOneValue {
                key: Arc::clone(&self.key),
                operator: self.operator,
                count: self.values.len(),
            });
        };
        value.parse().map_err(|_| ExpressionError::NotAnInteger {
            key: Arc::clone(&self.key),
            operator: self.operator,
            value: Arc::clone(value),
        })
    }
}

impl TryFrom<&Expression> for Requirement {
    type Error = ExpressionError;

    /// The rules of the NodePool schema: `In` needs a value, a comparison needs one integer, the values of
    /// `Exists` and `DoesNotExist` are ignored. Key and value syntax is checked elsewhere (`label`).
    fn try_from(expression: &Expression) -> Result<Self, Self::Error> {
        let comparison = |range: Option<Range>| match range {
            Some(range) => Allowed::Except { values: Values::default(), range, absent: false },
            // Beyond the last integer: upstream reads `Gt` as DoesNotExist there, and `Lt` as no limit at all.
            None => Allowed::nothing(),
        };
        let allowed = match expression.operator {
            Operator::In if expression.values.is_empty() => {
                return Err(ExpressionError::NoValues {
                    key: Arc::clone(&expression.key),
                    operator: expression.operator,
                });
            }
            Operator::In => Allowed::Only(expression.values.iter().collect()),
            Operator::NotIn => {
                Allowed::Except { values: expression.values.iter().collect(), range: Range::default(), absent: true }
            }
            Operator::Exists => comparison(Some(Range::default())),
            Operator::DoesNotExist => Allowed::Absent,
            Operator::Gt => comparison(expression.integer()?.checked_add(1).map(Range::at_least)),
            Operator::Lt => comparison(expression.integer()?.checked_sub(1).map(Range::at_most)),
            Operator::Gte => comparison(Some(Range::at_least(expression.integer()?))),
            Operator::Lte => comparison(Some(Range::at_most(expression.integer()?))),
        };
        Ok(Self { key: Arc::clone(&expression.key), allowed, min_values: expression.min_values })
    }
}

impl Requirement {
    /// The entries that say the same as this requirement; together they parse back to it.
    ///
    /// One entry, or more where no single one can say it: both bounds, bounds with excluded values (upstream
    /// loses those), `Exists` with excluded values. A contradiction is `In` without values, which no API
    /// server and no parser here accepts: it must not be written.
    pub fn expressions(&self) -> Vec<Expression> {
        let entry = |operator, values: &[Arc<str>]| Expression {
            key: Arc::clone(&self.key),
            operator,
            values: values.to_vec(),
            min_values: self.min_values,
        };
        match &self.allowed {
            Allowed::Absent => vec![entry(Operator::DoesNotExist, &[])],
            Allowed::Only(values) => vec![entry(Operator::In, values.as_slice())],
            Allowed::Except { values, range, absent } => {
                let bound = |operator, bound: Option<i64>| {
                    bound.map(|bound| entry(operator, &[Arc::from(bound.to_string().as_str())]))
                };
                let exists = (range.is_unbounded() && !absent).then(|| entry(Operator::Exists, &[]));
                let excluded = (*absent || !values.is_empty()).then(|| entry(Operator::NotIn, values.as_slice()));
                [bound(Operator::Gte, range.gte), bound(Operator::Lte, range.lte), exists, excluded]
                    .into_iter()
                    .flatten()
                    .collect()
            }
        }
    }
}
