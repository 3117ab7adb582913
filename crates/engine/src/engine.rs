//! The engine and its one function.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_disruption::{Held, Round, Verdict, deletion_costs};
use kerf_lifecycle::claim::PoolRoom;
use kerf_lifecycle::claim::drift::in_place::PodKeys;
use kerf_lifecycle::pool::{self, Totals};
use kerf_lifecycle::{Memory, Note, Steps, View, claim, garbage, node, window};
use kerf_model::change::{Change, Input};
use kerf_model::cloud::{Instance, InterruptionCause};
use kerf_model::cluster::{
    ConditionStatus, InstanceType, NodeOverlay, ObjectName, OfferingName, StoredPool, condition_kind,
};
use kerf_model::effect::{Effect, WriteError};
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::time::later;
use kerf_scheduling::{Catalogues, Waiting};

use crate::agenda::{Agenda, Item};
use crate::avoided::Avoided;
use crate::batch::Batch;
use crate::buffers::{self, Buffers};
use crate::commands::Command;
use crate::disruption::{Disruption, Facts};
use crate::notes::DisruptionNote;
use crate::outstanding::Outstanding;
use crate::overlays::Overlays;
use crate::pod_costs::PodCosts;
use crate::provisioning::{self, Expected, Offers, PodVerdict};
use crate::settings::Settings;
use crate::sold_out::SoldOut;

/// Pods that still wait are looked at again this often, though nothing was heard of them.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(10);
/// And this soon after a claim could not be created.
const AFTER_FAILURE: SignedDuration = SignedDuration::from_secs(1);

/// So long a round waits for launches under way at most: what they will have room for can be filled later.
const MOST_FOR_LAUNCHES: SignedDuration = SignedDuration::from_secs(10);
/// And so long for claims that were asked for and are not seen. That is over within a moment, but where one is asked for
/// every moment; and what they take of their pools' limits is not known before.
const MOST_FOR_UNSEEN: SignedDuration = SignedDuration::from_secs(20);

pub struct Engine {
    settings: Settings,
    snapshot: ClusterSnapshot,
    memory: Memory,
    agenda: Agenda,
    outstanding: Outstanding,
    batch: Batch,
    /// When waiting pods are looked at without being heard of.
    retry: Option<Timestamp>,
    /// Since when a round is wanted, and waits for claims under way.
    waits_since: Option<Timestamp>,
    /// What may be launched, without what is avoided.
    types: BTreeMap<Arc<str>, Arc<[InstanceType]>>,
    /// The same with it.
    catalogues: Catalogues,
    avoided: Avoided,
    /// What is avoided is another than was told.
    is_avoided_news: bool,
    overlays: Overlays,
    buffers: Buffers,
    expected: Expected,
    verdicts: BTreeMap<ObjectName, PodVerdict>,
    disruption: Disruption,
    /// The cloud's list, until it has been compared with the cluster.
    instances: Option<Vec<Instance>>,
    is_synced: bool,
    /// Made anew with every look.
    pod_keys: PodKeys,
    /// Renewed with every look.
    room: PoolRoom,
    pod_costs: PodCosts,
    sold_out: SoldOut,
}

/// What the engine wants done.
#[derive(Debug, Default)]
pub struct Output {
    /// In order per object; effects on different objects may be done at the same time.
    pub effects: Vec<Effect>,
    /// What they mean, for metrics and logs.
    pub notes: Vec<Note>,
    /// What disruption did, for metrics and logs.
    pub disruption: Vec<DisruptionNote>,
    /// Offerings that nothing is to be launched from now, if they are others than before. The cloud is told, because a
    /// claim may name several types and zones.
    pub avoid: Option<Vec<OfferingName>>,
    /// Call again at this time if nothing is heard before.
    pub wake: Option<Timestamp>,
}

impl Engine {
    pub fn new(settings: Settings) -> Self {
        Self {
            snapshot: ClusterSnapshot::default(),
            memory: Memory::default(),
            agenda: Agenda::default(),
            outstanding: Outstanding::default(),
            batch: Batch::new(settings.batch_idle, settings.batch_max),
            retry: None,
            waits_since: None,
            types: BTreeMap::new(),
            catalogues: Catalogues::new(),
            avoided: Avoided::default(),
            is_avoided_news: false,
            overlays: Overlays::default(),
            buffers: Buffers::default(),
            expected: Expected::default(),
            verdicts: BTreeMap::new(),
            disruption: Disruption::default(),
            instances: None,
            is_synced: false,
            pod_keys: PodKeys::default(),
            room: PoolRoom::default(),
            pod_costs: PodCosts::default(),
            sold_out: SoldOut::default(),
            settings,
        }
    }

    /// The cluster as it is known.
    pub fn snapshot(&self) -> &ClusterSnapshot {
        &self.snapshot
    }

    /// The current answer for every pod that needs a place.
    pub fn pod_verdicts(&self) -> &BTreeMap<ObjectName, PodVerdict> {
        &self.verdicts
    }

    /// By claim: why its node stays or goes, as of the last round.
    pub fn node_verdicts(&self) -> &BTreeMap<Arc<str>, Verdict> {
        self.disruption.verdicts()
    }

    /// The last round of disruption, with its budgets and what could have been chosen.
    pub fn round(&self) -> &Round {
        self.disruption.round()
    }

    /// Disruptions under way.
    pub fn commands(&self) -> &[Command] {
        self.disruption.commands()
    }

    /// Proposals that wait for their second look.
    pub fn held(&self) -> &[Held] {
        self.disruption.held()
    }

    /// What disruption remembers between rounds: nominations, back-offs, recent moves.
    pub fn disruption_memory(&self) -> &kerf_disruption::Memory {
        self.disruption.memory()
    }

    /// One look at the cluster. `now` never goes back.
    pub fn handle(&mut self, inputs: impl IntoIterator<Item = Input>, now: Timestamp) -> Output {
        self.hear(inputs, now);
        self.look(now)
    }

    /// Takes in what was heard, and decides nothing: what is known may be past.
    pub fn hear(&mut self, inputs: impl IntoIterator<Item = Input>, now: Timestamp) {
        inputs.into_iter().for_each(|input| self.take_in(input, now));
    }

    /// Decides from all that was heard.
    pub fn look(&mut self, now: Timestamp) -> Output {
        self.pod_keys = PodKeys::default();
        self.room.renew();
        let mut output = Output::default();
        if !self.is_synced {
            return output;
        }
        if let Some(instances) = self.instances.take() {
            let steps = garbage::collect(&instances, self.view(now));
            self.take(steps, now, &mut output);
        }
        self.overlay(now);
        if self.avoided.refresh(now) {
            self.avoid(now);
        }
        if std::mem::take(&mut self.is_avoided_news) {
            output.avoid = Some(self.avoided.names());
        }
        // Before the objects are looked at, because it says what is to be written on them.
        self.disrupt(now, &mut output);
        self.price_pods(now, &mut output);
        let items = self.agenda.take(now);
        // Made once for all pools, and only if one is looked at.
        let has_pool = items.iter().any(|item| matches!(item, Item::Pool(_)));
        let totals = if has_pool { Totals::of(&self.snapshot) } else { Totals::default() };
        for item in items {
            self.look_at(item, &totals, now, &mut output);
        }
        self.provision(now, &mut output);
        let hold = self.expected.hold(&self.snapshot, now);
        let wakes = [
            self.agenda.next_due(),
            self.next_round(now),
            self.disruption.next_due(&self.settings, hold),
            self.avoided.next_due(),
            self.pod_costs.next_due(),
        ];
        output.wake = wakes.into_iter().flatten().min();
        output
    }

    fn take_in(&mut self, input: Input, now: Timestamp) {
        self.memory.hear(&input, &self.snapshot, now);
        self.agenda.hear(&input, &self.snapshot);
        self.disruption.hear(&input, &self.snapshot, now);
        match input {
            Input::Change(change) => {
                self.see(&change, now);
                self.snapshot.apply(change.clone());
                self.agenda.hear(&Input::Change(change), &self.snapshot);
            }
            Input::Synced => {
                self.is_synced = true;
                self.disruption.synced(&self.snapshot);
                self.agenda.touch_all(&self.snapshot);
                self.retry = Some(now);
            }
            Input::Catalogue(types) if self.settings.node_overlays => self.overlays.hear(types),
            Input::Catalogue(types) => self.offer(types, now),
            Input::WriteFailed { effect, error } => {
                self.outstanding.failed(&effect, &error, now);
                if let Effect::PatchPod(..) = *effect {
                    self.pod_costs.touch();
                }
                if let Effect::CreateClaim(claim) = *effect {
                    self.expected.remove(&claim.name);
                    self.retry = Some(later(now, after_failure(&error)));
                }
            }
            Input::Instances(instances) => self.instances = Some(instances),
            Input::Launched { .. }
            | Input::Terminated { .. }
            | Input::InstanceFound { .. }
            | Input::DriftFound { .. }
            | Input::HooksRan { .. }
            | Input::InstanceUpdated { .. }
            | Input::Rebooted { .. } => {}
            Input::Interrupted(interruption) => {
                let claims: Vec<_> = self.snapshot.claims_with_id(&interruption.provider_id).cloned().collect();
                for claim in claims.iter().filter(|_| interruption.cause == InterruptionCause::SpotReclaimed) {
                    if self.avoided.interrupted(claim, now) {
                        self.avoid(now);
                    }
                }
            }
        }
    }

    /// What may be launched from now on.
    fn offer(&mut self, types: Catalogues, now: Timestamp) {
        self.catalogues = types;
        let types = self.avoided.apply(&self.catalogues);
        let is_other = |(pool, new): &(&Arc<str>, &Arc<[InstanceType]>)| self.types.get(*pool) != Some(new);
        let changed: BTreeSet<Arc<str>> = types.iter().filter(is_other).map(|(pool, _)| pool.clone()).collect();
        if !changed.is_empty() || self.types.len() != types.len() {
            self.disruption.touch();
        }
        self.agenda.offers_changed(&changed, &self.snapshot);
        self.types = types;
        self.retry = Some(now);
    }

    /// What is avoided has changed.
    fn avoid(&mut self, now: Timestamp) {
        self.is_avoided_news = true;
        self.offer(self.catalogues.clone(), now);
    }

    /// Puts overlays on the catalogue, if one of the two has changed.
    fn overlay(&mut self, now: Timestamp) {
        if !self.settings.node_overlays {
            return;
        }
        let Some(types) = self.overlays.refresh(&self.snapshot, &self.settings.labels) else { return };
        self.offer(types, now);
        for overlay in self.snapshot.overlays() {
            self.agenda.touch(Item::Overlay(overlay.meta.name.name.clone()));
        }
    }

    /// What a change means for provisioning.
    fn see(&mut self, change: &Change, now: Timestamp) {
        match change {
            Change::Pod(name, Some(pod)) if pod.is_provisionable() => {
                if !self.verdicts.contains_key(name) {
                    self.batch.add(&pod.meta.uid, now);
                }
            }
            Change::Pod(name, _) => drop(self.verdicts.remove(name)),
            // Its pods need a place while they still run.
            Change::Node(_, Some(node)) if node.meta.is_deleting() => self.batch.add(&node.meta.uid, now),
            Change::NodeClaim(name, None) => {
                if self.expected.remove(&name.name) {
                    self.retry = Some(now);
                }
            }
            Change::NodePool(name, pool) => {
                let generation = |pool: &Arc<StoredPool>| pool.meta.generation;
                let before = self.snapshot.pool(&name.name);
                if pool.as_ref().map(generation) != before.map(generation) {
                    self.overlays.touch();
                }
                // What we write into its status ourselves, with every node that comes or goes, is no news for pods.
                if pool.as_ref().map(launchable) != before.map(launchable) {
                    self.retry = Some(now);
                }
            }
            Change::NodeClass(..) => self.retry = Some(now),
            Change::NodeOverlay(name, overlay) => {
                let generation = |overlay: &Arc<NodeOverlay>| overlay.meta.generation;
                if overlay.as_ref().map(generation) != self.snapshot.overlay(&name.name).map(generation) {
                    self.overlays.touch();
                }
            }
            // Its nodes may be needed, or needed no more.
            Change::CapacityBuffer(..) | Change::PodTemplate(..) => self.retry = Some(now),
            Change::Workload(kind, name, _) => {
                if Buffers::refers_to(&self.snapshot, *kind, name) {
                    self.retry = Some(now);
                }
            }
            Change::Node(..)
            | Change::NodeClaim(..)
            | Change::DaemonSet(..)
            | Change::DisruptionBudget(..)
            | Change::MaintenanceWindow(..)
            | Change::VolumeAttachment(..)
            | Change::PersistentVolumeClaim(..)
            | Change::PersistentVolume(..)
            | Change::StorageClass(..)
            | Change::CsiNode(..)
            | Change::Namespace(..)
            | Change::Service(..) => {}
        }
    }

    fn view(&self, now: Timestamp) -> View<'_> {
        View {
            snapshot: &self.snapshot,
            memory: &self.memory,
            settings: &self.settings.lifecycle,
            types: &self.types,
            rules: &self.settings.labels,
            marks: self.disruption.marks(),
            pod_keys: &self.pod_keys,
            room: &self.room,
            now,
        }
    }

    fn look_at(&mut self, item: Item, totals: &Totals, now: Timestamp, output: &mut Output) {
        let view = self.view(now);
        let steps = match &item {
            Item::Claim(name) => self.snapshot.claim(name).map(|object| claim::next(object, view)),
            Item::Node(name) => self.snapshot.node(name).map(|object| node::next(object, view)),
            Item::Pool(name) => self.snapshot.pool(name).map(|object| pool::next(object, totals, view)),
            Item::Overlay(name) => self.snapshot.overlay(name).map(|object| self.overlays.steps(object, now)),
            Item::Buffer(name) => self.snapshot.buffer(name).map(|object| self.buffers.steps(object, now)),
            Item::Window(name) => self.snapshot.window(name).map(|object| window::next(object, view)),
            Item::Garbage => Some(garbage::next(view)),
        };
        let steps = steps.unwrap_or_default();
        if let Some(repeat_at) = self.outstanding.pending(&item, &steps.effects, now) {
            let wake = steps.wake.map_or(repeat_at, |wake| wake.min(repeat_at));
            return self.agenda.wake(item, Some(wake));
        }
        let repeat_at = self.outstanding.asked(item.clone(), steps.effects.clone(), now);
        self.agenda.wake(item, [steps.wake, repeat_at].into_iter().flatten().min());
        self.take(steps, now, output);
    }

    /// The steps will be done.
    fn take(&mut self, steps: Steps, now: Timestamp, output: &mut Output) {
        self.memory.took(&steps, &self.snapshot, now);
        output.effects.extend(steps.effects.into_iter().filter(|effect| self.outstanding.is_new(effect, now)));
        output.effects.extend(self.sold_out.tell(&steps.notes, &self.verdicts, &self.snapshot, now));
        output.notes.extend(steps.notes);
    }

    /// Commands go on, proposals become commands, and the cluster is looked at for new ones.
    fn disrupt(&mut self, now: Timestamp, output: &mut Output) {
        let hold = self.expected.hold(&self.snapshot, now);
        if self.disruption.next_due(&self.settings, hold).is_none_or(|at| now < at) && !self.disruption.is_touched() {
            return;
        }
        let virtual_pods: Vec<_> = self.buffers.pods().cloned().collect();
        let facts = Facts {
            snapshot: &self.snapshot,
            types: &self.types,
            overlays: &self.overlays,
            virtual_pods: &virtual_pods,
            settings: &self.settings,
            hold,
            now,
        };
        let done = self.disruption.go_on(facts, self.outstanding.deleted_claims(now));
        if done.told.contains(&DisruptionNote::Looked) {
            // How many nodes a window covers: not with every node that comes or goes, of which there may be thousands.
            let windows = self.snapshot.maintenance_windows().map(|window| window.name.clone());
            windows.for_each(|name| self.agenda.touch(Item::Window(name)));
        }
        done.touched.into_iter().for_each(|claim| self.agenda.touch(Item::Claim(claim)));
        done.touched_pools.into_iter().for_each(|pool| self.agenda.touch(Item::Pool(pool)));
        output.disruption.extend(done.told);
        self.take(Steps { effects: done.effects, notes: done.notes, wake: None }, now, output);
    }

    /// What pods of ReplicaSets should cost to delete.
    fn price_pods(&mut self, now: Timestamp, output: &mut Output) {
        if self.settings.disruption.gates.pod_deletion_cost_management && self.disruption.is_round_news() {
            self.pod_costs.touch();
        }
        if self.pod_costs.next_due().is_none_or(|at| now < at) {
            return;
        }
        let effects = match self.settings.disruption.gates.pod_deletion_cost_management {
            true => {
                let facts = Facts {
                    snapshot: &self.snapshot,
                    types: &self.types,
                    overlays: &self.overlays,
                    virtual_pods: &[],
                    settings: &self.settings,
                    hold: None,
                    now,
                };
                let costs = deletion_costs(&self.disruption.view(facts));
                self.pod_costs.write(costs, &self.snapshot, now)
            }
            false => self.pod_costs.clean(&self.snapshot, now),
        };
        output.effects.extend(effects);
    }

    /// By pool: nodes whose pods' deletion costs are still to be written.
    pub fn pending_pod_costs(&self) -> &BTreeMap<Arc<str>, u32> {
        self.pod_costs.pending()
    }

    /// When the next round may be due.
    fn next_round(&self, now: Timestamp) -> Option<Timestamp> {
        let wanted = self.batch.look_at(self.retry)?;
        // Each claim is waited for, and not all of them: while nodes are replaced there is always one that is coming.
        let since = self.waits_since.unwrap_or(wanted);
        let launches = provisioning::hold(&self.snapshot, now).map(|at| at.min(later(since, MOST_FOR_LAUNCHES)));
        let unseen = [self.expected.hold(&self.snapshot, now), self.disruption.hold(&self.snapshot, now)];
        let unseen = unseen.into_iter().flatten().max().map(|at| at.min(later(since, MOST_FOR_UNSEEN)));
        Some([launches, unseen].into_iter().flatten().fold(wanted, Ord::max))
    }

    fn provision(&mut self, now: Timestamp, output: &mut Output) {
        let wanted = self.batch.look_at(self.retry);
        if let Some(wanted) = wanted.filter(|wanted| *wanted <= now) {
            self.waits_since.get_or_insert(wanted);
        }
        if self.next_round(now).is_none_or(|at| now < at) {
            return;
        }
        self.waits_since = None;
        self.batch.close();
        self.expected.refresh(&self.snapshot, now);
        if self.settings.capacity_buffers && self.buffers.resolve(&self.snapshot) {
            // The nodes that keep room for them are others now.
            self.disruption.touch();
        }
        let waiting = Waiting {
            pods: provisioning::waiting_pods(&self.snapshot, &self.expected, now),
            virtual_pods: self.expected.without_place(self.buffers.pods().cloned()),
        };
        // A pod whose claim is slow to launch may not fit on what comes.
        let nobody_waits = waiting.pods.is_empty() && self.expected.is_empty();
        self.retry = match (nobody_waits, self.buffers.is_empty()) {
            (false, _) => Some(later(now, LOOK_AGAIN)),
            (true, false) => Some(later(now, buffers::LOOK_AGAIN)),
            (true, true) => None,
        };
        let has_buffers = !self.buffers.is_empty();
        if waiting.pods.is_empty() && !has_buffers {
            return;
        }
        let offers = Offers { types: &self.types, overlays: &self.overlays };
        let round = provisioning::round(&self.snapshot, offers, waiting, &self.settings, now);
        if has_buffers {
            self.buffers.observe(&round.schedule);
            for buffer in self.snapshot.buffers() {
                self.agenda.touch(Item::Buffer(buffer.meta.name.clone()));
            }
            // Said at once: nothing else may wake the loop before the next round.
            for item in self.agenda.take_buffers() {
                self.look_at(item, &Totals::default(), now, output);
            }
        }
        output.effects.extend(round.effects);
        self.expected.add(round.planned, now);
        let hosts = round.verdicts.values().filter_map(|verdict| match verdict {
            PodVerdict::Fits(host) => Some(host),
            PodVerdict::Planned { .. } | PodVerdict::NoPlace(_) => None,
        });
        self.disruption.nominate(hosts, &self.settings, now);
        self.verdicts.extend(round.verdicts);
    }
}

/// What of a pool decides whether and what may be launched from it, besides what the cloud offers.
fn launchable(pool: &Arc<StoredPool>) -> (Arc<str>, i64, bool, Option<ConditionStatus>) {
    let ready = pool.status.conditions.get(condition_kind::READY).map(|condition| condition.status);
    (pool.meta.uid.clone(), pool.meta.generation, pool.meta.is_deleting(), ready)
}

/// A claim that is refused for what it says is planned again like one that has no place: what refuses it will hardly be
/// gone a second later.
fn after_failure(error: &WriteError) -> SignedDuration {
    match error {
        WriteError::Invalid { .. } => LOOK_AGAIN,
        WriteError::Conflict
        | WriteError::NotFound
        | WriteError::BudgetRefused { .. }
        | WriteError::Unavailable { .. } => AFTER_FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sold_out;

    use kerf_model::cluster::{Condition, Conditions, ObjectMeta, PoolStatus};
    use kerf_model::label::LabelRules;
    use kerf_testkit::{class, condition, meta, new_claim};

    fn pool(generation: i64, nodes: i64, ready: ConditionStatus) -> Change {
        let name = ObjectName::of_cluster("p");
        let ready = Condition { status: ready, ..condition(condition_kind::READY, Timestamp::UNIX_EPOCH) };
        let pool = StoredPool {
            meta: ObjectMeta { generation, ..meta(name.clone()) },
            spec: Err(Arc::from("not read here")),
            class: class(),
            hash: None,
            status: PoolStatus { nodes, conditions: Conditions(vec![ready]), ..PoolStatus::default() },
        };
        Change::NodePool(name, Some(Arc::new(pool)))
    }

    /// A claim that a policy refused was planned and asked for again every second.
    #[test]
    fn a_claim_that_is_refused_for_what_it_says_is_not_asked_for_again_at_once() {
        let now = Timestamp::UNIX_EPOCH;
        let retried = |error: WriteError| {
            let lifecycle = kerf_lifecycle::Settings::for_classes(Vec::new());
            let mut engine = Engine::new(Settings::new(lifecycle, LabelRules::core()));
            let claim = new_claim("p-1");
            let effect = Box::new(Effect::CreateClaim(Box::new(claim)));
            engine.hear([Input::WriteFailed { effect, error }], now);
            engine.retry.map(|at| at.duration_since(now))
        };
        assert_eq!(retried(WriteError::Unavailable { message: "busy".to_owned() }), Some(AFTER_FAILURE));
        assert_eq!(retried(WriteError::Invalid { message: "denied by a policy".to_owned() }), Some(LOOK_AGAIN));
    }

    /// Pods that had just been told that there is no place for them were looked at again with every node that joined: we
    /// count the pool's nodes in its status.
    #[test]
    fn a_status_that_we_write_ourselves_wakes_no_pod_that_waits() {
        let (yes, no) = (ConditionStatus::True, ConditionStatus::False);
        let wakes = |before: Option<Change>, after: Change| {
            let lifecycle = kerf_lifecycle::Settings::for_classes(Vec::new());
            let mut engine = Engine::new(Settings::new(lifecycle, LabelRules::core()));
            before.into_iter().for_each(|before| engine.snapshot.apply(before));
            engine.see(&after, Timestamp::UNIX_EPOCH);
            engine.retry.is_some()
        };
        assert!(wakes(None, pool(1, 0, yes)));
        assert!(!wakes(Some(pool(1, 3, yes)), pool(1, 4, yes)));
        assert!(wakes(Some(pool(1, 3, yes)), pool(2, 3, yes)), "an edit");
        assert!(wakes(Some(pool(1, 3, no)), pool(1, 3, yes)), "ready from now on");
        assert!(wakes(Some(pool(1, 3, yes)), Change::NodePool(ObjectName::of_cluster("p"), None)));
    }
    /// Sheet 08 L5.
    #[test]
    fn a_pod_is_told_when_its_claim_is_given_up_for_lack_of_capacity() {
        let mut engine =
            Engine::new(Settings::new(kerf_lifecycle::Settings::for_classes(Vec::new()), LabelRules::core()));
        engine.snapshot.apply(sold_out::tests::pod("w", None));
        let planned = PodVerdict::Planned { claim: Arc::from("a") };
        engine.verdicts.insert(ObjectName::new("default", "w"), planned);
        let mut output = Output::default();
        let steps = Steps { notes: vec![sold_out::tests::sold_out("a")], ..Steps::default() };
        engine.take(steps, Timestamp::UNIX_EPOCH, &mut output);
        let [Effect::Publish(event)] = &output.effects[..] else { panic!("{:?}", output.effects) };
        assert_eq!((event.reason, &*event.about.target.name.name), ("InsufficientCapacityError", "w"));
    }
}
