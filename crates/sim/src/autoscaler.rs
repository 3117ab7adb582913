//! Kerf itself, living in the world: the same engine and the same border as in a real cluster, with the store for an API
//! and [`Cloud`] for a cloud.

mod cloud;
mod ledger;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_api::Provider;
use kerf_api::change::{Reader, WatchedKind};
use kerf_api::write::{ApiWrite, Request, Subresource, Version, api_writes};
use kerf_cloud::InstanceTypes;
use kerf_engine::{Engine, Settings};
use kerf_lifecycle::ClassKind;
use kerf_model::change::Input;
use kerf_model::cluster::ObjectName;
use kerf_model::effect::{ClaimPatch, Effect, Event, MetaPatch, WriteError};
use serde_json::Value;

pub use cloud::{Cloud, CloudPace, MachineView};
pub use ledger::Ledger;

use crate::faults::{Fate, Faults, Mutation};
use crate::store::{ApiError, Conflict, DeleteOptions, EvictionRefusal, Kind, Part, Patch, Store};
use crate::world::{Actor, News, Watch};

/// The provider whose kinds the world's pools use.
const PROVIDER: Provider = Provider::Kwok;

/// How long a refusal takes to come back.
const HEARD_AFTER: SignedDuration = SignedDuration::from_millis(10);

pub struct Autoscaler {
    engine: Engine,
    reader: Reader,
    watches: Vec<(WatchedKind, Watch)>,
    /// What each watch has seen, so that a gap in it shows what went meanwhile.
    known: BTreeMap<WatchedKind, BTreeSet<ObjectName>>,
    cloud: Cloud,
    /// Answers and failures that the engine hears with the next step.
    heard: Vec<Input>,
    offered: BTreeSet<Arc<str>>,
    is_synced: bool,
    wake: Option<Timestamp>,
    /// When each event was told last, by object, reason and what else tells it apart.
    told: BTreeMap<(Arc<str>, &'static str, String), Timestamp>,
    faults: Faults,
    /// Watches that are silent for now.
    lagging: BTreeMap<WatchedKind, Timestamp>,
    /// Effects under way. They outlive a crash: what was sent arrives.
    late: BTreeMap<(Timestamp, u64), Effect>,
    sent_late: u64,
    /// After a crash, until the next process starts.
    down_until: Option<Timestamp>,
}

impl Autoscaler {
    pub fn new(types: InstanceTypes, pace: CloudPace) -> Self {
        Self {
            engine: fresh_engine(),
            reader: Reader::new(Some(PROVIDER)),
            watches: fresh_watches(),
            known: BTreeMap::new(),
            cloud: Cloud::new(types, pace),
            heard: Vec::new(),
            offered: BTreeSet::new(),
            is_synced: false,
            wake: None,
            told: BTreeMap::new(),
            faults: Faults::none(),
            lagging: BTreeMap::new(),
            late: BTreeMap::new(),
            sent_late: 0,
            down_until: None,
        }
    }

    #[must_use]
    pub fn with_faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    pub fn faults_mut(&mut self) -> &mut Faults {
        &mut self.faults
    }

    pub fn cloud(&self) -> &Cloud {
        &self.cloud
    }

    pub fn cloud_mut(&mut self) -> &mut Cloud {
        &mut self.cloud
    }

    /// The process dies, and another one starts later. Cluster and cloud go on; answers to the old one are lost.
    pub fn crash(&mut self, outage: SignedDuration, now: Timestamp) {
        self.engine = fresh_engine();
        self.reader = Reader::new(Some(PROVIDER));
        self.watches = fresh_watches();
        self.known.clear();
        self.heard.clear();
        self.told.clear();
        self.offered.clear();
        self.lagging.clear();
        self.cloud.forget_answers();
        self.is_synced = false;
        self.wake = None;
        self.down_until = Some(now + outage);
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What the cloud charges and what is done to pods, readable after the world has taken the autoscaler in.
    pub fn ledger(&self) -> Ledger {
        self.cloud.ledger().clone()
    }

    /// Everything seen since the last look, as the engine hears it.
    fn listen(&mut self, store: &Store, now: Timestamp) -> Vec<Input> {
        let mut inputs = std::mem::take(&mut self.heard);
        for (kind, watch) in &mut self.watches {
            match self.lagging.get(kind) {
                Some(until) if now < *until => continue,
                Some(_) => drop(self.lagging.remove(kind)),
                // The first list is always awaited: before it nothing is decided.
                None if self.is_synced && watch.has_news(store) => {
                    if let Some(lag) = self.faults.lag() {
                        self.lagging.insert(*kind, now + lag);
                        continue;
                    }
                }
                None => {}
            }
            let known = self.known.entry(*kind).or_default();
            let (objects, gone) = match watch.news(store) {
                News::Events(events) => {
                    // What counts is what there is now: a name may have been reused meanwhile.
                    let names: BTreeSet<ObjectName> = events.into_iter().map(|event| event.object.name).collect();
                    let (there, gone): (Vec<_>, Vec<_>) =
                        names.into_iter().partition(|name| store.get(stored_kind(*kind), name).is_ok());
                    let there = there.iter().filter_map(|name| store.get(stored_kind(*kind), name).ok().cloned());
                    (there.collect::<Vec<_>>(), gone)
                }
                News::All(objects) => {
                    let names: BTreeSet<&ObjectName> = objects.iter().map(|object| &object.name).collect();
                    let gone = known.iter().filter(|name| !names.contains(name)).cloned().collect();
                    (objects, gone)
                }
            };
            for object in objects {
                known.insert(object.name.clone());
                // What cannot be read keeps its last state, as in a real watch.
                if let Ok(seen) = self.reader.seen_json(*kind, object.body()) {
                    inputs.push(Input::Change(seen.change));
                }
            }
            for name in gone {
                known.remove(&name);
                inputs.push(Input::Change(kind.gone(&wire_name(&name))));
            }
        }
        inputs
    }

    /// The catalogue is asked for again when pools come and go.
    fn offer_types(&mut self, inputs: &mut Vec<Input>) {
        let pools: BTreeSet<Arc<str>> =
            self.engine.snapshot().pools().map(|pool| pool.meta.name.name.clone()).collect();
        if pools != self.offered {
            let types = self.cloud.types();
            inputs.push(Input::Catalogue(pools.iter().map(|pool| (pool.clone(), types.clone())).collect()));
            self.offered = pools;
        }
    }

    /// Lets the effect meet its fate.
    fn send(&mut self, effect: Effect, store: &mut Store, now: Timestamp) {
        match self.faults.fate(&effect) {
            Fate::Done => self.execute(effect, store, now),
            Fate::Dropped => {}
            Fate::Late(delay) => self.send_late(effect, now + delay),
            Fate::Repeated(delay) => {
                self.send_late(effect.clone(), now + delay);
                self.execute(effect, store, now);
            }
            Fate::Refused(error) => {
                // A cloud says nothing where the API says no: its answers are inputs of their own.
                if api_writes(&effect, now).is_some() {
                    self.heard.push(Input::WriteFailed { effect: Box::new(effect), error });
                }
            }
            Fate::ReplyLost => {
                let (heard, answers) = (self.heard.len(), self.cloud.questions());
                self.execute(effect.clone(), store, now);
                self.heard.truncate(heard);
                self.cloud.forget_answers_after(answers);
                if api_writes(&effect, now).is_some() {
                    let error = WriteError::Unavailable { message: "no reply".to_owned() };
                    self.heard.push(Input::WriteFailed { effect: Box::new(effect), error });
                }
            }
        }
    }

    fn send_late(&mut self, effect: Effect, at: Timestamp) {
        self.sent_late += 1;
        self.late.insert((at, self.sent_late), effect);
    }

    /// What was sent late and arrives now.
    fn arrive(&mut self, store: &mut Store, now: Timestamp) {
        let later = self.late.split_off(&(now + SignedDuration::from_nanos(1), 0));
        for effect in std::mem::replace(&mut self.late, later).into_values() {
            self.execute(effect, store, now);
        }
    }

    /// Whether the event was not told just now already.
    fn is_news(&mut self, event: &Event, now: Timestamp) -> bool {
        let key = (event.about.target.uid.clone(), event.reason, event.dedupe.clone());
        let is_news = self.told.get(&key).is_none_or(|told| now.duration_since(*told) >= event.interval);
        if is_news {
            self.told.insert(key, now);
        }
        is_news
    }

    fn execute(&mut self, effect: Effect, store: &mut Store, now: Timestamp) {
        if let Effect::Publish(event) = &effect
            && !self.is_news(event, now)
        {
            return;
        }
        let effect = match effect {
            Effect::EvictPod(pod) if self.faults.has(Mutation::SkipBudgets) => {
                Effect::DeletePod(pod, SignedDuration::from_secs(30))
            }
            Effect::Terminate { claim, .. } if self.faults.has(Mutation::ForgetFinalizer) => {
                let patch = ClaimPatch {
                    meta: MetaPatch { finalizers: Some(Vec::new()), ..MetaPatch::default() },
                    ..ClaimPatch::default()
                };
                Effect::PatchClaim(claim, Box::new(patch))
            }
            other => other,
        };
        if let Some(writes) = api_writes(&effect, now) {
            match (execute_all(&writes, store, now), effect) {
                (Ok(()), Effect::EvictPod(pod)) => self.cloud.ledger().evicted(pod.uid),
                (Ok(()), _) => {}
                (Err(error), effect) => self.heard.push(Input::WriteFailed { effect: Box::new(effect), error }),
            }
            return;
        }
        match effect {
            Effect::Launch { claim } => {
                let known = self.engine.snapshot().claim(&claim.name.name).cloned();
                if self.faults.has(Mutation::LaunchTwice) {
                    self.cloud.forget_claim(&claim.uid);
                }
                let fate = self.faults.launch();
                self.cloud.launch(claim, known.as_deref(), fate, now);
            }
            Effect::Terminate { claim, provider_id } => self.cloud.terminate(Some(claim), &provider_id, now),
            Effect::TerminateOrphan { provider_id } => self.cloud.terminate(None, &provider_id, now),
            Effect::ListInstances => self.cloud.list(now),
            Effect::FindInstance { provider_id } => self.cloud.find(&provider_id, now),
            Effect::CreateClaim(_)
            | Effect::PatchClaim(..)
            | Effect::DeleteClaim(_)
            | Effect::PatchNode(..)
            | Effect::DeleteNode(_)
            | Effect::PatchPool(..)
            | Effect::EvictPod(_)
            | Effect::DeletePod(..)
            | Effect::Publish(_) => {}
        }
    }
}

impl Actor for Autoscaler {
    fn name(&self) -> &'static str {
        "kerf"
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        self.cloud.step(store, now)?;
        self.arrive(store, now);
        if self.down_until.is_some_and(|until| now < until) {
            // Nobody is there to hear them.
            self.cloud.forget_answers();
            return Ok(());
        }
        self.down_until = None;
        let mut inputs = self.listen(store, now);
        inputs.extend(self.cloud.answers(now));
        let is_due = self.wake.is_some_and(|wake| wake <= now);
        if inputs.is_empty() && !is_due {
            return Ok(());
        }
        if !self.is_synced {
            self.is_synced = true;
            inputs.push(Input::Synced);
        }
        let mut output = self.engine.handle(inputs, now);
        // Which pools there are is known only after the changes are taken in.
        let mut catalogue = Vec::new();
        self.offer_types(&mut catalogue);
        if !catalogue.is_empty() {
            let more = self.engine.handle(catalogue, now);
            output.effects.extend(more.effects);
            output.wake = more.wake;
        }
        self.wake = output.wake.map(|wake| wake.max(now));
        for effect in output.effects {
            if let Some(outage) = self.faults.crash(&effect) {
                self.crash(outage, now);
                return Ok(());
            }
            self.send(effect, store, now);
        }
        // What failed just now is heard at once, though nothing in the store has changed.
        if !self.heard.is_empty() {
            let soon = now + HEARD_AFTER;
            self.wake = Some(self.wake.map_or(soon, |wake| wake.min(soon)));
        }
        Ok(())
    }

    fn next_due(&self) -> Option<Timestamp> {
        let late = self.late.keys().next().map(|(at, _)| *at);
        let lagging = self.lagging.values().min().copied();
        [self.wake, self.cloud.next_due(), late, lagging, self.down_until].into_iter().flatten().min()
    }
}

fn fresh_engine() -> Engine {
    let api = WatchedKind::NodeClass(PROVIDER).api_kind();
    let class = ClassKind { group: api.group.into(), kind: api.kind.into() };
    Engine::new(Settings::new(
        kerf_lifecycle::Settings::for_classes(vec![class]),
        kerf_api::provider::label_rules(Some(PROVIDER)),
    ))
}

fn fresh_watches() -> Vec<(WatchedKind, Watch)> {
    WatchedKind::all(PROVIDER).map(|kind| (kind, Watch::new(stored_kind(kind)))).into()
}

fn stored_kind(kind: WatchedKind) -> Kind {
    let api = kind.api_kind();
    Kind::find(&api.api_version(), api.kind).expect("the store has every kind that is watched")
}

fn wire_name(name: &ObjectName) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
    k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        name: Some(name.name.to_string()),
        namespace: (!name.namespace.is_empty()).then(|| name.namespace.to_string()),
        ..Default::default()
    }
}

/// Each after the success of the one before.
fn execute_all(writes: &[ApiWrite], store: &mut Store, now: Timestamp) -> Result<(), WriteError> {
    let mut previous = None;
    for write in writes {
        previous = execute_one(write, previous, store, now)?;
    }
    Ok(())
}

/// The version of the object after the write, where it still has one.
fn execute_one(
    write: &ApiWrite,
    previous: Option<u64>,
    store: &mut Store,
    now: Timestamp,
) -> Result<Option<u64>, WriteError> {
    let kind = Kind::find(&write.kind.api_version(), write.kind.kind).ok_or(WriteError::NotFound)?;
    let done = match &write.request {
        Request::Create(body) => match store.create(kind, body.clone(), now) {
            Err(ApiError::AlreadyExists { .. }) => return Ok(None),
            other => other.map(|object| Some(object.version)),
        },
        Request::MergePatch { subresource, version, body } => {
            let mut body = body.clone();
            let version = match version {
                Version::Any => None,
                Version::Exactly(version) => Some(version.to_string()),
                Version::AfterPrevious => previous.map(|version| version.to_string()),
            };
            if let Some(version) = version {
                body["metadata"]["resourceVersion"] = Value::from(version);
            }
            let part = match subresource {
                Subresource::None => Part::Main,
                Subresource::Status => Part::Status,
            };
            store.patch(kind, &write.name, part, &Patch::Merge(body)).map(|object| Some(object.version))
        }
        Request::Delete { uid, grace_secs } => {
            let options = DeleteOptions { grace_seconds: *grace_secs, ..DeleteOptions::of_uid(uid.to_string()) };
            match store.delete(kind, &write.name, &options, now) {
                Err(ApiError::NotFound { .. } | ApiError::Conflict { cause: Conflict::Uid { .. }, .. }) => Ok(None),
                other => other.map(|_| None),
            }
        }
        Request::Evict { uid } => store.evict(&write.name, &DeleteOptions::of_uid(uid.to_string()), now).map(|_| None),
    };
    done.map_err(write_error)
}

fn write_error(error: ApiError) -> WriteError {
    let message = error.to_string();
    match error {
        ApiError::NotFound { .. } => WriteError::NotFound,
        ApiError::Conflict { .. } | ApiError::AlreadyExists { .. } => WriteError::Conflict,
        ApiError::Eviction(
            EvictionRefusal::BudgetSpent { .. }
            | EvictionRefusal::BudgetNotObserved { .. }
            | EvictionRefusal::SeveralBudgets,
        ) => WriteError::BudgetRefused { message },
        ApiError::Invalid { .. }
        | ApiError::BadRequest { .. }
        | ApiError::PatchRefused { .. }
        | ApiError::Forbidden { .. }
        | ApiError::UnsupportedPatch { .. } => WriteError::Invalid { message },
        ApiError::Expired(_) => WriteError::Unavailable { message },
    }
}
