//! Kubernetes' own ways to choose by labels: expressions, node terms, selectors.

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kerf_model::requirement::{Expression, Operator};
use kerf_model::selector::Selector;

use super::problem::{Collector, Violation};

/// Stands for what labels cannot meet: no label has this key, because of its colon.
const FIELD: &str = "field:metadata.name";

/// One `matchExpressions` entry of a node term.
fn expression(field: &str, wire: &NodeSelectorRequirement, problems: &mut Collector) -> Option<Expression> {
    let operator = problems.take(&format!("{field}.operator"), wire.operator.parse(), Violation::Operator)?;
    Some(Expression::new(&wire.key, operator, wire.values.as_deref().unwrap_or_default()))
}

/// The expressions of a term.
///
/// `matchFields` name a node, and nodes that are yet to be made have no name: such a term is met by no labels. Its value
/// is left out, so that the pods of a DaemonSet, each of which names its node there, keep one shape.
pub fn node_term(field: &str, wire: &NodeSelectorTerm, problems: &mut Collector) -> Vec<Expression> {
    let expressions = wire.match_expressions.iter().flatten().enumerate();
    let mut term: Vec<Expression> = expressions
        .filter_map(|(index, wire)| expression(&format!("{field}.matchExpressions[{index}]"), wire, problems))
        .collect();
    if wire.match_fields.as_ref().is_some_and(|fields| !fields.is_empty()) {
        term.push(unmet());
    }
    term
}

/// The terms of a required node selector, of which one must hold. Kubernetes lets an empty term match nothing, so it is
/// left out; where all are empty, one that nothing meets stays.
pub fn node_terms(field: &str, wire: &[NodeSelectorTerm], problems: &mut Collector) -> Vec<Vec<Expression>> {
    let terms = wire.iter().enumerate();
    let terms = terms.map(|(index, wire)| node_term(&format!("{field}.nodeSelectorTerms[{index}]"), wire, problems));
    let terms: Vec<_> = terms.filter(|term| !term.is_empty()).collect();
    if terms.is_empty() { vec![vec![unmet()]] } else { terms }
}

fn unmet() -> Expression {
    Expression::new::<&str>(FIELD, Operator::Exists, [])
}

pub fn selector(field: &str, wire: &LabelSelector, problems: &mut Collector) -> Option<Selector> {
    selector_with(field, wire, &[], problems)
}

/// A selector with further expressions, such as those that `matchLabelKeys` stands for. The API server of newer releases
/// has folded those in already; they are not added twice, so that both make the same shape.
pub fn selector_with(
    field: &str,
    wire: &LabelSelector,
    more: &[Expression],
    problems: &mut Collector,
) -> Option<Selector> {
    let mut expressions = Vec::new();
    for (index, wire) in wire.match_expressions.iter().flatten().enumerate() {
        let field = format!("{field}.matchExpressions[{index}].operator");
        let operator = problems.take(&field, wire.operator.parse(), Violation::Operator)?;
        expressions.push(Expression::new(&wire.key, operator, wire.values.as_deref().unwrap_or_default()));
    }
    for expression in more {
        if !expressions.contains(expression) {
            expressions.push(expression.clone());
        }
    }
    let labels = wire.match_labels.iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()));
    problems.take(field, Selector::new(labels, &expressions), Violation::Requirement)
}
