//! The text of a scenario into values, or what is wrong with it and where.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use kerf_api::change::Features;
use kerf_model::cloud::InterruptionCause;
use kerf_model::cluster::ObjectName;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use super::expectation::{Chosen, Expectation, PodState, Subject, Tally, When, Whose};
use super::settings::SettingsText;
use super::value::{Amount, Dollars, Elapsed};
use super::{Action, CatalogueName, Manifest, Reference, Scenario, TimedAction, Which};
use crate::autoscaler::Shortage;
use crate::store::Kind;
use crate::world::Truth;

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
    #[serde(default)]
    features: Vec<FeatureName>,
    duration: Elapsed,
    #[serde(default)]
    settings: SettingsText,
    objects: Vec<Spanned<Value>>,
    #[serde(default)]
    script: Vec<Spanned<StepText>>,
}

/// A feature gate that is off by default.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
enum FeatureName {
    NodeOverlay,
    CapacityBuffer,
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
    interrupt: Option<ReferenceText>,
    /// Why the cloud interrupts.
    cause: Option<CauseText>,
    recommend: Option<ReferenceText>,
    restart: Option<Elapsed>,
    shortage: Option<Vec<ShortageText>>,
    set_condition: Option<SetConditionText>,
    expect: Option<ExpectText>,
    /// What ends the time in which `expect` must hold; it must come.
    until: Option<ExpectText>,
}

/// What the cloud has to say about a machine before it goes.
#[derive(Deserialize, Clone, Copy)]
enum CauseText {
    SpotReclaimed,
    Maintenance,
    Stopping,
    Terminating,
}

impl From<CauseText> for InterruptionCause {
    fn from(text: CauseText) -> Self {
        match text {
            CauseText::SpotReclaimed => Self::SpotReclaimed,
            CauseText::Maintenance => Self::Maintenance,
            CauseText::Stopping => Self::Stopping,
            CauseText::Terminating => Self::Terminating,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ReferenceText {
    kind: String,
    name: Option<String>,
    namespace: Option<String>,
    pick: Option<PickText>,
    known: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(rename = "as")]
    alias: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum PickText {
    Oldest,
    Newest,
    All,
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
struct ShortageText {
    instance_type: Option<String>,
    zone: Option<String>,
    capacity_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SetConditionText {
    target: ReferenceText,
    #[serde(rename = "type")]
    type_: String,
    status: Truth,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct EventsText {
    reason: String,
    /// The name of what it is about, or a part of it.
    #[serde(default)]
    about: String,
    #[serde(default)]
    contains: String,
    #[serde(default = "some")]
    count: Amount,
}

fn some() -> Amount {
    Amount::AtLeast(1)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct DisruptionsText {
    #[serde(default)]
    pool: String,
    #[serde(default)]
    reason: String,
    /// `delete`, `replace`, `terminate-first` or `reboot`.
    #[serde(default)]
    decision: String,
    /// How many nodes go with it by the same command, itself included.
    together: Option<usize>,
    /// How many come in their place.
    into: Option<usize>,
    /// At this moment.
    now: Option<Amount>,
    /// Since the start.
    ever: Option<Amount>,
    /// Since the start, those that went before all that come in their place could take pods.
    early: Option<Amount>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ObjectsText {
    kind: String,
    name: Option<String>,
    namespace: Option<String>,
    known: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// What they say: every field of it, and every element of its lists, among others. `null` is what they do not say.
    #[serde(default)]
    with: Value,
    #[serde(default = "some")]
    count: Amount,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NodesText {
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// The beginning of the version of their kubelets.
    #[serde(default)]
    version: String,
    count: Amount,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct VerdictsText {
    /// The label of a reason for staying, or of a verdict.
    is: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default = "some")]
    count: Amount,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ExpectText {
    pods: Option<PodsText>,
    nodes: Option<Amount>,
    claims: Option<Amount>,
    instances: Option<Amount>,
    objects: Option<ObjectsText>,
    evictions: Option<Amount>,
    gone: Option<String>,
    there: Option<String>,
    condition: Option<ConditionText>,
    events: Option<EventsText>,
    disruptions: Option<DisruptionsText>,
    nodes_with: Option<NodesText>,
    verdicts: Option<VerdictsText>,
    hourly: Option<Dollars>,
    claims_made: Option<Amount>,
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
    name: Option<String>,
    namespace: Option<String>,
    known: Option<String>,
    /// In place of a name: of any object with these labels.
    labels: Option<BTreeMap<String, String>>,
    #[serde(rename = "type")]
    type_: String,
    status: String,
    #[serde(default)]
    reason: String,
    /// A part of the message.
    #[serde(default)]
    contains: String,
}

/// What is wrong with one entry; its line is known one level up.
type Read<T> = Result<T, String>;

pub(super) fn read(file: &str, text: &str) -> Result<Scenario, ScenarioError> {
    let error = |line: u64, problem: String| ScenarioError { file: file.to_owned(), line, problem };
    let raw: FileText = serde_saphyr::from_str(text).map_err(|cause| {
        let line = cause.location().map_or(1, |location| location.line());
        error(line, plain_message(&cause))
    })?;
    raw.settings.check().map_err(|problem| error(1, format!("settings: {problem}")))?;
    let mut scenario = Scenario {
        file: file.to_owned(),
        name: raw.name,
        description: raw.description,
        seed: raw.seed,
        catalogue: raw.catalogue,
        features: Features {
            node_overlays: raw.features.contains(&FeatureName::NodeOverlay),
            capacity_buffers: raw.features.contains(&FeatureName::CapacityBuffer),
            ..Features::default()
        },
        duration: raw.duration.0,
        settings: raw.settings,
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
            let expectations = expectations(step, line, before, scenario.duration).map_err(at_line)?;
            let asked = expectations.iter().flat_map(|one| std::iter::once(&one.what).chain(&one.until));
            if let Some(unknown) = asked.into_iter().find_map(|one| unnamed(one, &aliases)) {
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

const ONE_OF: &str =
    "needs exactly one of apply, delete, scale, patch, interrupt, recommend, restart, shortage, setCondition, expect";

fn action(step: StepText, line: u64) -> Read<TimedAction> {
    let (Some(Elapsed(at)), None, None, None) = (step.at, step.by, step.from, step.to) else {
        return Err("an action needs `at`, and no `by`, `from` or `to`".to_owned());
    };
    let note = step.note.clone();
    let mut actions = actions(step)?;
    match (actions.pop(), actions.pop()) {
        (Some(action), None) => Ok(TimedAction { line, at, note, action }),
        _ => Err(ONE_OF.to_owned()),
    }
}

fn actions(step: StepText) -> Read<Vec<Action>> {
    let mut actions = Vec::new();
    if let Some(objects) = step.apply {
        actions.push(Action::Apply(objects.into_iter().map(manifest).collect::<Read<Vec<_>>>()?));
    }
    if let Some(target) = step.delete {
        actions.push(Action::Delete(any_reference(target)?));
    }
    if let Some(scale) = step.scale {
        let kind = kind(&scale.kind)?;
        if !matches!(kind, Kind::Deployment | Kind::ReplicaSet | Kind::StatefulSet | Kind::NodePool) {
            return Err(format!("scale: a {} has no replicas", scale.kind));
        }
        let name = object_name(kind, scale.name, scale.namespace);
        actions.push(Action::Scale { kind, name, replicas: scale.replicas });
    }
    if let Some(patch) = step.patch {
        actions.push(Action::Patch { target: reference(patch.target)?, merge: patch.merge });
    }
    match (step.interrupt, step.cause) {
        (Some(target), cause) => {
            let cause = cause.map_or(InterruptionCause::SpotReclaimed, InterruptionCause::from);
            actions.push(Action::Interrupt(node_reference(target, "interrupt")?, cause));
        }
        (None, Some(_)) => return Err("cause is of an interrupt".to_owned()),
        (None, None) => {}
    }
    if let Some(target) = step.recommend {
        actions.push(Action::Recommend(node_reference(target, "recommend")?));
    }
    actions.extend(step.restart.map(|outage| Action::Restart(outage.0)));
    if let Some(shortages) = step.shortage {
        let shortage = |text: ShortageText| Shortage {
            instance_type: text.instance_type,
            zone: text.zone,
            capacity_type: text.capacity_type,
        };
        actions.push(Action::Shortage(shortages.into_iter().map(shortage).collect()));
    }
    if let Some(condition) = step.set_condition {
        let target = node_reference(condition.target, "setCondition")?;
        let SetConditionText { type_, status, reason, .. } = condition;
        actions.push(Action::SetCondition { target, type_, status, reason });
    }
    Ok(actions)
}

fn node_reference(text: ReferenceText, action: &str) -> Read<Reference> {
    let target = reference(text)?;
    match target.kind {
        Kind::Node => Ok(target),
        other => Err(format!("{action}: needs a Node, not a {}", other.facts().kind)),
    }
}

impl TimedAction {
    fn alias(&self) -> Option<&str> {
        match &self.action {
            Action::Delete(target)
            | Action::Patch { target, .. }
            | Action::Interrupt(target, _)
            | Action::Recommend(target)
            | Action::SetCondition { target, .. } => target.alias.as_deref(),
            Action::Apply(_) | Action::Scale { .. } | Action::Restart(_) | Action::Shortage(_) => None,
        }
    }
}

fn expectations(mut step: StepText, line: u64, before: SignedDuration, end: SignedDuration) -> Read<Vec<Expectation>> {
    let expect = step.expect.take();
    let until = step.until.take().map(subjects).transpose()?;
    let mut until = until.unwrap_or_default();
    let (until, others) = (until.pop(), until.len());
    let when = match (step.at, step.by, step.from, step.to, &until) {
        (Some(at), None, None, None, None) => When::At(at.0),
        (None, Some(by), None, None, None) => When::Within { from: before, to: by.0 },
        (None, None, Some(from), to, None) => When::Always { from: from.0, to: to.map(|to| to.0) },
        (None, None, Some(from), to, Some(_)) if others == 0 => {
            When::Until { from: from.0, to: to.map_or(end, |to| to.0) }
        }
        _ => return Err("expect needs `at`, `by`, or `from` with an optional `to` and one `until`".to_owned()),
    };
    if !actions(step)?.is_empty() {
        return Err(ONE_OF.to_owned());
    }
    let what = subjects(expect.ok_or("expect is empty")?)?;
    if what.is_empty() {
        return Err("expect is empty".to_owned());
    }
    Ok(what.into_iter().map(|what| Expectation { line, when, what, until: until.clone() }).collect())
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
    subjects.extend(expect.instances.map(Subject::Instances));
    if let Some(objects) = expect.objects {
        let kind = kind(&objects.kind)?;
        let which = match (objects.name, objects.known) {
            (Some(name), None) => Some(Which::Named(object_name(kind, name, objects.namespace))),
            (None, Some(alias)) => Some(Which::Known(alias)),
            (None, None) => None,
            (Some(_), Some(_)) => return Err("objects has `name` or `known`, not both".to_owned()),
        };
        let ObjectsText { labels, with, count, .. } = objects;
        subjects.push(Subject::Objects { kind, which, labels, with, count });
    }
    subjects.extend(expect.evictions.map(Subject::Evictions));
    subjects.extend(expect.gone.map(Subject::Gone));
    subjects.extend(expect.there.map(Subject::There));
    if let Some(condition) = expect.condition {
        let kind = kind(&condition.kind)?;
        let whose = match (condition.name, condition.known, condition.labels) {
            (Some(name), None, None) => Whose::Named(object_name(kind, name, condition.namespace)),
            (None, Some(alias), None) => Whose::Known(alias),
            (None, None, Some(labels)) => Whose::Any(labels),
            _ => return Err("condition needs `name`, `known` or `labels`".to_owned()),
        };
        let ConditionText { type_, status, reason, contains, .. } = condition;
        subjects.push(Subject::Condition { kind, whose, type_, status, reason, contains });
    }
    if let Some(EventsText { reason, about, contains, count }) = expect.events {
        subjects.push(Subject::Events { reason, about, contains, count });
    }
    if let Some(DisruptionsText { pool, reason, decision, together, into, now, ever, early }) = expect.disruptions {
        let chosen = Chosen { pool, reason, decision, together, into };
        let tallies = [(Tally::Now, now), (Tally::Ever, ever), (Tally::Early, early)];
        if tallies.iter().all(|(_, amount)| amount.is_none()) {
            return Err("expect.disruptions needs now, ever or early".to_owned());
        }
        for (tally, amount) in tallies {
            subjects.extend(amount.map(|amount| Subject::Disruptions { chosen: chosen.clone(), tally, amount }));
        }
    }
    if let Some(NodesText { labels, version, count }) = expect.nodes_with {
        subjects.push(Subject::NodesWith { labels, version, count });
    }
    if let Some(VerdictsText { is, labels, count }) = expect.verdicts {
        subjects.push(Subject::Verdicts { is, labels, count });
    }
    subjects.extend(expect.hourly.map(|dollars| Subject::Hourly(dollars.0)));
    subjects.extend(expect.claims_made.map(Subject::ClaimsMade));
    Ok(subjects)
}

fn unnamed(subject: &Subject, known: &[String]) -> Option<String> {
    match subject {
        Subject::Gone(alias)
        | Subject::There(alias)
        | Subject::Condition { whose: Whose::Known(alias), .. }
        | Subject::Objects { which: Some(Which::Known(alias)), .. } => (!known.contains(alias)).then(|| alias.clone()),
        Subject::Pods { .. }
        | Subject::Count { .. }
        | Subject::Instances(_)
        | Subject::Objects { .. }
        | Subject::Evictions(_)
        | Subject::Condition { .. }
        | Subject::Events { .. }
        | Subject::Disruptions { .. }
        | Subject::NodesWith { .. }
        | Subject::Verdicts { .. }
        | Subject::Hourly(_)
        | Subject::ClaimsMade(_) => None,
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

/// One object.
fn reference(text: ReferenceText) -> Read<Reference> {
    let target = any_reference(text)?;
    match target.which {
        Which::All => Err("`pick: all` is only for delete".to_owned()),
        Which::Named(_) | Which::Known(_) | Which::Oldest | Which::Newest => Ok(target),
    }
}

/// One object, or many.
fn any_reference(text: ReferenceText) -> Read<Reference> {
    let kind = kind(&text.kind)?;
    let which = match (text.name, text.pick, text.known) {
        (Some(name), None, None) => Which::Named(object_name(kind, name, text.namespace)),
        (None, Some(PickText::Oldest), None) => Which::Oldest,
        (None, Some(PickText::Newest), None) => Which::Newest,
        (None, Some(PickText::All), None) if text.alias.is_none() => Which::All,
        (None, None, Some(alias)) => Which::Known(alias),
        _ => return Err("needs either `name` or `pick: oldest|newest`".to_owned()),
    };
    Ok(Reference { kind, which, labels: text.labels, alias: text.alias })
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
