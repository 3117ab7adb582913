//! Cheaper by starting over: claims that are alike give up their pods, which are packed anew by what they cost.
//!
//! The first plan levels pods over claims and does not ask for prices; moving pods one by one seldom leads from there to a
//! good packing. So pods that must be alone of their kind on a host go first, then the largest, and each goes where the
//! price rises least; of such claims to the one that it fills most. What comes out is kept if it is cheaper.
//!
//! The claims that are there are filled first. A further one is opened where that is clearly cheaper than to let one of
//! them grow: two small nodes instead of a large one that is half empty. [`FURTHER`] says what is clear.
//!
//! Claims are alike if they have the same pool, requirements and share of limits. They come up in the same domains, so no
//! rule notices which of them a pod is on, but for rules about hosts, which are asked for every pod.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use kerf_model::intern::DenseId;

use super::{Queued, Solver};
use crate::amounts::{Amounts, fits};
use crate::bits::Bits;
use crate::problem::Aim;
use crate::refusal::TopologyRule;
use crate::sets::SetId;
use crate::topology::GroupId;

/// How many claims are packed together: more find cheaper packings, and take longer.
const MOST_CLAIMS: usize = 96;

/// With how many cheaper types one is compared: one too many on the menu does no harm.
const MOST_CHEAPER: usize = 8;

/// A further node must save this part, a quarter, of what a node for these pods costs now on average. Where types double
/// from size to size, two nodes instead of one save at most half of it; a node costs more than its price, though: an
/// address, a licence, one more that drains and boots. Daemons are counted already, for no type's room has them.
const FURTHER: i64 = 4;

/// Fewer claims that are alike than this stay as many: people count the nodes of a small workload and expect a handful of
/// pods on one, and little could be saved.
const FEW: usize = 10;

/// What can be launched for claims that are alike: the cheapest first, without those that a cheaper one has the room of.
struct Menu {
    prices: Vec<i64>,
    rooms: Vec<Amounts>,
    /// With those that were left out.
    types: Bits,
}

/// What pods of a shape are to others on a host. Groups are numbered as they are met.
struct Manners {
    may_move: bool,
    /// Groups, and how many of their pods there may be before it comes.
    before: Vec<(usize, u32)>,
    /// Groups, and how many of their pods there may ever be where it is.
    ever: Vec<(usize, u32)>,
    /// Groups that count it.
    counted: Vec<usize>,
}

/// A pod that may move.
struct Mover {
    /// Where it is, and which of the claim's pods it is.
    claim: usize,
    nth: usize,
    request: usize,
    /// An index into [`Job::manners`].
    manners: usize,
}

/// The pods of some claims, and what is asked of a packing.
struct Job<'m> {
    menu: &'m Menu,
    /// Those first where a pod stays.
    claims: Vec<usize>,
    /// In the order in which they are packed.
    pods: Vec<Mover>,
    manners: Vec<Manners>,
    /// What stays where it is; claims of which nothing does are not in it.
    start: Packing,
    empty: Draft,
    /// How many claims more there may be, and what each of them counts beside its price.
    further: usize,
    surcharge: i64,
    /// By resource: what a unit of it counts when rooms are compared; nothing where it is not scarce.
    weights: Vec<f64>,
    /// The type that would be cheapest for all pods together if it could be split, and how many of it that were.
    favourite: (usize, f64),
    /// What the claims cost now.
    before: i64,
}

/// Claims in the making: those that are there, then further ones. The last of them may be empty.
#[derive(Clone, Default)]
struct Packing {
    claims: Vec<Draft>,
    /// With what further claims count beside their prices.
    cost: i64,
}

#[derive(Clone, Default)]
struct Draft {
    /// Its place in the menu; `None` if it is empty.
    kind: Option<usize>,
    requests: Vec<i64>,
    /// What the type has left.
    slack: Vec<i64>,
    pods: Vec<usize>,
    /// By group: pods, and how many there may be.
    counts: Vec<u32>,
    most: Vec<u32>,
}

/// What it means to put a pod somewhere, by what counts first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Score {
    /// How much dearer the claim gets.
    price: i64,
    /// Room that is left over.
    left: i64,
    /// What the claim becomes.
    kind: usize,
}

impl Solver<'_, '_> {
    /// Packs claims that are alike anew, some at a time.
    ///
    /// O(pods × (log pods + [`MOST_CLAIMS`] × resources × types that a claim grows past)), twice where claims are opened.
    pub(super) fn repack(&mut self, ruled: &Bits) {
        let mut alike: BTreeMap<(usize, SetId, Option<&Amounts>), Vec<usize>> = BTreeMap::new();
        for (at, claim) in self.claims.iter().enumerate().filter(|(at, _)| !self.is_tied(*at)) {
            alike.entry((claim.template, claim.set, claim.limit_share.as_ref())).or_default().push(at);
        }
        let alike: Vec<Vec<usize>> = alike.into_values().filter(|claims| claims.len() > 1).collect();
        for claims in alike {
            let Some(menu) = self.menu(claims[0]) else { continue };
            // Claims opened one after the other are alike: each part has some from all over.
            let parts = claims.len().div_ceil(MOST_CLAIMS);
            for part in 0..parts {
                let some: Vec<usize> = claims.iter().skip(part).step_by(parts).copied().collect();
                self.repack_some(&some, &menu, ruled);
            }
        }
    }

    fn repack_some(&mut self, claims: &[usize], menu: &Menu, ruled: &Bits) {
        let further = self.most_further(claims, menu);
        let Some(job) = self.job((claims, further), menu, ruled) else { return };
        if let Some(packing) = job.cheapest(&self.requests) {
            self.adopt(&job, packing);
        }
    }

    /// How many claims like these may be opened: no more than there are, and than the pool's limits leave room for,
    /// whatever of the menu they become. None where nodes are replaced: who asks counts the new ones, and each is one more
    /// to wait for.
    fn most_further(&self, claims: &[usize], menu: &Menu) -> usize {
        let template = self.claims[claims[0]].template;
        let most = self.base.templates[template].most_capacity(&menu.types);
        match self.question.aim {
            Aim::Plan if claims.len() < FEW => 0,
            Aim::Plan => most.times_within(&self.left[template]).min(claims.len()),
            Aim::Replace | Aim::Fit => 0,
        }
    }

    /// `None` where reservations would do: not every claim may become what is cheapest then.
    fn menu(&mut self, claim: usize) -> Option<Menu> {
        let (template, set) = (self.claims[claim].template, self.claims[claim].set);
        let mut types = self.select(template, set).types.clone();
        let own = &self.base.templates[template];
        if let Some(share) = &self.claims[claim].limit_share {
            own.keep_within(&mut types, share);
        }
        let selection = self.selections[template].get(set.index())?.as_ref().filter(|own| own.reserved.is_empty())?;
        let mut menu = Menu { prices: Vec::new(), rooms: Vec::new(), types };
        for (price, at) in selection.by_price.iter().filter(|(_, at)| menu.types.contains(*at as usize)) {
            let room = &own.types[*at as usize].room;
            if !menu.rooms.iter().rev().take(MOST_CHEAPER).any(|other| room.fits(other)) {
                menu.prices.push(price.micros());
                menu.rooms.push(room.clone());
            }
        }
        Some(menu)
    }

    /// `None` if the menu has nothing for them.
    fn job<'m>(&self, (claims, further): (&[usize], usize), menu: &'m Menu, ruled: &Bits) -> Option<Job<'m>> {
        let price = |at: &usize| menu.cheapest(self.claims[*at].requests.as_slice()).map(|kind| menu.prices[kind]);
        let before = claims.iter().map(price).sum::<Option<i64>>()?;
        let mut total = self.base.index.nothing();
        claims.iter().for_each(|claim| total.add(&self.claims[*claim].requests));
        let favourite = menu.favourite(total.as_slice())?;
        let weights = weights(total.as_slice(), menu.rooms[favourite.0].as_slice());
        let surcharge = before / (claims.len() as i64 * FURTHER);
        let mut job = Job {
            menu,
            claims: Vec::new(),
            pods: Vec::new(),
            manners: Vec::new(),
            start: Packing::default(),
            empty: Draft::default(),
            further,
            surcharge,
            weights,
            favourite,
            before,
        };
        let mut staying: Vec<(usize, Vec<(usize, usize)>)> = claims.iter().map(|claim| (*claim, Vec::new())).collect();
        let (mut groups, mut known) = (BTreeMap::new(), BTreeMap::new());
        for (claim, staying) in &mut staying {
            let claim = *claim;
            for (nth, Queued { shape, attached, .. }) in self.claims[claim].pods.iter().enumerate() {
                let manners = *known.entry(*shape).or_insert_with(|| {
                    job.manners.push(self.manners(*shape, self.claims[claim].set, ruled, &mut groups));
                    job.manners.len() - 1
                });
                let request = self.shapes[*shape].request;
                match job.manners[manners].may_move && attached.is_none() {
                    true => job.pods.push(Mover { claim, nth, request, manners }),
                    false => staying.push((request, manners)),
                }
            }
        }
        job.empty = Draft::empty(self.base.index.len(), groups.len());
        staying.sort_by_key(|(_, staying)| staying.is_empty());
        job.claims = staying.iter().map(|(claim, _)| *claim).collect();
        for (_, staying) in staying.into_iter().filter(|(_, staying)| !staying.is_empty()) {
            let mut draft = job.empty.clone();
            for (request, manners) in staying {
                draft.take(self.requests[request].as_slice(), &job.manners[manners]);
            }
            let kind = job.menu.cheapest(&draft.requests)?;
            draft.become_kind(kind, job.menu);
            job.start.cost += job.menu.prices[kind];
            job.start.claims.push(draft);
        }
        let sizes: BTreeMap<usize, i64> = job
            .pods
            .iter()
            .map(|pod| (pod.request, weighed(self.requests[pod.request].as_slice().iter().copied(), &job.weights)))
            .collect();
        job.pods.sort_by_cached_key(|pod| {
            let is_alone = job.manners[pod.manners].before.iter().any(|(_, most)| *most == 0);
            let size = (Reverse(sizes[&pod.request]), Reverse(&self.requests[pod.request]));
            (Reverse(is_alone), size, pod.manners)
        });
        Some(job)
    }

    fn manners(&self, shape: usize, set: SetId, ruled: &Bits, numbers: &mut BTreeMap<GroupId, usize>) -> Manners {
        let kind = &self.kinds[self.shapes[shape].kind];
        let rules = &kind.levels[0].rules;
        let counting = || {
            let all = kind.membership.counted_in.iter().chain(&kind.announces).copied();
            all.filter(|id| ruled.contains(id.index()))
        };
        let topology = &self.base.topology;
        let stays = |id: GroupId| {
            let group = topology.group(id);
            match group.label {
                Some(label) => self.counts.same_domain(label, set, set),
                None => group.rule != TopologyRule::Affinity,
            }
        };
        let may_move = counting().chain(rules.iter().map(|rule| rule.group)).all(stays);
        let mut number = |id: GroupId| {
            let fresh = numbers.len();
            *numbers.entry(id).or_insert(fresh)
        };
        let mut manners = Manners { may_move, before: Vec::new(), ever: Vec::new(), counted: Vec::new() };
        for rule in rules.iter().filter(|rule| topology.group(rule.group).is_by_host()) {
            let group = topology.group(rule.group);
            let skew = u32::try_from(group.max_skew).unwrap_or(u32::MAX);
            match group.rule {
                TopologyRule::Spread => {
                    manners.before.push((number(rule.group), skew.saturating_sub(u32::from(rule.counts_itself))));
                    manners.ever.push((number(rule.group), skew));
                }
                TopologyRule::AntiAffinity | TopologyRule::AntiAffinityOfOthers => {
                    manners.before.push((number(rule.group), 0));
                }
                // It stays where it is.
                TopologyRule::Affinity => {}
            }
        }
        manners.counted = counting().filter(|id| topology.group(*id).is_by_host()).map(number).collect();
        manners
    }

    fn adopt(&mut self, job: &Job<'_>, packing: Packing) {
        let place = |pod: &Mover| self.claims[pod.claim].pods[pod.nth];
        let moving: Vec<Queued<'_>> = job.pods.iter().map(place).collect();
        let mut leaving: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        job.pods.iter().for_each(|pod| leaving.entry(pod.claim).or_default().push(pod.nth));
        for (claim, nths) in leaving {
            let mut nth = 0..;
            self.claims[claim].pods.retain(|_| nth.next().is_none_or(|nth| !nths.contains(&nth)));
        }
        let opened = 0..job.opened(&packing);
        let opened: Vec<usize> = opened.map(|_| self.open_like(job.claims[0], &job.menu.types)).collect();
        let drafts = packing.claims.into_iter().chain(std::iter::repeat(job.empty.clone()));
        for (to, draft) in job.claims.iter().copied().chain(opened).zip(drafts) {
            for pod in draft.pods {
                let kind = &self.kinds[self.shapes[moving[pod].shape].kind];
                let counting = kind.membership.counted_in.iter().chain(&kind.announces).copied();
                self.counts.shift(counting, job.pods[pod].claim, to);
                self.claims[to].pods.push(moving[pod]);
            }
            self.claims[to].requests = Amounts::from(draft.requests);
            let (template, set) = (self.claims[to].template, self.claims[to].set);
            let mut types = job.menu.types.clone();
            self.base.templates[template].keep_fitting(&mut types, self.claims[to].requests.as_slice());
            self.retype(to, set, types);
        }
    }
}

impl Menu {
    /// The first that has the room.
    fn cheapest(&self, requests: &[i64]) -> Option<usize> {
        self.rooms.iter().position(|room| fits(requests, room.as_slice()))
    }

    /// The first after `kind` that has room for more.
    fn next_for(&self, kind: usize, requests: &[i64], more: &[i64]) -> Option<usize> {
        let has_room = |room: &Amounts| {
            let asked = requests.iter().zip(more).map(|(own, more)| own.saturating_add(*more));
            asked.zip(room.as_slice()).all(|(asked, room)| asked <= *room)
        };
        self.rooms[kind + 1..].iter().position(has_room).map(|nth| kind + 1 + nth)
    }

    fn favourite(&self, total: &[i64]) -> Option<(usize, f64)> {
        let all = self.rooms.iter().map(|room| needed(total, room.as_slice()).fold(0.0, f64::max)).enumerate();
        let costs = all.map(|(kind, needed)| (needed * self.prices[kind] as f64, kind, needed));
        let best = costs.filter(|(cost, _, _)| cost.is_finite()).min_by(|a, b| a.0.total_cmp(&b.0));
        best.map(|(_, kind, needed)| (kind, needed))
    }
}

/// By resource: how many times the room.
fn needed(total: &[i64], room: &[i64]) -> impl Iterator<Item = f64> {
    total.iter().zip(room).map(|(asked, room)| if *asked > 0 { *asked as f64 / (*room).max(0) as f64 } else { 0.0 })
}

/// A resource is scarce if half as many nodes would be needed for it alone as for the scarcest.
fn weights(total: &[i64], room: &[i64]) -> Vec<f64> {
    let most = needed(total, room).fold(0.0, f64::max);
    needed(total, room)
        .zip(room)
        .map(|(needed, room)| if needed > 0.0 && needed * 2.0 >= most { 1e9 / *room as f64 } else { 0.0 })
        .collect()
}

fn weighed(amounts: impl Iterator<Item = i64>, weights: &[f64]) -> i64 {
    amounts.zip(weights).map(|(amount, weight)| amount as f64 * weight).sum::<f64>() as i64
}

impl Job<'_> {
    /// The cheapest of some packings: with claims that are opened as the favourite and shrink, and with claims that are
    /// opened as small as can be and grow; both with further claims, and without if some were opened.
    ///
    /// `None` if none is cheaper than what there is.
    fn cheapest(&self, requests: &[Cow<'_, Amounts>]) -> Option<Packing> {
        // Where it is much too large for most of the claims, there is no point.
        let favourite = Some(self.favourite.0).filter(|_| self.favourite.1 * 2.0 >= self.claims.len() as f64);
        let mut best: Option<Packing> = None;
        for open_as in favourite.map(Some).into_iter().chain([None]) {
            for further in [self.further, 0] {
                let mut packing = self.start.clone();
                let least = best.as_ref().map_or(self.before, |best| best.cost);
                let is_whole = self.fill(&mut packing, (open_as, further), least, requests).is_some();
                let opens_some = self.opened(&packing) > 0;
                if is_whole && packing.cost < least {
                    best = Some(packing);
                }
                if !opens_some {
                    break;
                }
            }
        }
        best
    }

    /// `None` if a pod finds no place, or once it is seen not to become cheaper than `least`.
    fn fill(
        &self,
        packing: &mut Packing,
        (open_as, further): (Option<usize>, usize),
        least: i64,
        requests: &[Cow<'_, Amounts>],
    ) -> Option<()> {
        let (there, most) = (self.claims.len(), self.claims.len() + further);
        // Empty claims are all the same: one is enough.
        if packing.claims.len() < most {
            packing.claims.push(self.empty.clone());
        }
        let mut next = 0;
        // What it costs to put a pod somewhere changes only where one was put.
        for run in self.pods.chunk_by(|a, b| a.request == b.request) {
            let asked = requests[run[0].request].as_slice();
            let smallest = self.menu.cheapest(asked)?;
            let alone = open_as.filter(|kind| fits(asked, self.menu.rooms[*kind].as_slice())).unwrap_or(smallest);
            let to_open = |at: usize| self.menu.prices[alone] + if at < there { 0 } else { self.surcharge };
            let score = |(at, draft): (usize, &Draft)| self.score(draft, asked, (alone, to_open(at)));
            let mut scores: Vec<_> = packing.claims.iter().enumerate().map(score).collect();
            for pod in run {
                let manners = &self.manners[pod.manners];
                let (put, at) = packing.best_for(manners, &scores)?;
                let draft = &mut packing.claims[at];
                let put_first = draft.kind.is_none();
                draft.take(asked, manners);
                draft.become_kind(put.kind, self.menu);
                draft.pods.push(next);
                next += 1;
                packing.cost += put.price;
                if open_as.is_none() && packing.cost >= least {
                    return None;
                }
                scores[at] = score((at, &packing.claims[at]));
                if put_first && at + 1 < most {
                    scores.push(score((at + 1, &self.empty)));
                    packing.claims.push(self.empty.clone());
                }
            }
        }
        if open_as.is_some() {
            let used = packing.claims.iter().filter(|draft| draft.kind.is_some());
            let cheapest = used.map(|draft| self.menu.cheapest(&draft.requests));
            packing.cost = cheapest.map(|kind| kind.map(|kind| self.menu.prices[kind])).sum::<Option<i64>>()?;
            packing.cost += self.opened(packing) as i64 * self.surcharge;
        }
        Some(())
    }

    /// How many claims a packing has besides those that are there.
    fn opened(&self, packing: &Packing) -> usize {
        packing.claims.iter().skip(self.claims.len()).filter(|draft| draft.kind.is_some()).count()
    }

    /// `None` if there is no room. `alone` is what an empty claim becomes, and what that counts.
    fn score(&self, draft: &Draft, asked: &[i64], alone: (usize, i64)) -> Option<Score> {
        let Some(kind) = draft.kind else {
            // Of equals one that is there: it is a node less.
            return Some(Score { price: alone.1, left: i64::MAX, kind: alone.0 });
        };
        if fits(asked, &draft.slack) {
            let left = draft.slack.iter().zip(asked).map(|(slack, asked)| slack - asked);
            return Some(Score { price: 0, left: weighed(left, &self.weights), kind });
        }
        let grown = self.menu.next_for(kind, &draft.requests, asked)?;
        let room = self.menu.rooms[grown].as_slice().iter();
        let left = room.zip(draft.requests.iter().zip(asked)).map(|(room, (own, asked))| room - own - asked);
        let price = self.menu.prices[grown] - self.menu.prices[kind];
        Some(Score { price, left: weighed(left, &self.weights), kind: grown })
    }
}

impl Packing {
    /// Of equals the first.
    fn best_for(&self, manners: &Manners, scores: &[Option<Score>]) -> Option<(Score, usize)> {
        let mut best: Option<(Score, usize)> = None;
        for (at, score) in scores.iter().enumerate() {
            if let Some(score) = *score
                && best.is_none_or(|(least, _)| score < least)
                && self.claims[at].allows(manners)
            {
                best = Some((score, at));
            }
        }
        best
    }
}

impl Draft {
    fn empty(resources: usize, groups: usize) -> Self {
        Self {
            kind: None,
            requests: vec![0; resources],
            slack: vec![0; resources],
            pods: Vec::new(),
            counts: vec![0; groups],
            most: vec![u32::MAX; groups],
        }
    }

    fn allows(&self, manners: &Manners) -> bool {
        manners.before.iter().all(|(group, most)| self.counts[*group] <= *most)
            && manners.counted.iter().all(|group| self.counts[*group] < self.most[*group])
    }

    /// Before it is said what it becomes by that.
    fn take(&mut self, asked: &[i64], manners: &Manners) {
        self.kind = self.kind.or(Some(0));
        self.requests.iter_mut().zip(asked).for_each(|(own, more)| *own = own.saturating_add(*more));
        manners.counted.iter().for_each(|group| self.counts[*group] += 1);
        manners.ever.iter().for_each(|(group, most)| self.most[*group] = self.most[*group].min(*most));
    }

    fn become_kind(&mut self, kind: usize, menu: &Menu) {
        self.kind = Some(kind);
        let room = menu.rooms[kind].as_slice().iter();
        self.slack.iter_mut().zip(room.zip(&self.requests)).for_each(|(slack, (room, own))| *slack = room - own);
    }
}
