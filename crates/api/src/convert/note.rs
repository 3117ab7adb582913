//! What a conversion has to say, as data. Text is made here and nowhere else.

use std::fmt;
use std::sync::Arc;

use crate::manifest::Document;
use crate::rule_book::{RuleId, Source};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The result means something slightly different, or something was left out.
    Warning,
    /// The document stayed as it was, or the result needs a hand before it works.
    Error,
}

impl Severity {
    pub fn label(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    pub kind: String,
    pub name: String,
}

/// One finding with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub file: Arc<str>,
    pub line: usize,
    pub object: ObjectName,
    /// The field of the input, such as `spec.ttlSecondsAfterEmpty`.
    pub field: String,
    pub finding: Finding,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    UnknownField,
    WrongType { expected: &'static str },
    EmptinessAndConsolidation,
    ExpiryIsForceful,
    DriftIsOn,
    ProviderAndProviderRef,
    NoNodeClass { assumed: &'static str },
    LaunchTemplate,
    SelectorMissing { field: &'static str },
    IdsWithOtherKeys,
    AmiFamilyNeedsTerms { family: String },
    UnknownAmiFamily { family: String },
    MetadataOptionsIncomplete,
    RoleMissing,
    ForbiddenTag { key: String },
    ContainerRuntime,
    KubeletLeftOut { class: String, kubelet: String },
    KubeletWithoutClass { kubelet: String },
    NodeClassCopied { class: String, copy: String },
    ClaimLaunchesInstance,
    LegacyAnnotation { from: String, to: &'static str },
    AnnotationWithoutEqual { key: String },
    MaintenanceWindowMade { name: String },
    MaintenanceIncomplete,
    SettingsConfigMap,
    LegacyName { from: &'static str, to: &'static str, rewritten: bool },
}

impl Finding {
    pub fn id(&self) -> RuleId {
        match self {
            Self::UnknownField => RuleId::UnknownField,
            Self::WrongType { .. } => RuleId::WrongType,
            Self::EmptinessAndConsolidation => RuleId::EmptinessAndConsolidation,
            Self::ExpiryIsForceful => RuleId::ExpiryIsForceful,
            Self::DriftIsOn => RuleId::DriftIsOn,
            Self::ProviderAndProviderRef => RuleId::ProviderAndProviderRef,
            Self::NoNodeClass { .. } => RuleId::NoNodeClass,
            Self::LaunchTemplate => RuleId::LaunchTemplate,
            Self::SelectorMissing { .. } => RuleId::SelectorMissing,
            Self::IdsWithOtherKeys => RuleId::IdsWithOtherKeys,
            Self::AmiFamilyNeedsTerms { .. } => RuleId::AmiFamilyNeedsTerms,
            Self::UnknownAmiFamily { .. } => RuleId::UnknownAmiFamily,
            Self::MetadataOptionsIncomplete => RuleId::MetadataOptionsIncomplete,
            Self::RoleMissing => RuleId::RoleMissing,
            Self::ForbiddenTag { .. } => RuleId::ForbiddenTag,
            Self::ContainerRuntime => RuleId::ContainerRuntime,
            Self::KubeletLeftOut { .. } => RuleId::KubeletLeftOut,
            Self::KubeletWithoutClass { .. } => RuleId::KubeletWithoutClass,
            Self::NodeClassCopied { .. } => RuleId::NodeClassCopied,
            Self::ClaimLaunchesInstance => RuleId::ClaimLaunchesInstance,
            Self::LegacyAnnotation { .. } => RuleId::LegacyAnnotation,
            Self::AnnotationWithoutEqual { .. } => RuleId::AnnotationWithoutEqual,
            Self::MaintenanceWindowMade { .. } => RuleId::MaintenanceWindowMade,
            Self::MaintenanceIncomplete => RuleId::MaintenanceIncomplete,
            Self::SettingsConfigMap => RuleId::SettingsConfigMap,
            Self::LegacyName { .. } => RuleId::LegacyName,
        }
    }

    pub fn severity(&self) -> Severity {
        match self.id().source() {
            Source::ConversionError | Source::Rejection => Severity::Error,
            Source::ConversionWarning | Source::Warning => Severity::Warning,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField => f.write_str("has no equal in v1 and was left out"),
            Self::WrongType { expected } => write!(f, "should be {expected}; the document was not converted"),
            Self::EmptinessAndConsolidation => f.write_str(
                "cannot be set together with consolidation.enabled; remove one of the two; the document was not converted",
            ),
            Self::ExpiryIsForceful => f.write_str(
                "expiry used to wait for replacements; in v1 an expired node is drained at once, whatever the budgets say",
            ),
            Self::DriftIsOn => {
                f.write_str("drift used to be off by default and is always on in v1; --freeze-drift adds a budget against it")
            }
            Self::ProviderAndProviderRef => {
                f.write_str("cannot be set together with providerRef; the document was not converted")
            }
            Self::NoNodeClass { assumed } => {
                write!(f, "names no node template; the pool refers to the EC2NodeClass {assumed:?}, which has to exist")
            }
            Self::LaunchTemplate => f.write_str(
                "launch templates do not exist in v1: move their settings into the template's fields; the document was not converted",
            ),
            Self::SelectorMissing { field } => write!(f, "v1 needs {field}, which nothing here says; add it"),
            Self::IdsWithOtherKeys => {
                f.write_str("ids cannot be combined with other keys in v1; only the ids were kept")
            }
            Self::AmiFamilyNeedsTerms { family } => write!(
                f,
                "the family {family} has no default images in v1; add an amiSelector; the document was not converted"
            ),
            Self::UnknownAmiFamily { family } => {
                write!(f, "the family {family:?} is unknown in v1; the document was not converted")
            }
            Self::MetadataOptionsIncomplete => f.write_str(
                "fields that are absent get the defaults of v1: httpTokens required, httpPutResponseHopLimit 1, httpEndpoint enabled, httpProtocolIPv6 disabled",
            ),
            Self::RoleMissing => f.write_str(
                "names no instance profile, and the default one is gone in v1; fill in spec.role or pass --role",
            ),
            Self::ForbiddenTag { key } => write!(f, "the tag {key:?} is set by the controller in v1 and was left out"),
            Self::ContainerRuntime => f.write_str("the container runtime can no longer be chosen; left out"),
            Self::KubeletLeftOut { class, kubelet } => write!(
                f,
                "kubelet settings belong to the EC2NodeClass in v1, and {class:?} is not here to take them; add to its spec: kubelet: {kubelet}"
            ),
            Self::KubeletWithoutClass { kubelet } => {
                write!(f, "kubelet settings belong to the EC2NodeClass in v1; left out: {kubelet}")
            }
            Self::NodeClassCopied { class, copy } => write!(
                f,
                "other pools use the node class {class:?} with other kubelet settings; this pool got a copy of it, {copy:?}"
            ),
            Self::ClaimLaunchesInstance => f.write_str(
                "a running instance is not taken over by this text: applied, it launches a new one; let the pool replace its nodes instead",
            ),
            Self::LegacyAnnotation { from, to } => {
                write!(f, "{from} became {to}, which also holds back every other kind of voluntary disruption")
            }
            Self::AnnotationWithoutEqual { key } => {
                write!(f, "{key} has no equal in v1 and was left out; a MaintenanceWindow with a selector can do the same")
            }
            Self::MaintenanceWindowMade { name } => write!(f, "became the MaintenanceWindow {name:?}"),
            Self::MaintenanceIncomplete => {
                f.write_str("maintenanceCron and maintenanceDurationSeconds only work together; no window was made")
            }
            Self::SettingsConfigMap => {
                f.write_str("these settings are no longer read; they are flags and environment variables now")
            }
            Self::LegacyName { from, to, rewritten: true } => write!(f, "{from} became {to}"),
            Self::LegacyName { from, to, rewritten: false } => {
                write!(f, "{from} is called {to} in v1; left as it is (--rewrite-workloads changes it)")
            }
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, object, field, finding } = self;
        write!(f, "{file}:{line}: {}: {}/{} {field}: {finding}", finding.severity().label(), object.kind, object.name)
    }
}

/// Collects the findings about one document.
pub(super) struct Recorder<'a> {
    notes: &'a mut Vec<Note>,
    file: Arc<str>,
    line: usize,
    object: ObjectName,
}

impl<'a> Recorder<'a> {
    pub fn new(notes: &'a mut Vec<Note>, document: &Document) -> Self {
        let object = ObjectName { kind: document.kind().to_owned(), name: document.name().to_owned() };
        Self { notes, file: document.file.clone(), line: document.line, object }
    }

    pub fn add(&mut self, field: impl Into<String>, finding: Finding) {
        self.notes.push(Note {
            file: self.file.clone(),
            line: self.line,
            object: self.object.clone(),
            field: field.into(),
            finding,
        });
    }
}
