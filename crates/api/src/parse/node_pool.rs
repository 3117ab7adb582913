//! NodePool.

use std::sync::Arc;

use kerf_model::budget::{Budget, BudgetList, BudgetText};
use kerf_model::cluster::Texts;
use kerf_model::label::{self, LabelRules};
use kerf_model::node_pool::{ConsolidationPolicy, Disruption, NodePool as Pool, PoolSize};
use kube::ResourceExt;

use crate::node_pool::{Budget as WireBudget, Disruption as WireDisruption, NodePool, TemplateMetadata};

use super::metadata::texts;
use super::node_spec::{WireNodeSpec, node_spec};
use super::problem::{Collector, Violation};
use super::{ParseError, Parsed};

/// What the schema fills in where the user gave nothing.
const DEFAULT_CONSOLIDATE_AFTER: &str = "0s";
const DEFAULT_BUDGET_NODES: &str = "10%";

/// A claim has at most this many requirements; the pool's labels become requirements too.
const MAX_REQUIREMENTS: usize = 100;

pub fn node_pool(pool: &NodePool, rules: &LabelRules) -> Result<Parsed<Pool>, ParseError> {
    let mut problems = Collector::default();
    let spec = &pool.spec;
    let template = &spec.template.spec;
    let wire = WireNodeSpec {
        path: "spec.template.spec",
        class: &template.node_class_ref,
        requirements: &template.requirements,
        taints: template.taints.as_ref(),
        startup_taints: template.startup_taints.as_ref(),
        expire_after: template.expire_after.as_ref(),
        termination_grace_period: template.termination_grace_period.as_ref(),
    };
    for (index, requirement) in template.requirements.iter().enumerate() {
        refuse_pool_label(&format!("{}.requirements[{index}].key", wire.path), &requirement.key, &mut problems);
    }
    let metadata = spec.template.metadata.as_ref();
    let labels = labels(metadata, rules, &mut problems);
    let count = labels.len() + template.requirements.len();
    if count > MAX_REQUIREMENTS {
        let violation = Violation::TooManyRequirements { count, limit: MAX_REQUIREMENTS };
        problems.refuse("spec.template.spec.requirements", violation);
    }
    let node = node_spec(&wire, rules, &mut problems);
    let disruption = disruption(pool, &mut problems);
    let size = size(spec.replicas, &mut problems);
    let weight = number("spec.weight", i64::from(spec.weight.unwrap_or(0)), &mut problems);
    let limits = problems.resources("spec.limits", spec.limits.as_ref());
    let name: Arc<str> = pool.name_any().into();
    let parsed = (|| {
        Some(Pool {
            name: Arc::clone(&name),
            weight: weight?,
            size: size?,
            limits,
            labels,
            annotations: texts(metadata.and_then(|metadata| metadata.annotations.as_ref())),
            node: node?,
            disruption: disruption?,
            disabled: spec.disabled.unwrap_or(false),
        })
    })();
    problems.finish("NodePool", &name, parsed)
}

fn labels(metadata: Option<&TemplateMetadata>, rules: &LabelRules, problems: &mut Collector) -> Texts {
    let labels = texts(metadata.and_then(|metadata| metadata.labels.as_ref()));
    for (key, value) in &labels {
        let field = format!("spec.template.metadata.labels[{key}]");
        refuse_pool_label(&field, key, problems);
        if let Err(error) = rules.check_unrestricted(key) {
            problems.refuse(field.clone(), Violation::Restricted(error));
        }
        if let Err(error) = label::check_qualified_name(key) {
            problems.refuse(field.clone(), Violation::LabelKey(error));
        }
        if let Err(error) = label::check_value(value) {
            problems.refuse(field, Violation::LabelValue(error));
        }
    }
    labels
}

/// The pool's own label is well-known, so that pods may select by it, but it is the controller that sets it.
fn refuse_pool_label(field: &str, key: &str, problems: &mut Collector) {
    if key == label::NODEPOOL {
        problems.refuse(field, Violation::PoolLabel);
    }
}

fn size(replicas: Option<i64>, problems: &mut Collector) -> Option<PoolSize> {
    match replicas {
        None => Some(PoolSize::Dynamic),
        Some(replicas) => number("spec.replicas", replicas, problems).map(|replicas| PoolSize::Static { replicas }),
    }
}

fn number<T: TryFrom<i64>>(field: &str, number: i64, problems: &mut Collector) -> Option<T> {
    problems.take(field, T::try_from(number).map_err(|_| number), Violation::OutOfRange)
}

fn disruption(pool: &NodePool, problems: &mut Collector) -> Option<Disruption> {
    let nothing = WireDisruption::default();
    let wire = pool.spec.disruption.as_ref().unwrap_or(&nothing);
    let after = wire.consolidate_after.as_ref().map_or(DEFAULT_CONSOLIDATE_AFTER, |text| text.as_str());
    let consolidate_after = problems.nillable_duration("spec.disruption.consolidateAfter", after);
    let policy = match wire.consolidation_policy.as_deref() {
        None => Some(ConsolidationPolicy::WhenEmptyOrUnderutilized),
        Some(text) => {
            problems.take("spec.disruption.consolidationPolicy", text.parse(), Violation::ConsolidationPolicy)
        }
    };
    let drift = wire.drift.as_ref();
    Some(Disruption {
        enabled: !pool.spec.disable_deprovisioning.unwrap_or(false),
        policy: policy?,
        consolidate_after: consolidate_after?,
        consolidation_enabled: wire.consolidation.as_ref().and_then(|toggle| toggle.enabled).unwrap_or(true),
        drift_enabled: drift.and_then(|toggle| toggle.enabled).unwrap_or(true),
        drift_force_evict: drift.and_then(|toggle| toggle.force_evict).unwrap_or(false),
        expiration_enabled: wire.expiration.as_ref().and_then(|toggle| toggle.enabled).unwrap_or(true),
        budgets: budgets(wire.budgets.as_deref(), problems),
    })
}

/// A budget that cannot be used is kept as one that allows nothing: the pool stays usable, and disrupts less.
fn budgets(wire: Option<&[WireBudget]>, problems: &mut Collector) -> BudgetList {
    let default = [WireBudget { nodes: Some(DEFAULT_BUDGET_NODES.into()), ..WireBudget::default() }];
    let mut entries = Vec::new();
    for (index, wire) in wire.unwrap_or(&default).iter().enumerate() {
        let field = format!("spec.disruption.budgets[{index}]");
        let reasons: Vec<&str> = wire.reasons.iter().flatten().map(String::as_str).collect();
        let parsed = Budget::parse(BudgetText {
            nodes: wire.nodes.as_deref().unwrap_or(DEFAULT_BUDGET_NODES),
            reasons: &reasons,
            schedule: wire.schedule.as_deref(),
            duration: wire.duration.as_deref(),
            time_zone: wire.time_zone.as_deref(),
        });
        if wire.reasons.as_ref().is_some_and(Vec::is_empty) {
            problems.warn(format!("{field}.reasons"), Violation::EmptyReasons);
        }
        let is_impossible =
            |budget: &Budget| budget.window.as_ref().is_some_and(|window| !window.schedule.is_possible());
        if let (true, Some(schedule)) = (parsed.as_ref().is_ok_and(is_impossible), &wire.schedule) {
            let violation = Violation::BudgetNeverActive { schedule: schedule.clone() };
            problems.warn(format!("{field}.schedule"), violation);
        }
        if let Err(broken) = &parsed {
            problems.warn(field, Violation::Budget(broken.error.clone()));
        }
        entries.push(parsed);
    }
    entries.into_iter().collect()
}
