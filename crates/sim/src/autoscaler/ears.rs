//! How the autoscaler hears of the cluster: one watch per kind, each of which may lag, break off or begin with an old list.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};
use kerf_api::Provider;
use kerf_api::change::{Features, Reader, WatchedKind};
use kerf_model::change::Input;
use kerf_model::cluster::ObjectName;

use crate::faults::Faults;
use crate::store::{Kind, Object, Store};
use crate::world::{News, Watch};

/// How far back an old list can reach.
const REMEMBERED: SignedDuration = SignedDuration::from_secs(30);

/// Up to which version of the store each kind has been heard of.
pub type Heard = BTreeMap<Kind, u64>;

pub struct Ears {
    provider: Provider,
    features: Features,
    reader: Reader,
    watches: Vec<Ear>,
    /// The version of the store at each moment of the last while.
    versions: VecDeque<(Timestamp, u64)>,
}

struct Ear {
    kind: WatchedKind,
    stored: Kind,
    watch: Watch,
    /// What it has seen, so that a gap shows what went meanwhile.
    known: BTreeSet<ObjectName>,
    silent_until: Option<Timestamp>,
    has_listed: bool,
    heard: u64,
}

impl Ears {
    pub fn new(provider: Provider, features: Features) -> Self {
        let kinds = WatchedKind::all(provider).into_iter().chain(features.kinds());
        let watches = kinds.map(|kind| {
            let stored = stored_kind(kind);
            let watch = Watch::new(stored);
            Ear { kind, stored, watch, known: BTreeSet::new(), silent_until: None, has_listed: false, heard: 0 }
        });
        let watches = watches.collect();
        Self { provider, features, reader: Reader::new(Some(provider)), watches, versions: VecDeque::new() }
    }

    /// The process ends; the next one has seen nothing.
    pub fn restart(&mut self) {
        let versions = std::mem::take(&mut self.versions);
        *self = Self { versions, ..Self::new(self.provider, self.features) };
    }

    pub fn heard(&self) -> Heard {
        self.watches.iter().map(|ear| (ear.stored, ear.heard)).collect()
    }

    /// When a watch that is silent speaks again.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.watches.iter().filter_map(|ear| ear.silent_until).min()
    }

    /// Everything seen since the last look, as the engine hears it.
    pub fn listen(&mut self, store: &Store, faults: &mut Faults, now: Timestamp) -> Vec<Input> {
        self.remember(store, now);
        let mut inputs = Vec::new();
        for ear in &mut self.watches {
            if ear.is_silent(store, faults, now) {
                continue;
            }
            let (there, gone) = ear.hear(store, faults, &self.versions, now);
            for object in there {
                ear.known.insert(object.name.clone());
                // What cannot be read keeps its last state, as in a real watch.
                if let Ok(seen) = self.reader.seen_json(ear.kind, object.body()) {
                    inputs.push(Input::Change(seen.change));
                }
            }
            for name in gone {
                ear.known.remove(&name);
                inputs.push(Input::Change(ear.kind.gone(&wire_name(&name))));
            }
        }
        faults.reorder(&mut inputs);
        inputs
    }

    fn remember(&mut self, store: &Store, now: Timestamp) {
        while self.versions.front().is_some_and(|(at, _)| now.duration_since(*at) > REMEMBERED) {
            self.versions.pop_front();
        }
        if self.versions.back().is_none_or(|(_, version)| *version != store.version()) {
            self.versions.push_back((now, store.version()));
        }
    }
}

impl Ear {
    fn is_silent(&mut self, store: &Store, faults: &mut Faults, now: Timestamp) -> bool {
        match self.silent_until {
            Some(until) if now < until => return true,
            Some(_) => self.silent_until = None,
            // The first list is always awaited: before it nothing is decided.
            None if self.has_listed && self.watch.has_news(store) => {
                self.silent_until = faults.lag().map(|lag| now + lag);
            }
            None => {}
        }
        self.silent_until.is_some()
    }

    /// What is there, as far as it changed, and what is gone.
    fn hear(
        &mut self,
        store: &Store,
        faults: &mut Faults,
        versions: &VecDeque<(Timestamp, u64)>,
        now: Timestamp,
    ) -> (Vec<Object>, Vec<ObjectName>) {
        if !self.has_listed {
            self.has_listed = true;
            let old = faults.stale_list().and_then(|age| version_at(versions, now - age));
            if let Some((version, objects)) = old.and_then(|old| Some((old, store.as_of(self.stored, old).ok()?))) {
                self.watch.resume_from(version);
                self.heard = version;
                return (objects, Vec::new());
            }
        } else if self.watch.has_news(store) && faults.expires_watch() {
            self.watch.break_off();
        }
        self.heard = store.version();
        match self.watch.news(store) {
            News::Events(events) => {
                // What counts is what there is now: a name may have been reused meanwhile.
                let names: BTreeSet<ObjectName> = events.into_iter().map(|event| event.object.name).collect();
                let mut there = Vec::new();
                let mut gone = Vec::new();
                for name in names {
                    match store.get(self.stored, &name) {
                        Ok(object) => there.push(object.clone()),
                        Err(_) => gone.push(name),
                    }
                }
                (there, gone)
            }
            News::All(objects) => {
                let names: BTreeSet<&ObjectName> = objects.iter().map(|object| &object.name).collect();
                let gone = self.known.iter().filter(|name| !names.contains(name)).cloned().collect();
                (objects, gone)
            }
        }
    }
}

/// The version of the store at a moment; `None` if that is not remembered.
fn version_at(versions: &VecDeque<(Timestamp, u64)>, at: Timestamp) -> Option<u64> {
    versions.iter().rev().find(|(since, _)| *since <= at).map(|(_, version)| *version)
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
