//! Pods on claims that were opened for others.

use kerf_model::taint::tolerates;

use super::{Attempt, ClaimFit, Miss, Queued, Solver, conflict};
use crate::bits::{Bits, Layered};
use crate::counts::{Choices, Gate};
use crate::problem::{MinValuesPolicy, ReservedMode};
use crate::reservation::ReservationId;
use crate::sets::SetId;

impl<'b> Solver<'b, '_> {
    /// On the open claim with the fewest pods that can take one more; of equals the oldest.
    ///
    /// Claims that said no for good are never looked at again, and where all of 64 did, the 64 are not. Those in domains
    /// that a rule forbids now are passed over together: O(numbers of pods × claims / 4096 + claims looked at), if those
    /// that said no stand together, and 64 times that if not.
    pub(super) fn place_on_claim(&mut self, queued: Queued<'b>, attempt: Attempt) -> bool {
        let Attempt { shape, level, .. } = attempt;
        let kind = self.shapes[shape].kind;
        let gate = self.gate(attempt);
        let by_pods = std::mem::take(&mut self.by_pods);
        let mut found = None;
        'claims: for claims in by_pods.values() {
            let mut from = 0;
            while let Some(at) = self.next_claim(claims, from, attempt, gate.as_ref()) {
                match self.fit_any_term(at, attempt) {
                    Ok((term, fit)) => {
                        found = Some((at, term, fit));
                        break 'claims;
                    }
                    Err(Miss::Never) => self.kind_memos[kind][level].claims.insert(at),
                    Err(Miss::Full) => self.memos[shape][level].claims.insert(at),
                    Err(Miss::ForNow) => {}
                }
                from = at + 1;
            }
        }
        self.by_pods = by_pods;
        let Some((at, _, fit)) = found else { return false };
        self.add_to_claim(at, queued, fit);
        true
    }

    /// The first of the claims, not before `from`, that may take the pod.
    fn next_claim(&self, claims: &Layered, from: usize, attempt: Attempt, gate: Option<&Gate>) -> Option<usize> {
        let Attempt { shape, level, .. } = attempt;
        let dead = [&self.memos[shape][level].claims, &self.kind_memos[self.shapes[shape].kind][level].claims];
        claims.next(from, dead, |word| gate.map_or(u64::MAX, |gate| self.counts.word_of_claims(gate, word)))
    }

    fn fit_any_term(&mut self, at: usize, attempt: Attempt) -> Result<(usize, ClaimFit), Miss> {
        let mut miss = Miss::Never;
        for term in 0..self.level(attempt).terms.len() {
            match self.fit_claim(at, attempt, term) {
                Ok(fit) => return Ok((term, fit)),
                Err(Miss::ForNow) => miss = Miss::ForNow,
                Err(Miss::Full) if miss == Miss::Never => miss = Miss::Full,
                Err(Miss::Full | Miss::Never) => {}
            }
        }
        Err(miss)
    }

    /// O(rules + resources × log types), if its sets were met before.
    pub(super) fn fit_claim(&mut self, at: usize, attempt: Attempt, term: usize) -> Result<ClaimFit, Miss> {
        let (template, before) = (self.claims[at].template, self.claims[at].set);
        if !self.tolerates_template(template, attempt) {
            return Err(Miss::Never);
        }
        let kind = &self.kinds[self.shapes[attempt.shape].kind];
        let level = &kind.levels[attempt.level];
        if !kind.ports.is_empty() && conflict(&self.claims[at].ports, &kind.ports) {
            return Err(Miss::Never);
        }
        match self.counts.claim_allows(&level.rules, at) {
            Ok(true) => {}
            Ok(false) => return Err(Miss::ForNow),
            Err(()) => return Err(Miss::Never),
        }
        let (asked, strict) = (level.terms[term].all, level.terms[term].strict);
        let Some(set) = self.sets.narrow(before, asked, self.base.supply.rules) else { return Err(Miss::Never) };
        let has_rules = !level.rules.is_empty();
        let choices = match has_rules {
            false => Choices::default(),
            true => {
                self.counts.prepare(set, &self.sets);
                self.counts.prepare(strict, &self.sets);
                let rules = &self.kinds[self.shapes[attempt.shape].kind].levels[attempt.level].rules;
                let choices = self.counts.choices(rules, (set, strict), &self.claims[at].uncommitted);
                choices.map_err(|blocked| if blocked.for_good { Miss::Never } else { Miss::ForNow })?
            }
        };
        let mut types = self.claims[at].types.clone();
        let total: Vec<i64> = {
            let own = self.claims[at].requests.as_slice().iter();
            own.zip(self.request_of(attempt.shape).as_slice()).map(|(own, more)| own.saturating_add(*more)).collect()
        };
        self.base.templates[template].keep_fitting(&mut types, &total);
        if types.is_empty() {
            return Err(Miss::Full);
        }
        if set != before {
            types.keep(&self.select(template, set).types);
        }
        self.keep_usable(template, &mut types, attempt, Some(at));
        if types.is_empty() || self.has_too_few_values(template, &types, set) {
            return Err(if attempt.attached.is_some() { Miss::ForNow } else { Miss::Full });
        }
        let (set, types) = self.commit(template, (set, types), &choices).ok_or(Miss::ForNow)?;
        let held = self.claims[at].held;
        let (types, held) = self.reserve(template, set, types, held).map_err(|_| Miss::ForNow)?;
        Ok(ClaimFit { set, types, held })
    }

    pub(super) fn tolerates_template(&mut self, template: usize, attempt: Attempt) -> bool {
        let kind = self.shapes[attempt.shape].kind;
        let known = &mut self.kind_memos[kind][attempt.level].tolerated;
        if known.is_empty() {
            known.resize(self.base.templates.len(), None);
        }
        *known[template].get_or_insert_with(|| {
            let taints = &self.base.templates[template].pool.node.taints;
            tolerates(taints, &self.kinds[kind].levels[attempt.level].tolerations).is_ok()
        })
    }

    /// Narrows types by what is rarely asked for: ports that daemons may have, and volumes.
    pub(super) fn keep_usable(&self, template: usize, types: &mut Bits, attempt: Attempt, claim: Option<usize>) {
        let own = &self.base.templates[template];
        let ports = &self.kind_of(attempt.shape).ports;
        if !ports.is_empty() {
            own.keep_free_ports(types, ports);
        }
        if let (Some(more), true) = (attempt.attached, own.has_volume_limits) {
            let mut attached = claim.map(|at| self.claims[at].attached.clone()).unwrap_or_default();
            attached.extend(&self.attached[more]);
            own.keep_attaching(types, &attached);
        }
    }

    pub(super) fn has_too_few_values(&self, template: usize, types: &Bits, set: SetId) -> bool {
        let template = &self.base.templates[template];
        template.has_min_values && template.too_few_values(types, self.sets.get(set)).is_some()
    }

    /// Narrows a claim to the first choice of domains that something can be launched in.
    pub(super) fn commit(
        &mut self,
        template: usize,
        (set, types): (SetId, Bits),
        choices: &Choices,
    ) -> Option<(SetId, Bits)> {
        if choices.is_free() {
            return Some((set, types));
        }
        let mut limited = set;
        for (label, domains) in choices.limits() {
            let only = self.sets.intern(self.counts.only(*label, domains));
            limited = self.sets.narrow(limited, only, self.base.supply.rules)?;
        }
        choices.combinations().into_iter().find_map(|combination| {
            let mut after = limited;
            for (label, domain) in combination {
                let pin = self.counts.pin(label, domain);
                after = self.sets.commit(after, (label as u32, domain as u32), pin);
            }
            let mut left = types.clone();
            if after != set {
                left.keep(&self.select(template, after).types);
            }
            let does = !left.is_empty() && !self.has_too_few_values(template, &left, after);
            does.then_some((after, left))
        })
    }

    /// The reservation that a claim would be launched from, with the types that it leaves (sheets 02 §11 and 08, S1).
    ///
    /// `Err` if the claim should wait for one.
    pub(super) fn reserve(
        &mut self,
        template: usize,
        set: SetId,
        types: Bits,
        held: Option<ReservationId>,
    ) -> Result<(Bits, Option<ReservationId>), ()> {
        if self.slots.is_empty() {
            return Ok((types, None));
        }
        self.select(template, set);
        let Some(selection) = self.selections[template].get(set.index()).and_then(Option::as_ref) else {
            return Err(());
        };
        let own = &self.base.templates[template];
        let is_strict_about_values = self.base.supply.options.min_values == MinValuesPolicy::Strict;
        let has_too_few = |types: &Bits| {
            is_strict_about_values && own.has_min_values && own.too_few_values(types, self.sets.get(set)).is_some()
        };
        // A claim that counts on a reservation is launched from nothing else: what offers it must be enough to choose from.
        let is_enough = |id: ReservationId| {
            let mut offering = own.offering(selection, id);
            offering.keep(&types);
            !offering.is_empty() && !has_too_few(&offering)
        };
        let matching = || {
            let reserved = selection.reserved.iter().filter(|(_, _, kind)| types.contains(*kind as usize));
            reserved.map(|(_, id, _)| *id).filter(|id| !own.has_min_values || is_enough(*id))
        };
        if let Some(held) = held.filter(|held| matching().any(|id| id == *held)) {
            return Ok((types, Some(held)));
        }
        if let Some(id) = matching().find(|id| self.reservations.left(*id) > 0) {
            return Ok((types, Some(id)));
        }
        let is_strict = self.question.reserved == ReservedMode::Strict;
        if is_strict && (matching().next().is_some() || held.is_some()) {
            return Err(());
        }
        let mut open = types.clone();
        open.keep(&selection.open);
        if open.is_empty() || has_too_few(&open) { Err(()) } else { Ok((open, None)) }
    }

    pub(super) fn add_to_claim(&mut self, at: usize, queued: Queued<'b>, fit: ClaimFit) {
        let ClaimFit { set, types, held } = fit;
        let kind = self.shapes[queued.shape].kind;
        let claim = &mut self.claims[at];
        if held != claim.held {
            claim.held.into_iter().for_each(|id| self.reservations.give_back(id));
            held.into_iter().for_each(|id| self.reservations.take(id));
            claim.held = held;
        }
        if types != claim.types {
            claim.types = types;
            // A narrower claim can become less: its pool's limit gets the difference back.
            if let Some(share) = &mut claim.limit_share {
                let most = self.base.templates[claim.template].most_capacity(&claim.types);
                self.left[claim.template].give_back(share);
                self.left[claim.template].take_bounded(&most);
                *share = most;
            }
        }
        claim.set = set;
        claim.requests.add(&self.requests[self.shapes[queued.shape].request]);
        claim.ports.extend_from_slice(&self.kinds[kind].ports);
        if let Some(more) = queued.attached {
            claim.attached.extend(&self.attached[more]);
        }
        let pods = claim.pods.len();
        claim.pods.push(queued);
        if let Some(bucket) = self.by_pods.get_mut(&pods) {
            bucket.remove(at);
            if bucket.is_empty() {
                self.by_pods.remove(&pods);
            }
        }
        self.by_pods.entry(pods + 1).or_default().insert(at);
        self.count_on_claim(at, kind);
        self.placed += 1;
    }

    fn count_on_claim(&mut self, at: usize, kind: usize) {
        if self.base.topology.is_empty() {
            return;
        }
        let (set, template) = (self.claims[at].set, self.claims[at].template);
        let mut uncommitted = std::mem::take(&mut self.claims[at].uncommitted);
        self.counts.prepare(set, &self.sets);
        self.counts.settle(at, set);
        if !uncommitted.is_empty() {
            self.counts.commit(&mut uncommitted, set);
        }
        let groups = self.kinds[kind].membership.counted_in.iter().chain(&self.kinds[kind].announces).copied();
        let taints = &self.base.templates[template].pool.node.taints;
        let undefined = kerf_model::requirement::UndefinedKeys::OpenIfWellKnown(self.base.supply.rules);
        let requirements = self.sets.get(set);
        self.counts.record_on_claim(groups, (at, set), &mut uncommitted, |_, group| {
            group.accepts_claim(requirements, taints, undefined)
        });
        self.claims[at].uncommitted = uncommitted;
    }
}
