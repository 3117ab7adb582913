//! One move: what removing these nodes together would come to, and whether it is worth it.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::Pod;
use kerf_model::label::capacity_type;
use kerf_model::price::Price;
use kerf_scheduling::PlannedClaim;

use super::{Totals, price_of, saved_by_deleting};
use crate::ledger;
use crate::plan::Plan;
use crate::prices::{Bound, TooDear, at_most, least_worst, only_as, only_types, types_for_min_values, zones};
use crate::subject::Subject;
use crate::what_if::{Destinations, Outcome};
use crate::{Action, Floor, KeepReason, Policy, Reason};

/// So many cheaper types must be left to choose from: then the one that is launched is most likely among the cheapest,
/// and is not moved again at once.
const SPOT_TYPES: usize = 15;

/// For so long both a node and its replacement are there: one boots, then the other drains.
const OVERLAP: SignedDuration = SignedDuration::from_mins(5);

/// What becomes of the nodes and their pods.
#[derive(Debug, Clone)]
pub(crate) struct Moved {
    pub(crate) action: Action,
    pub(crate) outcome: Outcome,
    pub(crate) savings: Option<Price>,
    /// By node.
    pub(crate) moving: Vec<Vec<Arc<Pod>>>,
}

impl Moved {
    /// How many pods have to run elsewhere.
    pub(crate) fn pods(&self) -> usize {
        self.moving.iter().map(Vec::len).sum()
    }
}

/// What would become of the pods if the nodes went, whatever that costs.
pub(crate) struct Simulated {
    /// By node.
    pub(crate) moving: Vec<Vec<Arc<Pod>>>,
    pub(crate) outcome: Outcome,
}

/// What removing the nodes together comes to.
///
/// # Errors
/// Why it is not possible or not worth it.
pub(crate) fn find<'a>(plan: &Plan<'_, 'a>, totals: &Totals, subjects: &[&Subject<'a>]) -> Result<Moved, KeepReason> {
    weigh(plan, totals, subjects, simulate(plan, subjects)?)
}

/// # Errors
/// Why the nodes cannot go together.
pub(crate) fn simulate<'a>(plan: &Plan<'_, 'a>, subjects: &[&Subject<'a>]) -> Result<Simulated, KeepReason> {
    let moving: Vec<Vec<Arc<Pod>>> = subjects.iter().map(|subject| plan.context.moving(subject)).collect();
    let outcome = destinations(plan, subjects, &moving.concat())?;
    Ok(Simulated { moving, outcome })
}

/// # Errors
/// Why it is not worth it, or not allowed.
pub(crate) fn weigh<'a>(
    plan: &Plan<'_, 'a>,
    totals: &Totals,
    subjects: &[&Subject<'a>],
    Simulated { moving, mut outcome }: Simulated,
) -> Result<Moved, KeepReason> {
    if outcome.new_claims.is_empty() {
        let savings = saved_by_deleting(subjects);
        totals.approve(subjects, savings.filter(|_| price_of(subjects).is_some()), true)?;
        return Ok(Moved { action: Action::Delete, outcome, savings, moving });
    }
    ledger::check(plan, subjects)?;
    subjects.iter().try_for_each(|subject| plan.check_back_off(subject, Reason::Underutilized))?;
    let claims = replace(plan, subjects, std::mem::take(&mut outcome.new_claims))?;
    let cheapest = claims.iter().try_fold(Price::ZERO, |sum, claim| sum.checked_add(claim.price()?));
    let savings = price_of(subjects).zip(cheapest).and_then(|(price, cheapest)| price.checked_sub(cheapest));
    totals.approve(subjects, savings, false)?;
    pays_off(plan, subjects, savings.zip(cheapest))?;
    look_ahead(plan, subjects, &moving.concat())?;
    if !plan.limits.allow(subjects, &claims) {
        return Err(KeepReason::NextRound);
    }
    outcome.new_claims.clone_from(&claims);
    Ok(Moved { action: Action::Replace(claims), outcome, savings, moving })
}

/// Where the pods would go. Not onto nodes that drift takes next, unless nothing else that is there has room: they would
/// move twice.
fn destinations<'a>(
    plan: &Plan<'_, 'a>,
    subjects: &[&Subject<'a>],
    moving: &[Arc<Pod>],
) -> Result<Outcome, KeepReason> {
    if plan.policy() == Policy::Best && plan.simulator.has_drifted() {
        let current = plan.simulator.ask(subjects, moving, Destinations::SettledNotDrifted);
        if let Ok(outcome) = current
            && outcome.new_claims.is_empty()
        {
            return Ok(outcome);
        }
    }
    plan.simulator.ask(subjects, moving, Destinations::Settled)
}

/// The claims, narrowed to what is surely cheaper than the nodes.
fn replace(
    plan: &Plan<'_, '_>,
    subjects: &[&Subject<'_>],
    claims: Vec<PlannedClaim>,
) -> Result<Vec<PlannedClaim>, KeepReason> {
    let most = match plan.policy() {
        Policy::Compatible => 1,
        // One node may become two, and several as many: more small nodes are cheaper at times, and always more trouble.
        Policy::Best => subjects.len().max(2),
    };
    if claims.len() > most {
        return Err(KeepReason::TooManyReplacements { nodes: claims.len() });
    }
    let Some(price) = price_of(subjects) else { return Err(KeepReason::UnknownPrice) };
    let dear = |dear: TooDear| dear.keep(price);
    // A launch takes a reservation that has room before anything else.
    let reserve = |claim: PlannedClaim| match claim.may_be(capacity_type::RESERVED) {
        true => only_as(&claim, capacity_type::RESERVED),
        false => Ok(claim),
    };
    let mut claims = claims.into_iter().map(reserve).collect::<Result<Vec<_>, _>>().map_err(dear)?;
    let may_be_spot = |claim: &PlannedClaim| claim.may_be(capacity_type::SPOT);
    let to_spot = subjects.iter().all(|subject| subject.is_spot()) && claims.iter().any(may_be_spot);
    if to_spot {
        if !plan.context.view.settings.gates.spot_to_spot_consolidation {
            return Err(KeepReason::SpotToSpotDisabled);
        }
        let only_spot = claims.iter().map(|claim| only_as(claim, capacity_type::SPOT));
        claims = only_spot.collect::<Result<Vec<_>, _>>().map_err(dear)?;
    }
    let mut claims = surely_cheaper(plan, subjects, price, claims)?;
    if to_spot && subjects.len() == 1 {
        claims = claims.iter().map(|claim| flexible_enough(subjects, claim)).collect::<Result<_, _>>()?;
    }
    let pin = |claim: PlannedClaim| {
        let both = [capacity_type::SPOT, capacity_type::ON_DEMAND];
        match both.into_iter().all(|kind| claim.may_be(kind)) {
            true => only_as(&claim, capacity_type::SPOT),
            false => Ok(claim),
        }
    };
    claims.into_iter().map(pin).collect::<Result<_, _>>().map_err(dear)
}

/// Keeps the options with which all claims together cost less than the nodes, wherever they are launched.
fn surely_cheaper(
    plan: &Plan<'_, '_>,
    subjects: &[&Subject<'_>],
    price: Price,
    claims: Vec<PlannedClaim>,
) -> Result<Vec<PlannedClaim>, KeepReason> {
    let floor = floor(plan.context.view.settings.floor, price);
    let target = match floor {
        Price::ZERO => Bound::Below(price),
        floor => Bound::AtMost(price.checked_sub(floor).unwrap_or(Price::ZERO)),
    };
    let several = claims.len() > 1;
    let bounds = match several {
        false => vec![target],
        true => shares(price, floor, &claims)?,
    };
    let same_type = same_type_bound(subjects, &claims).filter(|_| subjects.len() > 1);
    let mut narrowed = Vec::with_capacity(claims.len());
    for (claim, bound) in claims.into_iter().zip(bounds) {
        let cheaper = cheap_somewhere(plan, &claim, bound).map_err(|dear| explain(dear, price, floor))?;
        let cheaper = match same_type {
            None => cheaper,
            Some(lowest) => at_most(&cheaper, Bound::Below(lowest)).map_err(|dear| match dear {
                TooDear::Nothing { .. } => KeepReason::SameType,
                TooDear::MinValues { .. } => dear.keep(price),
            })?,
        };
        narrowed.push(cheaper);
    }
    Ok(narrowed)
}

/// With [`Policy::Best`] a claim that is too dear in its worst zone is pinned to a zone where it is not.
fn cheap_somewhere(plan: &Plan<'_, '_>, claim: &PlannedClaim, bound: Bound) -> Result<PlannedClaim, TooDear> {
    match (at_most(claim, bound), plan.policy()) {
        (Err(TooDear::Nothing { cheapest }), Policy::Best) => {
            let pinned: Vec<_> = zones(claim).iter().filter_map(|zone| claim.only_zone(zone)).collect();
            let found = pinned.iter().find_map(|pinned| at_most(pinned, bound).ok());
            let cheapest = pinned.iter().filter_map(least_worst).chain(cheapest).min();
            found.ok_or(TooDear::Nothing { cheapest })
        }
        (other, Policy::Best | Policy::Compatible) => other,
    }
}

/// What each of several claims may cost, so that all together stay below the nodes.
fn shares(price: Price, floor: Price, claims: &[PlannedClaim]) -> Result<Vec<Bound>, KeepReason> {
    let least: Option<Vec<Price>> = claims.iter().map(least_worst).collect();
    let sum = |prices: &[Price]| prices.iter().try_fold(Price::ZERO, |sum, price| sum.checked_add(*price));
    let too_many = KeepReason::TooManyReplacements { nodes: claims.len() };
    let Some(least) = least else { return Err(too_many) };
    let left = sum(&least).and_then(|least| price.checked_sub(floor)?.checked_sub(least));
    match left {
        Some(left) if left > Price::ZERO => {
            let share = left.micros() / i64::try_from(claims.len()).unwrap_or(i64::MAX);
            // Without a floor, equal is not cheaper.
            let strictly = i64::from(floor == Price::ZERO);
            let bound =
                |least: &Price| Price::from_micros(least.micros().saturating_add(share).saturating_sub(strictly));
            Ok(least.iter().map(|least| Bound::AtMost(bound(least))).collect())
        }
        Some(_) | None => Err(too_many),
    }
}

/// The least that a move must save.
fn floor(floor: Floor, price: Price) -> Price {
    let percent = price.micros().saturating_mul(i64::from(floor.percent)) / 100;
    floor.absolute.max(Price::from_micros(percent))
}

fn explain(dear: TooDear, price: Price, floor: Price) -> KeepReason {
    match dear {
        TooDear::Nothing { cheapest: Some(cheapest) } if cheapest < price => {
            KeepReason::BelowFloor { savings: price.checked_sub(cheapest).unwrap_or_default(), floor }
        }
        TooDear::Nothing { .. } | TooDear::MinValues { .. } => dear.keep(price),
    }
}

/// If a replacement may be of a type that goes, it must be cheaper than the cheapest node of that type: otherwise keeping
/// that node does the same.
fn same_type_bound(subjects: &[&Subject<'_>], claims: &[PlannedClaim]) -> Option<Price> {
    let offered = |subject: &&&Subject<'_>| {
        let own = subject.kind.map(|kind| &kind.name);
        claims.iter().flat_map(|claim| claim.options.iter()).any(|option| Some(&option.instance_type) == own)
    };
    subjects.iter().filter(offered).filter_map(|subject| subject.price).min()
}

fn flexible_enough(subjects: &[&Subject<'_>], claim: &PlannedClaim) -> Result<PlannedClaim, KeepReason> {
    let found = claim.options.len();
    if found < SPOT_TYPES {
        return Err(KeepReason::TooFewSpotTypes { found, wanted: SPOT_TYPES });
    }
    let wanted = SPOT_TYPES.max(types_for_min_values(claim));
    let kept: BTreeSet<&Arc<str>> = claim.options.iter().take(wanted).map(|option| &option.instance_type).collect();
    if subjects.iter().filter_map(|subject| subject.kind).any(|kind| kept.contains(&kind.name)) {
        return Err(KeepReason::SameType);
    }
    let price = subjects.first().and_then(|subject| subject.price).unwrap_or_default();
    only_types(claim, |option| kept.contains(&option.instance_type)).map_err(|dear| dear.keep(price))
}

/// Whether the savings make up for what the new nodes cost while the old ones are there too, before those expire anyway.
/// Where several go it is enough that one of them would stay so long.
fn pays_off(
    plan: &Plan<'_, '_>,
    subjects: &[&Subject<'_>],
    savings_and_price: Option<(Price, Price)>,
) -> Result<(), KeepReason> {
    let (Policy::Best, Some((savings, price))) = (plan.policy(), savings_and_price) else { return Ok(()) };
    let ends: Option<Vec<Timestamp>> = subjects.iter().map(|subject| subject.expires_at()).collect();
    let Some(until) = ends.and_then(|ends| ends.into_iter().max()) else { return Ok(()) };
    let earned = |savings: Price, time: SignedDuration| i128::from(savings.micros()) * i128::from(time.as_secs());
    match earned(savings, until.duration_since(plan.now())) >= earned(price, OVERLAP) {
        true => Ok(()),
        false => Err(KeepReason::ExpiresFirst { savings, until }),
    }
}

/// Whether the pods would fit on nodes that settle soon, with nothing launched. Then they are not moved to a new node
/// now, only to be moved again: one move does it a little later.
fn look_ahead<'a>(plan: &Plan<'_, 'a>, subjects: &[&Subject<'a>], moving: &[Arc<Pod>]) -> Result<(), KeepReason> {
    if plan.policy() == Policy::Compatible || !plan.simulator.has_unsettled() {
        return Ok(());
    }
    match plan.simulator.ask(subjects, moving, Destinations::All) {
        Ok(later) if later.new_claims.is_empty() => Err(KeepReason::WouldBeUndone),
        Ok(_) | Err(_) => Ok(()),
    }
}
