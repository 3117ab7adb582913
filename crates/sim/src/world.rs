//! What lives around the API: each an [`Actor`] that looks at the store and writes to it.
//!
//! [`World::step`] runs the actors in a fixed order until nothing changes any more, and the garbage collector with them.
//! [`World::next_due`] says when something happens by itself; [`World::run_until`] jumps from one such moment to the
//! next, so a quiet month costs nothing. A cloud and the engine are further actors: [`World::add`].

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_api::admission::Admission;

mod annotation;
mod clock;
mod condition;
mod disruption_budget;
mod kubelet;
mod node_lifecycle;
mod pod_reading;
mod scheduler;
#[cfg(test)]
mod tests;
mod volumes;
mod watch;
mod workload;

pub use annotation::{LOST, RUNS_FOR, STOPS_AFTER};
pub use clock::Alarms;
pub(crate) use condition::change_status;
pub use condition::{Condition, Truth, set_condition};
pub(crate) use pod_reading::{taints, toleration};
pub use watch::{News, Watch};

use crate::store::{ApiError, Store};

/// How many times all actors may run at one moment. Each round lets a change travel one actor further; a Deployment's
/// path to running pods takes about ten, a StatefulSet of instant pods one per pod.
const MAX_ROUNDS: usize = 10_000;

/// Something that lives in the world. Level-triggered: what it does follows from what the store shows, so it may be
/// stepped at any time and any number of times.
pub trait Actor {
    fn name(&self) -> &'static str;

    /// Does what is to be done now.
    ///
    /// # Errors
    /// The store refused a write: a mistake in the actor, or in an object that it acts for.
    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError>;

    /// When there is something to do even if nothing changes. Always later than the last step.
    fn next_due(&self) -> Option<Timestamp>;
}

/// How long things take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// From a node's appearance until its kubelet says Ready.
    pub node_ready: SignedDuration,
    /// From binding until the pod runs and is ready.
    pub pod_start: SignedDuration,
    /// From the request to stop until the pod has stopped, unless its grace is shorter.
    pub pod_stop: SignedDuration,
    /// How long a pod that ends by itself runs.
    pub pod_run: SignedDuration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            node_ready: SignedDuration::from_secs(10),
            pod_start: SignedDuration::from_secs(2),
            pod_stop: SignedDuration::from_secs(2),
            pod_run: SignedDuration::from_mins(5),
        }
    }
}

pub struct World {
    store: Store,
    now: Timestamp,
    actors: Vec<Box<dyn Actor>>,
}

#[derive(Debug, thiserror::Error)]
pub enum StepError {
    #[error("{actor} was refused a write")]
    Refused {
        actor: &'static str,
        #[source]
        source: ApiError,
    },
    #[error("the world does not come to rest at {now}: {actors:?} go on for ever")]
    Restless { now: Timestamp, actors: Vec<&'static str> },
}

impl World {
    /// A cluster without nodes, and with the controllers that every cluster has.
    pub fn new(admission: Arc<Admission>, seed: u64, pace: Pace, now: Timestamp) -> Self {
        // In the order in which a change usually travels, so that few rounds are needed.
        let actors: Vec<Box<dyn Actor>> = vec![
            Box::new(workload::Deployments::new()),
            Box::new(workload::ReplicaSets::new()),
            Box::new(workload::StatefulSets::new()),
            Box::new(workload::DaemonSets::new()),
            Box::new(workload::Jobs::new()),
            Box::new(node_lifecycle::NodeLifecycle::new()),
            Box::new(volumes::Volumes::new()),
            Box::new(scheduler::Scheduler::new()),
            Box::new(kubelet::Kubelets::new(pace)),
            Box::new(disruption_budget::DisruptionBudgets::new()),
        ];
        Self { store: Store::new(admission, seed, now), now, actors }
    }

    /// Lets something else live here, after everything that is there.
    pub fn add(&mut self, actor: impl Actor + 'static) {
        self.actors.push(Box::new(actor));
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// For scripts and tests: what they write is seen at the next step.
    pub fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Lets everything happen that happens at this moment.
    pub fn step(&mut self, now: Timestamp) -> Result<(), StepError> {
        self.now = now;
        let mut restless = Vec::new();
        for _ in 0..MAX_ROUNDS {
            restless.clear();
            let before_round = self.store.version();
            for actor in &mut self.actors {
                let before = self.store.version();
                let name = actor.name();
                actor.step(&mut self.store, now).map_err(|source| StepError::Refused { actor: name, source })?;
                if self.store.version() != before {
                    restless.push(name);
                }
            }
            self.store.collect(now);
            if self.store.version() == before_round {
                return Ok(());
            }
        }
        Err(StepError::Restless { now, actors: restless })
    }

    /// The next moment at which something happens by itself.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.actors.iter().filter_map(|actor| actor.next_due()).min()
    }

    /// Steps now and at every moment until `end` at which something happens. Afterwards it is `end`.
    pub fn run_until(&mut self, end: Timestamp) -> Result<(), StepError> {
        self.step(self.now)?;
        while let Some(due) = self.next_due().filter(|due| *due <= end) {
            self.step(due.max(self.now))?;
        }
        self.now = self.now.max(end);
        Ok(())
    }
}
