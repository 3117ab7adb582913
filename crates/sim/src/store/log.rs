//! What happened, kind by kind. A watch is a cursor into it: no queue per watcher, and the same order for everyone.

use super::{Gone, Object};

/// How many events of a kind are remembered at least. A real API server keeps five minutes; a watcher that is further
/// behind than this lists again.
const REMEMBERED: usize = 20_000;

#[derive(Debug, Clone)]
pub struct Event {
    pub version: u64,
    pub change: ChangeKind,
    /// As it is now; as it was last, if it is gone.
    pub object: Object,
    /// As it was before. A watch with a selector needs it to tell what its reader has seen.
    pub before: Option<Object>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

impl ChangeKind {
    /// `type` of a watch event.
    pub fn label(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// The events of one kind.
#[derive(Debug, Default)]
pub(super) struct Log {
    events: Vec<Event>,
    /// The version of the last event that was forgotten.
    floor: u64,
}

impl Log {
    pub fn push(&mut self, event: Event) {
        self.events.push(event);
        // Half is forgotten at a time: moving the rest down costs nothing per event.
        if self.events.len() >= 2 * REMEMBERED {
            self.forget(REMEMBERED);
        }
    }

    pub fn after(&self, version: u64) -> Result<&[Event], Gone> {
        if version < self.floor {
            return Err(Gone { wanted: version, oldest: self.floor });
        }
        let start = self.events.partition_point(|event| event.version <= version);
        Ok(&self.events[start..])
    }

    /// Forgets everything: the next watch from an old version is told so. For faults.
    pub fn compact(&mut self) {
        self.forget(self.events.len());
    }

    fn forget(&mut self, count: usize) {
        if let Some(last) = count.checked_sub(1).and_then(|last| self.events.get(last)) {
            self.floor = last.version;
        }
        self.events.drain(..count);
    }
}
