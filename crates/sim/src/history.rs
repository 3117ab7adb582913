//! A random small cluster lives for some hours while things go wrong; then faults end, and it must settle.
//!
//! [`run`] with the same seed and options gives the same history. What was broken is in the [`Report`].

mod changes;
mod cluster;
mod pools;
mod settings;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_api::admission::Admission;
use kerf_cloud::InstanceTypes;

use crate::autoscaler::{Autoscaler, CloudPace};
use crate::checkers::{Broken, Checkers, Guarded, Violation};
use crate::faults::{Faults, Mutation, Rates};
use crate::journal::Journal;
use crate::random::Random;
use crate::store::{ApiError, Kind, Object};
use crate::world::{Pace, StepError, World};

/// Nothing that matters changes for this long: settled. Longer than every timer of the engine that writes something, but
/// for the timeouts of launches, which settling waits for by itself: a claim that is not initialised is not at rest.
const QUIET: SignedDuration = SignedDuration::from_mins(10);
/// The longest that settling may take: several launches that never join, one after the other, each 15 minutes.
const SETTLES_WITHIN: SignedDuration = SignedDuration::from_hours(4);
/// How often the same moment may be due again. Time must pass, or the history does not end.
const MOST_REPEATS: usize = 100;
/// Kinds whose changes count. Events about what cannot be done are repeated for ever.
const WATCHED: [Kind; 4] = [Kind::NodePool, Kind::NodeClaim, Kind::Node, Kind::Pod];

#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub rates: Rates,
    /// How long changes and faults go on.
    pub lasts: SignedDuration,
    pub mutation: Option<Mutation>,
    pub journal: Keep,
}

/// What is kept of all that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Nothing,
    /// [`Report::hash`].
    Hash,
    /// [`Report::lines`] too.
    Lines,
}

impl Default for Options {
    fn default() -> Self {
        Self { rates: Rates::ROUGH, lasts: SignedDuration::from_hours(3), mutation: None, journal: Keep::Nothing }
    }
}

#[derive(Debug, Clone)]
pub struct Report {
    pub seed: u64,
    pub violations: Vec<Violation>,
    /// Moments at which something happened.
    pub steps: u64,
    pub effects: u64,
    pub crashes: u64,
    pub virtual_time: SignedDuration,
    /// Of everything that happened, if that was wanted.
    pub hash: Option<u64>,
    /// Everything that happened, to read.
    pub lines: Vec<String>,
}

/// A world with a watched autoscaler in it.
pub struct Stage {
    pub world: World,
    pub autoscaler: Rc<RefCell<Autoscaler>>,
    pub checkers: Rc<RefCell<Checkers>>,
    pub steps: u64,
}

impl Stage {
    /// With an operator who sets nothing.
    pub fn new(admission: Arc<Admission>, types: InstanceTypes, seed: u64, faults: Faults, start: Timestamp) -> Self {
        let autoscaler = Autoscaler::new(types, CloudPace::default()).with_faults(faults);
        Self::of(admission, autoscaler, seed, start)
    }

    /// Around this autoscaler.
    pub fn of(admission: Arc<Admission>, autoscaler: Autoscaler, seed: u64, start: Timestamp) -> Self {
        let checkers = Rc::new(RefCell::new(Checkers::new(autoscaler.settings())));
        let autoscaler = Rc::new(RefCell::new(autoscaler.recording()));
        let mut world = World::new(admission, seed, Pace::default(), start);
        world.add(Guarded { autoscaler: Rc::clone(&autoscaler), checkers: Rc::clone(&checkers) });
        Self { world, autoscaler, checkers, steps: 0 }
    }

    /// As [`World::run_until`], with a look by the checkers after every step.
    pub fn run_until(&mut self, end: Timestamp) -> Result<(), StepError> {
        let mut at = Some(self.world.now());
        let mut repeats = 0;
        while let Some(now) = at {
            repeats = if now == self.world.now() { repeats + 1 } else { 0 };
            if repeats > MOST_REPEATS {
                return Err(StepError::Restless { now, actors: vec!["whoever is due again at once"] });
            }
            self.world.step(now)?;
            self.steps += 1;
            if let Some(journal) = self.autoscaler.borrow_mut().journal_mut() {
                journal.changes(self.world.store(), now);
            }
            self.checkers.borrow_mut().after_step(self.world.store(), &self.autoscaler.borrow(), now);
            at = self.world.next_due().map(|due| due.max(now)).filter(|due| *due <= end);
        }
        // Nothing is due before the end, so the step there only moves the clock.
        self.world.step(end)
    }

    /// Ends the faults and runs until nothing changes any more; reports if it does not, and what is wrong then.
    pub fn settle(&mut self) -> Result<(), StepError> {
        self.autoscaler.borrow_mut().faults_mut().stop();
        self.checkers.borrow_mut().calm();
        let (start, mut seen) = (self.world.now(), self.world.store().version());
        let mut cost = None;
        loop {
            self.run_until(self.world.now() + QUIET)?;
            if self.is_only_to_be_tidied() {
                cost.get_or_insert(self.hourly());
            }
            let mut changing = self.changed_since(seen);
            changing.extend(self.launching());
            // Nothing changes while nobody is there to change it.
            changing.extend(self.autoscaler.borrow().is_down().then(|| "the autoscaler (not started)".to_owned()));
            seen = self.world.store().version();
            let now = self.world.now();
            if changing.is_empty() {
                if let Some(before) = cost.filter(|before| *before < self.hourly()) {
                    let after = self.hourly();
                    self.checkers.borrow_mut().report(Broken::ClusterDearer { before, after }, now);
                }
                self.checkers.borrow_mut().at_rest(self.world.store(), &self.autoscaler.borrow(), now);
                return Ok(());
            }
            if now.duration_since(start) > SETTLES_WITHIN {
                // Nodes that expire one after the other never leave a cluster alone.
                if self.expires() {
                    return Ok(());
                }
                self.checkers.borrow_mut().report(Broken::NeverSettles { changing }, now);
                return Ok(());
            }
        }
    }

    /// Every pod has its place, and nothing but saving money is left to do: from here on it must not get dearer.
    fn is_only_to_be_tidied(&self) -> bool {
        let store = self.world.store();
        let is_waiting = |pod: &Object| pod.text(&["status", "phase"]) == Some("Pending");
        let is_busy = |claim: &Object| claim.is_deleting() || claim.is_condition_true("Drifted");
        !store.all(Kind::Pod).any(is_waiting)
            && !store.all(Kind::NodeClaim).any(is_busy)
            && self.launching().next().is_none()
            && !self.expires()
    }

    fn hourly(&self) -> i64 {
        self.autoscaler.borrow().ledger().hourly().micros()
    }

    fn launching(&self) -> impl Iterator<Item = String> {
        let claims = self.world.store().all(Kind::NodeClaim).filter(|claim| !claim.is_deleting());
        let launching = claims.filter(|claim| !claim.is_condition_true("Initialized"));
        launching.map(|claim| format!("NodeClaim {} (not initialised)", claim.name))
    }

    fn expires(&self) -> bool {
        let mut claims = self.world.store().all(Kind::NodeClaim);
        claims.any(|claim| claim.text(&["spec", "expireAfter"]) != Some("Never"))
    }

    fn changed_since(&self, version: u64) -> Vec<String> {
        let store = self.world.store();
        let events = WATCHED.iter().flat_map(|kind| store.events_after(*kind, version).unwrap_or_default());
        let mut names: Vec<_> = events.map(|event| format!("{:?} {}", event.object.kind, event.object.name)).collect();
        names.sort();
        names.dedup();
        names
    }
}

pub fn run(seed: u64, admission: &Arc<Admission>, types: &InstanceTypes, options: &Options) -> Report {
    let mut random = Random::new(seed);
    let faults = Faults::seeded(random.draw(), options.rates).with(options.mutation);
    let start = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 56);
    let journal = match options.journal {
        Keep::Nothing => None,
        Keep::Hash => Some(Journal::hashed()),
        Keep::Lines => Some(Journal::written()),
    };
    let (settings, features) = settings::draw(&mut random);
    let autoscaler = Autoscaler::new(Arc::clone(types), CloudPace::default()).with_faults(faults);
    let autoscaler = autoscaler.with_settings(settings).with_features(features).with_journal(journal);
    let mut stage = Stage::of(Arc::clone(admission), autoscaler, random.draw(), start);
    if let Err(stop) = live(&mut stage, &mut random, options) {
        let now = stage.world.now();
        stage.checkers.borrow_mut().report(Broken::WorldStopped { why: stop.to_string() }, now);
    }
    let mut autoscaler = stage.autoscaler.borrow_mut();
    let checkers = stage.checkers.borrow();
    let hash = autoscaler.journal_mut().map(|journal| journal.hash());
    let lines = autoscaler.journal_mut().map(Journal::take_lines).unwrap_or_default();
    Report {
        hash,
        lines,
        seed,
        violations: checkers.violations().to_vec(),
        steps: stage.steps,
        effects: autoscaler.faults().effects(),
        crashes: autoscaler.faults().crashes(),
        virtual_time: stage.world.now().duration_since(start),
    }
}

#[derive(Debug, thiserror::Error)]
enum Stop {
    #[error("{error}: {}", source_text(error))]
    Step {
        #[from]
        error: StepError,
    },
    #[error("the script was refused a write: {0}")]
    Script(#[from] ApiError),
}

fn source_text(error: &StepError) -> String {
    std::error::Error::source(error).map(ToString::to_string).unwrap_or_default()
}

fn live(stage: &mut Stage, random: &mut Random, options: &Options) -> Result<(), Stop> {
    cluster::make(&mut stage.world, random)?;
    let end = stage.world.now() + options.lasts;
    while stage.world.now() < end {
        let pause = SignedDuration::from_secs(random.between(5, 900));
        stage.run_until((stage.world.now() + pause).min(end))?;
        changes::change(stage, random)?;
    }
    changes::end(stage);
    stage.settle()?;
    Ok(())
}
