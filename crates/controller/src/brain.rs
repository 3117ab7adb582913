//! The engine on its own thread: what was heard goes in, work comes out, and it sleeps until it wants to be asked again.
//!
//! While a watch is broken nothing is decided: what is heard meanwhile is taken in, and looked at when all kinds are current
//! again.
//!
//! The engine is plain computation and may take a while; here it holds up nobody else. The queue to it is bounded, so that
//! a flood of changes slows down the watches and not the machine. The way out is not: the engine does not repeat what it
//! waits for, so there is never more than a few pieces of work per object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kerf_engine::{DisruptionNote, Engine, Output, PodVerdict, Settings};
use kerf_lifecycle::Note;
use kerf_model::change::{Change, Input};
use kerf_model::cloud::TerminateAnswer;
use kerf_model::cluster::{
    ConditionStatus, InstanceType, NodeClaim, NodeClass, ObjectMeta, ObjectName, OfferingName, Pod, PodPhase,
    StoredPool, condition_kind,
};
use kerf_model::effect::{Effect, Event, EventKind, EventSeverity, EventTarget, Target};
use kerf_model::label::{self, LabelRules};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tracing::{debug, error, info, warn};

use crate::metrics::{Metrics, Seen, Transition, Waiting, transitions};
use crate::pace::Pace;
use crate::probes::Health;

/// As many changes as a list of a large page brings, a few times over.
pub const QUEUE_LENGTH: usize = 4096;
/// Prices and availability change without anybody telling.
const CATALOGUE_EVERY: SignedDuration = SignedDuration::from_mins(5);

/// Equal events about a condition are sent once per this time.
const CONDITION_EVERY: SignedDuration = SignedDuration::from_mins(2);

/// What comes to the engine's thread.
#[derive(Debug)]
pub enum Heard {
    Input(Input),
    /// The provider wants to see this claim again then.
    TendAt(Arc<str>, Timestamp),
    /// What is known of this kind may be long past.
    Outdated(&'static str),
    /// And now it is known again.
    Current(&'static str),
    /// Somebody wants to see the cluster.
    Show(oneshot::Sender<Arc<Seen>>),
}

/// What leaves it.
#[derive(Debug)]
pub enum Work {
    Effect(Effect),
    /// Needs the claim as it is, and its class.
    Ask {
        question: Question,
        target: Target,
        claim: Arc<NodeClaim>,
        class: Option<Arc<NodeClass>>,
    },
    Tend {
        claim: Arc<NodeClaim>,
        class: Option<Arc<NodeClass>>,
        /// The engine's time, in which the answer is understood.
        now: Timestamp,
    },
    Catalogue(Vec<(Arc<StoredPool>, Option<Arc<NodeClass>>)>),
    Avoid(Vec<OfferingName>),
}

/// What a provider is asked about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    Launch,
    Drift,
    Hooks,
    Update,
}

impl Question {
    fn of(effect: &Effect) -> Option<(Self, &Target)> {
        match effect {
            Effect::Launch { claim } => Some((Self::Launch, claim)),
            Effect::CheckDrift { claim } => Some((Self::Drift, claim)),
            Effect::RunHooks { claim } => Some((Self::Hooks, claim)),
            Effect::UpdateInstance { claim } => Some((Self::Update, claim)),
            _ => None,
        }
    }
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
    health: Arc<Health>,
    labels: LabelRules,
    types: BTreeMap<Arc<str>, Arc<[InstanceType]>>,
    /// Pods that need, or needed, a node and do not run yet.
    waiting: BTreeMap<ObjectName, Waiting>,
    /// Kinds whose watch is broken.
    outdated: BTreeSet<&'static str>,
    /// Claims that the provider is to see with the next look.
    touched: BTreeSet<Arc<str>>,
    is_synced: bool,
    /// Since when not everything is seen.
    unsynced_since: Option<Timestamp>,
    now: Timestamp,
}

impl Brain {
    pub fn new(
        settings: Settings,
        work: mpsc::UnboundedSender<Work>,
        metrics: Arc<Metrics>,
        health: Arc<Health>,
    ) -> Self {
        Self {
            settings: settings.lifecycle.clone(),
            labels: settings.labels.clone(),
            engine: Engine::new(settings),
            work,
            metrics,
            tend_at: BTreeMap::new(),
            catalogue_at: None,
            generations: BTreeMap::new(),
            health,
            types: BTreeMap::new(),
            waiting: BTreeMap::new(),
            outdated: BTreeSet::new(),
            touched: BTreeSet::new(),
            is_synced: false,
            unsynced_since: None,
            now: Timestamp::MIN,
        }
    }

    /// Until nobody can be heard or nobody takes the work any more.
    pub fn run(mut self, mut queue: mpsc::Receiver<Heard>, runtime: &Handle) {
        let mut heard = Vec::new();
        let mut wake = None;
        let mut pace = Pace::new(clock(), Instant::now());
        loop {
            let open = runtime.block_on(async {
                match wake {
                    None => queue.recv_many(&mut heard, QUEUE_LENGTH).await > 0,
                    Some(at) => {
                        let wait =
                            tokio::time::timeout(pace.until(at, clock()), queue.recv_many(&mut heard, QUEUE_LENGTH));
                        wait.await.map_or(true, |count| count > 0)
                    }
                }
            });
            if !open || self.work.is_closed() {
                return;
            }
            self.now = pace.read(clock(), Instant::now());
            wake = self.think(std::mem::take(&mut heard));
        }
    }

    /// One look, unless what is known may be past. When to look again.
    fn think(&mut self, heard: Vec<Heard>) -> Option<Timestamp> {
        let count = heard.len();
        let was_current = self.outdated.is_empty();
        let mut watchers = Vec::new();
        for one in heard {
            match one {
                Heard::TendAt(claim, at) => drop(self.tend_at.insert(claim, at)),
                Heard::Outdated(kind) => drop(self.outdated.insert(kind)),
                Heard::Current(kind) => drop(self.outdated.remove(kind)),
                Heard::Show(watcher) => watchers.push(watcher),
                Heard::Input(input) => self.hear(input),
            }
        }
        let wake = if self.outdated.is_empty() {
            if !was_current {
                info!("every kind is current again; going on");
            }
            self.look(count)
        } else {
            if was_current && self.is_synced {
                warn!(kinds = ?self.outdated, "what is known may be past; waiting until it is current");
            }
            None
        };
        self.tell_whether_synced();
        if !watchers.is_empty() {
            let seen = self.seen();
            for watcher in watchers {
                // One that does not wait any more needs no answer.
                drop(watcher.send(Arc::clone(&seen)));
            }
        }
        wake
    }

    /// One at a time: what an input changes is told beside what was known until then.
    fn hear(&mut self, input: Input) {
        self.notice(&input);
        self.engine.hear([input], self.now);
    }

    fn look(&mut self, count: usize) -> Option<Timestamp> {
        let start = Instant::now();
        let output = self.engine.look(self.now);
        let took = start.elapsed();
        self.decided(took);
        for note in &output.disruption {
            self.metrics.disruption(note, self.engine.round(), took);
            tell_disruption(note);
        }
        debug!(heard = count, effects = output.effects.len(), "looked at the cluster");
        self.metrics.looked(count, output.effects.len(), took);
        let wake = output.wake;
        self.metrics.pod_costs_pending(self.engine.pending_pod_costs());
        self.metrics.set_cluster(self.engine.snapshot().nodes().count());
        self.hand_out(output);
        self.tend();
        self.refresh_catalogue();
        let tend = self.tend_at.values().copied().min();
        [wake, tend, self.catalogue_at].into_iter().flatten().min()
    }

    fn tell_whether_synced(&mut self) {
        let sees = self.is_synced && self.outdated.is_empty();
        self.unsynced_since = if sees { None } else { self.unsynced_since.or(Some(self.now)) };
        self.health.sees.store(sees, Ordering::Release);
        self.metrics.set_synced(self.unsynced_since.map(|since| self.now.duration_since(since)));
    }

    /// What the look has decided about pods, and how long it took.
    fn decided(&mut self, took: Duration) {
        let mut is_round = false;
        for (name, verdict) in self.engine.pod_verdicts() {
            let Some(waiting) = self.waiting.get_mut(name) else { continue };
            let has_place = !matches!(verdict, PodVerdict::NoPlace(_));
            if waiting.decided.is_none() && has_place {
                waiting.decided = Some(self.now);
                self.metrics.pod_decided(waiting.since, self.now);
                is_round = true;
            }
        }
        if is_round {
            self.metrics.scheduled(took);
        }
    }

    fn seen(&self) -> Arc<Seen> {
        let (mut ignored, mut unschedulable) = (0, 0);
        for verdict in self.engine.pod_verdicts().values() {
            match verdict {
                PodVerdict::NoPlace(why) if why.is_ignored() => ignored += 1,
                PodVerdict::NoPlace(why) if !why.is_silent() => unschedulable += 1,
                PodVerdict::NoPlace(_) | PodVerdict::Fits(_) | PodVerdict::Planned { .. } => {}
            }
        }
        Arc::new(Seen {
            snapshot: self.engine.snapshot().clone(),
            types: self.types.clone(),
            waiting: self.waiting.clone(),
            unschedulable,
            ignored,
            labels: self.labels.clone(),
            now: self.now,
        })
    }

    /// What is told of it, and what it means for the provider.
    fn notice(&mut self, input: &Input) {
        match input {
            Input::Change(Change::NodeClaim(name, claim)) => {
                self.notice_claim(&name.name, claim.as_deref());
                self.touched.insert(Arc::clone(&name.name));
            }
            // A node that went before it joined is the provider's to post again.
            Input::Change(Change::Node(name, None)) => {
                let snapshot = self.engine.snapshot();
                if let Some(node) = snapshot.node(&name.name).filter(|node| self.settings.manages_node(node)) {
                    self.metrics.node_gone(node, self.now);
                    info!(node = %name, "deleted node");
                }
                let waiting = |claim: &&Arc<NodeClaim>| !claim.status.conditions.is_true(condition_kind::REGISTERED);
                self.touched.extend(snapshot.claims().filter(waiting).map(|claim| Arc::clone(claim.name())));
            }
            Input::Change(Change::NodePool(name, pool)) => self.notice_pool(&name.name, pool.as_deref()),
            Input::Change(Change::NodeClass(..)) => self.catalogue_at = Some(self.now),
            Input::Change(Change::Pod(name, pod)) => self.notice_pod(name, pod.as_deref()),
            Input::Synced => self.is_synced = true,
            Input::Catalogue(types) => self.types.clone_from(types),
            Input::Launched { claim, answer: Err(error) } => {
                error!(nodeclaim = %claim, error = %error, "failed launching nodeclaim");
            }
            Input::Launched { claim, answer: Ok(launched) } => {
                let label = |key: &str| launched.labels.get(key).map(AsRef::as_ref).unwrap_or_default();
                info!(
                    nodeclaim = %claim,
                    provider_id = &*launched.provider_id,
                    instance_type = label(label::INSTANCE_TYPE),
                    zone = label(label::ZONE),
                    capacity_type = label(label::CAPACITY_TYPE),
                    allocatable = %launched.allocatable,
                    "launched nodeclaim"
                );
            }
            Input::Terminated { claim, answer: TerminateAnswer::Gone } => {
                if let Some(claim) = self.engine.snapshot().claim(&claim.name.name) {
                    self.metrics.instance_gone(claim, self.now);
                }
            }
            Input::WriteFailed { .. }
            | Input::Change(_)
            | Input::Terminated { .. }
            | Input::Instances(_)
            | Input::InstanceFound { .. }
            | Input::DriftFound { .. }
            | Input::HooksRan { .. }
            | Input::InstanceUpdated { .. }
            | Input::Rebooted { .. }
            | Input::Interrupted(_) => {}
        }
    }

    fn notice_claim(&mut self, name: &Arc<str>, now: Option<&NodeClaim>) {
        if now.is_none() {
            self.tend_at.remove(name);
        }
        // One that is seen for the first time may have been so for long.
        let Some(before) = self.engine.snapshot().claim(name).cloned() else { return };
        let Some(now) = now.filter(|now| before.meta.uid == now.meta.uid) else {
            if self.settings.manages(&before.node.class) {
                self.metrics.claim_gone(&before, self.now);
                info!(nodeclaim = &**name, nodepool = before.pool().unwrap_or_default(), "deleted nodeclaim");
            }
            return;
        };
        for change in transitions(Some(&before.status.conditions), &now.status.conditions) {
            self.metrics.claim_condition(&change);
            self.metrics.rebooted(&before, &change, self.now);
            if &*change.now.kind == condition_kind::DRAINED && change.now.status == ConditionStatus::True {
                self.metrics.drained(now);
            }
            self.publish(EventKind::NodeClaim, &now.meta, &change);
        }
    }

    fn notice_pool(&mut self, name: &Arc<str>, now: Option<&StoredPool>) {
        let generation = now.map(|pool| pool.meta.generation);
        let known = match generation {
            Some(generation) => self.generations.insert(Arc::clone(name), generation),
            None => self.generations.remove(name),
        };
        if known != generation {
            self.catalogue_at = Some(self.now);
        }
        let before = self.engine.snapshot().pool(name).cloned();
        if let (Some(before), Some(now)) = (before, now) {
            for change in transitions(Some(&before.status.conditions), &now.status.conditions) {
                self.metrics.pool_condition(&change);
                self.publish(EventKind::NodePool, &now.meta, &change);
            }
        }
    }

    fn notice_pod(&mut self, name: &ObjectName, now: Option<&Pod>) {
        let Some(now) = now else {
            self.waiting.remove(name);
            return;
        };
        if now.is_provisionable() {
            self.waiting.entry(name.clone()).or_insert(Waiting { since: self.now, decided: None });
        }
        let decided = self.waiting.get(name).and_then(|waiting| waiting.decided);
        if let Some(before) = self.engine.snapshot().pod(name).filter(|before| before.meta.uid == now.meta.uid) {
            if before.node_name.is_none() && now.node_name.is_some() {
                self.metrics.pod_bound(now, decided, self.now);
            }
            if before.phase == PodPhase::Pending && now.phase == PodPhase::Running {
                self.metrics.pod_started(now, decided, self.now);
            }
        }
        if now.phase != PodPhase::Pending || now.meta.is_deleting() {
            self.waiting.remove(name);
        }
    }

    /// Tells people that a condition has changed.
    fn publish(&self, kind: EventKind, about: &ObjectMeta, change: &Transition<'_>) {
        let Some(reason) = condition_kind::known(&change.now.kind).filter(|_| self.metrics.observes_state()) else {
            return;
        };
        let Transition { before, now } = change;
        let before = before.map_or("Unknown", |before| before.status.as_str());
        let mut message = format!("{reason}: {before} -> {}, {}", now.status, now.reason);
        if !now.message.is_empty() {
            message = format!("{message}: {}", now.message);
        }
        let event = Event {
            about: EventTarget { kind, target: about.into() },
            severity: EventSeverity::Normal,
            reason,
            dedupe: message.clone(),
            message,
            interval: CONDITION_EVERY,
        };
        self.send(Work::Effect(Effect::Publish(Box::new(event))));
    }

    fn hand_out(&mut self, output: Output) {
        for note in &output.notes {
            self.note(note);
        }
        if let Some(offerings) = output.avoid {
            self.send(Work::Avoid(offerings));
        }
        for effect in output.effects {
            match Question::of(&effect) {
                None => self.send(Work::Effect(effect)),
                // A claim that is gone meanwhile needs no answer.
                Some((question, target)) => {
                    if let Some((claim, class)) = self.order(target) {
                        self.send(Work::Ask { question, target: target.clone(), claim, class });
                    }
                }
            }
        }
    }

    /// The claim, if it is still there, and its class.
    fn order(&self, target: &Target) -> Option<(Arc<NodeClaim>, Option<Arc<NodeClass>>)> {
        let snapshot = self.engine.snapshot();
        let claim = snapshot.claim(&target.name.name).filter(|claim| claim.meta.uid == target.uid)?;
        Some((Arc::clone(claim), snapshot.class(&claim.node.class).cloned()))
    }

    fn note(&self, note: &Note) {
        let snapshot = self.engine.snapshot();
        if !self.metrics.note(note, snapshot, self.now) {
            return;
        }
        let (Note::Registered { claim }
        | Note::Initialized { claim }
        | Note::GivenUp { claim, .. }
        | Note::Postponed { claim, .. }) = note;
        let found = snapshot.claim(&claim.name.name);
        let pool = found.and_then(|claim| claim.pool()).unwrap_or_default();
        match note {
            Note::Registered { claim } => info!(nodeclaim = %claim, nodepool = pool, "registered nodeclaim"),
            Note::Initialized { claim } => info!(nodeclaim = %claim, nodepool = pool, "initialized nodeclaim"),
            Note::GivenUp { claim, cause } => {
                info!(nodeclaim = %claim, nodepool = pool, reason = cause.label(), "giving up nodeclaim");
            }
            Note::Postponed { claim, window } => {
                info!(nodeclaim = %claim, nodepool = pool, window = &**window, "expired, and held back by a window");
            }
        }
    }

    fn tend(&mut self) {
        let due = self.tend_at.iter().filter(|(_, at)| **at <= self.now).map(|(name, _)| Arc::clone(name));
        self.touched.extend(due);
        for name in std::mem::take(&mut self.touched) {
            self.tend_at.remove(&name);
            let Some(claim) = self.engine.snapshot().claim(&name).cloned() else { continue };
            if self.settings.manages(&claim.node.class) {
                let class = self.engine.snapshot().class(&claim.node.class).cloned();
                self.send(Work::Tend { claim, class, now: self.now });
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

/// What disruption did, for people.
fn tell_disruption(note: &DisruptionNote) {
    match note {
        DisruptionNote::Looked => {}
        DisruptionNote::Started { command, method, reason, decision, nodes, replacements, .. } => {
            info!(
                command = %command,
                method = method.label(),
                reason = reason.metric(),
                decision = decision.metric(),
                nodes = nodes.values().sum::<u32>(),
                replacements,
                "disrupting node(s)"
            );
        }
        DisruptionNote::Withdrawn { command, objection, .. } => {
            info!(command = %command, objection = objection.label(), "withdrew a disruption");
        }
        DisruptionNote::Replaced { command, .. } => info!(command = %command, "the replacements are ready"),
        DisruptionNote::Failed { command, failure, .. } => {
            warn!(command = %command, failure = failure.label(), "rolling back a disruption");
        }
        DisruptionNote::Done { command } => info!(command = %command, "the disrupted nodes are gone"),
        DisruptionNote::BackedOff { pool, seconds } => {
            warn!(nodepool = &**pool, seconds, "leaving the drift of a pool alone for a while");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the shell's clock: decisions get this time as an argument")]
pub fn clock() -> Timestamp {
    Timestamp::now()
}

#[cfg(test)]
mod tests {
    use kerf_testkit::{condition, texts};

    use super::*;
    use crate::metrics::Build;
    use crate::traffic::Traffic;

    struct Bed {
        brain: Brain,
        work: mpsc::UnboundedReceiver<Work>,
        metrics: Arc<Metrics>,
    }

    impl Bed {
        fn new() -> Self {
            let classes = vec![kerf_lifecycle::ClassKind { group: Arc::from("g"), kind: Arc::from("K") }];
            let settings = Settings::new(kerf_lifecycle::Settings::for_classes(classes), LabelRules::core());
            let metrics = Arc::new(Metrics::new(&Build { version: "1", commit: "" }, true, None, Traffic::default()));
            let (sender, work) = mpsc::unbounded_channel();
            let mut brain = Brain::new(settings, sender, Arc::clone(&metrics), Arc::default());
            brain.now = Timestamp::UNIX_EPOCH;
            Self { brain, work, metrics }
        }

        fn work(&mut self) -> Vec<Work> {
            std::iter::from_fn(|| self.work.try_recv().ok()).collect()
        }
    }

    fn seen(claim: NodeClaim) -> Heard {
        Heard::Input(Input::Change(Change::NodeClaim(claim.meta.name.clone(), Some(Arc::new(claim)))))
    }

    fn claim(conditions: &[&str]) -> NodeClaim {
        let mut claim = kerf_testkit::claim("a");
        claim.meta.labels = texts([(label::NODEPOOL, "p")]);
        claim.status.conditions.0 = conditions.iter().map(|kind| condition(kind, Timestamp::UNIX_EPOCH)).collect();
        claim
    }

    /// Everything that was heard while one kind could not be listed was kept until it could, with no end to it.
    #[test]
    fn what_is_heard_while_a_watch_is_broken_piled_up() {
        let mut bed = Bed::new();
        bed.brain.think(vec![Heard::Outdated("Pod"), Heard::Input(Input::Synced)]);
        for _ in 0..1_000 {
            assert_eq!(bed.brain.think(vec![seen(claim(&[]))]), None, "nothing is decided");
        }
        assert!(bed.brain.engine.snapshot().claim("a").is_some(), "it is taken in, and not kept");
        assert_eq!(bed.brain.touched.len(), 1);
        assert!(bed.work().is_empty());
        bed.brain.think(vec![Heard::Current("Pod")]);
        let work = bed.work();
        let adds_finalizer = |work: &Work| matches!(work, Work::Effect(Effect::PatchClaim(..)));
        assert!(work.iter().any(adds_finalizer), "{work:?}");
        assert_eq!(work.iter().filter(|work| matches!(work, Work::Tend { .. })).count(), 1, "{work:?}");
    }

    /// Each was compared with what was known before the first of them.
    #[tokio::test]
    async fn of_two_changes_that_came_at_once_the_first_was_counted_and_told_twice() {
        let mut bed = Bed::new();
        bed.brain.think(vec![seen(claim(&[]))]);
        let (launched, registered) = (condition_kind::LAUNCHED, condition_kind::REGISTERED);
        bed.brain.think(vec![seen(claim(&[launched])), seen(claim(&[launched, registered]))]);
        let told = bed.work().into_iter().filter_map(|work| match work {
            Work::Effect(Effect::Publish(event)) => Some(event.reason),
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), [launched, registered]);
        let name = "operator_nodeclaim_status_condition_transitions_total";
        let text = bed.metrics.text().await;
        let line = format!("{name}{{type=\"Launched\",status=\"True\",reason=\"Launched\"}} 1\n");
        assert!(text.contains(&line), "{line} in {text}");
    }
}
