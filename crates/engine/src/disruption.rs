//! Disruption: when the cluster is looked at, which proposals wait, and which commands run.
//!
//! A round (`kerf-disruption::decide`) is made when something has changed or its time has come, never more often than
//! every few seconds. Its proposals wait out their hold here while other work goes on; those that stand up to the second
//! look become [commands](crate::commands).

mod hearing;
mod late;
mod reboots;
mod remembered;
mod said;
mod under_way;
mod withdrawn;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_disruption::{
    Action, Approved, Held, Memory, Policy, Proposal, ProposalId, Round, Verdict, View, decide, validate_all,
};
use kerf_lifecycle::{Cause, Mark, Marks, Note, Order};
use kerf_model::cloud::InterruptionCause;
use kerf_model::cluster::{InstanceType, Pod};
use kerf_model::effect::{Effect, Event, Target};
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::time::later;
use kerf_scheduling::Host;

use crate::commands::{Command, Decision};
use crate::notes::DisruptionNote;
use crate::overlays::Overlays;
use crate::patience::Patience;
use crate::settings::Settings;
use late::Late;
use reboots::Reboots;
pub use remembered::remembered;
use said::Said;

/// Longer than a round takes on a large cluster, so that rounds do not crowd out everything else.
const ROUND_GAP: SignedDuration = SignedDuration::from_secs(5);
/// The reference looks again as soon as it has acted.
const ROUND_GAP_COMPATIBLE: SignedDuration = SignedDuration::from_secs(1);
/// While there is work, the cluster is looked at this often though nothing was heard.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(10);
/// The reference: twice the longest batch, and no less than this.
const LEAST_NOMINATION: SignedDuration = SignedDuration::from_secs(10);

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
    /// Pools whose roll-out has gone on.
    pub touched_pools: BTreeSet<Arc<str>>,
}

#[derive(Debug, Default)]
pub struct Disruption {
    memory: Memory,
    commands: Vec<Command>,
    /// Derived from the commands and the reboots asked for.
    marks: Marks,
    reboots: Reboots,
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
    late: Late,
    patience: Patience,
    /// Of rounds and commands.
    said: Said,
}

impl Disruption {
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
        done.effects.retain(|effect| !matches!(effect, Effect::Publish(event) if !self.said.is_news(event, facts.now)));
        done
    }

    /// What decisions look at besides the cluster.
    fn refresh(&mut self, facts: Facts<'_>, deleted: impl Iterator<Item = Arc<str>>) {
        let Facts { snapshot, now, .. } = facts;
        let memory = &mut self.memory;
        memory.nominations.retain(|_, until| now < *until);
        memory.marked = deleted.collect();
        memory.running = self.commands.iter().map(Command::running).collect();
        memory.reboots = remembered::reboots(snapshot);
        self.said.refresh(now);
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
        let was_patient = !self.patience.is_over();
        self.patience.pass(facts.now);
        if self.patience.is_over() {
            for claim in self.late.useless(facts.snapshot, &self.commands, facts.now) {
                let target = Target::from(&claim.meta);
                done.effects.push(Effect::DeleteClaim(target.clone()));
                done.notes.push(Note::GivenUp { claim: target, cause: Cause::ReplacementUnneeded });
            }
            if was_patient {
                // Commands that were taken up are asked now whether they may go on.
                self.wake_commands(facts.now);
            }
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
                Err(withdrawn) => {
                    self.is_changed = true;
                    done.effects.extend(withdrawn::told(&withdrawn));
                    let Proposal { id, method, candidates, .. } = withdrawn.proposal;
                    let (command, objection, nodes) = (id, withdrawn.objection.kind, candidates.len());
                    done.told.push(DisruptionNote::Withdrawn { command, method, objection, nodes });
                }
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
            nodes,
            replacements: proposal.replacements().len(),
        });
        let nothing = Memory::default();
        let seen = view(facts, &nothing);
        if let Action::Reboot { condition, condition_reason, grace } = &proposal.action {
            self.memory.started(proposal, &seen);
            for candidate in &proposal.candidates {
                let order = Order::Reboot {
                    condition: condition.clone(),
                    condition_reason: condition_reason.clone(),
                    grace: *grace,
                };
                let mark = Mark { claim_uid: candidate.claim.uid.clone(), reason: proposal.reason, order };
                self.reboots.ask(candidate.claim.name.name.clone(), mark, facts.now);
            }
            self.reboots.next_due().into_iter().for_each(|at| self.wake_commands(at));
        } else {
            let proposal = proposal.clone();
            let command = Command::start(approved, facts.snapshot, facts.overlays, facts.now);
            self.memory.started(&proposal, &seen);
            self.memory.running.push(command.running());
            self.commands.push(command);
            self.wake_commands(facts.now);
        }
        self.are_commands_touched = true;
    }

    /// The marks that the commands want now. Claims whose mark is another are looked at.
    fn write_marks(&mut self, done: &mut Done) {
        let mut marks = Marks::default();
        for command in &self.commands {
            command.mark(&mut marks);
        }
        self.reboots.mark(&mut marks);
        for (pool, rollout) in &self.memory.rollouts {
            marks.set_rollout(pool.clone(), Arc::from(rollout.to_string()));
        }
        let pools = marks.pools().filter(|name| self.marks.rollout(name) != marks.rollout(name));
        done.touched_pools.extend(pools.cloned());
        let names: BTreeSet<&Arc<str>> = self.marks.names().chain(marks.names()).collect();
        let other = names.into_iter().filter(|name| self.marks.get(name) != marks.get(name));
        done.touched.extend(other.cloned());
        self.marks = marks;
    }
}

/// What is asked of it, and told it.
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

    /// The first lists are in: commands of an earlier process are taken up before anything is looked at.
    pub fn synced(&mut self, snapshot: &ClusterSnapshot) {
        self.commands = Command::resume(snapshot);
        self.memory.rollouts = remembered(snapshot).rollouts;
        self.patience = Patience::from_start();
        self.are_commands_touched = true;
        self.is_changed = true;
        self.write_marks(&mut Done::default());
    }

    /// Something that decisions rest on has changed, and is no change of the cluster.
    pub fn touch(&mut self) {
        self.is_changed = true;
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
        let late = self.late.next_due();
        let patience = self.patience.next_due();
        let wanted = [changed, again, late, self.round.wake, patience].into_iter().flatten().min()?;
        Some(wanted.max(later(last, gap)))
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

fn publish(event: Event) -> Effect {
    Effect::Publish(Box::new(event))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
