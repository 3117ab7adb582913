//! What a round has chosen so far, and what that leaves to the rest of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::budget::Allowance;
use kerf_model::cluster::{ObjectName, Pod, condition_kind as kind};
use kerf_model::effect::Event;
use kerf_model::maintenance;

use crate::budgets::Budgets;
use crate::context::Context;
use crate::gates::{self, Class};
use crate::limits::Limits;
use crate::pdb::PdbUse;
use crate::proposal::OfProposal;
use crate::subject::Subject;
use crate::what_if::{Outcome, Simulator};
use crate::{KeepReason, Method, Policy, Proposal, Reason, Round, ScoredMove, Verdict, Work};

pub(crate) struct Plan<'c, 'a> {
    pub(crate) context: &'c Context<'a>,
    pub(crate) budgets: Budgets,
    pub(crate) simulator: Simulator<'a>,
    pub(crate) limits: Limits,
    /// What each PodDisruptionBudget allows, and what of that is left.
    pdb_allowed: BTreeMap<&'a ObjectName, u32>,
    pdb_left: BTreeMap<&'a ObjectName, u32>,
    /// By subject. A verdict that is set is final.
    verdicts: Vec<Option<Verdict>>,
    /// By subject: why it stays, if it stays; the first method that had something to say.
    kept: Vec<Option<KeepReason>>,
    /// By subject: whether it stays although something else than its cost asks for it to go.
    wanted_gone: Vec<bool>,
    pub(crate) proposals: Vec<Proposal>,
    pub(crate) events: Vec<Event>,
    pub(crate) eligible: BTreeMap<Method, u32>,
    /// The last consolidation of several nodes that a Balanced pool has refused.
    pub(crate) refused_together: Vec<ScoredMove>,
    pub(crate) work: Work,
}

/// What nodes that are about to be proposed will take.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally<'a> {
    nodes: BTreeMap<Arc<str>, u32>,
    /// By pool: how many of those are left to drift. A drifted node that goes for another reason is one of them.
    for_drift: BTreeMap<Arc<str>, u32>,
    evictions: PdbUse<'a>,
}

impl<'a> Tally<'a> {
    pub(crate) fn add(&mut self, plan: &Plan<'_, 'a>, subject: &Subject<'a>) {
        if let Some(pool) = &subject.pool_name {
            match self.for_drift.get_mut(pool).filter(|left| **left > 0 && subject.is(kind::DRIFTED)) {
                Some(left) => *left -= 1,
                None => *self.nodes.entry(Arc::clone(pool)).or_default() += 1,
            }
        }
        for (pdb, count) in plan.context.pdb_use(subject) {
            *self.evictions.entry(pdb).or_default() += count;
        }
    }

    /// Leaves so many of the pool's nodes to drift.
    pub(crate) fn leave_to_drift(&mut self, pool: &Arc<str>, nodes: u32) {
        *self.nodes.entry(Arc::clone(pool)).or_default() += nodes;
        *self.for_drift.entry(Arc::clone(pool)).or_default() += nodes;
    }

    /// What one more node of the pool has to leave of its budget.
    fn kept_back(&self, pool: &str, subject: &Subject<'_>) -> u32 {
        let is_left_to_drift = subject.is(kind::DRIFTED) && self.for_drift.get(pool).is_some_and(|left| *left > 0);
        self.nodes.get(pool).copied().unwrap_or(0) - u32::from(is_left_to_drift)
    }
}

/// Nodes that are about to be proposed together: proof that they were checked against the plan.
pub(crate) struct Chosen<'s, 'a> {
    pub(crate) subjects: Vec<&'s Subject<'a>>,
    pub(crate) moving: Vec<Vec<Arc<Pod>>>,
    pub(crate) outcome: Outcome,
}

impl<'c, 'a> Plan<'c, 'a> {
    pub(crate) fn new(context: &'c Context<'a>) -> Self {
        let view = &context.view;
        let subjects = &context.subjects;
        let pdb_allowed = context.pdbs.allowed();
        let mut pdb_left = pdb_allowed.clone();
        let mut verdicts = Vec::with_capacity(subjects.len());
        for subject in subjects {
            let settled = gates::settled(subject, view);
            if matches!(settled, Some(Verdict::Go { .. } | Verdict::UnderWay { .. })) {
                // What is on its way needs its evictions too.
                spend(&mut pdb_left, &context.pdb_use(subject));
            }
            verdicts.push(settled);
        }
        Self {
            budgets: Budgets::of(view, subjects),
            simulator: Simulator::new(view, subjects, |subject| context.moving(subject)),
            limits: Limits::of(context),
            pdb_allowed,
            pdb_left,
            verdicts,
            kept: subjects.iter().map(|_| None).collect(),
            wanted_gone: vec![false; subjects.len()],
            proposals: Vec::new(),
            events: Vec::new(),
            eligible: BTreeMap::new(),
            refused_together: Vec::new(),
            work: Work::default(),
            context,
        }
    }

    /// Subjects that no method has taken, with their index.
    pub(crate) fn open(&self) -> impl Iterator<Item = (usize, &'c Subject<'a>)> {
        let subjects = self.context.subjects.iter().enumerate();
        subjects.filter(|(at, _)| self.verdicts[*at].is_none())
    }

    pub(crate) fn is_open(&self, at: usize) -> bool {
        self.verdicts[at].is_none()
    }

    /// A method's reason why the node stays. The first one stands: methods are asked in the order of their weight.
    pub(crate) fn keep(&mut self, at: usize, reason: KeepReason) {
        self.kept[at].get_or_insert(reason);
    }

    /// The reason of a method that does not ask what the node costs: it stands before what was said to save money.
    pub(crate) fn keep_rather(&mut self, at: usize, reason: KeepReason) {
        self.kept[at] = Some(reason);
        self.wanted_gone[at] = true;
    }

    /// Forgets of nodes in such pools that there was no budget for the reason, if there is now. Which those are.
    pub(crate) fn reopen(&mut self, reason: Reason, is_of: impl Fn(&Arc<str>) -> bool) -> BTreeSet<usize> {
        let has_room = |pool: &Arc<str>| self.budgets.left(pool, reason) > Allowance::AtMost(0);
        let waits = |kept: &Option<KeepReason>| match kept {
            Some(KeepReason::BudgetSpent { pool, reason: spent, .. }) => {
                *spent == reason && is_of(pool) && has_room(pool)
            }
            Some(_) | None => false,
        };
        let waiting = self.kept.iter().enumerate().filter(|(at, kept)| self.is_open(*at) && waits(kept));
        let reopened: BTreeSet<usize> = waiting.map(|(at, _)| at).collect();
        for at in &reopened {
            self.kept[*at] = None;
        }
        reopened
    }

    /// By subject: whether [`keep_rather`](Self::keep_rather) had something to say.
    pub(crate) fn take_wanted_gone(&mut self) -> Vec<bool> {
        std::mem::take(&mut self.wanted_gone)
    }

    pub(crate) fn policy(&self) -> Policy {
        self.context.view.settings.policy
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.context.view.now
    }

    /// Whether a window lets the action start on the node.
    pub(crate) fn check_window(&self, subject: &Subject<'_>, action: maintenance::Action) -> Result<(), KeepReason> {
        self.context.windows.hold(action, subject.labels()).map_or(Ok(()), Err)
    }

    /// Whether budgets and evictions allow one more node, and nothing lands on it.
    pub(crate) fn check_one(&self, subject: &Subject<'a>, reason: Reason) -> Result<(), KeepReason> {
        self.admits(&Tally::default(), subject, reason)
    }

    /// The same, on top of nodes that are about to be proposed.
    pub(crate) fn admits(&self, tally: &Tally<'a>, subject: &Subject<'a>, reason: Reason) -> Result<(), KeepReason> {
        self.check_budget(tally, subject, reason)?;
        self.check_not_destination(subject)?;
        self.check_pdbs(tally, subject)
    }

    /// Whether the pool's budget has room for one more.
    pub(crate) fn check_budget(
        &self,
        tally: &Tally<'a>,
        subject: &Subject<'_>,
        reason: Reason,
    ) -> Result<(), KeepReason> {
        let Some(pool) = &subject.pool_name else { return Err(KeepReason::NoPool) };
        let kept_back = tally.kept_back(pool, subject);
        match self.budgets.left(pool, reason).minus(kept_back) > Allowance::AtMost(0) {
            true => Ok(()),
            false => Err(self.budgets.spent(pool, reason, kept_back)),
        }
    }

    /// Whether replacements of the pool's nodes for this reason did not fail a short while ago.
    pub(crate) fn check_back_off(&self, subject: &Subject<'_>, reason: Reason) -> Result<(), KeepReason> {
        let Some(pool) = &subject.pool_name else { return Err(KeepReason::NoPool) };
        match self.context.view.memory.backs_off_until(pool, reason, self.now()) {
            Some(until) => Err(KeepReason::BackedOff { pool: pool.clone(), reason, until }),
            None => Ok(()),
        }
    }

    /// Whether the evictions that the node asks for are still to be had. One node may ask for more than there are now:
    /// then it takes all of them, and drains as they come back.
    fn check_pdbs(&self, tally: &Tally<'a>, subject: &Subject<'a>) -> Result<(), KeepReason> {
        if self.policy() == Policy::Compatible {
            return Ok(());
        }
        for (pdb, count) in self.context.pdb_use(subject) {
            let needed = count.min(self.pdb_allowed.get(pdb).copied().unwrap_or(0));
            let left = self.pdb_left.get(pdb).copied().unwrap_or(0);
            if left.saturating_sub(tally.evictions.get(pdb).copied().unwrap_or(0)) < needed {
                return Err(KeepReason::PdbTaken { pdb: pdb.clone() });
            }
        }
        Ok(())
    }

    /// Remembers the refusal, if it is one.
    pub(crate) fn refuse_together(&mut self, refused: Vec<ScoredMove>) {
        if !refused.is_empty() {
            self.refused_together = refused;
        }
    }

    pub(crate) fn count_eligible(&mut self, method: Method, count: usize) {
        self.eligible.insert(method, u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Whether the node passes what stands before every graceful method; if not, that is why it stays.
    pub(crate) fn is_candidate(&mut self, at: usize) -> bool {
        match gates::first(&self.context.subjects[at], Class::Graceful, &self.context.view) {
            Ok(()) => true,
            Err(reason) => {
                self.keep(at, reason);
                false
            }
        }
    }

    /// Whether nothing that is proposed or held moves pods here.
    pub(crate) fn check_not_destination(&self, subject: &Subject<'_>) -> Result<(), KeepReason> {
        let Some(node) = subject.node else { return Ok(()) };
        if !self.simulator.is_taken(node.name()) {
            return Ok(());
        }
        let held = self.context.view.memory.held.iter().map(|held| &held.proposal);
        let lands = |proposal: &&Proposal| proposal.lands_on.iter().any(|lands| lands.host.name() == node.name());
        match self.proposals.iter().chain(held).find(lands) {
            Some(proposal) => Err(KeepReason::Destination { command: proposal.id.clone() }),
            None => Ok(()),
        }
    }

    /// Takes the nodes: budgets, evictions and room are spent, and their verdicts are given.
    pub(crate) fn propose(&mut self, chosen: Chosen<'_, 'a>, of: OfProposal) {
        let candidates = chosen.subjects.iter().zip(&chosen.moving);
        let candidates = candidates.filter_map(|(subject, moving)| subject.candidate(moving)).collect();
        let proposal = of.build(candidates, chosen.outcome.lands_on.clone(), &self.context.view);
        self.take(chosen, proposal);
    }

    /// The same for a proposal that was made before.
    pub(crate) fn take(&mut self, chosen: Chosen<'_, 'a>, proposal: Proposal) {
        let Chosen { subjects, moving, outcome } = chosen;
        for subject in &subjects {
            if let Some(pool) = &subject.pool_name
                && subject.counts_in_budget()
            {
                self.budgets.take(pool);
            }
            spend(&mut self.pdb_left, &self.context.pdb_use(subject));
        }
        self.simulator.commit(&subjects, moving.into_iter().flatten().collect(), &outcome);
        self.limits.commit(&subjects, proposal.replacements());
        let verdict = Verdict::Go { proposal: proposal.id.clone(), reason: proposal.reason, held_until: None };
        for subject in subjects {
            if let Some(at) = self.context.index_of(subject.name()) {
                self.verdicts[at] = Some(verdict.clone());
            }
        }
        self.proposals.push(proposal);
    }

    /// A reboot takes no room and moves no pods for good.
    pub(crate) fn propose_reboot(&mut self, subject: &Subject<'a>, of: OfProposal) {
        let chosen = Chosen { subjects: vec![subject], moving: vec![Vec::new()], outcome: Outcome::default() };
        self.propose(chosen, of);
    }

    /// Every node gets its verdict.
    pub(crate) fn finish(self) -> Round {
        let Self { context, budgets, simulator, verdicts, kept, proposals, events, eligible, mut work, .. } = self;
        work.what_ifs = simulator.asked();
        work.candidates =
            u32::try_from(verdicts.iter().filter(|verdict| verdict.is_none()).count()).unwrap_or(u32::MAX);
        let mut round = Round { proposals, events, eligible, work, ..Round::default() };
        let mut wake: Option<Timestamp> =
            [context.windows.next_transition, budgets.next_transition].into_iter().flatten().min();
        for ((subject, verdict), kept) in context.subjects.iter().zip(verdicts).zip(kept) {
            // Every method that is asked says something about every node.
            let verdict = verdict.or_else(|| kept.map(Verdict::Keep)).unwrap_or(Verdict::Keep(KeepReason::NotExamined));
            if let Verdict::Keep(reason) = &verdict {
                wake = [wake, reason.until().filter(|until| *until > context.view.now)].into_iter().flatten().min();
            }
            round.verdicts.insert(Arc::clone(subject.name()), verdict);
        }
        let held = context.view.memory.held.iter().map(|held| held.until);
        round.wake = wake.into_iter().chain(held).filter(|at| *at > context.view.now).min();
        round.budgets = budgets.into_uses();
        round
    }
}

fn spend<'a>(left: &mut BTreeMap<&'a ObjectName, u32>, uses: &PdbUse<'a>) {
    for (pdb, count) in uses {
        if let Some(left) = left.get_mut(pdb) {
            *left = left.saturating_sub(*count);
        }
    }
}
