//! The text of a scenario into values, or what is wrong with it and where.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use kerf_model::cluster::ObjectName;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use super::expectation::{Expectation, PodState, Subject, When};
use super::value::{Amount, Elapsed};
use super::{Action, CatalogueName, Manifest, Reference, Scenario, TimedAction, Which};
use crate::store::Kind;

/// What is wrong with a scenario, and on which line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct ScenarioError {
    pub file: String,
    pub line: u64,
    pub problem: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct FileText {
    name: String,
    description: String,
    #[serde(default = "default_seed")]
    seed: u64,
    #[serde(default)]
    catalogue: CatalogueName,
    duration: Elapsed,
    objects: Vec<Spanned<Value>>,
    #[serde(default)]
    script: Vec<Spanned<StepText>>,
}

fn default_seed() -> u64 {
    1
}

/// One entry of the script: a time and what is done or expected then.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct StepText {
    at: Option<Elapsed>,
    by: Option<Elapsed>,
    from: Option<Elapsed>,
    to: Option<Elapsed>,
    note: Option<String>,
    apply: Option<Vec<Spanned<Value>>>,
    delete: Option<ReferenceText>,
    scale: Option<ScaleText>,
    patch: Option<PatchText>,
    expect: Option<ExpectText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ReferenceText {
    kind: String,
    name: Option<String>,
    namespace: Option<String>,
    pick: Option<PickText>,
    #[serde(rename = "as")]
    alias: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum PickText {
    Oldest,
    Newest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ScaleText {
    kind: String,
    name: String,
    namespace: Option<String>,
    replicas: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PatchText {
    target: ReferenceText,
    merge: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ExpectText {
    pods: Option<PodsText>,
    nodes: Option<Amount>,
    claims: Option<Amount>,
    evictions: Option<Amount>,
    gone: Option<String>,
    there: Option<String>,
    condition: Option<ConditionText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PodsText {
    #[serde(default)]
    labels: BTreeMap<String, String>,
    pending: Option<Amount>,
    running: Option<Amount>,
    ready: Option<Amount>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ConditionText {
    kind: String,
    name: String,
    namespace: Option<String>,
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

/// What is wrong with one entry; its line is known one level up.
type Read<T> = Result<T, String>;

pub(super) fn read(file: &str, text: &str) -> Result<Scenario, ScenarioError> {
    let error = |line: u64, problem: String| ScenarioError { file: file.to_owned(), line, problem };
    let raw: FileText = serde_saphyr::from_str(text).map_err(|cause| {
        let line = cause.location().map_or(1, |location| location.line());
        error(line, plain_message(&cause))
    })?;
    let mut scenario = Scenario {
        file: file.to_owned(),
        name: raw.name,
        description: raw.description,
        seed: raw.seed,
        catalogue: raw.catalogue,
        duration: raw.duration.0,
        objects: Vec::new(),
        actions: Vec::new(),
        expectations: Vec::new(),
    };
    for (index, object) in raw.objects.into_iter().enumerate() {
        let line = object.referenced.line();
        let read = manifest(object).map_err(|problem| error(line, format!("objects[{index}]: {problem}")))?;
        scenario.objects.push(read);
    }
    // Where `by` begins to look: at what the script did or asked before it.
    let mut before = SignedDuration::ZERO;
    let mut aliases: Vec<String> = Vec::new();
    for (index, step) in raw.script.into_iter().enumerate() {
        let line = step.referenced.line();
        let at_line = |problem| error(line, format!("script[{index}]: {problem}"));
        let step = step.value;
        let [at, by, from, to] = [step.at, step.by, step.from, step.to].map(|time| time.map(|time| time.0));
        // What must always hold may stand anywhere.
        if at.or(by).is_some_and(|at| at < before) {
            return Err(at_line("stands after a later one: the script is in the order of time".to_owned()));
        }
        if [at, by, from, to].into_iter().flatten().any(|at| at > scenario.duration) {
            return Err(at_line("is later than the duration of the scenario".to_owned()));
        }
        if step.expect.is_some() {
            let expectations = expectations(step, line, before).map_err(at_line)?;
            if let Some(unknown) = expectations.iter().find_map(|one| unnamed(&one.what, &aliases)) {
                return Err(at_line(format!("nothing before it is named {unknown:?} (`as: {unknown}`)")));
            }
            scenario.expectations.extend(expectations);
        } else {
            let action = action(step, line).map_err(at_line)?;
            aliases.extend(action.alias().map(str::to_owned));
            scenario.actions.push(action);
        }
        before = at.unwrap_or(before);
    }
    Ok(scenario)
}

/// The message without the excerpt of the text and the position that errors carry: the position stands before it.
fn plain_message(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.rsplit_once(" at line ").map_or(line, |(message, _)| message).to_owned()
}

fn action(step: StepText, line: u64) -> Read<TimedAction> {
    let StepText { at, by, from, to, note, apply, delete, scale, patch, expect: _ } = step;
    let (Some(Elapsed(at)), None, None, None) = (at, by, from, to) else {
        return Err("an action needs `at`, and no `by`, `from` or `to`".to_owned());
    };
    let action = match (apply, delete, scale, patch) {
        (Some(objects), None, None, None) => {
            Action::Apply(objects.into_iter().map(manifest).collect::<Read<Vec<_>>>()?)
        }
        (None, Some(target), None, None) => Action::Delete(reference(target)?),
        (None, None, Some(scale), None) => {
            let kind = kind(&scale.kind)?;
            if !matches!(kind, Kind::Deployment | Kind::ReplicaSet | Kind::StatefulSet | Kind::NodePool) {
                return Err(format!("scale: a {} has no replicas", scale.kind));
            }
            Action::Scale { kind, name: object_name(kind, scale.name, scale.namespace), replicas: scale.replicas }
        }
        (None, None, None, Some(patch)) => Action::Patch { target: reference(patch.target)?, merge: patch.merge },
        _ => return Err("needs exactly one of apply, delete, scale, patch, expect".to_owned()),
    };
    Ok(TimedAction { line, at, note, action })
}

impl TimedAction {
    fn alias(&self) -> Option<&str> {
        match &self.action {
            Action::Delete(target) | Action::Patch { target, .. } => target.alias.as_deref(),
            Action::Apply(_) | Action::Scale { .. } => None,
        }
    }
}

fn expectations(step: StepText, line: u64, before: SignedDuration) -> Read<Vec<Expectation>> {
    if step.apply.is_some() || step.delete.is_some() || step.scale.is_some() || step.patch.is_some() {
        return Err("needs exactly one of apply, delete, scale, patch, expect".to_owned());
    }
    let when = match (step.at, step.by, step.from, step.to) {
        (Some(at), None, None, None) => When::At(at.0),
        (None, Some(by), None, None) => When::Within { from: before, to: by.0 },
        (None, None, Some(from), to) => When::Always { from: from.0, to: to.map(|to| to.0) },
        _ => return Err("expect needs `at`, `by`, or `from` with an optional `to`".to_owned()),
    };
    let what = subjects(step.expect.ok_or("expect is empty")?)?;
    if what.is_empty() {
        return Err("expect is empty".to_owned());
    }
    Ok(what.into_iter().map(|what| Expectation { line, when, what }).collect())
}

fn subjects(expect: ExpectText) -> Read<Vec<Subject>> {
    let mut subjects = Vec::new();
    if let Some(pods) = expect.pods {
        let states =
            [(PodState::Pending, pods.pending), (PodState::Running, pods.running), (PodState::Ready, pods.ready)];
        if states.iter().all(|(_, amount)| amount.is_none()) {
            return Err("expect.pods needs pending, running or ready".to_owned());
        }
        for (state, amount) in states {
            subjects.extend(amount.map(|amount| Subject::Pods { labels: pods.labels.clone(), state, amount }));
        }
    }
    let counts = [(Kind::Node, expect.nodes), (Kind::NodeClaim, expect.claims)];
    subjects.extend(counts.into_iter().filter_map(|(kind, amount)| Some(Subject::Count { kind, amount: amount? })));
    subjects.extend(expect.evictions.map(Subject::Evictions));
    subjects.extend(expect.gone.map(Subject::Gone));
    subjects.extend(expect.there.map(Subject::There));
    if let Some(condition) = expect.condition {
        let kind = kind(&condition.kind)?;
        let name = object_name(kind, condition.name, condition.namespace);
        subjects.push(Subject::Condition { kind, name, type_: condition.type_, status: condition.status });
    }
    Ok(subjects)
}

fn unnamed(subject: &Subject, known: &[String]) -> Option<String> {
    match subject {
        Subject::Gone(alias) | Subject::There(alias) => (!known.contains(alias)).then(|| alias.clone()),
        Subject::Pods { .. } | Subject::Count { .. } | Subject::Evictions(_) | Subject::Condition { .. } => None,
    }
}

fn manifest(object: Spanned<Value>) -> Read<Manifest> {
    let line = object.referenced.line();
    let text = |name: &str| object.value.get(name).and_then(Value::as_str);
    let (Some(api_version), Some(kind)) = (text("apiVersion"), text("kind")) else {
        return Err("every object needs apiVersion and kind".to_owned());
    };
    let kind = Kind::find(api_version, kind)
        .ok_or_else(|| format!("no resource of kind `{kind}` in version `{api_version}`"))?;
    if object.value.pointer("/metadata/name").and_then(Value::as_str).is_none() {
        return Err("every object needs metadata.name".to_owned());
    }
    Ok(Manifest { line, kind, body: object.value })
}

fn reference(text: ReferenceText) -> Read<Reference> {
    let kind = kind(&text.kind)?;
    let which = match (text.name, text.pick) {
        (Some(name), None) => Which::Named(object_name(kind, name, text.namespace)),
        (None, Some(PickText::Oldest)) => Which::Oldest,
        (None, Some(PickText::Newest)) => Which::Newest,
        (Some(_), Some(_)) | (None, None) => return Err("needs either `name` or `pick: oldest|newest`".to_owned()),
    };
    Ok(Reference { kind, which, alias: text.alias })
}

fn kind(name: &str) -> Read<Kind> {
    let found = Kind::ALL.into_iter().find(|kind| kind.facts().kind == name);
    found.ok_or_else(|| format!("there is no kind `{name}`"))
}

fn object_name(kind: Kind, name: String, namespace: Option<String>) -> ObjectName {
    match kind.is_namespaced() {
        true => ObjectName::new(namespace.unwrap_or_else(|| "default".to_owned()), name),
        false => ObjectName::of_cluster(name),
    }
}
