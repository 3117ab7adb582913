//! From open claims to the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_model::cluster::{Owner, Pod, Texts};
use kerf_model::label::{self, LabelRules, annotation, capacity_type};
use kerf_model::node_pool::NodeSpec;
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::resources::ResourceList;

use super::{OpenClaim, Solver};
use crate::amounts::sum;
use crate::bits::Bits;
use crate::problem::MinValuesPolicy;
use crate::refusal::{Overall, Refusal, Unplaced};
use crate::reservation::ReservationId;
use crate::schedule::{OnHost, PlannedClaim, Schedule, TypeOption};
use crate::sets::SetId;
use crate::template::Template;

/// What claims alike become, but for their pods.
struct Finished {
    owner: Owner,
    labels: Texts,
    annotations: Texts,
    node: NodeSpec,
    options: Arc<[Arc<TypeOption>]>,
    overhead: ResourceList,
}

type Alike = (usize, SetId, Bits, Option<ReservationId>, bool);

/// Options of one template, set and reservation by type: claims that differ in their types share them.
type KnownOptions = BTreeMap<(usize, SetId, Option<ReservationId>), Vec<Option<Arc<TypeOption>>>>;

impl Solver<'_, '_> {
    pub(super) fn finish(mut self) -> Schedule {
        let hosts = &self.base.hosts.all;
        let on_hosts = std::mem::take(&mut self.on_hosts);
        let on_existing = on_hosts
            .into_iter()
            .filter(|(_, state)| !state.pods.is_empty())
            .map(|(at, state)| OnHost {
                host: hosts[at].host.clone(),
                is_initialized: hosts[at].is_initialized,
                pods: state.pods,
            })
            .collect();
        let mut schedule =
            Schedule { on_existing, new_claims: Vec::new(), unplaced: std::mem::take(&mut self.unplaced) };
        let mut known: BTreeMap<Alike, Result<Finished, Refusal>> = BTreeMap::new();
        let mut options = KnownOptions::new();
        for claim in std::mem::take(&mut self.claims) {
            if claim.pods.is_empty() {
                continue;
            }
            let alike = (claim.template, claim.set, claim.types.clone(), claim.held, claim.min_values_relaxed);
            let finished = known.entry(alike).or_insert_with(|| self.finish_like(&claim, &mut options));
            let requests = claim.pods.iter().map(|queued| self.lists[self.shapes[queued.shape].request]);
            let pods: Vec<Arc<Pod>> = claim.pods.iter().map(|queued| Arc::clone(queued.pod)).collect();
            let pool = &self.base.templates[claim.template].pool.name;
            match finished {
                Ok(finished) => schedule.new_claims.push(PlannedClaim {
                    pool: Arc::clone(pool),
                    owner: finished.owner.clone(),
                    labels: finished.labels.clone(),
                    annotations: finished.annotations.clone(),
                    node: finished.node.clone(),
                    options: Arc::clone(&finished.options),
                    requests: sum(requests.chain([&finished.overhead])),
                    pods,
                    min_values_relaxed: claim.min_values_relaxed,
                }),
                Err(refusal) => {
                    let pools = BTreeMap::from([(Arc::clone(pool), refusal.clone())]);
                    let why = Arc::new(Unplaced { overall: Overall::NoPlace, pools });
                    schedule.unplaced.extend(pods.into_iter().map(|pod| (pod, Arc::clone(&why))));
                }
            }
        }
        schedule
    }

    fn finish_like(&mut self, claim: &OpenClaim<'_>, known: &mut KnownOptions) -> Result<Finished, Refusal> {
        let (at, set, held) = (claim.template, claim.set, claim.held);
        let options = self.base.supply.options;
        let template = &self.base.templates[at];
        self.select(at, set);
        let selection = self.selections[at].get(set.index()).and_then(Option::as_ref).ok_or(Refusal::NoTypes)?;
        let types = match held {
            None => claim.types.clone(),
            Some(held) => {
                let mut offering = template.offering(selection, held);
                offering.keep(&claim.types);
                offering
            }
        };
        let by_price = selection.by_price.iter().map(|(_, at)| *at as usize).filter(|at| types.contains(*at));
        let known = known.entry((at, set, held)).or_insert_with(|| vec![None; template.types.len()]);
        let mut option = |at: usize| {
            if known[at].is_none() {
                let held = held.map(|held| (held, self.slots.name(held)));
                known[at] = template.option(at, selection, held).map(Arc::new);
            }
            known[at].clone()
        };
        let mut named: Vec<_> = by_price.filter_map(|at| Some((at, option(at)?))).collect();
        if held.is_some() || selection.reserved.iter().any(|(_, _, kind)| types.contains(*kind as usize)) {
            // Not every offering that the order looked at is launched from.
            named.sort_by(|(_, a), (_, b)| (a.price, &a.instance_type).cmp(&(b.price, &b.instance_type)));
        }
        if template.has_overrides {
            named = joined(named);
        }
        named.truncate(options.max_types);
        let kept = Bits::of(template.types.len(), named.iter().map(|(at, _)| *at));
        let own = self.sets.get(set);
        if options.min_values == MinValuesPolicy::Strict
            && let Some((key, wanted, found)) = template.too_few_values(&kept, own)
        {
            return Err(Refusal::Truncated { key, wanted, found });
        }
        let chosen: Arc<[Arc<TypeOption>]> = named.into_iter().map(|(_, option)| option).collect();
        let rules = self.base.supply.rules;
        let mut requirements = written(own, &chosen);
        if let Some(held) = held {
            requirements = reserved(&requirements, rules, self.slots.name(held));
        }
        let pool = template.pool;
        let relaxed = if claim.min_values_relaxed { "true" } else { "false" };
        let mut annotations = pool.annotations.clone();
        annotations.insert(Arc::from(annotation::MIN_VALUES_RELAXED), Arc::from(relaxed));
        let owner = Owner {
            api_version: Arc::from("karpenter.sh/v1"),
            kind: Arc::from("NodePool"),
            name: Arc::clone(&pool.name),
            uid: Arc::clone(&template.stored.meta.uid),
            controller: false,
            blocks_deletion: true,
        };
        Ok(Finished {
            owner,
            labels: template.pool.claim_labels(own, rules),
            annotations,
            node: NodeSpec { requirements, ..pool.node.clone() },
            options: chosen,
            overhead: least_overhead(template, &kept),
        })
    }
}

/// Every type once, with the offerings of all its rows. Those of its cheapest row say where it stands.
fn joined(rows: Vec<(usize, Arc<TypeOption>)>) -> Vec<(usize, Arc<TypeOption>)> {
    let mut joined: Vec<(usize, Arc<TypeOption>)> = Vec::new();
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    for (row, option) in rows {
        let place = *places.entry(option.at).or_insert(joined.len());
        match joined.get_mut(place) {
            None => joined.push((row, option)),
            Some((first, own)) => {
                let (one, other) = if *first < row { (&*own, &option) } else { (&option, &*own) };
                let both = one.joined_with(other).map(Arc::new);
                *own = both.unwrap_or(option);
                *first = row.min(*first);
            }
        }
    }
    joined
}

/// What the claim says: what its pods need, the types to choose from, and how they are bought.
fn written(own: &Requirements, options: &[Arc<TypeOption>]) -> Requirements {
    let mut written = Requirements::new();
    for requirement in own.iter().filter(|own| !label::OF_NODES_ONLY.contains(&&**own.key())) {
        written.narrow(requirement.clone());
    }
    let names = options.iter().map(|option| Arc::clone(&option.instance_type)).collect();
    written.narrow(Requirement::one_of_shared(label::INSTANCE_TYPE, names));
    let offerings = options.iter().flat_map(|option| &option.offerings);
    let kinds: BTreeSet<_> = offerings.filter_map(|offering| offering.capacity_type.as_ref()).collect();
    if !kinds.is_empty() {
        written.narrow(Requirement::one_of(label::CAPACITY_TYPE, kinds));
    }
    written
}

fn reserved(written: &Requirements, rules: &LabelRules, reservation: &Arc<str>) -> Requirements {
    let mut pinned = Requirements::new();
    let id = rules.reservation_id();
    for requirement in written.iter().filter(|own| &**own.key() != label::CAPACITY_TYPE && own.key() != id) {
        pinned.narrow(requirement.clone());
    }
    pinned.narrow(Requirement::one_of(label::CAPACITY_TYPE, [capacity_type::RESERVED]));
    pinned.narrow(Requirement::one_of(Arc::clone(id), [reservation]));
    pinned
}

/// What daemons take whichever of the types it will be.
fn least_overhead(template: &Template<'_>, types: &Bits) -> ResourceList {
    let groups: BTreeSet<usize> = types.iter().map(|at| template.types[at].group).collect();
    let overheads = groups.into_iter().map(|group| template.groups[group].overhead.clone());
    overheads.reduce(|least, other| least.min(&other)).unwrap_or_default()
}
