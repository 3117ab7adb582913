//! Cheaper, with the same rules: claims that are alike are packed anew, then pods move one by one between all claims.
//!
//! A claim costs what its cheapest type costs. Taking a pod away may let a claim become a cheaper type, or vanish;
//! another claim may have room for it that is paid for already, or that costs less than is saved. Every move saves, so
//! the end is never dearer than the beginning. More claims than before there are only where [`repack`](super::repack)
//! saves clearly by them.
//!
//! Only moves that keep every rule are made: within the same domains, so that no zone's count changes, and with the
//! rules about hosts asked anew. The work is bounded by comparisons, not by a clock: the same input ends the same way.

use kerf_model::intern::DenseId;
use kerf_model::price::Price;

use super::{Attempt, Solver};
use crate::amounts::{Amounts, fits};
use crate::bits::Bits;
use crate::refusal::TopologyRule;
use crate::sets::SetId;

/// How many other claims one pod is compared with.
const MAX_COMPARED: usize = 256;
/// Of those, how many are looked at closely.
const MAX_TRIED: usize = 6;

/// What a claim costs, and what is left in the type that costs it.
struct Worth {
    price: Price,
    slack: Vec<i64>,
}

struct Moves {
    /// What claims cost; `None` for those that stay as they are.
    prices: Vec<Option<Price>>,
    /// What is left in the types that cost that, claim by claim: every pod is compared with many of them.
    slacks: Vec<i64>,
    resources: usize,
    /// Groups that some pod of the question has a rule about: where pods of the others are makes no difference to it.
    ruled: Bits,
}

impl Solver<'_, '_> {
    /// O(pods × (types + compared claims)), and what [`repack`](Self::repack) takes. One pass: a second finds less than a
    /// thousandth.
    pub(super) fn improve(&mut self) {
        let levels = self.kinds.iter().flat_map(|kind| &kind.levels);
        let groups = levels.flat_map(|level| &level.rules).map(|rule| rule.group.index());
        let ruled = Bits::of(self.base.topology.groups.len(), groups);
        self.repack(&ruled);
        let (count, resources) = (self.claims.len(), self.base.index.len());
        let (prices, slacks) = (vec![None; count], vec![0; count * resources]);
        let mut moves = Moves { prices, slacks, resources, ruled };
        (0..count).for_each(|at| moves.set(at, self.worth_if_free(at)));
        (0..self.claims.len()).for_each(|at| self.shrink(at, &mut moves));
    }

    fn worth_if_free(&mut self, at: usize) -> Option<Worth> {
        if self.is_tied(at) {
            return None;
        }
        let claim = &self.claims[at];
        let (template, set, types) = (claim.template, claim.set, claim.types.clone());
        let requests = claim.requests.clone();
        self.worth(template, set, &requests, Some(&types))
    }

    /// Claims with ports, volumes, reservations or a wanted number of values stay as they are.
    pub(super) fn is_tied(&self, at: usize) -> bool {
        let claim = &self.claims[at];
        !claim.ports.is_empty()
            || !claim.attached.is_empty()
            || claim.held.is_some()
            || self.base.templates[claim.template].has_min_values
    }

    /// Of the cheapest type that has room, of some or of all that do for the set.
    fn worth(&mut self, template: usize, set: SetId, requests: &Amounts, among: Option<&Bits>) -> Option<Worth> {
        self.select(template, set);
        let selection = self.selections[template].get(set.index())?.as_ref()?;
        let types = &self.base.templates[template].types;
        let does = |at: usize| {
            among.is_none_or(|among| among.contains(at)) && fits(requests.as_slice(), types[at].room.as_slice())
        };
        let (price, at) = selection.by_price.iter().find(|(_, at)| does(*at as usize))?;
        let room = types[*at as usize].room.as_slice().iter();
        Some(Worth { price: *price, slack: room.zip(requests.as_slice()).map(|(room, own)| room - own).collect() })
    }

    /// Moves pods away while that saves.
    fn shrink(&mut self, from: usize, moves: &mut Moves) {
        let mut nth = 0;
        while nth < self.claims[from].pods.len() {
            let Some(price) = moves.prices[from] else { break };
            let shape = self.claims[from].pods[nth].shape;
            if self.move_one(from, nth, price, moves).is_none() {
                // Pods alike would fare alike.
                while nth < self.claims[from].pods.len() && self.claims[from].pods[nth].shape == shape {
                    nth += 1;
                }
            }
        }
    }

    /// `None` if there is nowhere to go that saves.
    fn move_one(&mut self, from: usize, nth: usize, price: Price, moves: &mut Moves) -> Option<()> {
        let queued = self.claims[from].pods[nth];
        let (template, set) = (self.claims[from].template, self.claims[from].set);
        let request = self.request_of(queued.shape).clone();
        let mut rest = self.claims[from].requests.clone();
        rest.take(&request);
        let is_last = self.claims[from].pods.len() == 1;
        let after = if is_last { None } else { Some(self.worth(template, set, &rest, None)?) };
        let lower = after.as_ref().map_or(Price::ZERO, |after| after.price);
        let gain = price.micros() - lower.micros();
        if gain <= 0 || queued.attached.is_some() {
            return None;
        }
        let attempt = Attempt { shape: queued.shape, level: 0, attached: None };
        let count = self.claims.len();
        let mut tried = 0;
        // Claims opened one after the other are alike: candidates are taken from all over.
        let stride = (count / MAX_COMPARED).max(1);
        for step in 1..count.min(MAX_COMPARED) {
            let to = (from + step * stride) % count;
            let Some(before) = moves.prices[to] else { continue };
            let is_paid = fits(request.as_slice(), moves.slack(to));
            // Growing another claim is looked at only nearby: it seldom pays.
            if (!is_paid && step > MAX_TRIED) || self.claims[to].pods.is_empty() {
                continue;
            }
            if !self.may_move(from, to, attempt, &moves.ruled) {
                continue;
            }
            tried += 1;
            if let Some((set, types, grown)) = self.grown(to, attempt)
                && grown.price.micros() - before.micros() < gain
            {
                self.shift((from, nth), to, (set, types), &rest);
                moves.set(from, after);
                moves.set(to, Some(grown));
                return Some(());
            }
            if tried == MAX_TRIED {
                break;
            }
        }
        None
    }

    /// What a claim would be with one more pod.
    fn grown(&mut self, to: usize, attempt: Attempt) -> Option<(SetId, Bits, Worth)> {
        let claim = &self.claims[to];
        let (template, before) = (claim.template, claim.set);
        let mut types = claim.types.clone();
        let mut requests = claim.requests.clone();
        requests.add(self.request_of(attempt.shape));
        let asked = self.level(attempt).terms.first()?.all;
        let set = self.sets.narrow(before, asked, self.base.supply.rules)?;
        self.base.templates[template].keep_fitting(&mut types, requests.as_slice());
        if set != before {
            types.keep(&self.select(template, set).types);
        }
        let worth = self.worth(template, set, &requests, Some(&types))?;
        Some((set, types, worth))
    }

    /// Whether a pod may change claims without any rule noticing.
    fn may_move(&mut self, from: usize, to: usize, attempt: Attempt, ruled: &Bits) -> bool {
        if !self.tolerates_template(self.claims[to].template, attempt) {
            return false;
        }
        let kind = &self.kinds[self.shapes[attempt.shape].kind];
        let level = &kind.levels[attempt.level];
        let counting = kind.membership.counted_in.iter().chain(&kind.announces).copied();
        let mut concerned = counting
            .filter(|id| ruled.contains(id.index()))
            .chain(level.rules.iter().map(|rule| rule.group))
            .peekable();
        if concerned.peek().is_none() {
            return true;
        }
        let topology = &self.base.topology;
        let (own, other) = (self.claims[from].set, self.claims[to].set);
        let stays = |id| {
            let group = topology.group(id);
            match group.label {
                Some(label) => self.counts.same_domain(label, own, other),
                None => group.rule != TopologyRule::Affinity,
            }
        };
        let overfills = |id: &crate::topology::GroupId| {
            let group = topology.group(*id);
            group.is_by_host()
                && group.rule == TopologyRule::Spread
                && i64::from(self.counts.on_claim(*id, to)) + 1 > group.max_skew
        };
        concerned.all(stays)
            && !kind.membership.counted_in.iter().filter(|id| ruled.contains(id.index())).any(overfills)
            && self.counts.claim_allows(&level.rules, to) == Ok(true)
    }

    fn shift(&mut self, (from, nth): (usize, usize), to: usize, (set, types): (SetId, Bits), rest: &Amounts) {
        let queued = self.claims[from].pods.remove(nth);
        let request = self.request_of(queued.shape).clone();
        let kind = &self.kinds[self.shapes[queued.shape].kind];
        let counting = kind.membership.counted_in.iter().chain(&kind.announces).copied();
        self.counts.shift(counting, from, to);
        self.claims[from].requests = rest.clone();
        let (template, own) = (self.claims[from].template, self.claims[from].set);
        let mut wider = self.select(template, own).types.clone();
        self.base.templates[template].keep_fitting(&mut wider, rest.as_slice());
        // A limit that the claim was held to holds still.
        if let Some(share) = &self.claims[from].limit_share {
            self.base.templates[template].keep_within(&mut wider, share);
        }
        self.retype(from, own, wider);
        self.claims[to].requests.add(&request);
        self.claims[to].pods.push(queued);
        self.retype(to, set, types);
    }

    pub(super) fn retype(&mut self, at: usize, set: SetId, types: Bits) {
        let claim = &mut self.claims[at];
        claim.set = set;
        claim.types = types;
        if let Some(share) = &mut claim.limit_share {
            let most = match claim.pods.is_empty() {
                true => self.base.index.nothing(),
                false => self.base.templates[claim.template].most_capacity(&claim.types),
            };
            self.left[claim.template].give_back(share);
            self.left[claim.template].take_bounded(&most);
            *share = most;
        }
    }
}

impl Moves {
    fn slack(&self, claim: usize) -> &[i64] {
        &self.slacks[claim * self.resources..(claim + 1) * self.resources]
    }

    fn set(&mut self, claim: usize, worth: Option<Worth>) {
        self.prices[claim] = worth.as_ref().map(|worth| worth.price);
        if let Some(Worth { slack, .. }) = worth {
            self.slacks[claim * self.resources..(claim + 1) * self.resources].copy_from_slice(&slack);
        }
    }
}
