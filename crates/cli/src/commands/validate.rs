//! `kerf validate`.

use std::collections::BTreeSet;

use kerf_api::admission::{Admission, Outcome as Answer, Rejection};
use kerf_api::convert::{self, Note};
use kerf_api::crds;
use kerf_api::lint;
use kerf_api::manifest::Document;
use kerf_api::provider::{Provider, label_rules};
use kerf_api::rule_book::RuleId;
use kerf_model::label::LabelRules;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::commands::crds::ProviderName;
use crate::input::Input;
use crate::output::{self, Outcome, ReportFormat};

/// Say what the API server would say to manifests, without a cluster
///
/// Errors are what it would reject, and kinds that it no longer serves; the exit code is then 1. Warnings are what it
/// would accept and you may not want: settings the controller refuses later, schedules that never come, budgets without
/// limit outside their window, unknown fields, legacy annotations. Objects of other kinds are only looked at for legacy
/// labels and annotations.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// Check the label rules and kinds of this provider only
    #[arg(long, value_enum)]
    provider: Option<ProviderName>,
    /// Exit with 1 also when there are only warnings
    #[arg(long)]
    strict: bool,
    /// How to print the findings
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: ReportFormat,
}

const EXAMPLES: &str = "\
Examples:
  kerf validate -f pools/ -R
  helm template . | kerf validate -f - --provider aws --strict -o json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    objects: Vec<Checked>,
    /// Objects of kinds that no CRD of ours describes.
    not_checked: usize,
}

#[derive(Serialize)]
struct Checked {
    file: String,
    line: usize,
    kind: String,
    name: String,
    /// Whether the API server would accept it.
    valid: bool,
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Finding {
    severity: Severity,
    #[serde(serialize_with = "as_text")]
    rule: RuleId,
    field: String,
    message: String,
}

fn as_text<S: Serializer>(rule: &RuleId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(rule.as_str())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Error,
    Warning,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let read = args.input.read()?;
    let provider = args.provider.map(Provider::from);
    let checker = Checker::new(provider)?;
    let mut report = Report { objects: Vec::new(), not_checked: 0 };
    for document in read.documents.into_iter().flat_map(Document::flatten) {
        let checked = checker.check(document);
        // A workload without findings is no news.
        match checked.kind_is_ours || !checked.checked.findings.is_empty() {
            true => report.objects.push(checked.checked),
            false => report.not_checked += 1,
        }
    }
    match args.output {
        ReportFormat::Json => output::print_json(&report)?,
        ReportFormat::Text => output::print(&report.text())?,
    }
    let findings = match (report.count(Severity::Error), report.count(Severity::Warning)) {
        (0, 0) => Outcome::Fine,
        (0, _) if !args.strict => Outcome::Fine,
        (_, _) => Outcome::Findings,
    };
    Ok(read.outcome.max(findings))
}

struct Checker {
    admission: Admission,
    rules: LabelRules,
    /// The API groups of all our kinds, whatever the provider.
    groups: BTreeSet<String>,
}

struct CheckedDocument {
    checked: Checked,
    kind_is_ours: bool,
}

impl Checker {
    fn new(provider: Option<Provider>) -> anyhow::Result<Self> {
        let all = crds(None);
        let admission = match provider {
            None => Admission::new(&all)?,
            Some(_) => Admission::new(&crds(provider))?,
        };
        let groups = all.into_iter().map(|crd| crd.spec.group).collect();
        Ok(Self { admission, rules: label_rules(provider), groups })
    }

    fn check(&self, document: Document) -> CheckedDocument {
        let object = Value::Object(document.object.clone());
        let (file, line) = (document.file.to_string(), document.line);
        let (kind, name) = (document.kind().to_owned(), document.name().to_owned());
        let group = document.api_version().split('/').next().unwrap_or_default();
        let kind_is_ours = self.groups.contains(group);
        let (valid, findings) = if convert::is_legacy(&document) {
            (false, vec![legacy_kind(&document)])
        } else if kind_is_ours || kind.is_empty() || group.is_empty() {
            self.ask(&object)
        } else {
            let notes = convert::convert(vec![document], &convert::Options::default()).notes;
            (true, notes.into_iter().map(Finding::from).collect())
        };
        CheckedDocument { checked: Checked { file, line, kind, name, valid, findings }, kind_is_ours }
    }

    fn ask(&self, object: &Value) -> (bool, Vec<Finding>) {
        match self.admission.create(object) {
            Answer::Rejected(rejections) => {
                let finding = |rejection: Rejection| Finding {
                    severity: Severity::Error,
                    rule: rejection.rule.id(),
                    field: rejection.field,
                    message: rejection.message,
                };
                (false, rejections.into_iter().map(finding).collect())
            }
            Answer::Accepted(accepted) => {
                let unknown = accepted.pruned.into_iter().map(|field| Finding {
                    severity: Severity::Warning,
                    rule: RuleId::UnknownField,
                    message: "the schema has no such field: the API server drops it".into(),
                    field,
                });
                let advice = lint::lint(&accepted.object, &self.rules).into_iter().map(|warning| Finding {
                    severity: Severity::Warning,
                    rule: warning.advice.id(),
                    message: warning.advice.to_string(),
                    field: warning.field,
                });
                (true, unknown.chain(advice).collect())
            }
        }
    }
}

/// Of a kind that `kerf convert` knows, and v1 does not.
pub fn not_served(document: &Document) -> String {
    let (api_version, kind) = (document.api_version(), document.kind());
    format!("{api_version} {kind} is not served any more: `kerf convert` rewrites it for v1")
}

fn legacy_kind(document: &Document) -> Finding {
    Finding { severity: Severity::Error, rule: RuleId::LegacyKind, field: String::new(), message: not_served(document) }
}

impl From<Note> for Finding {
    fn from(note: Note) -> Self {
        Self {
            severity: Severity::Warning,
            rule: note.finding.id(),
            message: note.finding.to_string(),
            field: note.field,
        }
    }
}

impl Report {
    fn count(&self, severity: Severity) -> usize {
        let findings = self.objects.iter().flat_map(|object| &object.findings);
        findings.filter(|finding| finding.severity == severity).count()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for object in &self.objects {
            for finding in &object.findings {
                let severity = match finding.severity {
                    Severity::Error => "error",
                    Severity::Warning => "warning",
                };
                let field = if finding.field.is_empty() { String::new() } else { format!("{}: ", finding.field) };
                let Checked { file, line, kind, name, .. } = object;
                let Finding { message, rule, .. } = finding;
                let object = output::object_name(kind, name);
                text.push_str(&format!("{file}:{line}: {object}: {severity}: {field}{message} [{rule}]\n"));
            }
        }
        let [errors, warnings] = [Severity::Error, Severity::Warning].map(|severity| self.count(severity));
        text.push_str(&format!(
            "{} checked, {}, {}",
            output::count(self.objects.len(), "object"),
            output::count(errors, "error"),
            output::count(warnings, "warning"),
        ));
        if self.not_checked > 0 {
            text.push_str(&format!("; {} of other kinds passed over", self.not_checked));
        }
        text.push('\n');
        text
    }
}
