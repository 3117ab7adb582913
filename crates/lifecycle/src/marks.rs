//! Which claims a disruption is under way for, and what it wants written on them.
//!
//! Commands decide; the look at each claim makes it so. A claim that carries the marks of a disruption and is not in this
//! list was left behind, by a command that failed or a controller that forgot: the same look takes them off.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::budget::DisruptionReason;
use kerf_model::cluster::ObjectMeta;

/// By the claim's name.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    claims: BTreeMap<Arc<str>, Mark>,
    /// By pool: how far its drift in waves has come.
    rollouts: BTreeMap<Arc<str>, Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Another claim of the same name is not meant.
    pub claim_uid: Arc<str>,
    pub reason: DisruptionReason,
    pub order: Order,
}

/// What is to become of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// It goes: nothing new is scheduled there.
    Leave {
        /// The command, written down so that a restart takes it up.
        record: Arc<str>,
        /// When its drain is forced at the latest.
        deadline: Option<Timestamp>,
    },
    /// It stays, and boots again. Wanted until the claim says that it was asked for.
    Reboot {
        /// The node condition that is to be cured.
        condition: Arc<str>,
        condition_reason: Arc<str>,
        /// How long its pods may take to leave; `None` is for ever.
        grace: Option<SignedDuration>,
    },
}

impl Marks {
    pub fn of(&self, claim: &ObjectMeta) -> Option<&Mark> {
        self.claims.get(&claim.name.name).filter(|mark| mark.claim_uid == claim.uid)
    }

    pub fn rollout(&self, pool: &str) -> Option<&Arc<str>> {
        self.rollouts.get(pool)
    }

    pub fn set_rollout(&mut self, pool: Arc<str>, text: Arc<str>) {
        self.rollouts.insert(pool, text);
    }

    pub fn pools(&self) -> impl Iterator<Item = &Arc<str>> {
        self.rollouts.keys()
    }

    pub fn insert(&mut self, claim: Arc<str>, mark: Mark) {
        self.claims.insert(claim, mark);
    }

    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.claims.keys()
    }

    pub fn get(&self, claim: &str) -> Option<&Mark> {
        self.claims.get(claim)
    }
}
