//! Kerf itself, living in the world: the same engine and the same border as in a real cluster, with the store for an API
//! and [`Cloud`] for a cloud.

mod act;
mod clock;
mod cloud;
mod ears;
mod image;
mod ledger;
mod shortage;
mod writes;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_api::Provider;
use kerf_api::change::{Features, WatchedKind};
use kerf_api::write::api_writes;
use kerf_cloud::InstanceTypes;
use kerf_engine::{Engine, Settings};
use kerf_lifecycle::ClassKind;
use kerf_model::change::Input;
use kerf_model::cluster::NodeClaim;
use kerf_model::effect::{Effect, Event, WriteError};

pub use act::Act;
pub use cloud::{CURED_BY_REBOOT, Cloud, CloudPace, MachineView};
pub use image::{IMAGE, TAGS};
pub use ledger::Ledger;
pub use shortage::Shortage;

use crate::ec2::Launchable;
use crate::faults::{Fate, Faults, Mutation, turned_round};
use crate::journal::Journal;
use crate::store::{ApiError, Store};
use crate::world::Actor;
use clock::SkewedClock;
use ears::Ears;
use image::Wanted;

/// The provider whose kinds the world's pools use, unless another is said.
const PROVIDER: Provider = Provider::Kwok;

/// How long a refusal takes to come back.
const HEARD_AFTER: SignedDuration = SignedDuration::from_millis(10);

/// Told events are forgotten in bulk when there are this many.
const MOST_TOLD: usize = 10_000;

pub struct Autoscaler {
    provider: Provider,
    settings: Settings,
    engine: Engine,
    ears: Ears,
    clock: SkewedClock,
    cloud: Cloud,
    /// Answers and failures that the engine hears with the next step.
    heard: Vec<Input>,
    /// The pools that know their instance types with what their class can launch, and which edition of them.
    offered: (BTreeMap<Arc<str>, Launchable>, u64),
    is_synced: bool,
    /// By the engine's clock.
    wake: Option<Timestamp>,
    /// When a refusal is heard of.
    refused: Option<Timestamp>,
    /// When each event was told last, by object, reason and what else tells it apart.
    told: BTreeMap<(Arc<str>, &'static str, String), Timestamp>,
    told_again: u64,
    faults: Faults,
    /// Effects under way. They outlive a crash: what was sent arrives.
    late: BTreeMap<(Timestamp, u64), Sent>,
    sent_late: u64,
    /// When prices are others, if they swing.
    swings_at: Option<Timestamp>,
    /// How many processes there were before this one.
    process: u64,
    /// After a crash, until the next process starts.
    down_until: Option<Timestamp>,
    /// What was done, for whoever checks it; `None` if nobody does.
    acts: Option<Vec<Act>>,
    journal: Option<Journal>,
}

/// An effect on its way, with what its sender knew.
#[derive(Clone)]
struct Sent {
    effect: Effect,
    /// Of a launch: the claim as it was.
    claim: Option<Arc<NodeClaim>>,
    decided: Timestamp,
    heard: Arc<ears::Heard>,
    process: u64,
}

impl Autoscaler {
    pub fn new(types: InstanceTypes, pace: CloudPace) -> Self {
        Self {
            provider: PROVIDER,
            engine: Engine::new(Self::default_settings()),
            settings: Self::default_settings(),
            ears: Ears::new(PROVIDER, Features::default()),
            clock: SkewedClock::new(),
            cloud: Cloud::new(types, pace),
            heard: Vec::new(),
            offered: Default::default(),
            is_synced: false,
            wake: None,
            refused: None,
            told: BTreeMap::new(),
            told_again: 0,
            faults: Faults::none(),
            late: BTreeMap::new(),
            sent_late: 0,
            swings_at: None,
            process: 0,
            down_until: None,
            acts: None,
            journal: None,
        }
    }

    /// What an operator gets who sets nothing.
    pub fn default_settings() -> Settings {
        Self::settings_for(PROVIDER)
    }

    pub fn settings_for(provider: Provider) -> Settings {
        let api = WatchedKind::NodeClass(provider).api_kind();
        let class = ClassKind { group: api.group.into(), kind: api.kind.into() };
        let lifecycle = kerf_lifecycle::Settings::for_classes(vec![class]);
        Settings::new(lifecycle, kerf_api::provider::label_rules(Some(provider)))
    }

    /// Whose kinds its pools use. The settings must be for the same.
    #[must_use]
    pub fn for_provider(self, provider: Provider) -> Self {
        Self { provider, ears: Ears::new(provider, Features::default()), ..self }
    }

    #[must_use]
    pub fn with_settings(self, settings: Settings) -> Self {
        let mut autoscaler = Self { settings, ..self };
        autoscaler.engine = autoscaler.new_engine();
        autoscaler
    }

    /// Keeps what is done until somebody looks: [`Autoscaler::take_acts`].
    #[must_use]
    pub fn recording(self) -> Self {
        Self { acts: Some(Vec::new()), ..self }
    }

    #[must_use]
    pub fn with_journal(self, journal: Option<Journal>) -> Self {
        Self { journal, ..self }
    }

    pub fn journal_mut(&mut self) -> Option<&mut Journal> {
        self.journal.as_mut()
    }

    /// How many processes there were before this one.
    pub fn process(&self) -> u64 {
        self.process
    }

    /// What was done since the last look.
    pub fn take_acts(&mut self) -> Vec<Act> {
        self.acts.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What the engine takes the time for.
    pub fn clock(&self, now: Timestamp) -> Timestamp {
        self.clock.peek(now)
    }

    #[must_use]
    pub fn with_faults(self, faults: Faults) -> Self {
        let mut autoscaler = Self { faults, ..self };
        autoscaler.engine = autoscaler.new_engine();
        autoscaler
    }

    fn new_engine(&self) -> Engine {
        let settings = self.settings.clone();
        Engine::new(match self.faults.mutation() {
            Some(mutation) => mutation.settings(settings),
            None => settings,
        })
    }

    /// Switches on what is off by default.
    #[must_use]
    pub fn with_features(self, features: Features) -> Self {
        let mut settings = self.settings.clone();
        settings.node_overlays = features.node_overlays;
        settings.capacity_buffers = features.capacity_buffers;
        Self { ears: Ears::new(self.provider, features), ..self.with_settings(settings) }
    }

    /// How often the engine told what it had told already.
    pub fn told_again(&self) -> u64 {
        self.told_again
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
        self.engine = self.new_engine();
        self.ears.restart();
        self.clock.restart();
        self.process += 1;
        self.heard.clear();
        self.told.clear();
        self.offered = Default::default();
        self.cloud.forget_answers();
        self.is_synced = false;
        self.wake = None;
        self.refused = None;
        self.down_until = Some(now + outage);
        if let Some(journal) = &mut self.journal {
            journal.crashed(self.process - 1, now + outage, now);
        }
    }

    /// After a crash, until the next process has started.
    pub fn is_down(&self) -> bool {
        self.down_until.is_some()
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What the cloud charges and what is done to pods, readable after the world has taken the autoscaler in.
    pub fn ledger(&self) -> Ledger {
        self.cloud.ledger().clone()
    }

    /// The catalogue is asked for again when pools come and go, and when something is sold out.
    fn offer_types(&mut self, store: &Store, inputs: &mut Vec<Input>, now: Timestamp) {
        let pools = self.engine.snapshot().pools();
        let pools: BTreeMap<_, _> =
            pools.map(|pool| (pool.meta.name.name.clone(), Launchable::of(store, &pool.class))).collect();
        let edition = self.edition(now);
        let (known, offered) = &self.offered;
        let is_known = *offered == edition
            && known.len() == pools.len()
            && known.iter().zip(&pools).all(|(old, new)| old.0 == new.0 && old.1.is_as(new.1));
        if !is_known {
            let mut types = self.cloud.types().clone();
            if self.swing(now).is_some_and(|(edition, _)| edition % 2 == 1) {
                types = types.iter().cloned().map(turned_round).collect();
            }
            let rules = &self.settings.labels;
            let offered = pools.iter().map(|(pool, launchable)| (pool.clone(), launchable.types(&types, rules)));
            inputs.push(Input::Catalogue(offered.collect()));
            self.offered = (pools, edition);
        }
    }

    /// Counts how often what is offered became another.
    fn edition(&self, now: Timestamp) -> u64 {
        self.cloud.offers() + self.swing(now).map_or(0, |(edition, _)| edition)
    }

    fn swing(&self, now: Timestamp) -> Option<(u64, Timestamp)> {
        self.faults.mutation().and_then(|mutation| mutation.swing(now))
    }

    /// Lets the effect meet its fate.
    fn send(&mut self, sent: Sent, store: &mut Store, now: Timestamp) {
        let is_api_write = api_writes(&sent.effect, now).is_some();
        let fate = self.faults.fate(&sent.effect);
        if let Some(journal) = &mut self.journal {
            journal.effect(&sent.effect, &fate, sent.decided, now);
        }
        match fate {
            Fate::Done => self.execute(sent, store, now),
            Fate::Dropped => {}
            Fate::Late(delay) => self.send_late(sent, now + delay),
            Fate::Repeated(delay) => {
                self.send_late(sent.clone(), now + delay);
                self.execute(sent, store, now);
            }
            // A cloud says nothing where the API says no: its answers are inputs of their own.
            Fate::Refused(error) if is_api_write => {
                self.heard.push(Input::WriteFailed { effect: Box::new(sent.effect), error });
            }
            Fate::Refused(_) => {}
            Fate::ReplyLost => {
                self.execute_unheard(sent.clone(), store, now);
                if is_api_write {
                    let error = WriteError::Unavailable { message: "no reply".to_owned() };
                    self.heard.push(Input::WriteFailed { effect: Box::new(sent.effect), error });
                }
            }
        }
    }

    fn send_late(&mut self, sent: Sent, at: Timestamp) {
        self.sent_late += 1;
        self.late.insert((at, self.sent_late), sent);
    }

    /// What was sent late and arrives now.
    fn arrive(&mut self, store: &mut Store, now: Timestamp) {
        let later = self.late.split_off(&(now + SignedDuration::from_nanos(1), 0));
        for sent in std::mem::replace(&mut self.late, later).into_values() {
            match sent.process == self.process {
                true => self.execute(sent, store, now),
                false => self.execute_unheard(sent, store, now),
            }
        }
    }

    /// Nobody hears the answer.
    fn execute_unheard(&mut self, sent: Sent, store: &mut Store, now: Timestamp) {
        let (heard, answers) = (self.heard.len(), self.cloud.questions());
        let _untold = self.carry_out(sent, store, now);
        self.heard.truncate(heard);
        self.cloud.forget_answers_after(answers);
    }

    /// Whether the event was not told just now already.
    fn is_news(&mut self, event: &Event, now: Timestamp) -> bool {
        let key = (event.about.target.uid.clone(), event.reason, event.dedupe.clone());
        let is_news = self.told.get(&key).is_none_or(|told| now.duration_since(*told) >= event.interval);
        if is_news {
            if self.told.len() >= MOST_TOLD {
                self.told.retain(|_, told| now.duration_since(*told) < SignedDuration::from_hours(1));
            }
            self.told.insert(key, now);
        }
        is_news
    }

    fn execute(&mut self, sent: Sent, store: &mut Store, now: Timestamp) {
        if let Some(event) = self.carry_out(sent, store, now)
            && self.is_news(&event, now)
        {
            let event = Effect::Publish(Box::new(event));
            // Nobody waits for an event.
            let _lost = writes::execute_all(&api_writes(&event, now).unwrap_or_default(), store, now);
        }
    }

    /// What is to be told of it, now that it is done.
    fn carry_out(&mut self, sent: Sent, store: &mut Store, now: Timestamp) -> Option<Event> {
        if let Effect::Publish(event) = &sent.effect
            && !self.is_news(event, now)
        {
            self.told_again += 1;
            return None;
        }
        let effect = match self.faults.mutation() {
            Some(mutation) => mutation.spoil(sent.effect, store),
            None => Some(sent.effect),
        }?;
        if let Some(writes) = api_writes(&effect, now) {
            match writes::execute_all(&writes, store, now) {
                Err(error) => self.heard.push(Input::WriteFailed { effect: Box::new(effect), error }),
                Ok(()) => {
                    let told = effect.told_when_done();
                    if let Effect::EvictPod(pod, _) = &effect {
                        self.cloud.ledger().evicted(pod.uid.clone());
                    }
                    if let Some(acts) = &mut self.acts {
                        acts.push(Act { effect, decided: sent.decided, heard: sent.heard });
                    }
                    return told;
                }
            }
            return None;
        }
        match effect {
            Effect::Launch { claim } => {
                if self.faults.mutation() == Some(Mutation::LaunchTwice) {
                    self.cloud.forget_claim(&claim.uid);
                }
                let fate = self.faults.launch();
                let order = sent.claim.as_deref().map(|claim| {
                    let class = &claim.node.class;
                    (claim, Wanted::by(store, &class.kind, &class.name))
                });
                self.cloud.launch(claim, order, fate, now);
            }
            Effect::Terminate { claim, provider_id } => self.cloud.terminate(Some(claim), &provider_id, now),
            Effect::TerminateOrphan { provider_id } => self.cloud.terminate(None, &provider_id, now),
            Effect::ListInstances => self.cloud.list(now),
            Effect::FindInstance { provider_id } => self.cloud.find(&provider_id, now),
            Effect::CheckDrift { claim } => {
                let wanted = Wanted::of_claim(store, &claim.name);
                let known = self.engine.snapshot().claim(&claim.name.name).cloned();
                self.cloud.check_drift(claim, known.as_deref(), &wanted, now);
            }
            Effect::RunHooks { claim } => self.cloud.run_hooks(claim, now),
            Effect::UpdateInstance { claim } => {
                let wanted = Wanted::of_claim(store, &claim.name);
                self.cloud.update(claim, wanted, now);
            }
            Effect::Reboot { claim, provider_id, operation } => self.cloud.reboot(claim, &provider_id, operation, now),
            Effect::CreateClaim(_)
            | Effect::PatchClaim(..)
            | Effect::DeleteClaim(_)
            | Effect::PatchNode(..)
            | Effect::PatchPod(..)
            | Effect::DeleteNode(_)
            | Effect::PatchPool(..)
            | Effect::PatchOverlay(..)
            | Effect::PatchBuffer(..)
            | Effect::PatchWindow(..)
            | Effect::EvictPod(..)
            | Effect::DeletePod(..)
            | Effect::Publish(_) => {}
        }
        None
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
        let mut inputs = std::mem::take(&mut self.heard);
        self.refused = None;
        inputs.extend(self.ears.listen(store, &mut self.faults, now));
        inputs.extend(self.cloud.answers(now));
        if let Some(skew) = self.faults.clock_jump() {
            self.clock.jump(skew);
        }
        let is_due = self.wake.is_some_and(|wake| wake <= self.clock.peek(now));
        let has_new_offers = self.is_synced && self.edition(now) != self.offered.1;
        self.swings_at = self.swing(now).map(|(_, next)| next);
        if inputs.is_empty() && !is_due && !has_new_offers {
            return Ok(());
        }
        if !self.is_synced {
            self.is_synced = true;
            inputs.push(Input::Synced);
            if let Some(journal) = &mut self.journal {
                journal.started(self.process, now);
            }
        }
        self.think(inputs, store, now);
        Ok(())
    }

    fn next_due(&self) -> Option<Timestamp> {
        let late = self.late.keys().next().map(|(at, _)| *at);
        let wake = self.wake.map(|wake| self.clock.true_time(wake));
        let own = [wake, self.refused, late, self.down_until, self.swings_at];
        own.into_iter().chain([self.cloud.next_due(), self.ears.next_due()]).flatten().min()
    }
}

/// Shared with whoever lets things happen to it.
impl Actor for Rc<RefCell<Autoscaler>> {
    fn name(&self) -> &'static str {
        self.borrow().name()
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        self.borrow_mut().step(store, now)
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.borrow().next_due()
    }
}

impl Autoscaler {
    /// One look of the engine at what is heard, and what it wants done.
    fn think(&mut self, inputs: Vec<Input>, store: &mut Store, now: Timestamp) {
        let shown = self.clock.read(now);
        let mutation = self.faults.mutation();
        let heard = |input: Input| match mutation {
            Some(mutation) => mutation.mishear(input),
            None => Some(input),
        };
        let mut output = self.engine.handle(inputs.into_iter().filter_map(heard), shown);
        if let Some(mutation) = mutation {
            let more: Vec<Effect> = output.effects.iter().filter_map(|effect| mutation.add(effect, store)).collect();
            output.effects.extend(more);
        }
        // Which pools there are is known only after the changes are taken in.
        let mut catalogue = Vec::new();
        self.offer_types(store, &mut catalogue, now);
        if !catalogue.is_empty() {
            let more = self.engine.handle(catalogue.into_iter().filter_map(heard), shown);
            output.effects.extend(more.effects);
            output.wake = more.wake;
            output.avoid = more.avoid.or(output.avoid);
        }
        self.wake = output.wake.map(|wake| wake.max(shown));
        if let Some(offerings) = output.avoid {
            self.cloud.avoid(offerings);
        }
        let heard = Arc::new(if self.acts.is_some() { self.ears.heard() } else { ears::Heard::new() });
        for effect in output.effects {
            if let Some(outage) = self.faults.crash(&effect) {
                return self.crash(outage, now);
            }
            let mut claim = None;
            if let Effect::Launch { claim: target } = &effect {
                claim = self.engine.snapshot().claim(&target.name.name).cloned();
            }
            let sent = Sent { effect, claim, decided: shown, heard: Arc::clone(&heard), process: self.process };
            self.send(sent, store, now);
        }
        // What failed just now is heard at once, though nothing in the store has changed.
        if !self.heard.is_empty() {
            self.refused = Some(now + HEARD_AFTER);
        }
    }
}
