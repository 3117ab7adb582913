//! Commands under way, and what is remembered of how they end.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_disruption::{Reason, overtaken};

use super::{Disruption, Done, Facts, view};
use crate::commands::{Command, Outcome, Phase, time_limit};
use crate::notes::DisruptionNote;

impl Disruption {
    /// Each as far as it goes now, if one of them waits for nothing else.
    pub(super) fn advance(&mut self, facts: Facts<'_>, done: &mut Done) {
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
        self.reboots.refresh(facts.snapshot, facts.now);
        if let Some(at) = self.reboots.next_due() {
            self.wake_commands(at);
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
            for claim in step.unmarked {
                self.memory.unmarked.add(claim, facts.now);
            }
            if let Some(outcome) = step.ended {
                self.ended(command, outcome, facts.now, done);
                return false;
            }
            // The first lists may not show yet what is to be asked.
            if step.is_in_doubt && self.patience.is_over() {
                let staying: Vec<_> = command.staying(facts.snapshot).map(|claim| claim.name().clone()).collect();
                command.heard(&overtaken(&staying, command.method, &view(facts, &self.memory)));
                continue;
            }
            if !step.is_moved {
                if let Some(at) = step.wake {
                    self.wake_commands(at);
                }
                return true;
            }
            if let Phase::Deleting { .. } = command.phase {
                let pools: Vec<_> = pools_of(command).collect();
                self.memory.succeeded(command.method, &pools);
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
                    let until = self.memory.backs_off_until(&pool, Reason::Drifted, now);
                    let seconds = until.map_or(0, |until| until.duration_since(now).as_secs());
                    done.told.push(DisruptionNote::BackedOff { pool, seconds });
                }
                let (method, reason, decision, missing) = (*method, *reason, *decision, command.missing());
                let command = id.clone();
                done.told.push(DisruptionNote::Failed { command, method, reason, decision, failure, missing });
            }
        }
    }

    pub(super) fn wake_commands(&mut self, at: Timestamp) {
        self.commands_wake = Some(self.commands_wake.map_or(at, |wake| wake.min(at)));
    }
}

fn pools_of(command: &Command) -> impl Iterator<Item = Arc<str>> + use<> {
    let pools: BTreeSet<_> = command.candidates.iter().map(|going| going.pool.clone()).collect();
    pools.into_iter()
}
