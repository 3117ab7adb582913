//! Instance types.

use std::collections::BTreeSet;
use std::sync::Arc;

use kerf_model::cluster::{InstanceType, Offering};
use kerf_model::label::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, LabelRules, OS, ZONE, capacity_type};
use kerf_model::price::Price;
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::resources::ResourceName;

use super::{Findings, Rule, World, sample};
use crate::catalogue::InstanceTypes;
use crate::provider::Provider;

pub(super) async fn check<P: Provider>(
    provider: &P,
    world: &impl World<P::Class>,
    found: &mut Findings,
) -> InstanceTypes {
    let class = world.class();
    let pool = sample::pool("contract", &class.as_ref().class);
    let answers = [provider.instance_types(&pool, class).await, provider.instance_types(&pool, class).await];
    let [types, again] = answers.map(|answer| {
        answer.unwrap_or_else(|error| {
            found.broken(Rule::TypesAreListed, error.to_string());
            Arc::from([])
        })
    });
    found.expect(Rule::TypesAreListed, !types.is_empty(), || "there are no instance types".to_owned());
    found.expect(Rule::TypesAreListed, types == again, || "a second answer differs".to_owned());
    let mut names = BTreeSet::new();
    for instance_type in types.iter() {
        let name = &instance_type.name;
        found.expect(Rule::TypesAreListed, names.insert(name), || format!("{name} is listed twice"));
        check_labels(instance_type, provider.label_rules(), found);
        check_room(instance_type, found);
        for offering in &instance_type.offerings {
            let problem = placement_problem(instance_type, offering);
            if let Some(problem) = problem {
                found.broken(Rule::OfferingsArePlaced, format!("{name}: {problem}"));
            }
        }
    }
    types
}

fn check_labels(instance_type: &InstanceType, rules: &LabelRules, found: &mut Findings) {
    let name = &instance_type.name;
    for key in [INSTANCE_TYPE, ARCH, OS] {
        let settled = instance_type.requirements.get(key).and_then(Requirement::count).is_some_and(|count| count > 0);
        found.expect(Rule::TypesAreLabelled, settled, || format!("{name} does not say its {key}"));
    }
    let is_named = instance_type.requirements.get(INSTANCE_TYPE).is_some_and(|own| own.has(name));
    found.expect(Rule::TypesAreLabelled, is_named, || format!("{name} is labelled with another name"));
    let of_offerings = instance_type.offerings.iter().flat_map(|offering| offering.requirements.iter());
    for requirement in instance_type.requirements.iter().chain(of_offerings) {
        let key = requirement.key();
        found.expect(Rule::TypesAreLabelled, rules.is_well_known(key), || format!("{name}: {key} is not well known"));
    }
}

fn check_room(instance_type: &InstanceType, found: &mut Findings) {
    let (name, allocatable) = (&instance_type.name, instance_type.allocatable());
    let fits = allocatable.fits(&instance_type.capacity);
    found.expect(Rule::TypesHaveRoom, fits, || format!("{name} offers pods more than it has"));
    for resource in [ResourceName::CPU, ResourceName::MEMORY, ResourceName::PODS] {
        let amount = allocatable.amount(resource.as_str());
        found.expect(Rule::TypesHaveRoom, !amount.is_zero(), || format!("{name} offers pods no {resource}"));
    }
}

fn placement_problem(instance_type: &InstanceType, offering: &Offering) -> Option<String> {
    let only = |key: &str| only_value(&offering.requirements, key);
    let Some(zone) = only(ZONE) else { return Some("an offering without its one zone".to_owned()) };
    let Some(kind) = only(CAPACITY_TYPE) else {
        return Some(format!("an offering in {zone} without its capacity type"));
    };
    let known = [capacity_type::ON_DEMAND, capacity_type::SPOT, capacity_type::RESERVED];
    if !known.contains(&&*kind) {
        return Some(format!("the capacity type {kind} does not exist"));
    }
    if offering.price < Price::ZERO {
        return Some(format!("the price in {zone} is negative"));
    }
    let stray = instance_type.requirements.intersects(&offering.requirements).err()?;
    Some(format!("an offering is not of its type: {stray}"))
}

pub(super) fn only_value(requirements: &Requirements, key: &str) -> Option<Arc<str>> {
    let requirement = requirements.get(key).filter(|requirement| requirement.count() == Some(1))?;
    requirement.values().first().cloned()
}
