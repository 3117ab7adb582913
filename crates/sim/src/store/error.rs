//! What the API says instead of doing something.

use std::fmt;

use kerf_model::cluster::ObjectName;
use serde_json::{Value, json};

use super::Kind;

/// A refusal, as Kubernetes gives it: an HTTP code, a reason for programs, a message for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    #[error("{} \"{}\" not found", .kind.facts().resource(), .name.name)]
    NotFound { kind: Kind, name: ObjectName },
    #[error("{} \"{}\" already exists", .kind.facts().resource(), .name.name)]
    AlreadyExists { kind: Kind, name: ObjectName },
    /// The object is not what the caller thinks it is.
    #[error("Operation cannot be fulfilled on {} \"{}\": {cause}", .cause.subject(*.kind), .name.name)]
    Conflict { kind: Kind, name: ObjectName, cause: Conflict },
    /// The object says something that it must not say.
    #[error("{} \"{name}\" is invalid: {}", qualified(*.kind), problems(.causes))]
    Invalid { kind: Kind, name: String, causes: Vec<FieldProblem> },
    #[error("{message}")]
    BadRequest { message: String },
    /// The patch cannot be applied to the object.
    #[error("the patch does not apply: {message}")]
    PatchRefused { message: String },
    #[error("{} \"{}\" is forbidden: {message}", .kind.facts().resource(), .name.name)]
    Forbidden { kind: Kind, name: ObjectName, message: String },
    #[error("{0}")]
    Eviction(#[from] EvictionRefusal),
    #[error("a {patch} patch cannot be applied to {}", .kind.facts().resource())]
    UnsupportedPatch { kind: Kind, patch: &'static str },
    /// A watch starts before what the log still remembers.
    #[error("{0}")]
    Expired(#[from] Gone),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    #[error("the object has been modified; please apply your changes to the latest version and try again")]
    Modified,
    #[error("Precondition failed: UID in precondition: {wanted}, UID in object meta: {actual}")]
    Uid { wanted: String, actual: String },
    #[error(
        "the UID in the precondition ({wanted}) does not match the UID in record ({actual}). \
         The object might have been deleted and then recreated"
    )]
    DeleteUid { wanted: String, actual: String },
    #[error(
        "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({actual}). \
         The object might have been modified"
    )]
    DeleteVersion { wanted: String, actual: String },
    #[error("pod {pod} is being deleted, cannot be assigned to a host")]
    PodIsDeleting { pod: String },
    #[error("pod {pod} is already assigned to node \"{node}\"")]
    PodIsBound { pod: String, node: String },
    #[error("pod {pod} has non-empty .spec.schedulingGates")]
    PodIsGated { pod: String },
}

impl Conflict {
    /// What the message calls the object's kind: the server is not consistent.
    fn subject(&self, kind: Kind) -> String {
        match self {
            Self::Modified | Self::Uid { .. } => kind.facts().resource(),
            Self::DeleteUid { .. } | Self::DeleteVersion { .. } => qualified(kind),
            Self::PodIsDeleting { .. } | Self::PodIsBound { .. } | Self::PodIsGated { .. } => "pods/binding".to_owned(),
        }
    }
}

/// Why a pod may not be evicted now. The texts are Kubernetes' own: callers tell the cases apart by them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvictionRefusal {
    #[error("Cannot evict pod as it would violate the pod's disruption budget.")]
    BudgetSpent { budget: String, needs: i64, has: i64 },
    #[error("Cannot evict pod as it would violate the pod's disruption budget.")]
    BudgetNotObserved { budget: String },
    #[error("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")]
    SeveralBudgets,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {wanted} ({oldest})")]
pub struct Gone {
    pub wanted: u64,
    pub oldest: u64,
}

/// One thing that is wrong with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// Empty for the object as a whole.
    pub field: String,
    pub message: String,
}

impl ApiError {
    pub fn code(&self) -> u16 {
        match self {
            Self::NotFound { .. } => 404,
            Self::AlreadyExists { .. } | Self::Conflict { .. } => 409,
            Self::Invalid { .. } | Self::PatchRefused { .. } => 422,
            Self::BadRequest { .. } => 400,
            Self::Forbidden { .. } => 403,
            Self::Eviction(EvictionRefusal::SeveralBudgets) => 500,
            Self::Eviction(EvictionRefusal::BudgetSpent { .. } | EvictionRefusal::BudgetNotObserved { .. }) => 429,
            Self::UnsupportedPatch { .. } => 415,
            Self::Expired(_) => 410,
        }
    }

    /// `reason` of the Status object; empty if the server gives none.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "NotFound",
            Self::AlreadyExists { .. } => "AlreadyExists",
            Self::Conflict { .. } => "Conflict",
            Self::Invalid { .. } | Self::PatchRefused { .. } => "Invalid",
            Self::BadRequest { .. } => "BadRequest",
            Self::Forbidden { .. } => "Forbidden",
            Self::Eviction(EvictionRefusal::SeveralBudgets) => "",
            Self::Eviction(EvictionRefusal::BudgetSpent { .. } | EvictionRefusal::BudgetNotObserved { .. }) => {
                "TooManyRequests"
            }
            Self::UnsupportedPatch { .. } => "UnsupportedMediaType",
            Self::Expired(_) => "Expired",
        }
    }

    /// The body of the answer.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "message": self.to_string(), "code": self.code(),
        });
        if !self.reason().is_empty() {
            status["reason"] = json!(self.reason());
        }
        if let Some(details) = self.details() {
            status["details"] = details;
        }
        status
    }

    fn details(&self) -> Option<Value> {
        match self {
            Self::NotFound { kind, name }
            | Self::AlreadyExists { kind, name }
            | Self::Conflict { kind, name, .. }
            | Self::Forbidden { kind, name, .. } => {
                let facts = kind.facts();
                Some(json!({"name": &*name.name, "group": facts.group, "kind": facts.plural}))
            }
            Self::Invalid { kind, name, causes } => {
                let facts = kind.facts();
                let causes: Vec<_> = causes
                    .iter()
                    .map(|cause| json!({"reason": "FieldValueInvalid", "field": cause.field, "message": cause.message}))
                    .collect();
                Some(json!({"name": name, "group": facts.group, "kind": facts.kind, "causes": causes}))
            }
            Self::Eviction(refusal) => {
                let message = match refusal {
                    EvictionRefusal::BudgetSpent { budget, needs, has } => {
                        format!("The disruption budget {budget} needs {needs} healthy pods and has {has} currently")
                    }
                    EvictionRefusal::BudgetNotObserved { budget } => {
                        format!("The disruption budget {budget} is still being processed by the server.")
                    }
                    EvictionRefusal::SeveralBudgets => return None,
                };
                Some(json!({"causes": [{"reason": "DisruptionBudget", "message": message}]}))
            }
            Self::BadRequest { .. } | Self::PatchRefused { .. } | Self::UnsupportedPatch { .. } | Self::Expired(_) => {
                None
            }
        }
    }
}

impl FieldProblem {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.message),
            field => write!(f, "{field}: {}", self.message),
        }
    }
}

fn qualified(kind: Kind) -> String {
    let facts = kind.facts();
    match facts.group {
        "" => facts.kind.to_owned(),
        group => format!("{}.{group}", facts.kind),
    }
}

fn problems(causes: &[FieldProblem]) -> String {
    match causes {
        [one] => one.to_string(),
        several => {
            let texts: Vec<_> = several.iter().map(FieldProblem::to_string).collect();
            format!("[{}]", texts.join(", "))
        }
    }
}
