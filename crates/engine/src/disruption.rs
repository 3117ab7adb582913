//! Disruption: when the cluster is looked at, which proposals wait, and which commands run.
//!
//! A round (`kerf-disruption::decide`) is made when something has changed or its time has come, never more often than
//! every few seconds. Its proposals wait out their hold here while other work goes on; those that stand up to the second
//! look become [commands](crate::commands).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_disruption::{
    Action, Approved, Held, Memory, Policy, Proposal, ProposalId, Round, Verdict, View, Withdrawn, decide, validate_all,
};
use kerf_lifecycle::{Cause, Mark, Marks, Note, Order};
use kerf_model::change::{Change, Input};
use kerf_model::cloud::InterruptionCause;
use kerf_model::cluster::{InstanceType, Node, Pod, condition_kind as kind};
use kerf_model::effect::{Effect, Event, EventKind, EventSeverity, EventTarget, Target, WriteError};
use kerf_model::label::annotation;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_scheduling::Host;

use crate::commands::{Command, Decision, Outcome, Phase, is_joining, orphans, time_limit};
use crate::notes::DisruptionNote;
use crate::overlays::Overlays;
use crate::patience::Patience;
use crate::settings::Settings;

/// Longer than a round takes on a large cluster, so that rounds do not crowd out everything else.
const ROUND_GAP: SignedDuration = SignedDuration::from_secs(5);
/// The reference looks again as soon as it has acted.
const ROUND_GAP_COMPATIBLE: SignedDuration = SignedDuration::from_secs(1);
/// While there is work, the cluster is looked at this often though nothing was heard.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(10);
/// A reboot that the claim does not show by then is decided anew.
const REBOOT_SEEN_WITHIN: SignedDuration = SignedDuration::from_mins(1);
/// The reference: twice the longest batch, and no less than this.
const LEAST_NOMINATION: SignedDuration = SignedDuration::from_secs(10);

/// A replacement that came too late for its command and has joined may still become ready, and is then a node like any
/// other. It is kept this long.
const LATE_IS_KEPT: SignedDuration = SignedDuration::from_secs(30);

/// What a round needs of the engine.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    pub snapshot: &'a ClusterSnapshot,
    pub types: &'a BTreeMap<Arc<str>, Arc<[InstanceType]>>,
    pub overlays: &'a Overlays,
    pub virtual_pods: &'a [Arc<Pod>],
    pub settings: &'a Settings,
    /// See [`Disruption::next_due`].
    pub hold: Option<Timestamp>,
    pub now: Timestamp,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Done {
    pub effects: Vec<Effect>,
    pub notes: Vec<Note>,
    pub told: Vec<DisruptionNote>,
    /// Claims that have to be looked at: their marks have changed.
    pub touched: BTreeSet<Arc<str>>,
}

#[derive(Debug, Default)]
pub struct Disruption {
    memory: Memory,
    commands: Vec<Command>,
    /// Derived from the commands and the reboots asked for.
    marks: Marks,
    reboots: BTreeMap<Arc<str>, (Mark, Timestamp)>,
    round: Round,
    looked_at: Option<Timestamp>,
    has_looked: bool,
    /// Something that decisions rest on is other than at the last look.
    is_changed: bool,
    /// Something that a command waits for has changed.
    are_commands_touched: bool,
    commands_wake: Option<Timestamp>,
    /// By claim: what the cloud has last announced about its instance.
    announced: BTreeMap<Arc<str>, InterruptionCause>,
    /// Replacements that came too late for their commands, and until when they are kept.
    late: BTreeMap<Arc<str>, Timestamp>,
    patience: Patience,
    /// Events of rounds and commands, until when they are not sent again: every look repeats what still holds.
    said: BTreeMap<(Arc<str>, &'static str, String), Timestamp>,
}

impl Disruption {
    pub fn round(&self) -> &Round {
        &self.round
    }

    pub fn verdicts(&self) -> &BTreeMap<Arc<str>, Verdict> {
        &self.round.verdicts
    }

    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    pub fn held(&self) -> &[Held] {
        &self.memory.held
    }

    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// What decisions look at.
    pub fn view<'a>(&'a self, facts: Facts<'a>) -> View<'a> {
        view(facts, &self.memory)
    }

    /// Whether a round was made since this was asked last.
    pub fn is_round_news(&mut self) -> bool {
        std::mem::take(&mut self.has_looked)
    }

    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Whether something was heard that a command waits for.
    pub fn is_touched(&self) -> bool {
        self.are_commands_touched
    }

    /// Takes in what the engine hears, before the snapshot does.
    pub fn hear(&mut self, input: &Input, before: &ClusterSnapshot) {
        match input {
            Input::Change(change) => {
                self.is_changed |= is_relevant(change, before);
                if let Change::NodeClaim(name, now) = change {
                    self.are_commands_touched |= self.commands.iter().any(|command| command.concerns(&name.name));
                    if now.is_none() {
                        self.memory.rebalance.remove(&name.name);
                        self.announced.remove(&name.name);
                    }
                }
                // Taints and pods are on nodes.
                if let Change::Node(..) = change {
                    self.are_commands_touched |= !self.commands.is_empty();
                }
            }
            Input::Interrupted(interruption) => {
                // A provider may announce again and again what it has announced: that is no news.
                for claim in before.claims_with_id(&interruption.provider_id) {
                    if interruption.cause == InterruptionCause::RebalanceRecommended {
                        self.memory.rebalance.insert(claim.name().clone());
                    }
                    let known = self.announced.insert(claim.name().clone(), interruption.cause);
                    self.is_changed |= known != Some(interruption.cause);
                }
            }
            Input::WriteFailed { effect, error } => {
                if let Effect::CreateClaim(claim) = &**effect {
                    for command in &mut self.commands {
                        match error {
                            WriteError::Invalid { message } => command.refused(&claim.name, message),
                            WriteError::Conflict
                            | WriteError::NotFound
                            | WriteError::BudgetRefused { .. }
                            | WriteError::Unavailable { .. } => command.create_failed(&claim.name),
                        }
                    }
                }
                self.are_commands_touched = true;
            }
            Input::Catalogue(_) => self.is_changed = true,
            Input::Synced
            | Input::Launched { .. }
            | Input::Terminated { .. }
            | Input::Instances(_)
            | Input::InstanceFound { .. }
            | Input::DriftFound { .. }
            | Input::HooksRan { .. }
            | Input::InstanceUpdated { .. }
            | Input::Rebooted { .. } => {}
        }
    }

    /// The first lists are in: commands of an earlier process are taken up before anything is looked at.
    pub fn synced(&mut self, snapshot: &ClusterSnapshot) {
        self.commands = Command::resume(snapshot);
        self.patience = Patience::from_start();
        self.are_commands_touched = true;
        self.is_changed = true;
        self.write_marks(&mut Done::default());
    }

    /// Pods are expected on these hosts, so that they stay for a while.
    pub fn nominate<'a>(&mut self, hosts: impl IntoIterator<Item = &'a Host>, settings: &Settings, now: Timestamp) {
        let twice = settings.batch_max.checked_mul(2).unwrap_or(SignedDuration::MAX);
        let until = later(now, twice.max(LEAST_NOMINATION));
        self.memory.nominations.extend(hosts.into_iter().map(|host| (host.name().clone(), until)));
    }

    /// Until when provisioning should wait for replacements that were asked for and are not seen: what they take of
    /// their pools' limits is not known before.
    pub fn hold(&self, snapshot: &ClusterSnapshot, now: Timestamp) -> Option<Timestamp> {
        self.commands.iter().filter_map(|command| command.hold(snapshot)).filter(|end| now < *end).max()
    }

    /// When it wants to be asked again. Nothing new is chosen before `hold`: until then claims are not seen that
    /// provisioning has asked for, and what they take of their pools' limits is not known.
    pub fn next_due(&self, settings: &Settings, hold: Option<Timestamp>) -> Option<Timestamp> {
        let held = self.memory.held.iter().map(|held| held.until).min();
        let chosen = [held, self.round_due(settings)].into_iter().flatten().min();
        let chosen = chosen.map(|at| hold.map_or(at, |hold| at.max(hold)));
        [self.commands_wake, chosen].into_iter().flatten().min()
    }

    fn round_due(&self, settings: &Settings) -> Option<Timestamp> {
        let Some(last) = self.looked_at else { return Some(Timestamp::MIN) };
        let gap = match settings.disruption.policy {
            Policy::Best => ROUND_GAP,
            Policy::Compatible => ROUND_GAP_COMPATIBLE,
        };
        let has_work = !self.round.proposals.is_empty()
            || !self.memory.held.is_empty()
            || self.commands.iter().any(Command::is_waiting);
        let changed = self.is_changed.then_some(last);
        let again = has_work.then(|| later(last, LOOK_AGAIN));
        let late = self.late.values().min().copied();
        let patience = self.patience.next_due();
        let wanted = [changed, again, late, self.round.wake, patience].into_iter().flatten().min()?;
        Some(wanted.max(later(last, gap)))
    }

    /// Everything that is due: commands first, then proposals whose hold is over, then a round.
    pub fn go_on(&mut self, facts: Facts<'_>, deleted: impl Iterator<Item = Arc<str>>) -> Done {
        let mut done = Done::default();
        self.advance(facts, &mut done);
        let may_choose = facts.hold.is_none_or(|hold| hold <= facts.now);
        let is_round_due = may_choose && self.round_due(facts.settings).is_some_and(|at| at <= facts.now);
        let is_hold_over = may_choose && self.memory.held.iter().any(|held| held.until <= facts.now);
        if is_round_due || is_hold_over {
            self.refresh(facts, deleted);
        }
        if is_hold_over {
            self.look_again(facts, &mut done);
        }
        if is_round_due {
            self.look(facts, &mut done);
        }
        if !done.touched.is_empty() || !done.told.is_empty() {
            // What has just been started wants its marks now.
            self.write_marks(&mut done);
        }
        done.effects.retain(|effect| !matches!(effect, Effect::Publish(event) if !self.is_news(event, facts.now)));
        done
    }

    fn advance(&mut self, facts: Facts<'_>, done: &mut Done) {
        let is_due = self.commands_wake.is_some_and(|at| at <= facts.now);
        if !self.are_commands_touched && !is_due {
            return;
        }
        self.are_commands_touched = false;
        let waiting = self.commands.iter().filter(|command| command.is_waiting());
        let limit = time_limit(waiting.map(|command| command.candidates.len()).sum());
        self.commands_wake = None;
        let mut commands = std::mem::take(&mut self.commands);
        commands.retain_mut(|command| self.advance_one(command, facts, limit, done));
        self.commands = commands;
        let expired = self.reboots.iter().filter(|(name, (mark, asked))| {
            let claim = facts.snapshot.claim(name).filter(|claim| claim.meta.uid == mark.claim_uid);
            let is_seen = claim.is_none_or(|claim| claim.status.conditions.is_true(kind::REBOOTING));
            is_seen || facts.now >= later(*asked, REBOOT_SEEN_WITHIN)
        });
        let expired: Vec<_> = expired.map(|(name, _)| name.clone()).collect();
        for name in &expired {
            self.reboots.remove(name);
        }
        if let Some(asked) = self.reboots.values().map(|(_, asked)| *asked).min() {
            self.wake_commands(later(asked, REBOOT_SEEN_WITHIN));
        }
        self.write_marks(done);
    }

    /// As far as it goes now: a phase whose end is there already does not wait for the next look. Whether it is still
    /// under way.
    fn advance_one(&mut self, command: &mut Command, facts: Facts<'_>, limit: SignedDuration, done: &mut Done) -> bool {
        loop {
            let step = command.advance(facts.snapshot, limit, facts.now);
            done.effects.extend(step.effects);
            done.notes.extend(step.notes);
            if let Some(outcome) = step.ended {
                self.ended(command, outcome, facts.now, done);
                return false;
            }
            if !step.is_moved {
                if let Some(at) = step.wake {
                    self.wake_commands(at);
                }
                return true;
            }
            if let Phase::Deleting { .. } = command.phase {
                let pools: Vec<_> = pools_of(command).collect();
                for pool in pools.iter().filter(|_| command.method.is_drift()) {
                    self.memory.drift_succeeded(pool);
                }
                let Command { id, method, reason, decision, .. } = command;
                let (command, method, reason, decision) = (id.clone(), *method, *reason, *decision);
                done.told.push(DisruptionNote::Replaced { command, method, reason, decision, pools });
            }
        }
    }

    fn ended(&mut self, command: &Command, outcome: Outcome, now: Timestamp, done: &mut Done) {
        let Command { id, method, reason, decision, .. } = command;
        self.is_changed = true;
        self.memory.running.retain(|running| running.id != *id);
        let pools: BTreeSet<Arc<str>> = pools_of(command).collect();
        self.memory.finished(*method, &pools, outcome == Outcome::Done, now);
        match outcome {
            Outcome::Done => done.told.push(DisruptionNote::Done { command: id.clone() }),
            Outcome::RolledBack(failure) => {
                for pool in pools.into_iter().filter(|_| method.is_drift()) {
                    let until = self.memory.drift_back_off.get(&pool).map(|back_off| back_off.until);
                    let seconds = until.map_or(0, |until| until.duration_since(now).as_secs());
                    done.told.push(DisruptionNote::BackedOff { pool, seconds });
                }
                let (command, method, reason, decision) = (id.clone(), *method, *reason, *decision);
                done.told.push(DisruptionNote::Failed { command, method, reason, decision, failure });
            }
        }
    }

    fn wake_commands(&mut self, at: Timestamp) {
        self.commands_wake = Some(self.commands_wake.map_or(at, |wake| wake.min(at)));
    }

    /// What decisions look at besides the cluster.
    fn refresh(&mut self, facts: Facts<'_>, deleted: impl Iterator<Item = Arc<str>>) {
        let Facts { snapshot, now, .. } = facts;
        let memory = &mut self.memory;
        memory.nominations.retain(|_, until| now < *until);
        memory.marked = deleted.collect();
        memory.running = self.commands.iter().map(Command::running).collect();
        let reboots = snapshot.claims().filter_map(|claim| {
            let text = claim.meta.annotation(annotation::REBOOTS)?;
            let times = text.split(',').filter_map(|time| time.parse().ok()).collect();
            Some((claim.meta.uid.clone(), times))
        });
        memory.reboots = reboots.collect();
        self.said.retain(|_, until| now < *until);
    }

    /// Proposals whose hold is over are looked at again, each with the ones before it under way.
    fn look_again(&mut self, facts: Facts<'_>, done: &mut Done) {
        let due = self.memory.held.iter().filter(|held| held.until <= facts.now);
        let due: Vec<Proposal> = due.map(|held| held.proposal.clone()).collect();
        let ids: BTreeSet<ProposalId> = due.iter().map(|proposal| proposal.id.clone()).collect();
        self.attempt(due, facts, done);
        self.memory.held.retain(|held| !ids.contains(&held.proposal.id));
    }

    fn look(&mut self, facts: Facts<'_>, done: &mut Done) {
        self.looked_at = Some(facts.now);
        self.has_looked = true;
        self.is_changed = false;
        self.patience.pass(facts.now);
        if self.patience.is_over() {
            self.collect_orphans(facts, done);
        }
        let mut round = decide(&view(facts, &self.memory));
        let events = std::mem::take(&mut round.events);
        done.effects.extend(events.into_iter().map(publish));
        let proposals = round.proposals.clone();
        self.round = round;
        done.told.push(DisruptionNote::Looked);
        // Every node has its verdict; what comes of it has to wait.
        if !self.patience.is_over() {
            return;
        }
        let (held, at_once): (Vec<_>, Vec<_>) =
            proposals.into_iter().partition(|proposal| proposal.hold > SignedDuration::ZERO);
        let held = held.into_iter().map(|proposal| Held { until: later(facts.now, proposal.hold), proposal });
        self.memory.held.extend(held);
        self.attempt(at_once, facts, done);
    }

    fn collect_orphans(&mut self, facts: Facts<'_>, done: &mut Done) {
        let known = std::mem::take(&mut self.late);
        for claim in orphans(facts.snapshot, &self.commands) {
            if is_joining(claim) {
                let until = known.get(claim.name()).copied().unwrap_or(later(facts.now, LATE_IS_KEPT));
                if facts.now < until {
                    self.late.insert(claim.name().clone(), until);
                    continue;
                }
            }
            let target = Target::from(&claim.meta);
            done.effects.push(Effect::DeleteClaim(target.clone()));
            done.notes.push(Note::GivenUp { claim: target, cause: Cause::ReplacementUnneeded });
        }
    }

    /// The windows, budgets and blockers of this very moment decide; then they are marked. The cluster is looked at once
    /// for all of them: a drift storm starts hundreds.
    fn attempt(&mut self, proposals: Vec<Proposal>, facts: Facts<'_>, done: &mut Done) {
        if proposals.is_empty() {
            return;
        }
        for answer in validate_all(proposals, &view(facts, &self.memory)) {
            match answer {
                Ok(approved) => {
                    let Proposal { id, method, .. } = approved.proposal();
                    done.told.extend(approved.dropped().iter().map(|objection| DisruptionNote::Withdrawn {
                        command: id.clone(),
                        method: *method,
                        objection: objection.kind,
                        nodes: 1,
                    }));
                    self.start(approved, facts, done);
                }
                Err(withdrawn) => self.withdraw(*withdrawn, facts, done),
            }
        }
        self.write_marks(done);
    }

    fn start(&mut self, approved: Approved, facts: Facts<'_>, done: &mut Done) {
        let proposal = approved.proposal();
        // Two proposals for one node are one too many, whoever made them.
        let is_taken =
            |name: &Arc<str>| self.marks.get(name).is_some() || self.commands.iter().any(|it| it.concerns(name));
        if proposal.claims().any(is_taken) {
            return;
        }
        self.nominate(proposal.lands_on.iter().map(|lands| &lands.host), facts.settings, facts.now);
        let mut nodes = BTreeMap::new();
        for candidate in &proposal.candidates {
            *nodes.entry(candidate.pool.clone()).or_insert(0) += 1;
        }
        done.told.push(DisruptionNote::Started {
            command: proposal.id.clone(),
            method: proposal.method,
            reason: proposal.reason,
            decision: Decision::of(&proposal.action),
            policy: proposal.consolidation_policy,
            nodes,
            replacements: proposal.replacements().len(),
        });
        let nothing = Memory::default();
        let seen = view(facts, &nothing);
        if let Action::Reboot { condition, condition_reason, grace } = &proposal.action {
            self.memory.started(proposal, BTreeSet::new(), &seen);
            for candidate in &proposal.candidates {
                let order = Order::Reboot {
                    condition: condition.clone(),
                    condition_reason: condition_reason.clone(),
                    grace: *grace,
                };
                let mark = Mark { claim_uid: candidate.claim.uid.clone(), reason: proposal.reason, order };
                self.reboots.insert(candidate.claim.name.name.clone(), (mark, facts.now));
            }
            self.wake_commands(later(facts.now, REBOOT_SEEN_WITHIN));
        } else {
            let proposal = proposal.clone();
            let command = Command::start(approved, facts.snapshot, facts.overlays, facts.now);
            let replacements = command.replacements.iter().map(|replacement| replacement.name.clone()).collect();
            self.memory.started(&proposal, replacements, &seen);
            self.memory.running.push(command.running());
            self.commands.push(command);
            self.wake_commands(facts.now);
        }
        self.are_commands_touched = true;
    }

    fn withdraw(&mut self, withdrawn: Withdrawn, facts: Facts<'_>, done: &mut Done) {
        let Withdrawn { proposal, objection } = withdrawn;
        self.is_changed = true;
        let why = objection.claim.as_ref().map(|(claim, reason)| format!(": {claim} {reason}")).unwrap_or_default();
        let reason = if proposal.method.is_consolidation() { "ConsolidationRejected" } else { "DisruptionBlocked" };
        for candidate in &proposal.candidates {
            for (kind, target) in [(EventKind::NodeClaim, &candidate.claim), (EventKind::Node, &candidate.node)] {
                let event = Event {
                    about: EventTarget { kind, target: target.clone() },
                    severity: EventSeverity::Normal,
                    reason,
                    message: format!("not disrupted after all, {}{why}", objection.kind.label()),
                    dedupe: objection.kind.label().to_owned(),
                    interval: SignedDuration::from_mins(2),
                };
                if self.is_news(&event, facts.now) {
                    done.effects.push(publish(event));
                }
            }
        }
        let (command, method, nodes) = (proposal.id, proposal.method, proposal.candidates.len());
        done.told.push(DisruptionNote::Withdrawn { command, method, objection: objection.kind, nodes });
    }

    fn is_news(&mut self, event: &Event, now: Timestamp) -> bool {
        let key = (event.about.target.uid.clone(), event.reason, event.dedupe.clone());
        if self.said.get(&key).is_some_and(|until| now < *until) {
            return false;
        }
        self.said.insert(key, later(now, event.interval));
        true
    }

    /// The marks that the commands want now. Claims whose mark is another are looked at.
    fn write_marks(&mut self, done: &mut Done) {
        let mut marks = Marks::default();
        for command in &self.commands {
            command.mark(&mut marks);
        }
        for (name, (mark, _)) in &self.reboots {
            marks.insert(name.clone(), mark.clone());
        }
        let names: BTreeSet<&Arc<str>> = self.marks.names().chain(marks.names()).collect();
        let other = names.into_iter().filter(|name| self.marks.get(name) != marks.get(name));
        done.touched.extend(other.cloned());
        self.marks = marks;
    }
}

fn view<'a>(facts: Facts<'a>, memory: &'a Memory) -> View<'a> {
    View {
        snapshot: facts.snapshot,
        types: facts.types,
        labels: &facts.settings.labels,
        scheduling: facts.settings.scheduling,
        default_spread: &facts.settings.default_spread,
        virtual_pods: facts.virtual_pods,
        settings: &facts.settings.disruption,
        memory,
        now: facts.now,
    }
}

fn pools_of(command: &Command) -> impl Iterator<Item = Arc<str>> + use<> {
    let pools: BTreeSet<_> = command.candidates.iter().map(|going| going.pool.clone()).collect();
    pools.into_iter()
}

/// Whether decisions could come out otherwise. Heartbeats and what others write into a status are most of all changes.
fn is_relevant(change: &Change, before: &ClusterSnapshot) -> bool {
    match change {
        Change::Pod(name, Some(new)) => before.pod(name).is_none_or(|old| is_other_pod(old, new)),
        Change::Node(name, Some(new)) => before.node(&name.name).is_none_or(|old| is_other_node(old, new)),
        Change::MaintenanceWindow(name, new) => {
            new.as_ref().map(|new| &new.spec) != before.window(&name.name).map(|old| &old.spec)
        }
        Change::Pod(..)
        | Change::Node(..)
        | Change::NodeClaim(..)
        | Change::NodePool(..)
        | Change::NodeClass(..)
        | Change::DaemonSet(..)
        | Change::DisruptionBudget(..)
        | Change::PersistentVolumeClaim(..)
        | Change::PersistentVolume(..)
        | Change::StorageClass(..)
        | Change::CsiNode(..)
        | Change::Namespace(..)
        | Change::NodeOverlay(..)
        | Change::CapacityBuffer(..) => true,
        Change::VolumeAttachment(..) | Change::PodTemplate(..) | Change::Workload(..) | Change::Service(..) => false,
    }
}

fn is_other_pod(old: &Pod, new: &Pod) -> bool {
    let unversioned = |pod: &Pod| (pod.meta.uid.clone(), pod.meta.deleting, pod.node_name.clone(), pod.phase);
    unversioned(old) != unversioned(new)
        || old.unschedulable != new.unschedulable
        || old.meta.labels != new.meta.labels
        || old.meta.annotations != new.meta.annotations
        || old.do_not_disrupt != new.do_not_disrupt
        || old.started != new.started
}

fn is_other_node(old: &Node, new: &Node) -> bool {
    let health = |node: &Node| -> Vec<_> {
        node.conditions.iter().map(|it| (it.kind.clone(), it.status, it.reason.clone(), it.since)).collect()
    };
    old.meta.uid != new.meta.uid
        || old.meta.deleting != new.meta.deleting
        || old.meta.labels != new.meta.labels
        || old.meta.annotations != new.meta.annotations
        || old.taints != new.taints
        || old.unschedulable != new.unschedulable
        || old.allocatable != new.allocatable
        || health(old) != health(new)
}

fn publish(event: Event) -> Effect {
    Effect::Publish(Box::new(event))
}

fn later(start: Timestamp, wait: SignedDuration) -> Timestamp {
    start.checked_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerf_model::cloud::Interruption;
    use kerf_model::cluster::{ClaimStatus, NodeClaim, ObjectMeta};
    use kerf_model::duration::NillableDuration;
    use kerf_model::node_pool::{NodeClassRef, NodeSpec};
    use kerf_model::requirement::Requirements;
    use kerf_model::resources::ResourceList;

    #[test]
    fn a_nomination_lasts_twenty_seconds_and_is_extended_by_the_next() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let settings =
            Settings::new(kerf_lifecycle::Settings::for_classes(Vec::new()), kerf_model::label::LabelRules::core());
        let hosts = [Host::Node(Arc::from("a")), Host::Claim(Arc::from("b"))];
        let mut disruption = Disruption::default();
        let mut check = |nominated: &[Host], now, expected: &[(&str, i64)]| {
            disruption.nominate(nominated, &settings, at(now));
            let facts = Facts {
                snapshot: &ClusterSnapshot::default(),
                types: &BTreeMap::new(),
                overlays: &Overlays::default(),
                virtual_pods: &[],
                settings: &settings,
                hold: None,
                now: at(now),
            };
            disruption.refresh(facts, std::iter::empty());
            let expected = expected.iter().map(|(name, until)| (Arc::from(*name), at(*until)));
            assert_eq!(disruption.memory().nominations, expected.collect(), "at {now}");
        };
        check(&hosts, 0, &[("a", 20), ("b", 20)]);
        check(&hosts[..1], 15, &[("a", 35), ("b", 20)]);
        check(&[], 20, &[("a", 35)]);
        check(&[], 35, &[]);
    }

    #[test]
    fn a_nomination_lasts_for_two_batches_and_never_less_than_ten_seconds() {
        let mut settings =
            Settings::new(kerf_lifecycle::Settings::for_classes(Vec::new()), kerf_model::label::LabelRules::core());
        for (batch_max, seconds) in [(1, 10), (10, 20), (60, 120)] {
            settings.batch_max = SignedDuration::from_secs(batch_max);
            let mut disruption = Disruption::default();
            disruption.nominate(&[Host::Node(Arc::from("a"))], &settings, Timestamp::UNIX_EPOCH);
            let until = Timestamp::from_second(seconds).unwrap();
            assert_eq!(disruption.memory().nominations["a"], until, "batches of {batch_max} s");
        }
    }

    /// A label that announces an interruption is read every five seconds, and each time a whole round was made.
    #[test]
    fn what_the_cloud_announces_again_and_again_is_news_once() {
        let texts = kerf_model::cluster::Texts::new;
        let name = kerf_model::cluster::ObjectName::of_cluster("a");
        let claim = NodeClaim {
            meta: ObjectMeta {
                name: name.clone(),
                uid: Arc::from("a"),
                resource_version: Arc::from("1"),
                generation: 1,
                created: Timestamp::UNIX_EPOCH,
                deleting: None,
                labels: texts(),
                annotations: texts(),
                finalizers: Vec::new(),
                owners: Vec::new(),
            },
            node: NodeSpec {
                class: NodeClassRef { group: Arc::from("g"), kind: Arc::from("K"), name: Arc::from("default") },
                requirements: Requirements::new(),
                taints: Vec::new(),
                startup_taints: Vec::new(),
                expire_after: NillableDuration::Never,
                termination_grace_period: None,
            },
            requests: ResourceList::new(),
            status: ClaimStatus { provider_id: Some(Arc::from("i-1")), ..ClaimStatus::default() },
        };
        let mut snapshot = ClusterSnapshot::default();
        snapshot.apply(Change::NodeClaim(name.clone(), Some(Arc::new(claim))));
        let mut disruption = Disruption::default();
        let mut is_news = |input: Input| {
            disruption.is_changed = false;
            disruption.hear(&input, &snapshot);
            disruption.is_changed
        };
        let announced = |provider_id: &str, cause: InterruptionCause| {
            let notice = SignedDuration::from_mins(2);
            Input::Interrupted(Interruption { provider_id: Arc::from(provider_id), cause, notice })
        };
        assert!(is_news(announced("i-1", InterruptionCause::RebalanceRecommended)));
        assert!(!is_news(announced("i-1", InterruptionCause::RebalanceRecommended)));
        assert!(is_news(announced("i-1", InterruptionCause::SpotReclaimed)));
        assert!(!is_news(announced("i-1", InterruptionCause::SpotReclaimed)));
        assert!(!is_news(announced("i-2", InterruptionCause::SpotReclaimed)), "nothing here is on it");
        is_news(Input::Change(Change::NodeClaim(name, None)));
        assert!(is_news(announced("i-1", InterruptionCause::SpotReclaimed)), "another claim of that name");
        assert!(disruption.memory().rebalance.is_empty());
    }
}
