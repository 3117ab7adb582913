//! What must be seen, when, and what was seen instead.

use std::collections::BTreeMap;
use std::fmt;

use jiff::SignedDuration;
use kerf_model::cluster::ObjectName;

use super::value::Amount;
use crate::autoscaler::Ledger;
use crate::store::{Kind, Object, Store};
use crate::timeline::clock_text;

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
    Pods { labels: BTreeMap<String, String>, state: PodState, amount: Amount },
    Count { kind: Kind, amount: Amount },
    Evictions(Amount),
    Gone(String),
    There(String),
    Condition { kind: Kind, name: ObjectName, type_: String, status: String },
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
                let matches = |pod: &&Object| {
                    let own = pod.labels().0;
                    labels.iter().all(|(key, value)| own.is_some_and(|own| own.get(key).is_some_and(|v| v == value)))
                };
                let count = sight.store.all(Kind::Pod).filter(matches).filter(|pod| state.holds(pod)).count();
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
            Self::Condition { kind, name, type_, status } => {
                let object = sight.store.get(*kind, name).ok();
                let seen = object.map(|object| object.condition(type_).unwrap_or("not set"));
                Answer { holds: seen == Some(status), seen: seen.unwrap_or("no such object").to_owned() }
            }
        }
    }
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
                    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                    write!(f, " of {}", labels.join(","))?;
                }
                Ok(())
            }
            Self::Count { kind, amount } => write!(f, "{}: {amount}", kind.facts().plural),
            Self::Evictions(amount) => write!(f, "evictions: {amount}"),
            Self::Gone(alias) => write!(f, "{alias} is gone"),
            Self::There(alias) => write!(f, "{alias} is there"),
            Self::Condition { kind, name, type_, status } => {
                write!(f, "{}/{}: {type_} is {status}", kind.facts().kind, name.name)
            }
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
