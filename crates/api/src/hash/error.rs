//! Why an object has no hash: one field that the reference could not have decoded either.

use std::fmt;

use kerf_model::duration::ParseDurationError;
use kerf_model::quantity::ParseQuantityError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct HashError {
    /// Path from the root of the object, e.g. `spec.template.spec.taints[2].key`.
    pub field: String,
    pub problem: HashProblem,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HashProblem {
    #[error("not {0}")]
    WrongType(Expected),
    #[error(transparent)]
    Duration(ParseDurationError),
    #[error(transparent)]
    Quantity(ParseQuantityError),
    #[error("not an RFC 3339 time: {0:?}")]
    NotATime(String),
    #[error("not an alias of a known AMI family: {0:?}")]
    NotAnAlias(String),
    #[error("not a field of the typed kubelet configuration")]
    NotTyped,
}

/// The JSON type that a field must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Object,
    List,
    Text,
    Bool,
    I32,
    I64,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Object => "an object",
            Self::List => "a list",
            Self::Text => "a string",
            Self::Bool => "a boolean",
            Self::I32 => "a 32-bit integer",
            Self::I64 => "a 64-bit integer",
        })
    }
}

impl HashError {
    /// The field's own name is added by whoever read it, on the way up: see [`HashError::inside`].
    pub(super) fn here(problem: HashProblem) -> Self {
        Self { field: String::new(), problem }
    }

    pub(super) fn wrong_type(expected: Expected) -> Self {
        Self::here(HashProblem::WrongType(expected))
    }

    /// Prepends the name of the enclosing field.
    pub(super) fn inside(self, parent: &str) -> Self {
        let separator = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        Self { field: format!("{parent}{separator}{}", self.field), problem: self.problem }
    }
}
