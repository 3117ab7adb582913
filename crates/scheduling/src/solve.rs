//! The order of attempts.
//!
//! Pods go one by one, the largest first. Each is tried with all its preferences on hosts that exist, then on claims
//! opened for others, then on a new claim of the first pool that can; then again with one preference less. A claim keeps
//! every instance type that does for all its pods, and the cheapest is launched.
//!
//! Hosts and claims only get fuller and narrower, so a "no" for one pod holds for all pods alike and is not asked again.
//! Rules about other pods are the exception: placing one pod may make room for another, so those who failed are tried
//! again as long as somebody else succeeds.

mod prepare;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use kerf_model::cluster::{HostPort, Pod};
use kerf_model::label::LabelRules;
use kerf_model::quantity::Quantity;
use kerf_model::requirement::{Requirements, UndefinedKeys};
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::taint::tolerates;

use crate::amounts::{Amounts, ResourceIndex};
use crate::claim::{ClaimFit, NotMade, OpenClaim, most_room, with_values_left};
use crate::existing::ExistingHost;
use crate::problem::{MinValuesPolicy, Options, Problem, ReservedMode};
use crate::refusal::{Overall, Refusal, Unplaced};
use crate::schedule::{OnHost, Schedule};
use crate::shape::{Level, Shape, Term};
use crate::template::Template;
use crate::topology::{Asking, Choices, GroupId, Target, Topology};

/// Finds a place for every pod, or the reason why there is none.
pub fn solve(cluster: &ClusterSnapshot, problem: &Problem<'_>) -> Schedule {
    let mut solver = Solver::prepare(cluster, problem);
    let queue = solver.admit();
    solver.run(queue);
    solver.finish()
}

/// A pod in the queue, with the index of its shape.
type Queued = (Arc<Pod>, usize);

struct Solver<'a> {
    cluster: &'a ClusterSnapshot,
    problem: &'a Problem<'a>,
    rules: &'a LabelRules,
    options: Options,
    index: ResourceIndex,
    /// In the order in which pools are tried.
    templates: Vec<Template<'a>>,
    /// What each pool's limits leave.
    left: Vec<Amounts>,
    hosts: Vec<ExistingHost<'a>>,
    shapes: Vec<Shape>,
    /// By shape and level.
    memos: Vec<Vec<Memo>>,
    claims: Vec<OpenClaim>,
    /// Open claims by the number of their pods, then by age: pods are levelled over them.
    by_pods: BTreeSet<(usize, usize)>,
    topology: Topology,
    /// Placements made so far.
    placed: u64,
    unplaced: Vec<(Arc<Pod>, Arc<Unplaced>)>,
}

/// What is known about a shape at one level of its preferences, and will not change.
#[derive(Default)]
struct Memo {
    /// No host before this one has room.
    hosts_from: usize,
    hosts: Vec<bool>,
    claims: Vec<bool>,
    /// By term and template: what a new claim for one pod would be.
    fresh: BTreeMap<(usize, usize), Result<Arc<Fresh>, Refusal>>,
    /// The last failure, and after how many placements.
    failed: Option<(u64, Arc<Unplaced>)>,
}

struct Fresh {
    requirements: Requirements,
    options: Vec<u32>,
}

/// Why a pod did not go somewhere.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Miss {
    /// And never will.
    Final,
    /// Until other pods are placed.
    ForNow,
}

/// A pod's shape at one of its levels.
#[derive(Clone, Copy)]
struct Attempt {
    shape: usize,
    level: usize,
}

impl Solver<'_> {
    /// Until every pod has a place, or has been tried since the last one got one.
    fn run(&mut self, mut queue: VecDeque<Queued>) {
        let mut waiting = VecDeque::new();
        loop {
            let before = self.placed;
            while let Some((pod, shape)) = queue.pop_front() {
                match self.place(&pod, shape) {
                    Ok(()) => {}
                    Err(why) if self.shapes[shape].may_wait_for_others() => waiting.push_back((pod, shape, why)),
                    Err(why) => self.unplaced.push((pod, why)),
                }
            }
            if self.placed == before || waiting.is_empty() {
                break;
            }
            queue.extend(waiting.drain(..).map(|(pod, shape, _)| (pod, shape)));
        }
        self.unplaced.extend(waiting.into_iter().map(|(pod, _, why)| (pod, why)));
    }

    fn place(&mut self, pod: &Arc<Pod>, shape: usize) -> Result<(), Arc<Unplaced>> {
        let waits = self.shapes[shape].may_wait_for_others();
        let last = self.shapes[shape].levels.len().saturating_sub(1);
        if let Some((when, why)) = &self.memos[shape][last].failed
            && (!waits || *when == self.placed)
        {
            return Err(Arc::clone(why));
        }
        let mut pools = BTreeMap::new();
        for level in 0..=last {
            let attempt = Attempt { shape, level };
            if self.place_on_host(pod, attempt) || self.place_on_claim(pod, attempt) {
                return Ok(());
            }
            match self.open_claim(pod, attempt) {
                Ok(()) => return Ok(()),
                Err(refusals) => pools = refusals,
            }
            if self.is_deferred(&pools) {
                break;
            }
        }
        let overall = match (self.templates.is_empty(), self.is_deferred(&pools)) {
            (true, _) => Overall::NoPools,
            (false, true) => Overall::Deferred,
            (false, false) => Overall::NoPlace,
        };
        let why = Arc::new(Unplaced { overall, pools });
        self.memos[shape][last].failed = Some((self.placed, Arc::clone(&why)));
        Err(why)
    }

    fn is_deferred(&self, pools: &BTreeMap<Arc<str>, Refusal>) -> bool {
        self.options.reserved == ReservedMode::Strict
            && pools.values().any(|refusal| *refusal == Refusal::ReservationsFull)
    }

    fn place_on_host(&mut self, pod: &Arc<Pod>, attempt: Attempt) -> bool {
        let Attempt { shape, level } = attempt;
        let mut memo = std::mem::take(&mut self.memos[shape][level]);
        memo.hosts.resize(self.hosts.len(), false);
        let mut found = None;
        for at in memo.hosts_from..self.hosts.len() {
            if memo.hosts[at] {
                continue;
            }
            match self.fit_host(at, attempt) {
                Ok(()) => {
                    found = Some(at);
                    break;
                }
                Err(miss) => memo.hosts[at] = miss == Miss::Final,
            }
        }
        while memo.hosts.get(memo.hosts_from) == Some(&true) {
            memo.hosts_from += 1;
        }
        self.memos[shape][level] = memo;
        let Some(at) = found else { return false };
        let shape = &self.shapes[shape];
        let host = &mut self.hosts[at];
        host.room.take(&shape.key.requests);
        host.ports.extend_from_slice(&shape.ports);
        host.attached.extend(&shape.key.volumes.attached);
        host.pods.push(Arc::clone(pod));
        let none = BTreeMap::new();
        let target = target_host(host, &none);
        self.topology.record(&shape.key.membership, &shape.announces, &target);
        self.placed += 1;
        true
    }

    fn fit_host(&self, at: usize, attempt: Attempt) -> Result<(), Miss> {
        let (host, shape) = (&self.hosts[at], &self.shapes[attempt.shape]);
        let level = &shape.levels[attempt.level];
        let attached = &shape.key.volumes.attached;
        let volumes_fit =
            attached.is_empty() || host.volume_limits.is_none_or(|limits| host.attached.has_room_for(attached, limits));
        let fits = shape.key.requests.fits(&host.room)
            && tolerates(&host.taints, &level.tolerations).is_ok()
            && volumes_fit
            && !conflict(&host.ports, &shape.ports);
        let mut terms = level.terms.iter().filter(|term| host.meets(&term.all)).peekable();
        if !fits || terms.peek().is_none() {
            return Err(Miss::Final);
        }
        let none = BTreeMap::new();
        let target = target_host(host, &none);
        let allowed = |term: &Term| self.topology.check_host(&asking(shape, level, term), &target).is_ok();
        if terms.any(allowed) { Ok(()) } else { Err(Miss::ForNow) }
    }

    fn place_on_claim(&mut self, pod: &Arc<Pod>, attempt: Attempt) -> bool {
        let Attempt { shape, level } = attempt;
        let mut memo = std::mem::take(&mut self.memos[shape][level]);
        memo.claims.resize(self.claims.len(), false);
        let mut found = None;
        'claims: for (_, at) in &self.by_pods {
            if memo.claims[*at] {
                continue;
            }
            let mut miss = Miss::Final;
            for term in 0..self.shapes[shape].levels[level].terms.len() {
                match self.fit_claim(&self.claims[*at], attempt, term) {
                    Ok(fit) => {
                        found = Some((*at, term, fit));
                        break 'claims;
                    }
                    Err(Miss::ForNow) => miss = Miss::ForNow,
                    Err(Miss::Final) => {}
                }
            }
            memo.claims[*at] = miss == Miss::Final;
        }
        self.memos[shape][level] = memo;
        let Some((at, term, fit)) = found else { return false };
        self.by_pods.remove(&(self.claims[at].pods.len(), at));
        self.add_to_claim(at, pod, attempt, term, fit);
        true
    }

    fn fit_claim(&self, claim: &OpenClaim, attempt: Attempt, term_at: usize) -> Result<ClaimFit, Miss> {
        let shape = &self.shapes[attempt.shape];
        let level = &shape.levels[attempt.level];
        let term = &level.terms[term_at];
        let template = &self.templates[claim.template];
        let requests = claim.requests.plus(&shape.key.requests);
        if !requests.fits(&claim.most_room)
            || conflict(&claim.ports, &shape.ports)
            || tolerates(&template.pool.node.taints, &level.tolerations).is_err()
        {
            return Err(Miss::Final);
        }
        let is_included = claim.includes.contains(&(attempt.shape, attempt.level, term_at));
        let merged = match is_included {
            true => None,
            false => {
                let open = UndefinedKeys::OpenIfWellKnown(self.rules);
                claim.requirements.compatible(&term.all, open).map_err(|_| Miss::Final)?;
                let mut merged = claim.requirements.clone();
                merged.merge(&term.all);
                (merged != claim.requirements).then_some(merged)
            }
        };
        let after = merged.as_ref().unwrap_or(&claim.requirements);
        let asking = asking(shape, level, term);
        // Asked first, because it costs little and is what most often says no.
        let choices = match asking.is_free() {
            true => None,
            false if self.topology.is_host_closed(&asking, &claim.hostname) => return Err(Miss::Final),
            false => Some(self.topology.choices(&asking, &self.target_claim(claim, after)).map_err(|_| Miss::ForNow)?),
        };
        let options = template.narrow(&claim.options, (&claim.requirements, after), &requests, &shape.ports);
        if options.is_empty() || template.too_few_values(&options, after).is_some() {
            return Err(Miss::Final);
        }
        let Some(choices) = choices else { return Ok(ClaimFit { requirements: merged, options, requests }) };
        let fresh = Fresh { requirements: after.clone(), options };
        let (requirements, options) = self.commit(&fresh, &choices, template, &requests).ok_or(Miss::ForNow)?;
        Ok(ClaimFit { requirements: Some(requirements), options, requests })
    }

    /// Narrows a claim to the first choice of domains that something can be launched in.
    fn commit(
        &self,
        from: &Fresh,
        choices: &Choices,
        template: &Template<'_>,
        requests: &Amounts,
    ) -> Option<(Requirements, Vec<u32>)> {
        choices.combinations().into_iter().find_map(|combination| {
            let mut after = from.requirements.clone();
            for requirement in combination {
                after.add(requirement, self.rules);
            }
            let options = template.narrow(&from.options, (&from.requirements, &after), requests, &[]);
            let does = !options.is_empty() && template.too_few_values(&options, &after).is_none();
            does.then_some((after, options))
        })
    }

    fn add_to_claim(&mut self, at: usize, pod: &Arc<Pod>, attempt: Attempt, term: usize, fit: ClaimFit) {
        let shape = &self.shapes[attempt.shape];
        let claim = &mut self.claims[at];
        claim.place(Arc::clone(pod), &shape.ports, fit, &self.templates[claim.template]);
        claim.includes.insert((attempt.shape, attempt.level, term));
        self.topology.commit(&mut claim.uncommitted, &claim.requirements);
        let claim = &self.claims[at];
        let target = target_of(claim, &claim.requirements, &self.templates[claim.template], self.rules);
        let later = self.topology.record(&shape.key.membership, &shape.announces, &target);
        let claim = &mut self.claims[at];
        for group in later {
            *claim.uncommitted.entry(group).or_default() += 1;
        }
        self.by_pods.insert((claim.pods.len(), at));
        self.placed += 1;
    }

    /// Opens a claim in the first pool that can, or says why each cannot.
    fn open_claim(&mut self, pod: &Arc<Pod>, attempt: Attempt) -> Result<(), BTreeMap<Arc<str>, Refusal>> {
        let mut refusals: BTreeMap<Arc<str>, Refusal> = BTreeMap::new();
        for term in 0..self.shapes[attempt.shape].levels[attempt.level].terms.len() {
            for at in 0..self.templates.len() {
                match self.fit_new(at, attempt, term) {
                    Ok((claim, fit)) => {
                        // The most that any option may turn out to be: a limit is never overshot, whatever is launched.
                        if let Some(most) = most_capacity(&self.templates[at], &fit.options) {
                            self.left[at].take_bounded(&most);
                        }
                        self.claims.push(claim);
                        self.add_to_claim(self.claims.len() - 1, pod, attempt, term, fit);
                        return Ok(());
                    }
                    Err(refusal) => {
                        let defers =
                            self.options.reserved == ReservedMode::Strict && refusal == Refusal::ReservationsFull;
                        let pool = Arc::clone(&self.templates[at].pool.name);
                        let known = refusals.get(&pool).map(Refusal::depth);
                        if known.is_none_or(|known| refusal.depth() > known) {
                            refusals.insert(pool, refusal);
                        }
                        if defers {
                            return Err(refusals);
                        }
                    }
                }
            }
        }
        Err(refusals)
    }

    fn fit_new(&mut self, at: usize, attempt: Attempt, term_at: usize) -> Result<(OpenClaim, ClaimFit), Refusal> {
        let fresh = self.fresh(at, attempt, term_at)?;
        let template = &self.templates[at];
        let shape = &self.shapes[attempt.shape];
        let level = &shape.levels[attempt.level];
        let within = |option: &u32| template.types[*option as usize].capacity.fits(&self.left[at]);
        let options: Vec<u32> = fresh.options.iter().copied().filter(within).collect();
        if options.is_empty() {
            return Err(self.exceeded_limit(at, &fresh.options));
        }
        let mut requirements = fresh.requirements.clone();
        let mut relaxed = false;
        if let Some((key, wanted, found)) = template.too_few_values(&options, &requirements) {
            if self.options.min_values == MinValuesPolicy::Strict {
                return Err(Refusal::MinValues { key, wanted, found });
            }
            requirements = with_values_left(&requirements, template, &options, self.rules);
            relaxed = true;
        }
        let claim = OpenClaim {
            template: at,
            hostname: Arc::from(format!("new-claim-{}", self.claims.len())),
            requirements: requirements.clone(),
            most_room: most_room(template, &options).unwrap_or_else(|| self.index.nothing()),
            options,
            requests: self.index.nothing(),
            ports: Vec::new(),
            pods: Vec::new(),
            includes: BTreeSet::new(),
            uncommitted: BTreeMap::new(),
            min_values_relaxed: relaxed,
        };
        let asking = asking(shape, level, &level.terms[term_at]);
        let requests = shape.key.requests.clone();
        if asking.is_free() {
            let fit = ClaimFit { requirements: None, options: claim.options.clone(), requests };
            return Ok((claim, fit));
        }
        let from = Fresh { requirements, options: claim.options.clone() };
        let choices = self.topology.choices(&asking, &self.target_claim(&claim, &from.requirements))?;
        let committed = self.commit(&from, &choices, template, &requests);
        let (requirements, options) =
            committed.ok_or_else(|| self.topology.refusal_of(&asking).unwrap_or(Refusal::NoTypes))?;
        Ok((claim, ClaimFit { requirements: Some(requirements), options, requests }))
    }

    /// What a new claim for one pod would be, before limits and other pods.
    fn fresh(&mut self, at: usize, attempt: Attempt, term_at: usize) -> Result<Arc<Fresh>, Refusal> {
        let Attempt { shape, level } = attempt;
        if let Some(known) = self.memos[shape][level].fresh.get(&(term_at, at)) {
            return known.clone();
        }
        let made = self.make_fresh(at, &self.shapes[shape], attempt, term_at).map(Arc::new);
        self.memos[shape][level].fresh.insert((term_at, at), made.clone());
        made
    }

    fn make_fresh(&self, at: usize, shape: &Shape, attempt: Attempt, term_at: usize) -> Result<Fresh, Refusal> {
        let template = &self.templates[at];
        if let Some(closed) = &template.closed {
            return Err(closed.clone());
        }
        let level = &shape.levels[attempt.level];
        let term = &level.terms[term_at];
        tolerates(&template.pool.node.taints, &level.tolerations).map_err(|why| Refusal::Taint(why.0))?;
        let open = UndefinedKeys::OpenIfWellKnown(self.rules);
        template.requirements.compatible(&term.all, open).map_err(Refusal::Requirements)?;
        let mut requirements = template.requirements.clone();
        requirements.merge(&term.all);
        let options = template.options_for(&requirements, &shape.key.requests, &shape.ports);
        if options.is_empty() {
            let asked = (&shape.key.requests, &shape.request_list);
            return Err(template.why_none(&requirements, asked, &shape.ports, &self.index));
        }
        Ok(Fresh { requirements, options })
    }

    fn exceeded_limit(&self, at: usize, options: &[u32]) -> Refusal {
        let (template, left) = (&self.templates[at], &self.left[at]);
        let short = template.rows(options).find_map(|row| row.capacity.first_short(left));
        let Some(id) = short else { return Refusal::NoTypes };
        let name = self.index.name(id).clone();
        let notation = template.pool.limits.amount(name.as_str()).notation();
        let smallest = template.rows(options).map(|row| row.capacity.of(id)).min().unwrap_or_default();
        Refusal::Limit {
            left: Quantity::from_nanos(left.of(id), notation),
            smallest: Quantity::from_nanos(smallest, notation),
            name,
        }
    }

    fn target_claim<'t>(&'t self, claim: &'t OpenClaim, requirements: &'t Requirements) -> Target<'t> {
        target_of(claim, requirements, &self.templates[claim.template], self.rules)
    }

    fn finish(self) -> Schedule {
        let hosts = self.hosts.into_iter().filter(|host| !host.pods.is_empty());
        let on_existing = hosts
            .map(|host| OnHost { host: host.host, is_initialized: host.is_initialized, pods: host.pods })
            .collect();
        let mut schedule = Schedule { on_existing, new_claims: Vec::new(), unplaced: self.unplaced };
        for claim in self.claims {
            let template = &self.templates[claim.template];
            match claim.finish(template, self.options.max_types, self.options.min_values, self.rules) {
                Ok(planned) => schedule.new_claims.push(planned),
                Err(not_made) => {
                    let NotMade { pods, refusal } = *not_made;
                    let pools = BTreeMap::from([(Arc::clone(&template.pool.name), refusal)]);
                    let why = Arc::new(Unplaced { overall: Overall::NoPlace, pools });
                    schedule.unplaced.extend(pods.into_iter().map(|pod| (pod, Arc::clone(&why))));
                }
            }
        }
        schedule
    }
}

fn target_of<'t>(
    claim: &'t OpenClaim,
    requirements: &'t Requirements,
    template: &'t Template<'_>,
    rules: &'t LabelRules,
) -> Target<'t> {
    Target {
        requirements,
        hostname: &claim.hostname,
        taints: &template.pool.node.taints,
        undefined: UndefinedKeys::OpenIfWellKnown(rules),
        uncommitted: &claim.uncommitted,
    }
}

fn target_host<'t>(host: &'t ExistingHost<'_>, none: &'t BTreeMap<GroupId, u32>) -> Target<'t> {
    Target {
        requirements: &host.labels,
        hostname: &host.hostname,
        taints: &host.taints,
        undefined: UndefinedKeys::Absent,
        uncommitted: none,
    }
}

fn asking<'p>(shape: &'p Shape, level: &'p Level, term: &'p Term) -> Asking<'p> {
    Asking { groups: &level.groups, membership: &shape.key.membership, strict: &term.strict }
}

fn conflict(taken: &[HostPort], asked: &[HostPort]) -> bool {
    asked.iter().any(|port| taken.iter().any(|own| own.conflicts_with(port)))
}

fn most_capacity(template: &Template<'_>, options: &[u32]) -> Option<Amounts> {
    let mut capacities = template.rows(options).map(|row| &row.capacity);
    let first = capacities.next()?.clone();
    Some(capacities.fold(first, |mut most, capacity| {
        most.raise_to(capacity);
        most
    }))
}
