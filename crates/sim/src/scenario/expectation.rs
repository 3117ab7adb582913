//! What must be seen, when, and what was seen instead.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::SignedDuration;
use kerf_disruption::Verdict;
use kerf_model::cluster::ObjectName;
use serde_json::Value;

use super::Which;
use super::value::{Amount, says};
use crate::autoscaler::Ledger;
use crate::store::{Kind, Object, Store};
use crate::timeline::{Disruption, Timeline, clock_text, dollars};

#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    pub line: u64,
    pub when: When,
    pub(super) what: Subject,
    /// What ends the time of [`When::Until`].
    pub(super) until: Option<Subject>,
}

/// At which moments it must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    At(SignedDuration),
    /// At some moment in between, both included.
    Within {
        from: SignedDuration,
        to: SignedDuration,
    },
    /// At every moment in between, both included. Without an end: to the end of the run.
    Always {
        from: SignedDuration,
        to: Option<SignedDuration>,
    },
    /// At every moment before something else holds, which must come by the end.
    Until {
        from: SignedDuration,
        to: SignedDuration,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Subject {
    Pods {
        labels: BTreeMap<String, String>,
        state: PodState,
        amount: Amount,
    },
    Count {
        kind: Kind,
        amount: Amount,
    },
    /// Machines that the cloud runs, whether they are nodes or not.
    Instances(Amount),
    /// Objects that say what is asked for, among others.
    Objects {
        kind: Kind,
        /// Only this one.
        which: Option<Which>,
        labels: BTreeMap<String, String>,
        with: Value,
        count: Amount,
    },
    Evictions(Amount),
    Gone(String),
    There(String),
    /// Empty texts are any.
    Condition {
        kind: Kind,
        whose: Whose,
        type_: String,
        status: String,
        reason: String,
        contains: String,
    },
    /// Kerf's own events, each counted once however often it is repeated.
    Events {
        reason: String,
        about: String,
        contains: String,
        count: Amount,
    },
    /// Nodes disrupted by choice.
    Disruptions {
        chosen: Chosen,
        tally: Tally,
        amount: Amount,
    },
    NodesWith {
        labels: BTreeMap<String, String>,
        version: String,
        count: Amount,
    },
    /// Nodes that this was said of in the last round: that they go, or why they stay.
    Verdicts {
        is: String,
        /// Of their claims.
        labels: BTreeMap<String, String>,
        count: Amount,
    },
    /// In millionths of a dollar.
    Hourly(Amount),
    ClaimsMade(Amount),
}

/// Which disruptions are meant. Empty texts and `None` are any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    pub pool: String,
    pub reason: String,
    pub decision: String,
    pub together: Option<usize>,
    pub into: Option<usize>,
}

/// Which of them are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tally {
    Now,
    Ever,
    Early,
}

impl Chosen {
    fn covers(&self, known: &Disruption, timeline: &Timeline) -> bool {
        let is_any_or = |wanted: &str, known: &str| wanted.is_empty() || wanted == known;
        let together = || timeline.disruptions().filter(|other| other.command == known.command).count();
        is_any_or(&self.pool, &known.pool)
            && is_any_or(&self.reason, &known.reason)
            && is_any_or(&self.decision, &known.decision)
            && self.into.is_none_or(|wanted| wanted == known.replacements.len())
            && self.together.is_none_or(|wanted| wanted == together())
    }
}

impl Tally {
    fn covers(self, known: &Disruption) -> bool {
        match self {
            Self::Now => known.is_under_way,
            Self::Ever => true,
            Self::Early => known.is_early,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Whose {
    Named(ObjectName),
    /// By what the script called it.
    Known(String),
    /// Of those with these labels.
    Any(BTreeMap<String, String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodState {
    Pending,
    Running,
    Ready,
}

impl PodState {
    fn label(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Ready => "ready",
        }
    }

    fn holds(self, pod: &Object) -> bool {
        let phase = pod.text(&["status", "phase"]);
        match self {
            Self::Pending => phase == Some("Pending") && !pod.is_deleting(),
            Self::Running => phase == Some("Running") && !pod.is_deleting(),
            // A pod that is asked to stop serves until its kubelet says otherwise.
            Self::Ready => pod.is_condition_true("Ready"),
        }
    }
}

/// What the cluster shows, to compare an expectation with.
pub(super) struct Sight<'a> {
    pub store: &'a Store,
    pub ledger: &'a Ledger,
    pub timeline: &'a Timeline,
    /// By the claim's name.
    pub verdicts: &'a BTreeMap<Arc<str>, Verdict>,
    pub aliases: &'a BTreeMap<String, Known>,
}

/// An object that the script has named.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub kind: Kind,
    pub name: ObjectName,
    pub uid: String,
}

pub(super) struct Answer {
    pub holds: bool,
    pub seen: String,
}

impl Subject {
    pub fn ask(&self, sight: &Sight) -> Answer {
        match self {
            Self::Pods { labels, state, amount } => {
                let count = sight
                    .store
                    .all(Kind::Pod)
                    .filter(|pod| has_labels(pod, labels))
                    .filter(|pod| state.holds(pod))
                    .count();
                counted(count, *amount)
            }
            Self::Count { kind, amount } => counted(sight.store.all(*kind).count(), *amount),
            Self::Instances(amount) => counted(sight.ledger.instances(), *amount),
            Self::Objects { kind, which, labels, with, count } => {
                let is_meant = |object: &Object| match which {
                    None => true,
                    Some(Which::Named(name)) => object.name == *name,
                    Some(Which::Known(alias)) => {
                        sight.aliases.get(alias).is_some_and(|known| object.uid() == known.uid)
                    }
                    Some(Which::Oldest | Which::Newest | Which::All) => false,
                };
                let all = sight.store.all(*kind);
                let found = all.filter(|object| {
                    is_meant(object)
                        && has_labels(object, labels)
                        && (with.is_null() || says(Some(object.body()), with))
                });
                counted(found.count(), *count)
            }
            Self::Evictions(amount) => counted(sight.ledger.evictions(), *amount),
            Self::Gone(alias) => {
                let there = is_there(alias, sight);
                Answer { holds: there == Some(false), seen: presence(there) }
            }
            Self::There(alias) => {
                let there = is_there(alias, sight);
                Answer { holds: there == Some(true), seen: presence(there) }
            }
            Self::Condition { kind, whose, type_, status, reason, contains } => {
                let named = |name: &ObjectName| sight.store.get(*kind, name).into_iter().collect();
                let objects: Vec<&Object> = match whose {
                    Whose::Named(name) => named(name),
                    Whose::Known(alias) => sight.aliases.get(alias).map_or(Vec::new(), |known| named(&known.name)),
                    Whose::Any(labels) => sight.store.all(*kind).filter(|object| has_labels(object, labels)).collect(),
                };
                let shown = objects.iter().map(|object| {
                    let conditions = object.list(&["status", "conditions"]);
                    let found = conditions.iter().find(|condition| condition["type"] == *type_);
                    let text = |name: &str| found.and_then(|condition| condition[name].as_str()).unwrap_or("not set");
                    let is_right = text("status") == *status
                        && (reason.is_empty() || text("reason") == *reason)
                        && text("message").contains(contains);
                    (is_right, format!("{} ({}: {})", text("status"), text("reason"), text("message")))
                });
                let shown: Vec<(bool, String)> = shown.collect();
                let seen: Vec<&str> = shown.iter().map(|(_, text)| text.as_str()).collect();
                let seen = if seen.is_empty() { "no such object".to_owned() } else { seen.join(", ") };
                Answer { holds: shown.iter().any(|(is_right, _)| *is_right), seen }
            }
            Self::Events { reason, about, contains, count } => {
                let text = |event: &Object, path: &[&str]| event.text(path).unwrap_or_default().to_owned();
                let events = sight.store.all(Kind::Event).filter(|event| {
                    text(event, &["reason"]) == *reason
                        && text(event, &["involvedObject", "name"]).contains(about)
                        && text(event, &["message"]).contains(contains)
                });
                counted(events.count(), *count)
            }
            Self::Disruptions { chosen, tally, amount } => {
                let is_meant = |known: &&Disruption| tally.covers(known) && chosen.covers(known, sight.timeline);
                counted(sight.timeline.disruptions().filter(is_meant).count(), *amount)
            }
            Self::NodesWith { labels, version, count } => {
                let nodes = sight.store.all(Kind::Node).filter(|node| {
                    let own = node.text(&["status", "nodeInfo", "kubeletVersion"]).unwrap_or_default();
                    has_labels(node, labels) && own.starts_with(version)
                });
                counted(nodes.count(), *count)
            }
            Self::Verdicts { is, labels, count } => {
                let claims = sight.store.all(Kind::NodeClaim).filter(|claim| has_labels(claim, labels));
                let said: Vec<&str> =
                    claims.filter_map(|claim| sight.verdicts.get(&*claim.name.name).map(Verdict::label)).collect();
                let found = said.iter().filter(|label| *label == is).count();
                let Answer { holds, seen } = counted(found, *count);
                let seen = if said.is_empty() { seen } else { format!("{seen} of {}", said.join(", ")) };
                Answer { holds, seen }
            }
            Self::Hourly(amount) => {
                let hourly = sight.ledger.hourly().micros();
                let holds = amount.holds(u64::try_from(hourly).unwrap_or(0));
                Answer { holds, seen: format!("${}", dollars(hourly, 4)) }
            }
            Self::ClaimsMade(amount) => counted(sight.timeline.claims_made(), *amount),
        }
    }
}

pub(super) fn has_labels(object: &Object, labels: &BTreeMap<String, String>) -> bool {
    let own = object.labels().0;
    labels.iter().all(|(key, value)| own.is_some_and(|own| own.get(key).is_some_and(|known| known == value)))
}

fn pairs(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

fn counted(count: usize, amount: Amount) -> Answer {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    Answer { holds: amount.holds(count), seen: count.to_string() }
}

/// `None` while the script has not named it.
fn is_there(alias: &str, sight: &Sight) -> Option<bool> {
    let known = sight.aliases.get(alias)?;
    let found = sight.store.get(known.kind, &known.name);
    Some(found.is_ok_and(|object| object.uid() == known.uid))
}

fn presence(there: Option<bool>) -> String {
    match there {
        None => "not named yet",
        Some(true) => "still there",
        Some(false) => "gone",
    }
    .to_owned()
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pods { labels, state, amount } => {
                write!(f, "{} pods: {amount}", state.label())?;
                if !labels.is_empty() {
                    write!(f, " of {}", pairs(labels))?;
                }
                Ok(())
            }
            Self::Count { kind, amount } => write!(f, "{}: {amount}", kind.facts().plural),
            Self::Instances(amount) => write!(f, "instances: {amount}"),
            Self::Objects { kind, which, labels, with, count } => {
                write!(f, "{}", kind.facts().plural)?;
                match which {
                    Some(Which::Named(name)) => write!(f, " named {}", name.name)?,
                    Some(Which::Known(alias)) => write!(f, " known as {alias}")?,
                    Some(Which::Oldest | Which::Newest | Which::All) | None => {}
                }
                let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                if !labels.is_empty() {
                    write!(f, " of {}", labels.join(","))?;
                }
                if !with.is_null() {
                    write!(f, " with {with}")?;
                }
                write!(f, ": {count}")
            }
            Self::Evictions(amount) => write!(f, "evictions: {amount}"),
            Self::Gone(alias) => write!(f, "{alias} is gone"),
            Self::There(alias) => write!(f, "{alias} is there"),
            Self::Condition { kind, whose, type_, status, reason, contains } => {
                let name = match whose {
                    Whose::Named(name) => name.name.to_string(),
                    Whose::Known(alias) => alias.clone(),
                    Whose::Any(labels) => pairs(labels),
                };
                write!(f, "{}/{name}: {type_} is {status}", kind.facts().kind)?;
                for (word, text) in [("because", reason), ("with", contains)] {
                    if !text.is_empty() {
                        write!(f, " {word} {text}")?;
                    }
                }
                Ok(())
            }
            Self::Events { reason, about, contains, count } => {
                write!(f, "events {reason}: {count}")?;
                for (word, text) in [("about", about), ("with", contains)] {
                    if !text.is_empty() {
                        write!(f, " {word} {text:?}")?;
                    }
                }
                Ok(())
            }
            Self::Disruptions { chosen, tally, amount } => {
                let tally = match tally {
                    Tally::Now => "now",
                    Tally::Ever => "so far",
                    Tally::Early => "before their replacements were ready",
                };
                write!(f, "nodes disrupted {tally}: {amount}")?;
                let Chosen { pool, reason, decision, together, into } = chosen;
                let [together, into] = [together, into].map(|count| count.map(|count| count.to_string()));
                let parts = [
                    ("of pool", Some(pool)),
                    ("because", Some(reason)),
                    ("by", Some(decision)),
                    ("together", together.as_ref()),
                    ("into", into.as_ref()),
                ];
                for (word, text) in parts {
                    if let Some(text) = text.filter(|text| !text.is_empty()) {
                        write!(f, " {word} {text}")?;
                    }
                }
                Ok(())
            }
            Self::NodesWith { labels, version, count } => {
                write!(f, "nodes with {}{version}: {count}", pairs(labels))
            }
            Self::Verdicts { is, labels, count } => {
                write!(f, "verdicts {is}: {count}")?;
                let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                if labels.is_empty() { Ok(()) } else { write!(f, " of {}", labels.join(",")) }
            }
            Self::Hourly(amount) => write!(f, "millionths of a dollar per hour: {amount}"),
            Self::ClaimsMade(amount) => write!(f, "claims made: {amount}"),
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(at) => write!(f, "at {}", clock_text(*at)),
            Self::Within { to, .. } => write!(f, "by {}", clock_text(*to)),
            Self::Always { from, to: Some(to) } => write!(f, "from {} to {}", clock_text(*from), clock_text(*to)),
            Self::Always { from, to: None } => write!(f, "from {} on", clock_text(*from)),
            Self::Until { from, to } => {
                write!(f, "from {}, to {} at most", clock_text(*from), clock_text(*to))
            }
        }
    }
}

/// How an expectation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outlook {
    Met,
    Failed,
    /// The run ended before its time.
    NotReached,
}

/// An expectation and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub line: u64,
    pub when: String,
    pub expected: String,
    pub seen: String,
    /// When it was settled, in seconds from the start.
    pub settled_secs: Option<i64>,
    pub outlook: Outlook,
}

/// An expectation during a run.
pub(super) struct Pending {
    expectation: Expectation,
    outlook: Option<Outlook>,
    seen: String,
    settled: Option<SignedDuration>,
}

impl Pending {
    pub fn new(expectation: Expectation) -> Self {
        Self { expectation, outlook: None, seen: "nothing".to_owned(), settled: None }
    }

    /// Looks at the cluster if this is one of its moments.
    pub fn look(&mut self, sight: &Sight, elapsed: SignedDuration) {
        if self.outlook.is_some() {
            return;
        }
        let (from, to) = match self.expectation.when {
            When::At(at) => (at, at),
            When::Within { from, to } | When::Until { from, to } => (from, to),
            When::Always { from, to } => (from, to.unwrap_or(SignedDuration::MAX)),
        };
        if elapsed < from || elapsed > to {
            return;
        }
        let end = self.expectation.until.as_ref().map(|until| until.ask(sight));
        if end.as_ref().is_some_and(|end| end.holds) {
            self.outlook = Some(Outlook::Met);
            self.settled = Some(elapsed);
            return;
        }
        let answer = self.expectation.what.ask(sight);
        self.seen = match end {
            Some(end) => format!("{}, with {} where it is to end", answer.seen, end.seen),
            None => answer.seen,
        };
        let verdict = match (self.expectation.when, answer.holds) {
            (When::At(_) | When::Within { .. }, true) => Some(Outlook::Met),
            (When::At(_) | When::Always { .. } | When::Until { .. }, false) => Some(Outlook::Failed),
            (When::Within { .. }, false) | (When::Until { .. }, true) => (elapsed >= to).then_some(Outlook::Failed),
            (When::Always { .. }, true) => (elapsed >= to).then_some(Outlook::Met),
        };
        if verdict.is_some() {
            self.outlook = verdict;
            self.settled = Some(elapsed);
        }
    }

    /// The moments at which the run must stop to look.
    pub fn moments(&self) -> impl Iterator<Item = SignedDuration> {
        let (from, to) = match self.expectation.when {
            When::At(at) => (at, None),
            When::Within { from, to } | When::Until { from, to } => (from, Some(to)),
            When::Always { from, to } => (from, to),
        };
        std::iter::once(from).chain(to)
    }

    pub fn finding(&self, end: SignedDuration) -> Finding {
        let open = match self.expectation.when {
            When::Always { from, to: None } if from <= end => Outlook::Met,
            When::At(_) | When::Within { .. } | When::Always { .. } | When::Until { .. } => Outlook::NotReached,
        };
        Finding {
            line: self.expectation.line,
            when: self.expectation.when.to_string(),
            expected: match &self.expectation.until {
                Some(until) => format!("{} (until {until})", self.expectation.what),
                None => self.expectation.what.to_string(),
            },
            seen: self.seen.clone(),
            settled_secs: self.settled.map(|at| at.as_secs()),
            outlook: self.outlook.unwrap_or(open),
        }
    }
}
