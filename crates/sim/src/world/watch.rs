//! How actors hear of changes: a cursor into the store's log.

use crate::store::{Event, Kind, Object, Store};

#[derive(Debug)]
pub struct Watch {
    kind: Kind,
    seen: Option<u64>,
}

pub enum News {
    /// What happened since the last look.
    Events(Vec<Event>),
    /// The first look, or too much has happened: everything there is.
    All(Vec<Object>),
}

impl Watch {
    pub const fn new(kind: Kind) -> Self {
        Self { kind, seen: None }
    }

    /// The next look is a list again, as after an answer of 410.
    pub fn break_off(&mut self) {
        self.seen = None;
    }

    /// The next look tells what happened after this version.
    pub fn resume_from(&mut self, version: u64) {
        self.seen = Some(version);
    }

    /// Whether [`Watch::news`] would tell anything.
    pub fn has_news(&self, store: &Store) -> bool {
        let events = self.seen.map(|seen| store.events_after(self.kind, seen));
        events.is_none_or(|events| events.map_or(true, |events| !events.is_empty()))
    }

    pub fn news(&mut self, store: &Store) -> News {
        let seen = self.seen.replace(store.version());
        match seen.map(|seen| store.events_after(self.kind, seen)) {
            Some(Ok(events)) => News::Events(events.to_vec()),
            Some(Err(_)) | None => News::All(store.all(self.kind).cloned().collect()),
        }
    }

    /// The objects that changed, as they were after each change. After a gap those that went meanwhile are not among them.
    pub fn touched(&mut self, store: &Store) -> Vec<Object> {
        match self.news(store) {
            News::Events(events) => events.into_iter().map(|event| event.object).collect(),
            News::All(objects) => objects,
        }
    }
}
