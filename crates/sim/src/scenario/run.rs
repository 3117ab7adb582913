//! A scenario being played: one moment after the other, so that a viewer can set the pace.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_api::Provider;
use kerf_api::admission::Admission;
use kerf_model::cloud::InterruptionCause;
use kerf_model::cluster::ObjectName;
use kerf_model::price::Price;
use serde_json::{Value, json};

use super::expectation::{Finding, Known, Pending, Sight, has_labels};
use super::{Action, Manifest, Reference, Scenario, TimedAction, Which};
use crate::autoscaler::{Autoscaler, CloudPace, Ledger};
use crate::ec2::{Account, Classes};
use crate::faults::Faults;
use crate::store::{ApiError, DeleteOptions, Kind, Object, Part, Patch, Store};
use crate::timeline::{Entry, Timeline, Tone, clock_text};
use crate::world::{Condition, Pace, StepError, World, change_status, set_condition};

/// When every history begins: a Monday morning.
const START: &str = "2026-01-05T09:00:00Z";

pub struct Run {
    world: World,
    autoscaler: Rc<RefCell<Autoscaler>>,
    ledger: Ledger,
    timeline: Timeline,
    file: String,
    start: Timestamp,
    end: Timestamp,
    /// Still to be done, the next one last.
    actions: Vec<TimedAction>,
    expectations: Vec<Pending>,
    /// Moments at which somebody must look although nothing may happen, the next one last.
    stops: Vec<SignedDuration>,
    aliases: BTreeMap<String, Known>,
    has_begun: bool,
    is_over: bool,
}

/// The figures of a run, as the store and the cloud know them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub elapsed: SignedDuration,
    pub nodes: usize,
    pub claims: usize,
    pub claims_made: usize,
    pub instances: usize,
    pub pods_running: usize,
    pub pods_pending: usize,
    pub evictions: usize,
    /// Nodes disrupted by choice, by reason.
    pub disruptions: BTreeMap<String, usize>,
    /// What consolidation has taken off the hourly price, all together.
    pub saved_hourly: Price,
    pub hourly: Price,
    pub spent: Price,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("the definitions of the custom kinds do not compile")]
    Definitions(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("{file}:{line}: the cluster refuses it: {cause}")]
    Refused { file: String, line: u64, cause: Box<ApiError> },
    #[error("{file}:{line}: there is no {} to pick", .kind.facts().kind)]
    NothingToPick { file: String, line: u64, kind: Kind },
    #[error("the simulated cluster failed at {at}")]
    World {
        at: String,
        #[source]
        source: Box<StepError>,
    },
}

impl Run {
    /// The cluster of the scenario with its first objects applied, at the moment before anything happens.
    pub fn new(scenario: &Scenario, seed: u64, duration: SignedDuration) -> Result<Self, RunError> {
        Self::with_faults(scenario, seed, duration, Faults::none())
    }

    /// With faults that the scenario does not know of: to see that its expectations notice.
    pub fn with_faults(
        scenario: &Scenario,
        seed: u64,
        duration: SignedDuration,
        faults: Faults,
    ) -> Result<Self, RunError> {
        let admission =
            Admission::new(&kerf_api::crds(None)).map_err(|error| RunError::Definitions(Box::new(error)))?;
        let start: Timestamp = START.parse().expect("the constant is a timestamp");
        let mut world = World::new(Arc::new(admission), seed, Pace::default(), start);
        let types = scenario.catalogue.load().types().clone();
        let provider = scenario.provider();
        match provider {
            Provider::Aws => world.add(Classes::new(Account::in_zones_of(&types))),
            Provider::Kwok => {}
        }
        let autoscaler = Autoscaler::new(types, CloudPace::default())
            .for_provider(provider)
            .with_settings(scenario.settings.settings(provider))
            .with_features(scenario.features)
            .with_faults(faults);
        let ledger = autoscaler.ledger();
        let autoscaler = Rc::new(RefCell::new(autoscaler));
        world.add(Rc::clone(&autoscaler));
        let mut actions = scenario.actions.clone();
        actions.reverse();
        let expectations: Vec<Pending> = scenario.expectations.iter().cloned().map(Pending::new).collect();
        let looks = expectations.iter().flat_map(Pending::moments);
        let mut stops: Vec<SignedDuration> = looks.chain(actions.iter().map(|action| action.at)).collect();
        stops.sort_by(|a, b| b.cmp(a));
        stops.dedup();
        let mut run = Self {
            world,
            autoscaler,
            timeline: Timeline::new(start, ledger.clone()),
            ledger,
            file: scenario.file.clone(),
            start,
            end: start + duration,
            actions,
            expectations,
            stops,
            aliases: BTreeMap::new(),
            has_begun: false,
            is_over: false,
        };
        // One after the other, as kubectl does it: a pool is known to be ready before the pods that want its nodes come.
        for object in &scenario.objects {
            run.apply(object)?;
            run.step(start)?;
        }
        Ok(run)
    }

    /// Lets the next moment happen at which anything does. What it brought, in order; `None` when the run is over.
    pub fn advance(&mut self) -> Result<Option<Vec<Entry>>, RunError> {
        if self.is_over {
            return Ok(None);
        }
        let now = self.next_moment();
        self.is_over = now >= self.end;
        let elapsed = now.duration_since(self.start);
        while self.stops.last().is_some_and(|stop| *stop <= elapsed) {
            self.stops.pop();
        }
        // What is due by itself happens before what the script does at the same moment: it may have to see it.
        self.step(now)?;
        let mut entries = self.timeline.look(self.world.store(), now);
        while let Some(action) = self.actions.pop_if(|action| action.at <= elapsed) {
            let text = self.perform(&action, now)?;
            let text = action.note.clone().unwrap_or(text);
            entries.push(Entry { at: now, elapsed, subject: "script".to_owned(), text, tone: Tone::Script });
            self.step(now)?;
            entries.extend(self.timeline.look(self.world.store(), now));
        }
        let autoscaler = self.autoscaler.borrow();
        let sight = Sight {
            store: self.world.store(),
            ledger: &self.ledger,
            timeline: &self.timeline,
            verdicts: autoscaler.engine().node_verdicts(),
            aliases: &self.aliases,
        };
        for expectation in &mut self.expectations {
            expectation.look(&sight, elapsed);
        }
        Ok(Some(entries))
    }

    /// Plays to the end and keeps what happened.
    pub fn finish(&mut self) -> Result<Vec<Entry>, RunError> {
        let mut all = Vec::new();
        while let Some(entries) = self.advance()? {
            all.extend(entries);
        }
        Ok(all)
    }

    pub fn now(&self) -> Timestamp {
        self.world.now()
    }

    /// What came of the expectations so far, in the order of the script.
    pub fn findings(&self) -> Vec<Finding> {
        let elapsed = self.world.now().duration_since(self.start);
        self.expectations.iter().map(|expectation| expectation.finding(elapsed)).collect()
    }

    pub fn summary(&self) -> Summary {
        let store = self.world.store();
        let pods =
            |phase: &str| store.all(Kind::Pod).filter(|pod| pod.text(&["status", "phase"]) == Some(phase)).count();
        let now = self.world.now();
        Summary {
            elapsed: now.duration_since(self.start),
            nodes: store.all(Kind::Node).count(),
            claims: store.all(Kind::NodeClaim).count(),
            claims_made: self.timeline.claims_made(),
            instances: self.ledger.instances(),
            pods_running: pods("Running"),
            pods_pending: pods("Pending"),
            evictions: self.ledger.evictions(),
            disruptions: self.timeline.disruptions_by_reason(),
            saved_hourly: self.timeline.saved_hourly(),
            hourly: self.ledger.hourly(),
            spent: self.ledger.spent(now),
        }
    }

    fn next_moment(&mut self) -> Timestamp {
        if !self.has_begun {
            self.has_begun = true;
            return self.start;
        }
        let stop = self.stops.last().map(|stop| self.start + *stop);
        let next = [self.world.next_due(), stop].into_iter().flatten().min();
        next.map_or(self.end, |next| next.clamp(self.world.now(), self.end))
    }

    fn step(&mut self, now: Timestamp) -> Result<(), RunError> {
        let at = now.duration_since(self.start);
        self.world.step(now).map_err(|source| RunError::World { at: clock_text(at), source: Box::new(source) })
    }

    /// Does it, and says what was done.
    fn perform(&mut self, timed: &TimedAction, now: Timestamp) -> Result<String, RunError> {
        let file = self.file.clone();
        let refused = |cause| RunError::Refused { file: file.clone(), line: timed.line, cause: Box::new(cause) };
        match &timed.action {
            Action::Apply(objects) => {
                for object in objects {
                    self.apply(object)?;
                }
                let names: Vec<String> = objects.iter().map(Manifest::label).collect();
                Ok(format!("applied {}", names.join(", ")))
            }
            Action::Delete(target) => {
                let names = match target.which {
                    Which::All => self.find_all(target, timed.line)?,
                    Which::Named(_) | Which::Known(_) | Which::Oldest | Which::Newest => {
                        vec![self.find(target, timed.line)?]
                    }
                };
                let store = self.world.store_mut();
                for name in &names {
                    store.delete(target.kind, name, &DeleteOptions::default(), now).map_err(&refused)?;
                }
                let names: Vec<&str> = names.iter().map(|name| &*name.name).collect();
                Ok(format!("deleted {}/{}", target.kind.facts().kind, names.join(", ")))
            }
            Action::Scale { kind, name, replicas } => {
                let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
                self.world.store_mut().patch(*kind, name, Part::Main, &patch).map_err(refused)?;
                Ok(format!("scaled {}/{} to {replicas}", kind.facts().kind, name.name))
            }
            Action::Patch { target, merge } => {
                let name = self.find(target, timed.line)?;
                let patch = Patch::Merge(merge.clone());
                self.world.store_mut().patch(target.kind, &name, Part::Main, &patch).map_err(refused)?;
                Ok(format!("patched {}/{}", target.kind.facts().kind, name.name))
            }
            Action::Interrupt(target, cause) => {
                let name = self.find(target, timed.line)?;
                let node = self.world.store().get(Kind::Node, &name).map_err(refused)?;
                let id = node.text(&["spec", "providerID"]).unwrap_or_default().to_owned();
                self.autoscaler.borrow_mut().cloud_mut().interrupt(&id, *cause, now);
                Ok(format!("the cloud {} {} in two minutes", will(*cause), name.name))
            }
            Action::Recommend(target) => {
                let name = self.find(target, timed.line)?;
                let node = self.world.store().get(Kind::Node, &name).map_err(refused)?;
                let id = node.text(&["spec", "providerID"]).unwrap_or_default().to_owned();
                self.autoscaler.borrow_mut().cloud_mut().recommend(&id, now);
                Ok(format!("the cloud advises to leave {}", name.name))
            }
            Action::Restart(outage) => {
                self.autoscaler.borrow_mut().crash(*outage, now);
                Ok(format!("Kerf dies, and starts again after {} s", outage.as_secs()))
            }
            Action::Shortage(shortages) => {
                self.autoscaler.borrow_mut().cloud_mut().set_shortages(shortages.clone());
                Ok("the cloud runs short of some machines".to_owned())
            }
            Action::SetCondition { target, type_, status, reason } => {
                let name = self.find(target, timed.line)?;
                let condition = Condition { type_, is_true: *status, reason, message: "" };
                let store = self.world.store_mut();
                change_status(store, Kind::Node, &name, |known| set_condition(known, &condition, now))
                    .map_err(refused)?;
                Ok(format!("{} says {type_} is {status:?}", name.name))
            }
        }
    }

    /// Creates the object, or merges it into the one that is there.
    fn apply(&mut self, object: &Manifest) -> Result<(), RunError> {
        let now = self.world.now();
        let store = self.world.store_mut();
        let done = match store.create(object.kind, object.body.clone(), now) {
            Err(ApiError::AlreadyExists { name, .. }) => {
                store.patch(object.kind, &name, Part::Main, &Patch::Merge(object.body.clone()))
            }
            other => other,
        };
        let file = self.file.clone();
        let refused = |cause| RunError::Refused { file, line: object.line, cause: Box::new(cause) };
        done.map(|_| ()).map_err(refused)
    }

    /// All that are there and stay, at least one.
    fn find_all(&self, target: &Reference, line: u64) -> Result<Vec<ObjectName>, RunError> {
        let all = self.world.store().all(target.kind);
        let staying = all.filter(|object| !object.is_deleting() && has_labels(object, &target.labels));
        let names: Vec<ObjectName> = staying.map(|object| object.name.clone()).collect();
        match names.is_empty() {
            true => Err(RunError::NothingToPick { file: self.file.clone(), line, kind: target.kind }),
            false => Ok(names),
        }
    }

    fn find(&mut self, target: &Reference, line: u64) -> Result<ObjectName, RunError> {
        let found = pick(self.world.store(), target, &self.aliases);
        let Some((name, uid)) = found else {
            return Err(match &target.which {
                Which::Named(name) => RunError::Refused {
                    file: self.file.clone(),
                    line,
                    cause: Box::new(ApiError::NotFound { kind: target.kind, name: name.clone() }),
                },
                Which::Oldest | Which::Newest | Which::All | Which::Known(_) => {
                    RunError::NothingToPick { file: self.file.clone(), line, kind: target.kind }
                }
            });
        };
        if let Some(alias) = &target.alias {
            self.aliases.insert(alias.clone(), Known { kind: target.kind, name: name.clone(), uid });
        }
        Ok(name)
    }
}

/// What the cloud is about to do with a machine.
fn will(cause: InterruptionCause) -> &'static str {
    match cause {
        InterruptionCause::SpotReclaimed => "will take back",
        InterruptionCause::RebalanceRecommended => "advises to leave",
        InterruptionCause::Maintenance => "will maintain the host of",
        InterruptionCause::Stopping => "will stop",
        InterruptionCause::Terminating => "will end",
    }
}

/// By age, then by name: the same object in every run. What is already on its way out is not picked.
fn pick(store: &Store, target: &Reference, aliases: &BTreeMap<String, Known>) -> Option<(ObjectName, String)> {
    let by_age = |object: &&Object| (object.created(), object.name.clone());
    let staying = || {
        let all = store.all(target.kind);
        all.filter(|object| !object.is_deleting() && has_labels(object, &target.labels))
    };
    let found = match &target.which {
        Which::Named(name) => store.get(target.kind, name).ok(),
        Which::Known(alias) => aliases.get(alias).and_then(|known| store.get(target.kind, &known.name).ok()),
        Which::Oldest => staying().min_by_key(by_age),
        Which::Newest => staying().max_by_key(by_age),
        // One is as good as another.
        Which::All => staying().next(),
    };
    found.map(|object| (object.name.clone(), object.uid().to_owned()))
}

impl Manifest {
    fn label(&self) -> String {
        let name = self.body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        format!("{}/{name}", self.kind.facts().kind)
    }
}
