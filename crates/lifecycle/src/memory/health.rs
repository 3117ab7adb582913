//! How the last launches of a pool went (sheet 04 §6.4).

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use kerf_model::cluster::{ConditionStatus, StoredPool, condition_kind as kind};
use kerf_model::effect::Target;
use kerf_model::snapshot::ClusterSnapshot;

use crate::steps::{Cause, Note};

/// How many outcomes count, and how many failures among them make a pool unhealthy: upstream's numbers.
const REMEMBERED: usize = 4;
const TOO_MANY_FAILURES: usize = 2;

#[derive(Debug, Clone)]
pub(crate) struct Health {
    pub pool_uid: Arc<str>,
    pub ring: Ring,
    /// A step may be wanted twice, but each claim counts once.
    counted: BTreeSet<Arc<str>>,
}

/// The last outcomes, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ring(VecDeque<Outcome>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Registered,
    Failed { reason: Arc<str>, message: Arc<str> },
}

impl Outcome {
    /// `None` if the note says nothing about the pool. A cloud without capacity says nothing either.
    pub fn of(note: &Note, snapshot: &ClusterSnapshot) -> Option<Self> {
        match note {
            Note::Registered { .. } => Some(Self::Registered),
            Note::GivenUp { cause: Cause::RegistrationTimeout, .. } => Some(Self::Failed {
                reason: Arc::from("RegistrationFailed"),
                message: Arc::from("a launched node did not register in time"),
            }),
            Note::GivenUp { claim, cause: Cause::LaunchTimeout } => {
                let claim = snapshot.claim(&claim.name.name)?;
                let launched = claim.status.conditions.get(kind::LAUNCHED);
                Some(Self::Failed {
                    reason: launched.map_or_else(|| Arc::from("LaunchFailed"), |launched| launched.reason.clone()),
                    message: launched.map_or_else(|| Arc::from(""), |launched| launched.message.clone()),
                })
            }
            Note::Initialized { .. } | Note::GivenUp { .. } | Note::Postponed { .. } => None,
        }
    }
}

/// The pool that a claim was made by. The label alone is not believed: a pool made anew under an old name has its own
/// health.
pub(super) fn pool_of<'a>(claim: &Target, snapshot: &'a ClusterSnapshot) -> Option<&'a StoredPool> {
    let claim = snapshot.claim(&claim.name.name).filter(|known| known.meta.uid == claim.uid)?;
    let pool = snapshot.pool(claim.pool()?)?;
    claim.meta.owners.iter().any(|owner| owner.uid == pool.meta.uid).then_some(pool)
}

impl Health {
    pub fn reset(pool_uid: Arc<str>) -> Self {
        Self { pool_uid, ring: Ring::default(), counted: BTreeSet::new() }
    }

    /// After a restart, from what the condition says.
    pub fn resumed(pool: &StoredPool) -> Self {
        Self { ring: Ring::resumed(pool), ..Self::reset(pool.meta.uid.clone()) }
    }

    pub fn record(&mut self, claim: &Arc<str>, outcome: Outcome, snapshot: &ClusterSnapshot) {
        if !self.counted.insert(claim.clone()) {
            return;
        }
        self.ring.push(outcome);
        if self.counted.len() > 1_000 {
            // Claims that are gone cannot be counted twice.
            let alive: BTreeSet<_> = snapshot.claims().map(|claim| &claim.meta.uid).collect();
            self.counted.retain(|uid| alive.contains(uid));
        }
    }
}

impl Ring {
    pub fn resumed(pool: &StoredPool) -> Self {
        let mut ring = Self::default();
        if let Some(condition) = pool.status.conditions.get(kind::NODE_REGISTRATION_HEALTHY) {
            match condition.status {
                ConditionStatus::True => ring.push(Outcome::Registered),
                ConditionStatus::Unknown => {}
                ConditionStatus::False => {
                    let (reason, message) = (condition.reason.clone(), condition.message.clone());
                    (0..TOO_MANY_FAILURES)
                        .for_each(|_| ring.push(Outcome::Failed { reason: reason.clone(), message: message.clone() }));
                }
            }
        }
        ring
    }

    fn push(&mut self, outcome: Outcome) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(outcome);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The latest failure, if there are too many.
    pub fn complaint(&self) -> Option<(&Arc<str>, &Arc<str>)> {
        let mut failures = self.0.iter().rev().filter_map(|outcome| match outcome {
            Outcome::Failed { reason, message } => Some((reason, message)),
            Outcome::Registered => None,
        });
        let latest = failures.next();
        latest.filter(|_| failures.count() + 1 >= TOO_MANY_FAILURES)
    }
}
