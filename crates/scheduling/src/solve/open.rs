//! New claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::requirement::{Requirements, UndefinedKeys};
use kerf_model::taint::tolerates;

use super::{Attempt, ClaimFit, Fresh, OpenClaim, Queued, Solver};
use crate::amounts::Amounts;
use crate::bits::Bits;
use crate::counts::Choices;
use crate::problem::{MinValuesPolicy, ReservedMode};
use crate::refusal::Refusal;
use crate::sets::SetId;
use crate::template::Asked;
use crate::volumes::Attached;

/// How many of its cheapest types a claim keeps when its pool's limit is reached: as many as a cloud is asked for at
/// once, then fewer.
pub(super) const TIGHTER: [usize; 3] = [60, 8, 1];

impl OpenClaim<'_> {
    fn empty(template: usize, (set, types): (SetId, Bits), nothing: Amounts) -> Self {
        Self {
            template,
            set,
            types,
            requests: nothing,
            ports: Vec::new(),
            attached: Attached::default(),
            pods: Vec::new(),
            uncommitted: Vec::new(),
            held: None,
            limit_share: None,
            min_values_relaxed: false,
        }
    }
}

impl<'b> Solver<'b, '_> {
    /// Opens a claim in the first pool that can, or says why each cannot.
    pub(super) fn open_claim(
        &mut self,
        queued: Queued<'b>,
        attempt: Attempt,
    ) -> Result<(), BTreeMap<Arc<str>, Refusal>> {
        let mut refusals: BTreeMap<Arc<str>, Refusal> = BTreeMap::new();
        for term in 0..self.level(attempt).terms.len() {
            for at in 0..self.base.templates.len() {
                match self.fit_new(at, attempt, term) {
                    Ok((claim, fit)) => {
                        self.open(claim, queued, fit);
                        return Ok(());
                    }
                    Err(refusal) => {
                        let defers =
                            self.question.reserved == ReservedMode::Strict && refusal == Refusal::ReservationsFull;
                        let pool = Arc::clone(&self.base.templates[at].pool.name);
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

    fn open(&mut self, claim: OpenClaim<'b>, queued: Queued<'b>, fit: ClaimFit) {
        let at = self.open_empty(claim);
        self.add_to_claim(at, queued, fit);
    }

    /// A claim like another, with nothing on it yet. The limits of its pool must leave room for any of the types.
    pub(super) fn open_like(&mut self, at: usize, types: &Bits) -> usize {
        let like = &self.claims[at];
        let claim = OpenClaim::empty(like.template, (like.set, types.clone()), self.base.index.nothing());
        self.open_empty(claim)
    }

    fn open_empty(&mut self, mut claim: OpenClaim<'b>) -> usize {
        let template = &self.base.templates[claim.template];
        if !template.pool.limits.is_empty() {
            // The most that any type may turn out to be: a limit is never overshot, whatever is launched.
            let most = template.most_capacity(&claim.types);
            self.left[claim.template].take_bounded(&most);
            claim.limit_share = Some(most);
        }
        self.by_pods.entry(0).or_default().insert(self.claims.len());
        self.claims.push(claim);
        self.claims.len() - 1
    }

    fn fit_new(&mut self, at: usize, attempt: Attempt, term: usize) -> Result<(OpenClaim<'b>, ClaimFit), Refusal> {
        let fresh = self.fresh(at, attempt, term)?;
        let template = &self.base.templates[at];
        let mut types = fresh.types.clone();
        if attempt.attached.is_some() {
            self.keep_usable(at, &mut types, attempt, None);
            if types.is_empty() {
                return Err(Refusal::VolumeLimit);
            }
        }
        let before = types.clone();
        template.keep_within(&mut types, &self.left[at]);
        for nth in 0..TIGHTER.len() {
            if types.is_empty() && self.tighten(at, nth) {
                types.clone_from(&before);
                template.keep_within(&mut types, &self.left[at]);
            }
        }
        if types.is_empty() {
            return Err(template.exceeded_limit(&before, &self.left[at], &self.base.index));
        }
        let (mut set, mut relaxed) = (fresh.set, false);
        if let Some((key, wanted, found)) = template.too_few_values(&types, self.sets.get(set)) {
            if self.base.supply.options.min_values == MinValuesPolicy::Strict {
                return Err(Refusal::MinValues { key, wanted, found });
            }
            set = self.with_values_left(set, at, &types);
            relaxed = true;
        }
        let level = self.level(attempt);
        let (rules_empty, strict) = (level.rules.is_empty(), level.terms[term].strict);
        let (set, committed) = match rules_empty {
            true => (set, types.clone()),
            false => self.commit_new(at, (set, &types), strict, attempt)?,
        };
        let (committed, held) = self.reserve(at, set, committed, None).map_err(|()| Refusal::ReservationsFull)?;
        let empty = OpenClaim::empty(at, (set, committed.clone()), self.base.index.nothing());
        let claim = OpenClaim { min_values_relaxed: relaxed, ..empty };
        Ok((claim, ClaimFit { set, types: committed, held }))
    }

    /// Makes room within a pool's limits: its open claims give up their dearest types, which they will hardly become, and
    /// what was kept free for those. `false` if that frees nothing.
    fn tighten(&mut self, at: usize, step: usize) -> bool {
        let template = &self.base.templates[at];
        if template.has_min_values {
            return false;
        }
        let mut frees = false;
        // Claims only get narrower: those that were tightened before have nothing more to give.
        let from = std::mem::replace(&mut self.tightened[at][step], self.claims.len());
        for nth in from..self.claims.len() {
            let claim = &self.claims[nth];
            let Some(share) = claim.limit_share.clone().filter(|_| claim.template == at && claim.held.is_none()) else {
                continue;
            };
            let (set, types) = (claim.set, claim.types.clone());
            let cheapest = self.select(at, set).by_price.iter().map(|(_, kind)| *kind as usize);
            let kept =
                Bits::of(template.types.len(), cheapest.filter(|kind| types.contains(*kind)).take(TIGHTER[step]));
            let after = template.most_capacity(&kept);
            if !kept.is_empty() && after != share {
                frees = true;
                self.left[at].give_back(&share);
                self.left[at].take_bounded(&after);
                self.claims[nth].types = kept;
                self.claims[nth].limit_share = Some(after);
            }
        }
        frees
    }

    fn commit_new(
        &mut self,
        at: usize,
        (set, types): (SetId, &Bits),
        strict: SetId,
        attempt: Attempt,
    ) -> Result<(SetId, Bits), Refusal> {
        self.counts.prepare(set, &self.sets);
        self.counts.prepare(strict, &self.sets);
        let rules = &self.kinds[self.shapes[attempt.shape].kind].levels[attempt.level].rules;
        let refusal = |id| self.counts.refusal(id);
        if let Some(broken) = self.counts.broken_by_claim(rules, self.claims.len()) {
            return Err(refusal(broken));
        }
        let choices: Choices =
            self.counts.choices(rules, (set, strict), &Vec::new()).map_err(|blocked| refusal(blocked.by))?;
        let by_label = rules.iter().find(|rule| self.base.topology.group(rule.group).label.is_some());
        let told = by_label.map(|rule| refusal(rule.group));
        self.commit(at, (set, types.clone()), &choices).ok_or_else(|| told.unwrap_or(Refusal::NoTypes))
    }

    /// What a new claim for one pod would be, before limits, volumes and other pods. O(1) once it is known.
    fn fresh(&mut self, at: usize, attempt: Attempt, term: usize) -> Result<Arc<Fresh>, Refusal> {
        let Attempt { shape, level, .. } = attempt;
        if let Some(known) = self.memos[shape][level].fresh.get(&(term, at)) {
            return known.clone();
        }
        let made = self.make_fresh(at, attempt, term).map(Arc::new);
        self.memos[shape][level].fresh.insert((term, at), made.clone());
        made
    }

    fn make_fresh(&mut self, at: usize, attempt: Attempt, term: usize) -> Result<Fresh, Refusal> {
        let template = &self.base.templates[at];
        if let Some(closed) = &template.closed {
            return Err(closed.clone());
        }
        if !self.tolerates_template(at, attempt) {
            let untolerated = tolerates(&template.pool.node.taints, &self.level(attempt).tolerations);
            return Err(untolerated.err().map_or(Refusal::NoTypes, |why| Refusal::Taint(why.0)));
        }
        let asked = self.level(attempt).terms[term].all;
        let rules = self.base.supply.rules;
        let Some(set) = self.sets.narrow(template.set, asked, rules) else {
            let open = UndefinedKeys::OpenIfWellKnown(rules);
            let why = self.sets.get(template.set).compatible(self.sets.get(asked), open);
            return Err(why.err().map_or(Refusal::NoTypes, Refusal::Requirements));
        };
        let mut types = self.select(at, set).types.clone();
        template.keep_fitting(&mut types, self.request_of(attempt.shape).as_slice());
        template.keep_free_ports(&mut types, &self.kind_of(attempt.shape).ports);
        if types.is_empty() {
            let none = Attached::default();
            let asked = Asked {
                need: self.request_of(attempt.shape),
                list: self.lists[self.shapes[attempt.shape].request],
                ports: &self.kind_of(attempt.shape).ports,
                attached: attempt.attached.map_or(&none, |at| &self.attached[at]),
            };
            return Err(template.why_none(self.sets.get(set), &asked, &self.base.index));
        }
        Ok(Fresh { set, types })
    }

    /// The set with only as many different values asked for as there are.
    fn with_values_left(&mut self, set: SetId, at: usize, types: &Bits) -> SetId {
        let template = &self.base.templates[at];
        let mut relaxed = Requirements::new();
        for requirement in self.sets.get(set).iter() {
            let left = requirement.min_values().map(|wanted| wanted.min(template.count_values(types, requirement)));
            relaxed.narrow(requirement.clone().with_min_values(left));
        }
        self.sets.intern(relaxed)
    }
}
