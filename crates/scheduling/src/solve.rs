//! The order of attempts.
//!
//! Pods go one by one, the largest first. Each is tried with all its preferences on hosts that exist, then on claims
//! opened for others, then on a new claim of the first pool that can; then again with one preference less. A claim keeps
//! every instance type that does for all its pods, and the cheapest is launched.
//!
//! Hosts and claims only get fuller and narrower, so a "no" for one pod holds for all pods alike and is not asked again.
//! Rules about other pods are the exception: placing one pod may make room for another, so those who failed are tried
//! again as long as somebody else succeeds.

mod admit;
mod finish;
mod improve;
mod on_claim;
mod on_host;
mod open;
mod repack;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;
use std::sync::Arc;

use kerf_model::cluster::{HostPort, Pod};
use kerf_model::resources::ResourceList;
use kerf_model::snapshot::ClusterSnapshot;

use crate::amounts::Amounts;
use crate::bits::{Bits, Layered};
use crate::counts::{Counts, Uncommitted};
use crate::departure::Departed;
use crate::prepared::{Base, for_question};
use crate::problem::{Aim, Policy, Problem, Question, ReservedMode, Supply};
use crate::refusal::{Overall, Refusal, Unplaced};
use crate::reservation::{ReservationId, Reservations};
use crate::schedule::Schedule;
use crate::sets::{SetId, Sets};
use crate::shape::{Kind, Level, Shape};
use crate::template::Selection;
use crate::volumes::Attached;

/// Finds a place for every pod, or the reason why there is none.
pub fn solve(cluster: &ClusterSnapshot, problem: &Problem<'_>) -> Schedule {
    let supply = Supply { types: &problem.types, rules: problem.rules, options: problem.options };
    let (pods, excluded) = (problem.pods.clone(), problem.excluded.clone());
    for_question(cluster, supply, &[], &Question { pods, excluded, ..Question::default() })
}

/// Answers one question; `closed` are hosts that take no pods that only move.
pub(crate) fn answer(base: &Base<'_>, departed: &Departed, question: &Question, closed: &Bits) -> Schedule {
    let mut solver = Solver::new(base, departed, question, closed);
    let queue = solver.admit();
    solver.run(queue);
    if base.supply.options.policy == Policy::Best && question.aim != Aim::Fit {
        solver.improve();
    }
    solver.finish()
}

/// A pod in the queue, and then where it is placed. The pod itself is seldom looked at: many of them are more than a cache
/// holds.
#[derive(Clone, Copy)]
struct Queued<'b> {
    pod: &'b Arc<Pod>,
    shape: usize,
    /// What it attaches, if anything: an index into [`Solver::attached`].
    attached: Option<usize>,
}

struct Solver<'b, 'a> {
    base: &'b Base<'a>,
    departed: &'b Departed,
    question: &'b Question,
    closed: &'b Bits,
    excluded: Bits,
    sets: Sets<'b>,
    kinds: Vec<HeldKind<'b>>,
    requests: Vec<Cow<'b, Amounts>>,
    /// The requests as they were read.
    lists: Vec<&'b ResourceList>,
    shapes: Vec<Shape>,
    /// By shape: what it is among those that the cluster was compiled with.
    known: Vec<Option<u32>>,
    attached: Vec<Attached>,
    /// By shape and level.
    memos: Vec<Vec<Memo>>,
    /// By kind and level.
    kind_memos: Vec<Vec<KindMemo>>,
    /// By template and set.
    selections: Vec<Vec<Option<Box<Selection>>>>,
    slots: Reservations,
    /// What is left of the slots.
    reservations: Reservations,
    /// What each pool's limits leave.
    left: Vec<Amounts>,
    /// By template and step: how many claims have given up types for its limits.
    tightened: Vec<[usize; open::TIGHTER.len()]>,
    /// What was placed on hosts, by host.
    on_hosts: BTreeMap<usize, OnHostState>,
    /// Those hosts.
    touched: Bits,
    claims: Vec<OpenClaim<'b>>,
    /// Open claims by the number of their pods: pods are levelled over them.
    by_pods: BTreeMap<usize, Layered>,
    counts: Counts<'b>,
    /// Placements made so far.
    placed: u64,
    unplaced: Vec<(Arc<Pod>, Arc<Unplaced>)>,
}

/// What is known about a shape at one level of its preferences, and will not change.
#[derive(Default)]
struct Memo {
    /// Hosts that may have room still, 64 to a word, as far as was looked.
    open_hosts: Vec<u64>,
    /// The words before this one are empty.
    hosts_from: usize,
    /// Claims that are too full.
    claims: Layered,
    /// By term and template: what a new claim for one pod would be.
    fresh: BTreeMap<(usize, usize), Result<Arc<Fresh>, Refusal>>,
    /// The last failure, and after how many placements.
    failed: Option<(u64, Arc<Unplaced>)>,
}

/// What is known about a kind at one level, whatever its request.
#[derive(Default)]
struct KindMemo {
    /// Claims that will never do.
    claims: Layered,
    /// By class of hosts: the terms that hold there.
    classes: Vec<Option<Vec<usize>>>,
    /// By template: whether its taints are tolerated.
    tolerated: Vec<Option<bool>>,
}

/// What a new claim would be for one pod.
struct Fresh {
    set: SetId,
    types: Bits,
}

/// A kind, compiled with the cluster or for this question.
enum HeldKind<'b> {
    Known(&'b Kind),
    Own(Box<Kind>),
}

impl Deref for HeldKind<'_> {
    type Target = Kind;

    fn deref(&self) -> &Kind {
        match self {
            Self::Known(kind) => kind,
            Self::Own(kind) => kind,
        }
    }
}

/// What a solve has put on a host, and what that leaves.
struct OnHostState {
    room: Vec<i64>,
    pods: Vec<Arc<Pod>>,
    ports: Vec<HostPort>,
    /// With what was attached before; looked up when the first volume comes.
    attached: Option<Attached>,
}

/// A node to be launched, with room left.
struct OpenClaim<'b> {
    template: usize,
    set: SetId,
    /// Types that do for all its pods. Never empty.
    types: Bits,
    requests: Amounts,
    ports: Vec<HostPort>,
    attached: Attached,
    pods: Vec<Queued<'b>>,
    uncommitted: Uncommitted,
    /// The reservation that it will be launched from.
    held: Option<ReservationId>,
    /// What it takes of its pool's limits: the most that any of its types has.
    limit_share: Option<Amounts>,
    min_values_relaxed: bool,
}

/// Proof that a pod can be added to a claim, and what the claim is then.
struct ClaimFit {
    set: SetId,
    types: Bits,
    held: Option<ReservationId>,
}

/// Why a pod did not go somewhere.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Miss {
    /// And no pod of its kind ever will.
    Never,
    /// And no pod of its shape ever will.
    Full,
    /// Until other pods are placed, or because of what only this pod has.
    ForNow,
}

/// A pod's shape at one of its levels.
#[derive(Clone, Copy)]
struct Attempt {
    shape: usize,
    level: usize,
    /// What the pod attaches.
    attached: Option<usize>,
}

impl<'b, 'a> Solver<'b, 'a> {
    fn new(base: &'b Base<'a>, departed: &'b Departed, question: &'b Question, closed: &'b Bits) -> Self {
        let named = question.excluded.iter().filter_map(|name| base.hosts.find(name));
        let gone: Vec<usize> = named.filter(|host| !departed.hosts.contains(*host)).collect();
        let mut left = departed.left(base).to_vec();
        for (template, capacity) in gone.iter().filter_map(|host| base.hosts.all[*host].usage.as_ref()) {
            left[*template].give_back(capacity);
        }
        let mut counts = Counts::new(&base.topology, base.supply.rules, &departed.counts);
        counts.leave_out(&gone);
        let slots = departed.slots.as_ref().unwrap_or(&base.reservations).with_credits(&question.credits);
        let mut excluded = Bits::of(base.hosts.len(), gone);
        excluded.add_all(&departed.hosts);
        Self {
            base,
            departed,
            question,
            closed,
            excluded,
            sets: Sets::above(&base.sets),
            kinds: Vec::new(),
            requests: Vec::new(),
            lists: Vec::new(),
            shapes: Vec::new(),
            known: Vec::new(),
            attached: Vec::new(),
            memos: Vec::new(),
            kind_memos: Vec::new(),
            selections: base.templates.iter().map(|_| Vec::new()).collect(),
            reservations: slots.clone(),
            slots,
            left,
            tightened: base.templates.iter().map(|_| [0; open::TIGHTER.len()]).collect(),
            on_hosts: BTreeMap::new(),
            touched: Bits::empty(),
            claims: Vec::new(),
            by_pods: BTreeMap::new(),
            counts,
            placed: 0,
            unplaced: Vec::new(),
        }
    }

    /// Until every pod has a place, or has been tried since the last one got one.
    fn run(&mut self, mut queue: VecDeque<Queued<'b>>) {
        let mut waiting = VecDeque::new();
        loop {
            let before = self.placed;
            while let Some(queued) = queue.pop_front() {
                match self.place(queued) {
                    Ok(()) => {}
                    Err(why) if self.kind_of(queued.shape).may_wait_for_others() => waiting.push_back((queued, why)),
                    Err(why) => {
                        let is_over = self.needs_host(queued.pod);
                        self.unplaced.push((Arc::clone(queued.pod), why));
                        if is_over {
                            return;
                        }
                    }
                }
            }
            if self.placed == before || waiting.is_empty() {
                break;
            }
            queue.extend(waiting.drain(..).map(|(queued, _)| queued));
        }
        self.unplaced.extend(waiting.into_iter().map(|(queued, why)| (Arc::clone(queued.pod), why)));
    }

    fn place(&mut self, queued: Queued<'b>) -> Result<(), Arc<Unplaced>> {
        let shape = queued.shape;
        let waits = self.kind_of(shape).may_wait_for_others() || queued.attached.is_some();
        let last = self.kind_of(shape).levels.len().saturating_sub(1);
        if let Some((when, why)) = &self.memos[shape][last].failed
            && (!waits || (*when == self.placed && queued.attached.is_none()))
        {
            return Err(Arc::clone(why));
        }
        let needs_host = self.needs_host(queued.pod);
        let mut pools = BTreeMap::new();
        for level in 0..=last {
            let attempt = Attempt { shape, level, attached: queued.attached };
            if self.place_on_host(queued, attempt) {
                return Ok(());
            }
            if needs_host {
                continue;
            }
            if self.place_on_claim(queued, attempt) {
                return Ok(());
            }
            match self.open_claim(queued, attempt) {
                Ok(()) => return Ok(()),
                Err(refusals) => pools = refusals,
            }
            if self.is_deferred(&pools) {
                break;
            }
        }
        let overall = match (self.base.templates.is_empty(), self.is_deferred(&pools)) {
            (true, _) => Overall::NoPools,
            (false, true) => Overall::Deferred,
            (false, false) => Overall::NoPlace,
        };
        let why = Arc::new(Unplaced { overall, pools });
        if needs_host {
            // Others of its shape may still get a claim.
            return Err(why);
        }
        self.memos[shape][last].failed = Some((self.placed, Arc::clone(&why)));
        Err(why)
    }

    /// Whether the pod may go to hosts that are there and nowhere else.
    fn needs_host(&self, pod: &Pod) -> bool {
        self.question.aim == Aim::Fit && self.only_moves(pod)
    }

    fn is_deferred(&self, pools: &BTreeMap<Arc<str>, Refusal>) -> bool {
        self.question.reserved == ReservedMode::Strict
            && pools.values().any(|refusal| *refusal == Refusal::ReservationsFull)
    }

    fn kind_of(&self, shape: usize) -> &Kind {
        &self.kinds[self.shapes[shape].kind]
    }

    fn request_of(&self, shape: usize) -> &Amounts {
        &self.requests[self.shapes[shape].request]
    }

    fn level(&self, attempt: Attempt) -> &Level {
        &self.kind_of(attempt.shape).levels[attempt.level]
    }

    /// What of a template does for a set. O(1) once it is known.
    fn select(&mut self, template: usize, set: SetId) -> &Selection {
        let known = &mut self.selections[template];
        if known.len() <= set.index() {
            known.resize_with(self.sets.len(), || None);
        }
        known[set.index()].get_or_insert_with(|| {
            let slots = &self.slots;
            Box::new(self.base.templates[template].select(self.sets.get(set), |id| slots.left(id)))
        })
    }
}

fn conflict(taken: &[HostPort], asked: &[HostPort]) -> bool {
    asked.iter().any(|port| taken.iter().any(|own| own.conflicts_with(port)))
}
