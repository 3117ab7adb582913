//! Everything that happened in a history, in order: what the autoscaler wanted, what became of it, and every change of the
//! store. Read as lines to find out why, or as one number to see that two runs were the same to the last byte.

use std::fmt::Write as _;

use jiff::Timestamp;
use kerf_model::effect::Effect;
use kerf_model::label::{self, annotation};

use crate::faults::Fate;
use crate::store::{Event, Kind, Object, Store};

/// How much of a line is kept for people. The number is of all of it.
const SHOWN: usize = 600;

#[derive(Debug, Clone)]
pub struct Journal {
    hash: u64,
    entries: u64,
    /// Up to which version of the store it is written.
    seen: u64,
    lines: Option<Vec<String>>,
    /// Used again for every entry.
    text: String,
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

impl Journal {
    /// Only the number.
    pub fn hashed() -> Self {
        Self { hash: FNV_OFFSET, entries: 0, seen: 0, lines: None, text: String::new() }
    }

    /// The lines too.
    pub fn written() -> Self {
        Self { lines: Some(Vec::new()), ..Self::hashed() }
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// What was written since the last look.
    pub fn take_lines(&mut self) -> Vec<String> {
        self.lines.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(crate) fn effect(&mut self, effect: &Effect, fate: &Fate, decided: Timestamp, now: Timestamp) {
        let is_shown = !matches!(effect, Effect::Publish(_));
        self.entry(now, |text| write!(text, "{fate:?} (decided at {decided}): {effect:?}"));
        if is_shown {
            self.show();
        }
    }

    pub(crate) fn crashed(&mut self, process: u64, until: Timestamp, now: Timestamp) {
        self.entry(now, |text| write!(text, "process {process} dies, the next starts at {until}"));
        self.show();
    }

    pub(crate) fn started(&mut self, process: u64, now: Timestamp) {
        self.entry(now, |text| write!(text, "process {process} starts"));
        self.show();
    }

    /// All that changed since the last look.
    pub(crate) fn changes(&mut self, store: &Store, now: Timestamp) {
        let seen = std::mem::replace(&mut self.seen, store.version());
        let mut events: Vec<&Event> =
            Kind::ALL.into_iter().flat_map(|kind| store.events_after(kind, seen).unwrap_or_default()).collect();
        events.sort_by_key(|event| event.version);
        for event in events {
            let Event { version, change, object, .. } = event;
            let (kind, name, body) = (object.kind, &object.name, object.body());
            self.entry(now, |text| write!(text, "{version} {} {kind:?} {name} {body}", change.label()));
            if let (Some(lines), Some(brief)) = (&mut self.lines, brief(object)) {
                lines.push(format!("{now} {version} {} {kind:?} {name} {brief}", change.label()));
            }
        }
    }

    fn entry(&mut self, now: Timestamp, write: impl FnOnce(&mut String) -> std::fmt::Result) {
        self.entries += 1;
        self.text.clear();
        let written = write!(self.text, "{now} ").and_then(|()| write(&mut self.text));
        debug_assert!(written.is_ok(), "a string takes everything");
        self.hash = self.text.bytes().fold(self.hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
    }

    /// The last entry, for people.
    fn show(&mut self) {
        if let Some(lines) = &mut self.lines {
            let end = self.text.floor_char_boundary(SHOWN);
            lines.push(self.text[..end].to_owned());
        }
    }
}

/// What matters of an object to somebody who follows a history. `None` if nothing does.
fn brief(object: &Object) -> Option<String> {
    let text = |path: &[&str]| object.text(path).unwrap_or("-").to_owned();
    let mut brief = match object.kind {
        Kind::NodeClaim | Kind::Node => {
            let conditions = object.list(&["status", "conditions"]).iter().filter(|known| known["status"] == "True");
            let conditions: Vec<&str> = conditions.filter_map(|known| known["type"].as_str()).collect();
            let pool = text(&["metadata", "labels", label::NODEPOOL]);
            let cpu = text(&["status", "capacity", "cpu"]);
            let mut brief = format!("of {pool}, cpu {cpu}, {}", conditions.join(" "));
            for key in [annotation::COMMAND, annotation::REPLACES, annotation::DO_NOT_DISRUPT] {
                if let Some(value) = object.text(&["metadata", "annotations", key]) {
                    let _ = write!(brief, ", {key}={value}");
                }
            }
            for taint in object.list(&["spec", "taints"]) {
                let _ = write!(brief, ", taint {}", taint["key"].as_str().unwrap_or_default());
            }
            if let Some(id) = object.text(&["spec", "providerID"]).or(object.text(&["status", "providerID"])) {
                let _ = write!(brief, ", {id}");
            }
            brief
        }
        Kind::Pod => format!("{} on {}", text(&["status", "phase"]), text(&["spec", "nodeName"])),
        Kind::NodePool => {
            let limits = object.at(&["spec", "limits"]).cloned().unwrap_or_default();
            let disruption = object.at(&["spec", "disruption"]).cloned().unwrap_or_default();
            format!("limits {limits}, disruption {disruption}")
        }
        Kind::MaintenanceWindow => object.at(&["spec"]).cloned().unwrap_or_default().to_string(),
        _ => return None,
    };
    if object.is_deleting() {
        brief.push_str(", deleting");
    }
    Some(brief)
}
