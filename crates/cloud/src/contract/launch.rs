//! Launches.

use std::collections::BTreeSet;

use kerf_model::cloud::{HookAnswer, LaunchError, Launched};
use kerf_model::cluster::{InstanceType, NodeClaim, Offering};
use kerf_model::label::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, LabelRules, OS, ZONE, capacity_type};
use kerf_model::price::Price;
use kerf_model::quantity::{Notation, Quantity};
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::resources::ResourceName;

use super::catalogue::only_value;
use super::{Findings, PATIENCE, Rule, World, sample, terminate};
use crate::provider::{Order, Provider};

pub(super) async fn check<P: Provider>(
    provider: &P,
    world: &mut impl World<P::Class>,
    types: &[InstanceType],
    found: &mut Findings,
) {
    check_refusals(provider, world, found).await;
    let mut instances = BTreeSet::new();
    for (index, wanted) in wishes(types).into_iter().enumerate() {
        let claim = sample::claim(&format!("contract-launch-{index}"), &world.class().as_ref().class, wanted);
        let launched = match provider.launch(Order { claim: &claim, class: Some(world.class()) }).await {
            Ok(launched) => launched,
            Err(error) => {
                found.broken(Rule::LaunchMeetsTheClaim, format!("{}: {error}", claim.node.requirements));
                continue;
            }
        };
        check_answer(&claim, &launched, types, provider.label_rules(), found);
        let is_new = instances.insert(launched.provider_id.clone());
        found.expect(Rule::OneInstancePerClaim, is_new, || format!("{} has two claims", launched.provider_id));
        check_again(provider, world, &claim, &launched, found).await;
        check_hooks(provider, world, &sample::with_launch(claim, &launched, world.now()), found).await;
        terminate::end(provider, world, &launched.provider_id, found).await;
    }
}

/// Nothing in particular; every zone, architecture and system there is; one type by name.
fn wishes(types: &[InstanceType]) -> Vec<Requirements> {
    let rules = LabelRules::core();
    let on_demand = Requirement::one_of(CAPACITY_TYPE, [capacity_type::ON_DEMAND]);
    let mut wishes = vec![Requirements::new()];
    let mut wish = |key: &str, value: &str| {
        let mut wanted = Requirements::new();
        wanted.add(on_demand.clone(), &rules);
        wanted.add(Requirement::one_of(key, [value]), &rules);
        wishes.push(wanted);
    };
    for key in [ZONE, ARCH, OS] {
        let entries = types.iter().filter_map(|kind| kind.requirements.get(key));
        let values: BTreeSet<_> = entries.flat_map(|entry| entry.values().iter().cloned()).collect();
        values.iter().for_each(|value| wish(key, value));
    }
    if let Some(last) = types.last() {
        wish(INSTANCE_TYPE, &last.name);
    }
    wishes
}

fn check_answer(
    claim: &NodeClaim,
    launched: &Launched,
    types: &[InstanceType],
    rules: &LabelRules,
    found: &mut Findings,
) {
    let wanted = &claim.node.requirements;
    let labels = launched.labels.iter().map(|(key, value)| (&**key, &**value));
    let labels = Requirements::from_labels(labels, rules);
    if let Err(mismatch) = labels.intersects(wanted) {
        found.broken(Rule::LaunchMeetsTheClaim, mismatch.to_string());
    }
    for key in [INSTANCE_TYPE, ZONE, CAPACITY_TYPE, ARCH, OS] {
        found.expect(Rule::LaunchMeetsTheClaim, labels.get(key).is_some(), || format!("{wanted}: no label {key}"));
    }
    let has_room = claim.requests.fits(&launched.allocatable) && !launched.capacity.is_empty();
    found.expect(Rule::LaunchMeetsTheClaim, has_room, || format!("{wanted}: capacity {}", launched.capacity));

    let mut launchable = types.iter().flat_map(|kind| kind.offerings.iter().map(move |offering| (kind, offering)));
    let taken = launchable.find(|(kind, offering)| {
        kind.requirements.intersects(&labels).is_ok() && offering.requirements.intersects(&labels).is_ok()
    });
    let Some((kind, taken)) = taken else {
        return found.broken(Rule::LaunchMeetsTheClaim, format!("{wanted}: nothing on offer has the labels {labels}"));
    };
    let lowest = lowest_on_demand_price(types, wanted);
    let is_on_demand = only_value(&taken.requirements, CAPACITY_TYPE).as_deref() == Some(capacity_type::ON_DEMAND);
    found.expect(Rule::LaunchIsCheap, !is_on_demand || lowest.is_none_or(|lowest| taken.price <= lowest), || {
        format!("{wanted}: {} for {}", kind.name, taken.price)
    });
}

fn lowest_on_demand_price(types: &[InstanceType], wanted: &Requirements) -> Option<Price> {
    let is_possible = |offering: &&Offering| {
        let kind = only_value(&offering.requirements, CAPACITY_TYPE);
        let on_demand = kind.as_deref() == Some(capacity_type::ON_DEMAND);
        on_demand && offering.is_launchable() && offering.requirements.intersects(wanted).is_ok()
    };
    let fitting = types.iter().filter(|kind| kind.requirements.intersects(wanted).is_ok());
    fitting.flat_map(|kind| kind.offerings.iter().filter(is_possible)).map(|offering| offering.price).min()
}

/// The answer may have been lost, and the claim's status with it.
async fn check_again<P: Provider>(
    provider: &P,
    world: &mut impl World<P::Class>,
    claim: &NodeClaim,
    launched: &Launched,
    found: &mut Findings,
) {
    terminate::start(provider, world, claim, launched, found).await;
    let before = terminate::running(provider, found).await.len();
    match provider.launch(Order { claim, class: Some(world.class()) }).await {
        Ok(again) => {
            let same = again.provider_id == launched.provider_id && again.labels == launched.labels;
            found.expect(Rule::OneInstancePerClaim, same, || {
                format!("{} became {} when launched again", launched.provider_id, again.provider_id)
            });
        }
        Err(error) => found.broken(Rule::OneInstancePerClaim, format!("launched again: {error}")),
    }
    let after = terminate::running(provider, found).await;
    found.expect(Rule::OneInstancePerClaim, after.len() == before, || {
        format!("{before} instances became {} when {} was launched again", after.len(), launched.provider_id)
    });
    let listed = after.iter().filter(|id| **id == launched.provider_id).count();
    found
        .expect(Rule::InstancesAreListed, listed == 1, || format!("{} is listed {listed} times", launched.provider_id));
}

async fn check_hooks<P: Provider>(
    provider: &P,
    world: &mut impl World<P::Class>,
    claim: &NodeClaim,
    found: &mut Findings,
) {
    for hook in provider.registration_hooks() {
        let mut last = None;
        for _ in 0..PATIENCE {
            last = Some(provider.run_hook(hook, Order { claim, class: Some(world.class()) }).await);
            if matches!(last, Some(Ok(HookAnswer::Done { .. }))) {
                break;
            }
            world.wait().await;
        }
        let again = provider.run_hook(hook, Order { claim, class: Some(world.class()) }).await;
        let is_done =
            matches!((&last, &again), (Some(Ok(first)), Ok(again @ HookAnswer::Done { .. })) if first == again);
        found.expect(Rule::HooksComeToAnEnd, is_done, || format!("{hook} said {last:?}, then {again:?}"));
    }
}

async fn check_refusals<P: Provider>(provider: &P, world: &impl World<P::Class>, found: &mut Findings) {
    let class = world.class();
    let claim = |name: &str, requirements| sample::claim(name, &class.as_ref().class, requirements);

    let unclassed = claim("contract-no-class", Requirements::new());
    let mut huge = claim("contract-huge", Requirements::new());
    huge.requests.insert(ResourceName::CPU, Quantity::from_value(1_000_000, Notation::DecimalSi));
    let mut unknown = Requirements::new();
    unknown.add(Requirement::one_of(INSTANCE_TYPE, ["contract.no-such-type"]), &LabelRules::core());
    let unknown = claim("contract-unknown-type", unknown);

    let cases = [
        ("no class", Order { claim: &unclassed, class: None }),
        ("a million CPUs", Order { claim: &huge, class: Some(class) }),
        ("an unknown type", Order { claim: &unknown, class: Some(class) }),
    ];
    for (what, order) in cases {
        let answer = provider.launch(order).await;
        let refused = matches!(answer, Err(LaunchError::InsufficientCapacity { .. }));
        found.expect(Rule::LaunchRefusesTheImpossible, refused, || format!("{what}: {answer:?}"));
        if let Ok(launched) = answer {
            // Not left running, whatever it is.
            let _ = provider.terminate(&launched.provider_id).await;
        }
    }
}
