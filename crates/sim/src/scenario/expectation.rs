//! What must be seen, when, and what was seen instead.

use std::collections::BTreeMap;
use std::fmt;

use jiff::SignedDuration;
use kerf_model::cluster::ObjectName;

use super::value::Amount;
use crate::autoscaler::Ledger;
use crate::store::{Kind, Object, Store};
use crate::timeline::{Disruption, Timeline, clock_text, dollars};

#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    pub line: u64,
    pub when: When,
    pub(super) what: Subject,
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
    /// Nodes disrupted by choice. Empty texts are any.
    Disruptions {
        pool: String,
        reason: String,
        ever: bool,
        amount: Amount,
    },
    NodesWith {
        labels: BTreeMap<String, String>,
        version: String,
        count: Amount,
    },
    /// In millionths of a dollar.
    Hourly(Amount),
    ClaimsMade(Amount),
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
            Self::Disruptions { pool, reason, ever, amount } => {
                let is_meant = |known: &&Disruption| {
                    (pool.is_empty() || known.pool == *pool)
                        && (reason.is_empty() || known.reason == *reason)
                        && (*ever || known.is_under_way)
                };
                counted(sight.timeline.disruptions().filter(is_meant).count(), *amount)
            }
            Self::NodesWith { labels, version, count } => {
                let nodes = sight.store.all(Kind::Node).filter(|node| {
                    let own = node.text(&["status", "nodeInfo", "kubeletVersion"]).unwrap_or_default();
                    has_labels(node, labels) && own.starts_with(version)
                });
                counted(nodes.count(), *count)
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
            Self::Disruptions { pool, reason, ever, amount } => {
                write!(f, "nodes disrupted {}: {amount}", if *ever { "so far" } else { "now" })?;
                for (word, text) in [("of pool", pool), ("because", reason)] {
                    if !text.is_empty() {
                        write!(f, " {word} {text}")?;
                    }
                }
                Ok(())
            }
            Self::NodesWith { labels, version, count } => {
                write!(f, "nodes with {}{version}: {count}", pairs(labels))
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
            When::Within { from, to } => (from, to),
            When::Always { from, to } => (from, to.unwrap_or(SignedDuration::MAX)),
        };
        if elapsed < from || elapsed > to {
            return;
        }
        let answer = self.expectation.what.ask(sight);
        self.seen = answer.seen;
        let verdict = match (self.expectation.when, answer.holds) {
            (When::At(_) | When::Within { .. }, true) => Some(Outlook::Met),
            (When::At(_) | When::Always { .. }, false) => Some(Outlook::Failed),
            (When::Within { .. }, false) => (elapsed >= to).then_some(Outlook::Failed),
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
            When::Within { from, to } => (from, Some(to)),
            When::Always { from, to } => (from, to),
        };
        std::iter::once(from).chain(to)
    }

    pub fn finding(&self, end: SignedDuration) -> Finding {
        let open = match self.expectation.when {
            When::Always { from, to: None } if from <= end => Outlook::Met,
            When::At(_) | When::Within { .. } | When::Always { .. } => Outlook::NotReached,
        };
        Finding {
            line: self.expectation.line,
            when: self.expectation.when.to_string(),
            expected: self.expectation.what.to_string(),
            seen: self.seen.clone(),
            settled_secs: self.settled.map(|at| at.as_secs()),
            outlook: self.outlook.unwrap_or(open),
        }
    }
}
