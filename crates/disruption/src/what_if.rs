//! What would become of the pods if these nodes went. The only place that asks the scheduler.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use kerf_model::cluster::{ObjectName, Pod, condition_kind as kind};
use kerf_scheduling::{
    Aim, Departure, OnHost, Options, PlannedClaim, Prepared, Question, ReservedMode, Schedule, Supply, Unplaced,
    is_virtual, virtual_pods_on_hosts,
};

use crate::subject::Subject;
use crate::{KeepReason, LandsOn, Policy, View};

/// So many pods are named in a reason.
const SHOWN_PODS: usize = 5;
/// More pods of others than this are not placed again in every what-if: they are placed once, and what they land on is
/// closed to the rest. A storm of drift has thousands on their way.
const MOST_CARRIED: usize = 500;

/// The cluster as what-ifs see it: without what is going, and with those pods looking for a place.
pub(crate) struct Simulator<'a> {
    view: View<'a>,
    prepared: OnceLock<Prepared<'a>>,
    /// Nodes and unjoined claims that are no destination, until the cluster is compiled; then it knows.
    departures: Vec<Departure>,
    /// Pods that wait for a place, and pods of nodes that go anyway: whatever else happens, they need theirs.
    others: Vec<Arc<Pod>>,
    /// Uids of those that come from nodes that go anyway.
    leaving: Arc<BTreeSet<Arc<str>>>,
    /// Destinations that moving pods do not count on, by what moves them.
    settled: Closed,
    settled_not_drifted: Closed,
    not_drifted: Closed,
    all: Closed,
    /// By node, or claim without one: for how many pods of capacity buffers it has room that no real pod needs.
    buffered: BTreeMap<Arc<str>, u32>,
    /// What their pods lack as it is.
    lacking: Lacking,
    /// What proposals of this round land on; what-ifs know.
    landed: BTreeSet<Arc<str>>,
    asked: AtomicU32,
}

/// Hosts that are closed to pods that would not have to move. Shared, because most what-ifs of a round ask the same.
type Closed = Arc<BTreeSet<Arc<str>>>;

/// How many pods of capacity buffers lack something.
#[derive(Debug, Clone, Copy, Default)]
struct Lacking {
    /// No node that is there has room for them.
    room: usize,
    /// Nor can any be launched.
    place: usize,
}

/// What becomes of room that buffers keep.
struct BufferRule {
    before: Lacking,
    /// Spare room is no reason to keep a sick or an outdated node, but one not to save money.
    may_block: bool,
}

/// How a what-if is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destinations {
    /// For moves that only save money. Not those inside their `consolidateAfter`: moving pods there would restart their
    /// clock. Nor those that are promised to pods that wait.
    Settled,
    /// Of those the ones that are not to be replaced themselves.
    SettledNotDrifted,
    /// Not those that are to be replaced themselves.
    NotDrifted,
    /// All that have room. For repair, and for looking ahead.
    All,
}

/// Where the pods would go.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    pub(crate) lands_on: Vec<LandsOn>,
    /// New nodes that get at least one of the pods.
    pub(crate) new_claims: Vec<PlannedClaim>,
}

impl<'a> Simulator<'a> {
    pub(crate) fn new(
        view: &View<'a>,
        subjects: &[Subject<'a>],
        moving: impl Fn(&Subject<'a>) -> Vec<Arc<Pod>>,
    ) -> Self {
        let pending = view.snapshot.pods().filter(|pod| pod.is_provisionable()).chain(view.virtual_pods).cloned();
        let (mut unsettled, mut drifted) = (BTreeSet::new(), BTreeSet::new());
        let mut taken: BTreeSet<Arc<str>> = landing(view).collect();
        if view.settings.policy == Policy::Best {
            // Pods that wait are to land there. The scheduler that binds them knows no plan: what is evicted meanwhile may
            // take their room, and they would wait for another node.
            unsettled.extend(view.memory.nominations.keys().cloned());
        }
        let mut simulator = Self {
            view: *view,
            prepared: OnceLock::new(),
            departures: Vec::new(),
            others: view.default_spread.apply(pending.collect(), view.snapshot),
            leaving: Arc::default(),
            settled: Closed::default(),
            settled_not_drifted: Closed::default(),
            not_drifted: Closed::default(),
            all: Closed::default(),
            buffered: BTreeMap::new(),
            lacking: Lacking::default(),
            landed: BTreeSet::new(),
            asked: AtomicU32::new(0),
        };
        for subject in subjects {
            let is_under_way = view.memory.command_of(subject.name()).is_some();
            if subject.is_going() || is_under_way || view.memory.held_of(subject.name()).is_some() {
                simulator.depart(Departure { hosts: names(&[subject]), ..Departure::default() });
                simulator.carry(moving(subject));
            }
            if view.memory.replaces_for(subject.name()).is_some() {
                // It was made for pods that are on their way to it.
                taken.insert(Arc::clone(subject.name()));
                taken.extend(subject.node.map(|node| Arc::clone(node.name())));
            }
            let Some(node) = subject.node else { continue };
            if subject.settles_at().is_some_and(|until| view.now < until) {
                unsettled.insert(Arc::clone(node.name()));
            }
            if subject.is(kind::DRIFTED) {
                drifted.insert(Arc::clone(node.name()));
            }
        }
        simulator.settled = Arc::new(&unsettled | &taken);
        simulator.settled_not_drifted = Arc::new(&*simulator.settled | &drifted);
        simulator.not_drifted = Arc::new(&drifted | &taken);
        simulator.all = Arc::new(taken);
        simulator.settle_others();
        simulator
    }

    /// Finds the room that buffers keep, and places the pods of others once and for all if they are many.
    fn settle_others(&mut self) {
        let are_many = self.others.len() > MOST_CARRIED;
        if !are_many && self.view.virtual_pods.is_empty() {
            return;
        }
        let question = Question { reserved: ReservedMode::Fallback, ..self.question(&[], &[], &self.all) };
        let schedule = self.solve(&question);
        self.buffered = virtual_pods_on_hosts(&schedule);
        self.lacking = Lacking::of(&schedule);
        if !are_many {
            return;
        }
        self.close(schedule.on_existing.iter().map(|on| Arc::clone(on.host.name())));
        self.others.clear();
    }

    /// Nobody else counts on these hosts.
    fn close(&mut self, hosts: impl Iterator<Item = Arc<str>> + Clone) {
        let all = [&mut self.settled, &mut self.settled_not_drifted, &mut self.not_drifted, &mut self.all];
        for closed in all {
            Arc::make_mut(closed).extend(hosts.clone());
        }
    }

    /// From now on what-ifs are about the cluster without these nodes.
    fn depart(&mut self, departure: Departure) {
        match self.prepared.get_mut() {
            Some(prepared) => prepared.depart(departure),
            None => self.departures.push(departure),
        }
    }

    /// From now on the pods look for a place in every what-if.
    fn carry(&mut self, pods: Vec<Arc<Pod>>) {
        Arc::make_mut(&mut self.leaving).extend(pods.iter().map(|pod| Arc::clone(&pod.meta.uid)));
        self.others.extend(pods);
    }

    /// A proposal of this round: its nodes are no destination any more, what it lands on is spoken for, and its pods are
    /// where it puts them. Those whose place it does not say are carried along, where that matters to others.
    pub(crate) fn commit(&mut self, subjects: &[&Subject<'a>], moving: Vec<Arc<Pod>>, outcome: &Outcome) {
        let mut without_place: BTreeMap<&ObjectName, &Arc<Pod>> =
            moving.iter().map(|pod| (&pod.meta.name, pod)).collect();
        let mut placed = |pods: &[Arc<Pod>]| -> Vec<Arc<Pod>> {
            pods.iter().filter(|pod| without_place.remove(&pod.meta.name).is_some()).cloned().collect()
        };
        let on_host = |lands: &LandsOn, pods| OnHost { host: lands.host.clone(), is_initialized: true, pods };
        let landing = outcome.lands_on.iter().map(|lands| on_host(lands, placed(&lands.pods))).collect();
        let launch = |claim: &PlannedClaim| PlannedClaim { pods: placed(&claim.pods), ..claim.clone() };
        let launched = outcome.new_claims.iter().map(launch).collect();
        // Room of a buffer that is made anew is not asked for a second time.
        let made_anew = outcome.new_claims.iter().flat_map(|claim| &claim.pods).filter(|pod| is_virtual(pod));
        let made_anew: BTreeSet<&ObjectName> = made_anew.map(|pod| &pod.meta.name).collect();
        self.others.retain(|pod| !made_anew.contains(&pod.meta.name));
        let mut carried: Vec<_> = without_place.into_values().filter(|pod| has_topology(pod)).cloned().collect();
        carried.truncate(MOST_CARRIED.saturating_sub(self.others.len()));
        self.carry(carried);
        self.depart(Departure { hosts: names(subjects), landing, launched });
        self.landed.extend(outcome.lands_on.iter().map(|lands| Arc::clone(lands.host.name())));
    }

    /// Whether others of this round count on the host.
    pub(crate) fn is_taken(&self, host: &str) -> bool {
        self.all.contains(host) || self.landed.contains(host)
    }

    /// Whether some host would do if it were only settled.
    pub(crate) fn has_unsettled(&self) -> bool {
        self.settled.len() > self.all.len()
    }

    /// Whether some settled host is to be replaced itself.
    pub(crate) fn has_drifted(&self) -> bool {
        self.settled_not_drifted.len() > self.settled.len()
    }

    pub(crate) fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Where the pods of the nodes would go if those went.
    ///
    /// # Errors
    /// Why they cannot go.
    pub(crate) fn ask(
        &self,
        subjects: &[&Subject<'a>],
        moving: &[Arc<Pod>],
        destinations: Destinations,
    ) -> Result<Outcome, KeepReason> {
        let closed = match destinations {
            Destinations::Settled => &self.settled,
            Destinations::SettledNotDrifted => &self.settled_not_drifted,
            Destinations::NotDrifted => &self.not_drifted,
            Destinations::All => &self.all,
        };
        let question = Question { reserved: ReservedMode::Fallback, ..self.question(subjects, moving, closed) };
        let may_block = match destinations {
            Destinations::Settled | Destinations::SettledNotDrifted => true,
            Destinations::NotDrifted | Destinations::All => false,
        };
        let rule = BufferRule { before: self.lacking, may_block };
        judge(self.solve(&question), moving, Some(rule))
    }

    /// For how many pods of capacity buffers the node has room that no real pod needs. Such a node is not empty.
    pub(crate) fn buffered(&self, subject: &Subject<'a>) -> u32 {
        let host = subject.node.map_or(subject.name(), |node| node.name());
        self.buffered.get(host).copied().unwrap_or_default()
    }

    /// Whether the pods would have a place if the reservation had one more, and nobody fell back from it.
    pub(crate) fn would_fit_with(&self, reservation: &Arc<str>, subject: &Subject<'a>, moving: &[Arc<Pod>]) -> bool {
        let credits = BTreeMap::from([(Arc::clone(reservation), 1)]);
        let asked = self.question(&[subject], moving, &self.all);
        let question = Question { reserved: ReservedMode::Strict, credits, ..asked };
        judge(self.solve(&question), moving, None).is_ok()
    }

    /// Whether the pods fit on nodes that are there. What is no here is no deletion in [`ask`](Self::ask); what is yes may
    /// still turn out to keep a preference on something new.
    pub(crate) fn may_fit(&self, subjects: &[&Subject<'a>], moving: &[Arc<Pod>]) -> bool {
        let asked = self.question(subjects, moving, &self.settled);
        let question = Question { reserved: ReservedMode::Fallback, aim: Aim::Fit, ..asked };
        let names: BTreeSet<&ObjectName> = moving.iter().map(|pod| &pod.meta.name).collect();
        !self.solve(&question).unplaced.iter().any(|(pod, _)| names.contains(&pod.meta.name))
    }

    fn prepare(&self) -> Prepared<'a> {
        let view = &self.view;
        let policy = match view.settings.policy {
            Policy::Best => kerf_scheduling::Policy::Best,
            Policy::Compatible => kerf_scheduling::Policy::Compatible,
        };
        let options = Options { policy, ..view.scheduling };
        let mut prepared = Prepared::new(view.snapshot, Supply { types: view.types, rules: view.labels, options });
        self.departures.iter().for_each(|departure| prepared.depart(departure.clone()));
        prepared
    }

    fn question(&self, subjects: &[&Subject<'a>], moving: &[Arc<Pod>], closed: &Closed) -> Question {
        let (spread, snapshot) = (self.view.default_spread, self.view.snapshot);
        let moving = if spread.is_empty() { moving.to_vec() } else { spread.apply(moving.to_vec(), snapshot) };
        Question {
            pods: self.others.iter().cloned().chain(moving).collect(),
            excluded: names(subjects).into_iter().collect(),
            closed_to_moves: Arc::clone(closed),
            from_leaving: Arc::clone(&self.leaving),
            aim: Aim::Replace,
            ..Question::default()
        }
    }

    fn solve(&self, question: &Question) -> Schedule {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.prepared.get_or_init(|| self.prepare()).solve(question)
    }
}

/// What became of the pods that have to move. What becomes of others is no reason for or against, but for room of buffers:
/// if it goes with the nodes, or their pods take it, it is needed anew, and that costs.
fn judge(schedule: Schedule, moving: &[Arc<Pod>], buffers: Option<BufferRule>) -> Result<Outcome, KeepReason> {
    let names: BTreeSet<&ObjectName> = moving.iter().map(|pod| &pod.meta.name).collect();
    let is_moving = |pod: &Arc<Pod>| names.contains(&pod.meta.name);
    let unplaced: Vec<_> = schedule.unplaced.iter().filter(|(pod, _)| is_moving(pod)).collect();
    if !unplaced.is_empty() {
        return Err(no_place(&unplaced));
    }
    let lacking = Lacking::of(&schedule);
    if buffers.as_ref().is_some_and(|rule| rule.may_block && lacking.place > rule.before.place) {
        return Err(no_place(&schedule.unplaced.iter().filter(|(pod, _)| is_virtual(pod)).collect::<Vec<_>>()));
    }
    let mut outcome = Outcome::default();
    for on in schedule.on_existing {
        let pods: Vec<_> = on.pods.into_iter().filter(is_moving).collect();
        match pods.first() {
            // Nothing may rest on a node that is still coming up.
            Some(pod) if !on.is_initialized => {
                return Err(KeepReason::DestinationNotReady { pod: pod.meta.name.clone(), host: on.host });
            }
            Some(_) => outcome.lands_on.push(LandsOn { host: on.host, pods }),
            None => {}
        }
    }
    outcome.new_claims = schedule.new_claims;
    let takes_room = buffers.is_some_and(|rule| lacking.room > rule.before.room);
    let is_ours = |pod: &Arc<Pod>| is_moving(pod) || (takes_room && is_virtual(pod));
    outcome.new_claims.retain(|claim| claim.pods.iter().any(is_ours));
    Ok(outcome)
}

impl Lacking {
    fn of(schedule: &Schedule) -> Self {
        let count = |pods: &[Arc<Pod>]| pods.iter().filter(|pod| is_virtual(pod)).count();
        let place = schedule.unplaced.iter().filter(|(pod, _)| is_virtual(pod)).count();
        Self { room: place + schedule.new_claims.iter().map(|claim| count(&claim.pods)).sum::<usize>(), place }
    }
}

/// Of the claims, and of their nodes.
fn names(subjects: &[&Subject<'_>]) -> Vec<Arc<str>> {
    let nodes = subjects.iter().filter_map(|subject| subject.node).map(|node| node.name());
    subjects.iter().map(|subject| subject.name()).chain(nodes).cloned().collect()
}

/// Hosts that held proposals count on. What commands under way count on is nominated.
fn landing(view: &View<'_>) -> impl Iterator<Item = Arc<str>> {
    let held = view.memory.held.iter().flat_map(|held| &held.proposal.lands_on);
    held.map(|lands| Arc::clone(lands.host.name()))
}

fn has_topology(pod: &Pod) -> bool {
    let rules = &pod.constraints;
    !(rules.spread.is_empty() && rules.required_affinity.is_empty() && rules.required_anti_affinity.is_empty())
}

fn no_place(unplaced: &[&(Arc<Pod>, Arc<Unplaced>)]) -> KeepReason {
    let shown = unplaced.iter().take(SHOWN_PODS);
    let pods: Vec<(ObjectName, Arc<str>)> =
        shown.map(|(pod, why)| (pod.meta.name.clone(), Arc::from(why.to_string()))).collect();
    KeepReason::PodsHaveNoPlace { more: unplaced.len() - pods.len(), pods }
}
