//! Every candidate is examined alone, then moves are put together that do not stand in each other's way.
//!
//! First nodes that can go without anything being launched, as many together as fit: removing one more of them never
//! has to be undone by the next round. Those wait whose pods would go to a node that is better replaced first. Then
//! several nodes replaced by fewer or cheaper ones. Then single nodes replaced by cheaper ones. Each step is simulated on
//! top of those before it.
//!
//! Of replacements a round makes only those that save about as much per pod that has to move as its best one. What goes
//! first changes what the others could save, and a pod that is moved twice was moved once for nothing.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_model::cluster::ObjectName;
use kerf_model::price::Price;

use super::{MAX_NODES, Moved, Simulated, Totals, candidates, find, price_of, propose, refused, simulate, weigh};
use crate::methods::drift;
use crate::parallel::{Effort, in_parallel};
use crate::plan::{Plan, Tally};
use crate::subject::Subject;
use crate::{Action, KeepReason, Method, Reason};

/// After so many nodes in a row that do not fit a set any more, the set is full.
const MISSES: usize = 4;
/// How many moves of several nodes one round looks for. Each takes the best of some prefixes; more come next round.
const JOINT_MOVES: usize = 4;
/// Replacing more nodes than this together is as good in several moves, and takes longer to find.
const MAX_REPLACED: usize = 32;

/// What a replacement must save per pod, in percent of the best of the round. Measured where clusters of 50 to 200
/// nodes settle: with less there are more evictions, and the cost at the end is about the same.
const SHARE_OF_BEST: i128 = 95;

/// What a move saves for the pods that it moves. A move without pods counts as one with one.
#[derive(Debug, Clone, Copy)]
struct Rate {
    micros: i128,
    pods: i128,
}

/// A candidate with what it would come to alone.
struct Examined<'c, 'a> {
    at: usize,
    subject: &'c Subject<'a>,
    alone: Result<Moved, KeepReason>,
}

/// What drift is to have of the round before the rest of it is shared out.
#[derive(Default)]
struct LeftToDrift<'a> {
    budget: Tally<'a>,
    /// Those that go alone if they go: drift asks for less than consolidation, and waits for nothing.
    subjects: BTreeSet<usize>,
    /// Their nodes, onto which nothing is moved meanwhile.
    hosts: BTreeSet<Arc<str>>,
}

/// `reserve` says how many nodes of a pool are left to drift. Says which nodes are to be looked at again when drift has
/// chosen.
pub(crate) fn run(plan: &mut Plan<'_, '_>, reserve: &BTreeMap<Arc<str>, u32>) -> BTreeSet<usize> {
    let eligible = candidates(plan);
    plan.count_eligible(Method::SingleNode, eligible.len());
    plan.count_eligible(Method::MultiNode, eligible.len());
    let mut left = LeftToDrift { subjects: drift::choosable(plan), ..LeftToDrift::default() };
    let nodes = left.subjects.iter().filter_map(|at| plan.context.subjects[*at].node);
    left.hosts = nodes.map(|node| Arc::clone(node.name())).collect();
    for (pool, nodes) in reserve {
        left.budget.leave_to_drift(pool, *nodes);
    }
    search(plan, eligible, &left)
}

/// What was left to drift and is not used goes to the others: a node that drift can do nothing about must not hold them
/// up for ever.
pub(crate) fn rest(plan: &mut Plan<'_, '_>, reserve: &BTreeMap<Arc<str>, u32>, deferred: &BTreeSet<usize>) {
    let reopened = plan.reopen(Reason::Underutilized, |pool| reserve.contains_key(pool));
    if reopened.is_empty() && deferred.is_empty() {
        return;
    }
    let mut eligible = candidates(plan);
    eligible.retain(|(at, _)| reopened.contains(at) || deferred.contains(at));
    search(plan, eligible, &LeftToDrift::default());
}

fn search<'c, 'a>(
    plan: &mut Plan<'c, 'a>,
    eligible: Vec<(usize, &'c Subject<'a>)>,
    drift: &LeftToDrift<'a>,
) -> BTreeSet<usize> {
    let mut within = Vec::new();
    for (at, subject) in eligible {
        match plan.admits(&drift.budget, subject, Reason::Underutilized) {
            Ok(()) => within.push((at, subject)),
            Err(reason) => plan.keep(at, reason),
        }
    }
    let totals = Totals::of(plan.context);
    let alone = in_parallel(&within, Effort::WhatIf, |(_, subject)| find(plan, &totals, &[*subject]));
    let examined: Vec<Examined<'_, '_>> =
        within.into_iter().zip(alone).map(|((at, subject), alone)| Examined { at, subject, alone }).collect();
    delete_together(plan, &totals, &examined, drift);
    let best = replace_together(plan, &totals, &examined, drift);
    replace_alone(plan, &totals, &examined, (drift, best));
    let mut deferred = BTreeSet::new();
    for one in examined {
        if plan.is_open(one.at) {
            if one.is_left_to(drift) {
                deferred.insert(one.at);
                continue;
            }
            let still = plan.admits(&drift.budget, one.subject, Reason::Underutilized);
            let reason = one.alone.err().or(still.err()).unwrap_or(KeepReason::NextRound);
            plan.keep(one.at, reason);
        }
    }
    deferred
}

impl<'a> LeftToDrift<'a> {
    fn is_taken_by(&self, moved: &Moved) -> bool {
        moved.outcome.lands_on.iter().any(|landing| self.hosts.contains(landing.host.name()))
    }
}

impl<'a> Examined<'_, 'a> {
    /// Whether it goes as drifted if it goes alone, or would be moved onto a node that does.
    fn is_left_to(&self, drift: &LeftToDrift<'a>) -> bool {
        drift.subjects.contains(&self.at) || self.alone.as_ref().is_ok_and(|moved| drift.is_taken_by(moved))
    }

    /// Whether it can be replaced neither alone nor with others: all that it goes with would stay because of it.
    fn is_out_of_question(&self) -> bool {
        let Err(reason) = &self.alone else { return false };
        matches!(
            reason,
            KeepReason::PodsHaveNoPlace { .. }
                | KeepReason::DestinationNotReady { .. }
                | KeepReason::UnknownPrice
                | KeepReason::RecentlyMoved { .. }
                | KeepReason::BackedOff { .. }
        )
    }
}

fn is_delete(one: &&Examined<'_, '_>) -> bool {
    one.alone.as_ref().is_ok_and(|moved| matches!(moved.action, Action::Delete))
}

/// Sets of nodes that can all go with nothing launched.
fn delete_together<'a>(
    plan: &mut Plan<'_, 'a>,
    totals: &Totals,
    examined: &[Examined<'_, 'a>],
    drift: &LeftToDrift<'a>,
) {
    let replaced = replaced(examined);
    let mut open: Vec<&Examined<'_, 'a>> =
        examined.iter().filter(is_delete).filter(|one| !one.is_left_to(drift) && !is_outdone(one, &replaced)).collect();
    let mut step = MAX_NODES;
    while let Some((set, moved)) = grow(plan, totals, &open, (drift, step)) {
        // The room only gets less: what did not fit a set will hardly fit the next.
        step = set.len() * 2;
        propose(plan, set, moved);
        open.retain(|one| plan.is_open(one.at));
    }
}

/// What replacing each node alone comes to, by the node's name.
fn replaced<'e>(examined: &'e [Examined<'_, '_>]) -> BTreeMap<&'e str, &'e Moved> {
    let node = |one: &'e Examined<'_, '_>| Some(one.subject.node?.name().as_ref());
    let moves = examined.iter().filter_map(|one| Some((node(one)?, one.alone.as_ref().ok()?)));
    moves.filter(|(_, moved)| is_replace(moved)).collect()
}

/// Whether the node's pods would go to one that is itself replaced for at least as much, with no more evictions. They
/// would move once more then, and fill what was nearly free to be replaced.
fn is_outdone(one: &Examined<'_, '_>, replaced: &BTreeMap<&str, &Moved>) -> bool {
    let Ok(moved) = &one.alone else { return false };
    let hosts = moved.outcome.lands_on.iter().filter_map(|landing| replaced.get(landing.host.name().as_ref()));
    hosts.into_iter().any(|other| other.savings >= moved.savings && other.pods() <= moved.pods())
}

/// Adds nodes as long as all of them together can go, in steps that double while it works and halve where it does not.
fn grow<'c, 'a>(
    plan: &Plan<'_, 'a>,
    totals: &Totals,
    open: &[&Examined<'c, 'a>],
    (drift, step): (&LeftToDrift<'a>, usize),
) -> Option<(Vec<&'c Subject<'a>>, Moved)> {
    let mut set: Vec<&Subject<'a>> = Vec::new();
    let mut best: Option<Moved> = None;
    let mut tally = drift.budget.clone();
    let (mut next, mut step, mut misses) = (0, step.min(open.len()).min(MAX_NODES), 0);
    while next < open.len() && set.len() < MAX_NODES && misses < MISSES {
        let mut trial = set.clone();
        let mut spent = tally.clone();
        let end = (next + step).min(open.len());
        for one in &open[next..end] {
            if trial.len() < MAX_NODES && plan.admits(&spent, one.subject, Reason::Underutilized).is_ok() {
                spent.add(plan, one.subject);
                trial.push(one.subject);
            }
        }
        if trial.len() == set.len() {
            next = end;
            continue;
        }
        // Most sets that are too large are found out without planning what to launch for them.
        let moving: Vec<_> = trial.iter().flat_map(|subject| plan.context.moving(subject)).collect();
        let may_fit = trial.len() == 1 || plan.simulator.may_fit(&trial, &moving);
        let found = may_fit
            .then(|| find(plan, totals, &trial).ok())
            .flatten()
            .filter(|moved| matches!(moved.action, Action::Delete) && !drift.is_taken_by(moved));
        match found {
            Some(moved) => {
                (set, best, tally) = (trial, Some(moved), spent);
                (next, step) = (end, step * 2);
            }
            None if step == 1 => {
                next += 1;
                misses += 1;
            }
            None => step /= 2,
        }
    }
    best.map(|moved| (set, moved))
}

/// Several nodes that are cheaper as others: the best that is in some prefix of all that are left, and of those of each
/// pool. Says what the best replacement of the round saves, alone or with others.
///
/// With P pools that is at most `JOINT_MOVES` times 5·(P + 1) prefixes, each one what-if of at most `MAX_REPLACED` nodes and
/// as many again for its parts.
fn replace_together<'a>(
    plan: &mut Plan<'_, 'a>,
    totals: &Totals,
    examined: &[Examined<'_, 'a>],
    drift: &LeftToDrift<'a>,
) -> Option<Rate> {
    let mut best = best_alone(plan, examined);
    for _ in 0..JOINT_MOVES {
        let may_join = |one: &&Examined<'_, 'a>| plan.is_open(one.at) && !one.is_out_of_question();
        let open: Vec<&Examined<'_, 'a>> = examined.iter().filter(may_join).collect();
        let mut lists: BTreeMap<Option<&Arc<str>>, Vec<&Examined<'_, 'a>>> = BTreeMap::new();
        for one in &open {
            lists.entry(one.subject.pool_name.as_ref()).or_default().push(one);
        }
        if lists.len() > 1 {
            lists.insert(None, open);
        }
        let prefixes: Vec<Vec<&Examined<'_, 'a>>> =
            lists.values().flat_map(|list| prefixes(plan, list, &drift.budget)).collect();
        let found = in_parallel(&prefixes, Effort::WhatIf, |prefix| joint_moves(plan, totals, prefix));
        let mut moves = Vec::new();
        for (set, found) in found.into_iter().flatten() {
            match found {
                Ok(moved) => moves.push((set, moved)),
                Err(Some(reason)) => plan.refuse_together(refused(&subjects_of(&set), &reason)),
                Err(None) => {}
            }
        }
        let worth_it = moves.into_iter().filter(|(_, moved)| is_worth_it(moved, best) && !drift.is_taken_by(moved));
        // Of equals the first, which is the smaller.
        let chosen = worth_it.reduce(|chosen, other| match Rate::of(&other.1).cmp(&Rate::of(&chosen.1)) {
            Ordering::Greater => other,
            Ordering::Less | Ordering::Equal => chosen,
        });
        let Some((set, moved)) = chosen else { break };
        best = best.max(is_replace(&moved).then(|| Rate::of(&moved)));
        propose(plan, subjects_of(&set), moved);
    }
    best
}

/// Of 2, 4, 8, … nodes, as far as budgets allow.
fn prefixes<'e, 'c, 'a>(
    plan: &Plan<'_, 'a>,
    list: &[&'e Examined<'c, 'a>],
    kept_back: &Tally<'a>,
) -> Vec<Vec<&'e Examined<'c, 'a>>> {
    let mut tally = kept_back.clone();
    let mut within: Vec<&'e Examined<'c, 'a>> = Vec::new();
    for one in list {
        if within.len() < MAX_REPLACED && plan.admits(&tally, one.subject, Reason::Underutilized).is_ok() {
            tally.add(plan, one.subject);
            within.push(one);
        }
    }
    let lengths = std::iter::successors(Some(2_usize), |length| Some(length * 2));
    let mut prefixes: Vec<Vec<&'e Examined<'c, 'a>>> =
        lengths.take_while(|length| *length < within.len()).map(|length| within[..length].to_vec()).collect();
    if within.len() > 1 {
        prefixes.push(within);
    }
    prefixes
}

/// Nodes of a ranking that would go together, and what that comes to. The reason is that of a move that cannot be made.
type Joint<'e, 'c, 'a> = (Vec<&'e Examined<'c, 'a>>, Result<Moved, Option<KeepReason>>);

/// The moves that are in a prefix: nodes whose pods would share new nodes go together. One that shares none with the
/// others adds nothing but its evictions, and what is wrong with it alone is no reason against them: where pods are tied to
/// zones, what ranks side by side is in several.
fn joint_moves<'e, 'c, 'a>(
    plan: &Plan<'_, 'a>,
    totals: &Totals,
    prefix: &[&'e Examined<'c, 'a>],
) -> Vec<Joint<'e, 'c, 'a>> {
    let Ok(simulated) = simulate(plan, &subjects_of(prefix)) else { return Vec::new() };
    let mut sets = sharing(&simulated);
    sets.retain(|set| set.len() > 1);
    if let [all] = &sets[..]
        && all.len() == prefix.len()
    {
        return vec![(prefix.to_vec(), worth_more_than_alone(plan, totals, prefix, simulated))];
    }
    let nodes = |set: Vec<usize>| set.into_iter().map(|at| prefix[at]).collect::<Vec<_>>();
    let part = |set: Vec<&'e Examined<'c, 'a>>| {
        let simulated = simulate(plan, &subjects_of(&set)).ok()?;
        let moved = worth_more_than_alone(plan, totals, &set, simulated);
        Some((set, moved))
    };
    sets.into_iter().map(nodes).filter_map(part).collect()
}

/// Which of the nodes have pods on the same new nodes, directly or by way of others.
fn sharing(simulated: &Simulated) -> Vec<Vec<usize>> {
    let from: BTreeMap<&ObjectName, usize> = simulated
        .moving
        .iter()
        .enumerate()
        .flat_map(|(at, pods)| pods.iter().map(move |pod| (&pod.meta.name, at)))
        .collect();
    let mut sets: Vec<BTreeSet<usize>> = (0..simulated.moving.len()).map(|at| BTreeSet::from([at])).collect();
    for claim in &simulated.outcome.new_claims {
        let nodes: BTreeSet<usize> = claim.pods.iter().filter_map(|pod| from.get(&pod.meta.name)).copied().collect();
        let (shared, mut others): (Vec<_>, Vec<_>) = sets.into_iter().partition(|set| !set.is_disjoint(&nodes));
        others.push(shared.into_iter().flatten().collect());
        sets = others;
    }
    sets.sort();
    sets.into_iter().map(|set| set.into_iter().collect()).collect()
}

/// The move of all of them, if it saves more than the moves of each.
fn worth_more_than_alone<'a>(
    plan: &Plan<'_, 'a>,
    totals: &Totals,
    set: &[&Examined<'_, 'a>],
    simulated: Simulated,
) -> Result<Moved, Option<KeepReason>> {
    let subjects = subjects_of(set);
    price_of(&subjects).ok_or(None)?;
    let moved = weigh(plan, totals, &subjects, simulated).map_err(Some)?;
    let mut savings = set.iter().filter_map(|one| one.alone.as_ref().ok()?.savings);
    let alone = savings.try_fold(Price::ZERO, Price::checked_add).ok_or(None)?;
    if moved.savings.is_some_and(|savings| savings > alone) { Ok(moved) } else { Err(None) }
}

fn subjects_of<'c, 'a>(set: &[&Examined<'c, 'a>]) -> Vec<&'c Subject<'a>> {
    set.iter().map(|one| one.subject).collect()
}

fn replace_alone<'a>(
    plan: &mut Plan<'_, 'a>,
    totals: &Totals,
    examined: &[Examined<'_, 'a>],
    (drift, best): (&LeftToDrift<'a>, Option<Rate>),
) {
    for one in examined.iter().filter(|one| one.alone.as_ref().is_ok_and(|moved| is_worth_it(moved, best))) {
        if one.is_left_to(drift)
            || !plan.is_open(one.at)
            || plan.admits(&drift.budget, one.subject, Reason::Underutilized).is_err()
        {
            continue;
        }
        // What others of this round have taken may be what it counted on.
        if let Ok(moved) = find(plan, totals, &[one.subject])
            && !drift.is_taken_by(&moved)
        {
            propose(plan, vec![one.subject], moved);
        }
    }
}

/// Of the replacements of single nodes that are left.
fn best_alone(plan: &Plan<'_, '_>, examined: &[Examined<'_, '_>]) -> Option<Rate> {
    let open = examined.iter().filter(|one| plan.is_open(one.at));
    let moves = open.filter_map(|one| one.alone.as_ref().ok()).filter(|alone| is_replace(alone));
    moves.map(Rate::of).max()
}

/// Whether a move is good enough for this round. Deletions always are: nothing is launched for them.
fn is_worth_it(moved: &Moved, best: Option<Rate>) -> bool {
    !is_replace(moved) || best.is_none_or(|best| Rate::of(moved).is_share_of(best))
}

fn is_replace(moved: &Moved) -> bool {
    matches!(moved.action, Action::Replace(_))
}

impl Rate {
    fn of(moved: &Moved) -> Self {
        Self { micros: moved.savings.map_or(0, Price::micros).into(), pods: moved.pods().max(1) as i128 }
    }

    fn is_share_of(self, best: Self) -> bool {
        self.micros * best.pods * 100 >= best.micros * self.pods * SHARE_OF_BEST
    }
}

impl Ord for Rate {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.micros * other.pods).cmp(&(other.micros * self.pods))
    }
}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Rate {}
