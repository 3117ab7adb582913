//! The engine on its own thread: what was heard goes in, work comes out, and it sleeps until it wants to be asked again.
//!
//! The engine is plain computation and may take a while; here it holds up nobody else. The queue to it is bounded, so that
//! a flood of changes slows down the watches and not the machine. The way out is not: the engine does not repeat what it
//! waits for, so there is never more than a few pieces of work per object.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kerf_engine::{Engine, Output, Settings};
use kerf_lifecycle::Note;
use kerf_model::change::{Change, Input};
use kerf_model::cluster::{NodeClaim, NodeClass, StoredPool, condition_kind};
use kerf_model::effect::{Effect, Target};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tracing::{debug, info};

use crate::metrics::Metrics;

/// As many changes as a list of a large page brings, a few times over.
pub const QUEUE_LENGTH: usize = 4096;
/// Prices and availability change without anybody telling.
const CATALOGUE_EVERY: SignedDuration = SignedDuration::from_mins(5);

/// What comes to the engine's thread.
#[derive(Debug)]
pub enum Heard {
    Input(Input),
    /// The provider wants to see this claim again then.
    TendAt(Arc<str>, Timestamp),
}

/// What leaves it.
#[derive(Debug)]
pub enum Work {
    Effect(Effect),
    Launch { target: Target, claim: Arc<NodeClaim>, class: Option<Arc<NodeClass>> },
    Tend { claim: Arc<NodeClaim>, class: Option<Arc<NodeClass>> },
    Catalogue(Vec<(Arc<StoredPool>, Option<Arc<NodeClass>>)>),
}

pub struct Brain {
    engine: Engine,
    settings: kerf_lifecycle::Settings,
    work: mpsc::UnboundedSender<Work>,
    metrics: Arc<Metrics>,
    tend_at: BTreeMap<Arc<str>, Timestamp>,
    catalogue_at: Option<Timestamp>,
    /// Of pools, by name: a change of the status alone does not change what they may launch.
    generations: BTreeMap<Arc<str>, i64>,
    now: Timestamp,
}

impl Brain {
    pub fn new(settings: Settings, work: mpsc::UnboundedSender<Work>, metrics: Arc<Metrics>) -> Self {
        Self {
            settings: settings.lifecycle.clone(),
            engine: Engine::new(settings),
            work,
            metrics,
            tend_at: BTreeMap::new(),
            catalogue_at: None,
            generations: BTreeMap::new(),
            now: Timestamp::MIN,
        }
    }

    /// Until nobody can be heard or nobody takes the work any more.
    pub fn run(mut self, mut queue: mpsc::Receiver<Heard>, runtime: &Handle) {
        let mut heard = Vec::new();
        let mut wake = None;
        loop {
            let open = runtime.block_on(async {
                match wake {
                    None => queue.recv_many(&mut heard, QUEUE_LENGTH).await > 0,
                    Some(at) => {
                        let wait = tokio::time::timeout(until(at), queue.recv_many(&mut heard, QUEUE_LENGTH));
                        wait.await.map_or(true, |count| count > 0)
                    }
                }
            });
            if !open || self.work.is_closed() {
                return;
            }
            // A clock that is set back must not make the engine see time run backwards.
            self.now = self.now.max(clock());
            wake = self.think(std::mem::take(&mut heard));
        }
    }

    /// One look. When to look again.
    fn think(&mut self, heard: Vec<Heard>) -> Option<Timestamp> {
        let count = heard.len();
        let mut inputs = Vec::with_capacity(count);
        let mut touched = Vec::new();
        for one in heard {
            match one {
                Heard::TendAt(claim, at) => drop(self.tend_at.insert(claim, at)),
                Heard::Input(input) => {
                    self.notice(&input, &mut touched);
                    inputs.push(input);
                }
            }
        }
        let output = self.engine.handle(inputs, self.now);
        debug!(heard = count, effects = output.effects.len(), "looked at the cluster");
        let wake = output.wake;
        self.metrics.set_cluster(self.engine.snapshot().nodes().count());
        self.hand_out(output);
        self.tend(touched);
        self.refresh_catalogue();
        let tend = self.tend_at.values().copied().min();
        [wake, tend, self.catalogue_at].into_iter().flatten().min()
    }

    /// What a change means for the provider.
    fn notice(&mut self, input: &Input, touched: &mut Vec<Arc<str>>) {
        match input {
            Input::Change(Change::NodeClaim(name, there)) => {
                if there.is_none() {
                    if let Some(claim) = self.engine.snapshot().claim(&name.name) {
                        self.metrics.claim_gone(claim);
                    }
                    self.tend_at.remove(&name.name);
                }
                touched.push(Arc::clone(&name.name));
            }
            // A node that went before it joined is the provider's to post again.
            Input::Change(Change::Node(name, None)) => {
                let snapshot = self.engine.snapshot();
                if let Some(node) = snapshot.node(&name.name).filter(|node| self.settings.manages_node(node)) {
                    self.metrics.node_gone(node);
                }
                let waiting = |claim: &&Arc<NodeClaim>| !claim.status.conditions.is_true(condition_kind::REGISTERED);
                touched.extend(snapshot.claims().filter(waiting).map(|claim| Arc::clone(claim.name())));
            }
            Input::Change(Change::NodePool(name, pool)) => {
                let generation = pool.as_ref().map(|pool| pool.meta.generation);
                let known = match generation {
                    Some(generation) => self.generations.insert(Arc::clone(&name.name), generation),
                    None => self.generations.remove(&name.name),
                };
                if known != generation {
                    self.catalogue_at = Some(self.now);
                }
            }
            Input::Change(Change::NodeClass(..)) => self.catalogue_at = Some(self.now),
            Input::Synced => self.metrics.set_synced(),
            Input::Launched { claim, answer: Err(error) } => {
                info!(nodeclaim = %claim, error = %error, "no instance was launched");
            }
            Input::Launched { claim, answer: Ok(launched) } => {
                info!(nodeclaim = %claim, provider_id = &*launched.provider_id, "launched an instance");
            }
            Input::WriteFailed { .. }
            | Input::Change(_)
            | Input::Catalogue(_)
            | Input::Terminated { .. }
            | Input::Instances(_)
            | Input::InstanceFound { .. }
            | Input::Interrupted(_) => {}
        }
    }

    fn hand_out(&mut self, output: Output) {
        for note in &output.notes {
            self.note(note);
        }
        for effect in output.effects {
            match effect {
                Effect::Launch { claim: target } => {
                    // A claim that is gone meanwhile needs no instance.
                    let claim = self.engine.snapshot().claim(&target.name.name);
                    if let Some(claim) = claim.filter(|claim| claim.meta.uid == target.uid).cloned() {
                        let class = self.engine.snapshot().class(&claim.node.class).cloned();
                        self.send(Work::Launch { target, claim, class });
                    }
                }
                other => self.send(Work::Effect(other)),
            }
        }
    }

    fn note(&self, note: &Note) {
        let (Note::Registered { claim } | Note::Initialized { claim } | Note::GivenUp { claim, .. }) = note;
        let pool = self.engine.snapshot().claim(&claim.name.name).and_then(|claim| claim.pool()).unwrap_or_default();
        if !self.metrics.note(note, pool) {
            return;
        }
        match note {
            Note::Registered { claim } => info!(nodeclaim = %claim, nodepool = pool, "the node has joined"),
            Note::Initialized { claim } => info!(nodeclaim = %claim, nodepool = pool, "the node is ready for pods"),
            Note::GivenUp { claim, cause } => {
                info!(nodeclaim = %claim, nodepool = pool, reason = cause.label(), "giving up the node claim");
            }
        }
    }

    fn tend(&mut self, mut touched: Vec<Arc<str>>) {
        let due = self.tend_at.iter().filter(|(_, at)| **at <= self.now).map(|(name, _)| Arc::clone(name));
        touched.extend(due);
        touched.sort();
        touched.dedup();
        for name in touched {
            self.tend_at.remove(&name);
            let Some(claim) = self.engine.snapshot().claim(&name).cloned() else { continue };
            if self.settings.manages(&claim.node.class) {
                let class = self.engine.snapshot().class(&claim.node.class).cloned();
                self.send(Work::Tend { claim, class });
            }
        }
    }

    fn refresh_catalogue(&mut self) {
        if self.catalogue_at.is_none_or(|at| self.now < at) {
            return;
        }
        let snapshot = self.engine.snapshot();
        let ours = snapshot.pools().filter(|pool| self.settings.manages(&pool.class));
        let pools = ours.map(|pool| (Arc::clone(pool), snapshot.class(&pool.class).cloned())).collect();
        self.send(Work::Catalogue(pools));
        self.catalogue_at = self.now.checked_add(CATALOGUE_EVERY).ok();
    }

    fn send(&self, work: Work) {
        // Fails when the writer has ended, and then this thread ends with the next look.
        drop(self.work.send(work));
    }
}

#[expect(clippy::disallowed_methods, reason = "the shell's clock: decisions get this time as an argument")]
pub fn clock() -> Timestamp {
    Timestamp::now()
}

fn until(at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(clock())).unwrap_or_default()
}
