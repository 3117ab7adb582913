//! What happened in the cluster, in sentences for people. Data only: who shows it decides on colours and columns.
//!
//! [`Timeline::look`] compares the store with what it saw last. What happens to many pods at one moment is one entry.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::ObjectName;
use kerf_model::label;
use kerf_model::price::Price;
use serde_json::Value;

use crate::autoscaler::Ledger;
use crate::store::{ChangeKind, Event, Kind, Object, Store};
use crate::world::{News, Watch};

mod choices;
mod pods;

pub use choices::Disruption;

use choices::Choices;
use pods::PodCounts;

const DISRUPTED: &str = "karpenter.sh/disrupted";

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Entry {
    pub at: Timestamp,
    /// Since the start.
    #[serde(rename = "elapsedSecs", serialize_with = "as_secs")]
    pub elapsed: SignedDuration,
    /// What it is about: `pods`, `script`, or the name of a node, claim or pool.
    pub subject: String,
    pub text: String,
    pub tone: Tone,
}

/// How an entry is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Tone {
    /// Somebody does something to the cluster.
    Script,
    /// Something is missing or under way.
    Waiting,
    /// Something comes.
    Arriving,
    /// All is well.
    Good,
    /// Something goes, in order.
    Leaving,
    /// Kerf warns.
    Warning,
}

fn as_secs<S: serde::Serializer>(duration: &SignedDuration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(duration.as_secs())
}

/// A time since the start: `00:05:10`, `3d 00:05:10`.
pub fn clock_text(elapsed: SignedDuration) -> String {
    let seconds = elapsed.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let clock = format!("{hours:02}:{minutes:02}:{:02}", seconds % 60);
    if days == 0 { clock } else { format!("{days}d {clock}") }
}

/// A drain that takes longer deserves a word.
const LONG_DRAIN: SignedDuration = SignedDuration::from_mins(1);

pub struct Timeline {
    start: Timestamp,
    ledger: Ledger,
    pods: PodCounts,
    claims: Watch,
    nodes: Watch,
    events: Watch,
    claims_made: usize,
    /// Claims whose launch was told.
    launched: BTreeSet<ObjectName>,
    /// Nodes whose initialisation was told.
    initialised: BTreeSet<ObjectName>,
    /// Nodes that take no new pods.
    fenced: BTreeSet<ObjectName>,
    /// Nodes that drain, and since when.
    draining: BTreeMap<ObjectName, Timestamp>,
    choices: Choices,
    /// Warnings that were told, by the uid of what they are about and what they say: a repeat is told once.
    warned: BTreeSet<(String, String)>,
}

impl Timeline {
    pub fn new(start: Timestamp, ledger: Ledger) -> Self {
        Self {
            start,
            pods: PodCounts::new(ledger.clone()),
            ledger,
            claims: Watch::new(Kind::NodeClaim),
            nodes: Watch::new(Kind::Node),
            events: Watch::new(Kind::Event),
            claims_made: 0,
            launched: BTreeSet::new(),
            initialised: BTreeSet::new(),
            fenced: BTreeSet::new(),
            draining: BTreeMap::new(),
            choices: Choices::default(),
            warned: BTreeSet::new(),
        }
    }

    /// Claims that were ever created.
    pub fn claims_made(&self) -> usize {
        self.claims_made
    }

    /// Every node that was disrupted by choice.
    pub fn disruptions(&self) -> impl Iterator<Item = &Disruption> {
        self.choices.all()
    }

    pub fn disruptions_by_reason(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for disruption in self.disruptions() {
            *counts.entry(disruption.reason.clone()).or_default() += 1;
        }
        counts
    }

    /// What consolidation has taken off the hourly price, all together.
    pub fn saved_hourly(&self) -> Price {
        Price::from_micros(self.choices.saved())
    }

    /// What is new since the last look.
    pub fn look(&mut self, store: &Store, now: Timestamp) -> Vec<Entry> {
        let mut told = Telling { entries: Vec::new(), now, elapsed: now.duration_since(self.start) };
        self.pods.look(store, &mut told);
        for event in changes(&mut self.claims, store) {
            self.claim(&event, &mut told);
        }
        for event in changes(&mut self.nodes, store) {
            self.node(&event, store, &mut told);
        }
        self.warnings(store, &mut told);
        self.pods.settle(store.version(), &mut told);
        told.in_order()
    }

    fn claim(&mut self, event: &Event, told: &mut Telling) {
        let claim = &event.object;
        let name = &claim.name.name;
        match event.change {
            ChangeKind::Added => {
                self.claims_made += 1;
                let pool = claim.labels().0.and_then(|labels| labels.get(label::NODEPOOL)).and_then(Value::as_str);
                let types = requirement_values(claim, label::INSTANCE_TYPE);
                let pods = claim.text(&["spec", "resources", "requests", "pods"]).unwrap_or("0");
                let pool = pool.map_or_else(String::new, |pool| format!(" from pool {pool}"));
                told.add(
                    event.version,
                    name,
                    format!("claim created{pool}: {}, {}", several(pods, "pod"), several(&types.to_string(), "type")),
                    Tone::Arriving,
                );
            }
            ChangeKind::Modified => {
                if let Some((text, tone)) = self.choices.see(claim, &self.ledger) {
                    told.add(event.version, name, text, tone);
                }
                self.launch(claim, told);
            }
            ChangeKind::Deleted => {
                self.choices.gone(claim);
                self.launched.remove(&claim.name);
                told.add(event.version, name, "claim gone".to_owned(), Tone::Leaving);
            }
        }
    }

    fn launch(&mut self, claim: &Object, told: &mut Telling) {
        let Some(provider_id) = claim.text(&["status", "providerID"]).filter(|id| !id.is_empty()) else { return };
        if !self.launched.insert(claim.name.clone()) {
            return;
        }
        let about = |key: &str| claim.labels().0.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        let mut parts: Vec<String> = [label::INSTANCE_TYPE, label::ZONE, label::CAPACITY_TYPE]
            .into_iter()
            .filter_map(|key| about(key).map(str::to_owned))
            .collect();
        parts.extend(self.ledger.price(provider_id).map(|price| format!("${}/h", dollars(price.micros(), 4))));
        told.add(claim.version, &claim.name.name, format!("launched {}", parts.join(", ")), Tone::Arriving);
    }

    fn node(&mut self, event: &Event, store: &Store, told: &mut Telling) {
        let node = &event.object;
        let name = &node.name.name;
        match event.change {
            ChangeKind::Added => told.add(event.version, name, "joined the cluster".to_owned(), Tone::Arriving),
            ChangeKind::Modified => {}
            ChangeKind::Deleted => {
                self.initialised.remove(&node.name);
                self.fenced.remove(&node.name);
                let took = self.draining.remove(&node.name).map(|since| told.now.duration_since(since).as_secs());
                let took = took.map_or_else(String::new, |seconds| format!(" after {seconds} s"));
                told.add(event.version, name, format!("gone{took}"), Tone::Leaving);
                return;
            }
        }
        if node.labels().0.is_some_and(|labels| labels.contains_key("karpenter.sh/initialized"))
            && self.initialised.insert(node.name.clone())
        {
            told.add(event.version, name, "initialised, takes pods".to_owned(), Tone::Good);
        }
        let count = store.pods_on(name).count();
        let pods = several(&count.to_string(), "pod");
        let is_fenced = node.list(&["spec", "taints"]).iter().any(|taint| taint["key"] == DISRUPTED);
        if node.is_deleting() {
            if !self.draining.contains_key(&node.name) {
                self.draining.insert(node.name.clone(), told.now);
                told.add(event.version, name, format!("drains {pods}"), Tone::Leaving);
            }
        } else if is_fenced && self.fenced.insert(node.name.clone()) {
            let stay = if count == 1 { "stays" } else { "stay" };
            told.add(event.version, name, format!("takes no new pods, {pods} {stay} for now"), Tone::Leaving);
        } else if !is_fenced && self.fenced.remove(&node.name) {
            told.add(event.version, name, "stays after all".to_owned(), Tone::Good);
        }
    }

    /// The same warning about many objects of a kind is one entry.
    fn warnings(&mut self, store: &Store, told: &mut Telling) {
        let mut warnings: BTreeMap<(String, String), Vec<Object>> = BTreeMap::new();
        for Event { object, .. } in changes(&mut self.events, store) {
            let is_ours = object.text(&["source", "component"]) == Some("karpenter");
            if !is_ours || object.text(&["type"]) != Some("Warning") {
                continue;
            }
            let part = |name: &str| object.text(&[name]).unwrap_or_default();
            // That pods are still there just after a drain began goes without saying.
            let since = self.draining.get(&ObjectName::of_cluster(about(&object, "name")));
            let has_just_begun = since.is_none_or(|since| told.now.duration_since(*since) < LONG_DRAIN);
            if part("reason") == "FailedDraining" && has_just_begun {
                continue;
            }
            let text = format!("{}: {}", part("reason"), part("message"));
            if self.warned.insert((about(&object, "uid").to_owned(), text.clone())) {
                let kind = about(&object, "kind").to_lowercase();
                warnings.entry((kind, text)).or_default().push(object);
            }
        }
        for ((kind, text), events) in warnings {
            let Some(first) = events.first() else { continue };
            let subject = match events.len() {
                1 => about(first, "name").to_owned(),
                count => several(&count.to_string(), &kind),
            };
            told.add(first.version, &subject, text, Tone::Warning);
        }
    }
}

/// A field of what an event is about.
fn about<'a>(event: &'a Object, field: &str) -> &'a str {
    event.text(&["involvedObject", field]).unwrap_or_default()
}

/// The entries of one moment, each with the version of the change that it tells of.
struct Telling {
    entries: Vec<(u64, Entry)>,
    now: Timestamp,
    elapsed: SignedDuration,
}

impl Telling {
    fn add(&mut self, version: u64, subject: &str, text: String, tone: Tone) {
        let subject = subject.to_owned();
        self.entries.push((version, Entry { at: self.now, elapsed: self.elapsed, subject, text, tone }));
    }

    /// In the order in which it happened, also across kinds.
    fn in_order(mut self) -> Vec<Entry> {
        self.entries.sort_by_key(|(version, _)| *version);
        self.entries.into_iter().map(|(_, entry)| entry).collect()
    }
}

/// Every change since the last look. The first look, and one after a gap, shows what is there as if it had just come.
fn changes(watch: &mut Watch, store: &Store) -> Vec<Event> {
    match watch.news(store) {
        News::Events(events) => events,
        News::All(objects) => objects
            .into_iter()
            .map(|object| Event { version: object.version, change: ChangeKind::Added, object, before: None })
            .collect(),
    }
}

/// How many values a requirement of the claim allows.
fn requirement_values(claim: &Object, key: &str) -> usize {
    let requirements = claim.list(&["spec", "requirements"]);
    let found = requirements.iter().find(|requirement| requirement["key"] == key);
    found.and_then(|requirement| requirement["values"].as_array()).map_or(0, Vec::len)
}

fn several(count: &str, noun: &str) -> String {
    format!("{count} {noun}{}", if count == "1" { "" } else { "s" })
}

/// Micro-dollars as dollars with some places, rounded to the nearest.
pub fn dollars(micros: i64, places: u32) -> String {
    let unit = 10_i64.pow(6_u32.saturating_sub(places));
    let scale = 10_i64.pow(places.min(6));
    let units = (micros + unit / 2) / unit;
    format!("{}.{:0width$}", units / scale, units % scale, width = places as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_money_read_well() {
        assert_eq!(clock_text(SignedDuration::from_secs(310)), "00:05:10");
        assert_eq!(clock_text(SignedDuration::from_hours(73)), "3d 01:00:00");
        assert_eq!(dollars(1_234_567, 4), "1.2346");
        assert_eq!(dollars(41_600, 4), "0.0416");
        assert_eq!(dollars(12_000_000, 2), "12.00");
    }
}
