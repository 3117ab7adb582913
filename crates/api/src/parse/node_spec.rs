//! The part that a pool's template and a claim share.

use kerf_model::duration::NillableDuration;
use kerf_model::label::{self, LabelRules, capacity_type};
use kerf_model::node_pool::{NodeClassRef, NodeSpec};
use kerf_model::requirement::{Expression, Operator, Requirement, Requirements};
use kerf_model::taint::{self, Effect, Taint};

use crate::requirement::Requirement as WireRequirement;
use crate::schema::{NodeClassRef as WireClassRef, Taint as WireTaint};
use crate::text::{DurationText, NillableDurationText};

use super::problem::{Collector, Violation};

/// What the schema fills in where the user gave nothing.
const DEFAULT_EXPIRE_AFTER: &str = "720h";

/// Labels with a closed set of values.
const KNOWN_VALUES: [(&str, &[&str]); 2] = [
    (label::CAPACITY_TYPE, &[capacity_type::ON_DEMAND, capacity_type::SPOT, capacity_type::RESERVED]),
    ("karpenter.k8s.aws/instance-tenancy", &["default", "dedicated"]),
];

/// The fields in which a template and a claim write the same thing.
pub struct WireNodeSpec<'a> {
    /// Where they are, such as `spec.template.spec`.
    pub path: &'static str,
    pub class: &'a WireClassRef,
    pub requirements: &'a [WireRequirement],
    pub taints: Option<&'a Vec<WireTaint>>,
    pub startup_taints: Option<&'a Vec<WireTaint>>,
    pub expire_after: Option<&'a NillableDurationText>,
    pub termination_grace_period: Option<&'a DurationText>,
}

pub fn node_spec(wire: &WireNodeSpec<'_>, rules: &LabelRules, problems: &mut Collector) -> Option<NodeSpec> {
    let path = wire.path;
    let requirements = requirements(&format!("{path}.requirements"), wire.requirements, rules, problems);
    let taints = taints(&format!("{path}.taints"), wire.taints, problems);
    let startup_taints = taints_of_start(wire, problems);
    if let Some(twice) = taint::first_duplicate(taints.iter().chain(&startup_taints)) {
        problems.refuse(format!("{path}.taints"), Violation::DuplicateTaint(twice.clone()));
    }
    let expire_after = wire.expire_after.map_or(DEFAULT_EXPIRE_AFTER, NillableDurationText::as_str);
    let expire_after: Option<NillableDuration> =
        problems.nillable_duration(&format!("{path}.expireAfter"), expire_after);
    let termination_grace_period = wire
        .termination_grace_period
        .and_then(|text| problems.duration(&format!("{path}.terminationGracePeriod"), text.as_str()));
    Some(NodeSpec {
        class: NodeClassRef {
            group: wire.class.group.as_str().into(),
            kind: wire.class.kind.as_str().into(),
            name: wire.class.name.as_str().into(),
        },
        requirements,
        taints,
        startup_taints,
        expire_after: expire_after?,
        termination_grace_period,
    })
}

fn taints_of_start(wire: &WireNodeSpec<'_>, problems: &mut Collector) -> Vec<Taint> {
    taints(&format!("{}.startupTaints", wire.path), wire.startup_taints, problems)
}

fn taints(field: &str, wire: Option<&Vec<WireTaint>>, problems: &mut Collector) -> Vec<Taint> {
    let mut taints = Vec::new();
    for (index, wire) in wire.into_iter().flatten().enumerate() {
        let field = format!("{field}[{index}]");
        let value = wire.value.as_deref().unwrap_or_default();
        if let Err(error) = label::check_qualified_name(&wire.key) {
            problems.refuse(format!("{field}.key"), Violation::LabelKey(error));
        }
        if !value.is_empty()
            && let Err(error) = label::check_qualified_name(value)
        {
            problems.refuse(format!("{field}.value"), Violation::LabelValue(error));
        }
        match wire.effect.parse::<Effect>() {
            Ok(effect) => taints.push(Taint::new(&wire.key, value, effect)),
            Err(_) => problems.refuse(format!("{field}.effect"), Violation::Effect(wire.effect.clone())),
        }
    }
    taints
}

/// Also those of overlays.
pub fn requirements(
    path: &str,
    wire: &[WireRequirement],
    rules: &LabelRules,
    problems: &mut Collector,
) -> Requirements {
    let mut requirements = Requirements::new();
    for (index, wire_requirement) in wire.iter().enumerate() {
        let field = format!("{path}[{index}]");
        if let Some(requirement) = requirement(&field, wire_requirement, rules, problems) {
            requirements.add(requirement, rules);
        }
    }
    requirements
}

fn requirement(
    field: &str,
    wire: &WireRequirement,
    rules: &LabelRules,
    problems: &mut Collector,
) -> Option<Requirement> {
    let key = rules.normalise(&wire.key);
    let values = wire.values.as_deref().unwrap_or_default();
    if let Err(error) = rules.check_unrestricted(key) {
        problems.refuse(format!("{field}.key"), Violation::Restricted(error));
    }
    if let Err(error) = label::check_qualified_name(key) {
        problems.refuse(format!("{field}.key"), Violation::LabelKey(error));
    }
    for (index, value) in values.iter().enumerate() {
        if let Err(error) = label::check_value(value) {
            problems.refuse(format!("{field}.values[{index}]"), Violation::LabelValue(error));
        }
    }
    let operator: Operator = problems.take(&format!("{field}.operator"), wire.operator.parse(), Violation::Operator)?;
    let min_values = wire.min_values.map(u32::from);
    if operator == Operator::In {
        check_known_values(field, key, values, min_values, problems);
    }
    let mut expression = Expression::new(key, operator, values);
    expression.min_values = min_values;
    problems.take(field, Requirement::try_from(&expression), Violation::Requirement)
}

/// A value that nothing can ever have is worth a word; only such values make the requirement useless.
fn check_known_values(field: &str, key: &str, values: &[String], min_values: Option<u32>, problems: &mut Collector) {
    let field = format!("{field}.values");
    let known = KNOWN_VALUES.iter().find(|(known_key, _)| *known_key == key).map(|(_, known)| *known);
    let unknown: Vec<String> = match known {
        Some(known) => values.iter().filter(|value| !known.contains(&value.as_str())).cloned().collect(),
        None => Vec::new(),
    };
    let usable = values.len() - unknown.len();
    if let Some(known) = known {
        if usable == 0 && !values.is_empty() {
            return problems.refuse(field, Violation::NoKnownValue { known });
        }
        if !unknown.is_empty() {
            problems.warn(field.clone(), Violation::UnknownValues { unknown, known });
        }
    }
    if let Some(needed) = min_values
        && usable < needed as usize
    {
        problems.refuse(field, Violation::MinValues { needed, given: usable });
    }
}
