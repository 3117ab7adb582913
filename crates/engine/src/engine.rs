//! The engine and its one function.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_lifecycle::pool::{self, Totals};
use kerf_lifecycle::{Memory, Note, Steps, View, claim, garbage, node};
use kerf_model::change::{Change, Input};
use kerf_model::cloud::Instance;
use kerf_model::cluster::{InstanceType, ObjectName};
use kerf_model::effect::Effect;
use kerf_model::snapshot::ClusterSnapshot;

use crate::agenda::{Agenda, Item};
use crate::batch::Batch;
use crate::outstanding::Outstanding;
use crate::provisioning::{self, Expected, PodVerdict};
use crate::settings::Settings;

/// Pods that still wait are looked at again this often, though nothing was heard of them.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(10);
/// And this soon after a claim could not be created.
const AFTER_FAILURE: SignedDuration = SignedDuration::from_secs(1);

pub struct Engine {
    settings: Settings,
    snapshot: ClusterSnapshot,
    memory: Memory,
    agenda: Agenda,
    outstanding: Outstanding,
    batch: Batch,
    /// When waiting pods are looked at without being heard of.
    retry: Option<Timestamp>,
    types: BTreeMap<Arc<str>, Arc<[InstanceType]>>,
    expected: Expected,
    verdicts: BTreeMap<ObjectName, PodVerdict>,
    /// The cloud's list, until it has been compared with the cluster.
    instances: Option<Vec<Instance>>,
    is_synced: bool,
}

/// What the engine wants done.
#[derive(Debug, Default)]
pub struct Output {
    /// In order per object; effects on different objects may be done at the same time.
    pub effects: Vec<Effect>,
    /// What they mean, for metrics and logs.
    pub notes: Vec<Note>,
    /// Call again at this time if nothing is heard before.
    pub wake: Option<Timestamp>,
}

impl Engine {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            snapshot: ClusterSnapshot::default(),
            memory: Memory::default(),
            agenda: Agenda::default(),
            outstanding: Outstanding::default(),
            batch: Batch::default(),
            retry: None,
            types: BTreeMap::new(),
            expected: Expected::default(),
            verdicts: BTreeMap::new(),
            instances: None,
            is_synced: false,
        }
    }

    /// The cluster as it is known.
    pub fn snapshot(&self) -> &ClusterSnapshot {
        &self.snapshot
    }

    /// The current answer for every pod that needs a place.
    pub fn pod_verdicts(&self) -> &BTreeMap<ObjectName, PodVerdict> {
        &self.verdicts
    }

    /// One look at the cluster. `now` never goes back.
    pub fn handle(&mut self, inputs: impl IntoIterator<Item = Input>, now: Timestamp) -> Output {
        for input in inputs {
            self.hear(input, now);
        }
        let mut output = Output::default();
        if !self.is_synced {
            return output;
        }
        if let Some(instances) = self.instances.take() {
            let steps = garbage::collect(&instances, self.view(now));
            self.take(steps, now, &mut output);
        }
        let items = self.agenda.take(now);
        // Made once for all pools, and only if one is looked at.
        let has_pool = items.iter().any(|item| matches!(item, Item::Pool(_)));
        let totals = if has_pool { Totals::of(&self.snapshot) } else { Totals::default() };
        for item in items {
            self.look_at(item, &totals, now, &mut output);
        }
        self.provision(now, &mut output);
        output.wake = [self.agenda.next_due(), self.next_round(now)].into_iter().flatten().min();
        output
    }

    fn hear(&mut self, input: Input, now: Timestamp) {
        self.memory.hear(&input, &self.snapshot, now);
        self.agenda.hear(&input, &self.snapshot);
        match input {
            Input::Change(change) => {
                self.see(&change, now);
                self.snapshot.apply(change.clone());
                self.agenda.hear(&Input::Change(change), &self.snapshot);
            }
            Input::Synced => {
                self.is_synced = true;
                self.agenda.touch_all(&self.snapshot);
                self.retry = Some(now);
            }
            Input::Catalogue(types) => {
                self.types = types;
                self.retry = Some(now);
            }
            Input::WriteFailed { effect, .. } => {
                self.outstanding.failed(&effect, now);
                if let Effect::CreateClaim(claim) = *effect {
                    self.expected.remove(&claim.name);
                    self.retry = Some(later(now, AFTER_FAILURE));
                }
            }
            Input::Instances(instances) => self.instances = Some(instances),
            Input::Launched { .. } | Input::Terminated { .. } | Input::InstanceFound { .. } | Input::Interrupted(_) => {
            }
        }
    }

    /// What a change means for provisioning.
    fn see(&mut self, change: &Change, now: Timestamp) {
        match change {
            Change::Pod(name, Some(pod)) if pod.is_provisionable() => {
                if !self.verdicts.contains_key(name) {
                    self.batch.add(&pod.meta.uid, now);
                }
            }
            Change::Pod(name, _) => drop(self.verdicts.remove(name)),
            // Its pods need a place while they still run.
            Change::Node(_, Some(node)) if node.meta.is_deleting() => self.batch.add(&node.meta.uid, now),
            Change::NodeClaim(name, None) => {
                if self.expected.remove(&name.name) {
                    self.retry = Some(now);
                }
            }
            Change::NodePool(..) | Change::NodeClass(..) => self.retry = Some(now),
            Change::Node(..)
            | Change::NodeClaim(..)
            | Change::DaemonSet(..)
            | Change::DisruptionBudget(..)
            | Change::MaintenanceWindow(..)
            | Change::VolumeAttachment(..)
            | Change::PersistentVolumeClaim(..)
            | Change::PersistentVolume(..)
            | Change::StorageClass(..)
            | Change::CsiNode(..)
            | Change::Namespace(..) => {}
        }
    }

    fn view(&self, now: Timestamp) -> View<'_> {
        View { snapshot: &self.snapshot, memory: &self.memory, settings: &self.settings.lifecycle, now }
    }

    fn look_at(&mut self, item: Item, totals: &Totals, now: Timestamp, output: &mut Output) {
        let view = self.view(now);
        let steps = match &item {
            Item::Claim(name) => self.snapshot.claim(name).map(|object| claim::next(object, view)),
            Item::Node(name) => self.snapshot.node(name).map(|object| node::next(object, view)),
            Item::Pool(name) => self.snapshot.pool(name).map(|object| pool::next(object, totals, view)),
            Item::Garbage => Some(garbage::next(view)),
        };
        let steps = steps.unwrap_or_default();
        if let Some(repeat_at) = self.outstanding.pending(&item, &steps.effects, now) {
            let wake = steps.wake.map_or(repeat_at, |wake| wake.min(repeat_at));
            return self.agenda.wake(item, Some(wake));
        }
        let repeat_at = self.outstanding.asked(item.clone(), steps.effects.clone(), now);
        self.agenda.wake(item, [steps.wake, repeat_at].into_iter().flatten().min());
        self.take(steps, now, output);
    }

    /// The steps will be done.
    fn take(&mut self, steps: Steps, now: Timestamp, output: &mut Output) {
        self.memory.took(&steps, &self.snapshot, now);
        output.effects.extend(steps.effects);
        output.notes.extend(steps.notes);
    }

    /// When the next round may be due.
    fn next_round(&self, now: Timestamp) -> Option<Timestamp> {
        let closes = self.batch.closes_at(self.settings.batch_idle, self.settings.batch_max);
        let wanted = [closes, self.retry].into_iter().flatten().min()?;
        let holds = [provisioning::hold(&self.snapshot, now), self.expected.hold(&self.snapshot, now)];
        Some(holds.into_iter().flatten().fold(wanted, Ord::max))
    }

    fn provision(&mut self, now: Timestamp, output: &mut Output) {
        if self.next_round(now).is_none_or(|at| now < at) {
            return;
        }
        self.batch.close();
        self.expected.refresh(&self.snapshot, now);
        let pods = provisioning::waiting_pods(&self.snapshot, &self.expected, now);
        self.retry = (!pods.is_empty()).then(|| later(now, LOOK_AGAIN));
        if pods.is_empty() {
            return;
        }
        let round = provisioning::round(&self.snapshot, &self.types, pods, &self.settings);
        output.effects.extend(round.effects);
        self.expected.add(round.planned, now);
        self.verdicts.extend(round.verdicts);
    }
}

fn later(start: Timestamp, wait: SignedDuration) -> Timestamp {
    start.checked_add(wait).unwrap_or(Timestamp::MAX)
}
