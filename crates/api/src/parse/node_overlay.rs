//! Overlays.

use std::sync::Arc;

use kerf_model::cluster::{NodeOverlay, OverlaySpec, PriceChange};
use kerf_model::label::LabelRules;
use kerf_model::price::{ParsePriceError, Price};
use kerf_model::resources::ResourceName;

use crate::node_overlay::NodeOverlay as WireOverlay;

use super::metadata::{conditions, object_meta};
use super::node_spec::requirements;
use super::problem::{Collector, Violation};
use super::{ParseError, Parsed, Problem};

/// What every type has and no overlay may change (sheet 01 §4.1).
const NOT_EXTENDED: [ResourceName; 4] =
    [ResourceName::CPU, ResourceName::MEMORY, ResourceName::EPHEMERAL_STORAGE, ResourceName::PODS];

/// An overlay that cannot be used is stored as such: its status tells why.
pub fn node_overlay(wire: &WireOverlay, rules: &LabelRules) -> Parsed<NodeOverlay> {
    let (spec, warnings) = match spec(wire, rules) {
        Ok(parsed) => (Ok(parsed.value), parsed.warnings),
        Err(error) => {
            let texts: Vec<String> = error.problems.iter().map(Problem::to_string).collect();
            (Err(Arc::from(texts.join("; "))), error.problems)
        }
    };
    let status = wire.status.as_ref().and_then(|status| status.conditions.as_deref());
    Parsed { value: NodeOverlay { meta: object_meta(&wire.metadata), spec, conditions: conditions(status) }, warnings }
}

fn spec(wire: &WireOverlay, rules: &LabelRules) -> Result<Parsed<OverlaySpec>, ParseError> {
    let mut problems = Collector::default();
    let requirements = requirements("spec.requirements", &wire.spec.requirements, rules, &mut problems);
    let capacity = problems.resources("spec.capacity", wire.spec.capacity.as_ref());
    for (name, _) in capacity.iter().filter(|(name, _)| NOT_EXTENDED.contains(name)) {
        problems.refuse(format!("spec.capacity[{name}]"), Violation::NotExtended);
    }
    let price = match (&wire.spec.price, &wire.spec.price_adjustment) {
        (Some(text), _) => problems.take("spec.price", text.parse().map(PriceChange::Fixed), Violation::Price),
        (None, Some(text)) => problems.take("spec.priceAdjustment", adjustment(text), Violation::Price),
        (None, None) => None,
    };
    let parsed = OverlaySpec {
        weight: u32::try_from(wire.spec.weight.unwrap_or(0)).unwrap_or(0),
        requirements,
        price,
        capacity,
    };
    problems.finish("NodeOverlay", wire.metadata.name.as_deref().unwrap_or_default(), Some(parsed))
}

/// `+5`, `-0.1`, `+10%`, `-3.5%`. The sign is part of the form.
fn adjustment(text: &str) -> Result<PriceChange, ParsePriceError> {
    let number = |text: &str| text.strip_prefix('+').unwrap_or(text).parse::<Price>();
    match text.strip_suffix('%') {
        // The millionths of a number are what a price is made of.
        Some(percent) => Ok(PriceChange::Percent { millionths: number(percent)?.micros() }),
        None => Ok(PriceChange::Add(number(text)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parse(spec: Value) -> Result<OverlaySpec, Arc<str>> {
        let wire = json!({"metadata": {"name": "o"}, "spec": spec});
        node_overlay(&serde_json::from_value(wire).unwrap(), &LabelRules::core()).value.spec
    }

    #[test]
    fn prices_are_fixed_or_moved_by_an_amount_or_a_percentage() {
        let price = |spec: Value| {
            let mut all = json!({"requirements": []});
            all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
            parse(all).unwrap().price
        };
        let dollars = |text: &str| text.parse::<Price>().unwrap();
        assert_eq!(price(json!({"price": "1.5"})), Some(PriceChange::Fixed(dollars("1.5"))));
        assert_eq!(price(json!({"priceAdjustment": "+5"})), Some(PriceChange::Add(dollars("5"))));
        assert_eq!(price(json!({"priceAdjustment": "-.5"})), Some(PriceChange::Add(dollars("-0.5"))));
        assert_eq!(price(json!({"priceAdjustment": "-10%"})), Some(PriceChange::Percent { millionths: -10_000_000 }));
        assert_eq!(price(json!({})), None);
    }

    #[test]
    fn an_overlay_of_what_is_not_extended_or_restricted_says_so() {
        let error = parse(json!({"requirements": [], "capacity": {"cpu": "4", "example.com/slots": "2"}})).unwrap_err();
        assert!(error.starts_with("spec.capacity[cpu]: "), "{error}");
        let key = json!({"requirements": [{"key": "karpenter.sh/odd", "operator": "Exists"}]});
        assert!(parse(key).unwrap_err().starts_with("spec.requirements[0].key: "));
        let pool = json!([{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["a"]}]);
        assert_eq!(parse(json!({"requirements": pool, "weight": 7})).unwrap().weight, 7);
    }
}
