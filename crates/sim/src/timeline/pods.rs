//! Pods are told as counts: how many wait, how many run, how many were evicted.

use std::collections::BTreeMap;

use kerf_model::cluster::ObjectName;

use super::{Telling, Tone, changes, several};
use crate::autoscaler::Ledger;
use crate::store::{ChangeKind, Event, Kind, Object, Store};
use crate::world::Watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Without a node.
    Pending,
    /// On a node, and not running yet.
    Starting,
    Running,
    Leaving,
    /// Ended by itself.
    Done,
}

pub(super) struct PodCounts {
    ledger: Ledger,
    watch: Watch,
    states: BTreeMap<ObjectName, State>,
    counts: Counts,
    pending_told: usize,
    /// How many run, as told last; `None` once something else was told since.
    running_told: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    pending: usize,
    starting: usize,
    running: usize,
    leaving: usize,
}

impl Counts {
    fn of(&mut self, state: State) -> Option<&mut usize> {
        match state {
            State::Pending => Some(&mut self.pending),
            State::Starting => Some(&mut self.starting),
            State::Running => Some(&mut self.running),
            State::Leaving => Some(&mut self.leaving),
            State::Done => None,
        }
    }
}

impl PodCounts {
    pub fn new(ledger: Ledger) -> Self {
        Self {
            ledger,
            watch: Watch::new(Kind::Pod),
            states: BTreeMap::new(),
            counts: Counts::default(),
            pending_told: 0,
            running_told: Some(0),
        }
    }

    /// Takes in what changed, and tells of evictions and of pods that wait.
    pub fn look(&mut self, store: &Store, told: &mut Telling) {
        let mut evicted: BTreeMap<String, (u64, usize)> = BTreeMap::new();
        let mut last_pending = 0;
        for event in changes(&mut self.watch, store) {
            let before = self.counts.pending;
            if self.take_in(&event) {
                let node = event.object.text(&["spec", "nodeName"]).unwrap_or_default();
                evicted.entry(node.to_owned()).or_insert((event.version, 0)).1 += 1;
            }
            if self.counts.pending > before {
                last_pending = event.version;
            }
        }
        for (node, (version, count)) in evicted {
            told.add(version, &node, format!("{} evicted", several(&count.to_string(), "pod")), Tone::Leaving);
        }
        if self.counts.pending > self.pending_told {
            let count = self.counts.pending.to_string();
            let verb = if count == "1" { "waits" } else { "wait" };
            let text = format!("{} {verb} for a node", several(&count, "pod"));
            told.add(last_pending, "pods", text, Tone::Waiting);
            self.running_told = None;
        }
        self.pending_told = self.counts.pending;
    }

    /// Tells how many run once nothing is under way any more.
    pub fn settle(&mut self, version: u64, told: &mut Telling) {
        let Counts { pending, starting, running, leaving } = self.counts;
        if pending + starting + leaving > 0 || Some(running) == self.running_told {
            return;
        }
        self.running_told = Some(running);
        let count = running.to_string();
        let verb = if running == 1 { "runs" } else { "run" };
        told.add(version, "pods", format!("{} {verb}, none waits", several(&count, "pod")), Tone::Good);
    }

    /// Whether the change is the start of an eviction.
    fn take_in(&mut self, event: &Event) -> bool {
        let pod = &event.object;
        let next = match event.change {
            ChangeKind::Added | ChangeKind::Modified => Some(state(pod)),
            ChangeKind::Deleted => None,
        };
        let before = match next {
            Some(next) => self.states.insert(pod.name.clone(), next),
            None => self.states.remove(&pod.name),
        };
        if let Some(count) = before.and_then(|before| self.counts.of(before)) {
            *count -= 1;
        }
        if let Some(count) = next.and_then(|next| self.counts.of(next)) {
            *count += 1;
        }
        next == Some(State::Leaving) && before != next && self.ledger.is_evicted(pod.uid())
    }
}

fn state(pod: &Object) -> State {
    let is_bound = pod.text(&["spec", "nodeName"]).is_some_and(|node| !node.is_empty());
    match pod.text(&["status", "phase"]) {
        Some("Succeeded" | "Failed") => State::Done,
        _ if pod.is_deleting() => State::Leaving,
        Some("Running") => State::Running,
        _ if is_bound => State::Starting,
        _ => State::Pending,
    }
}
