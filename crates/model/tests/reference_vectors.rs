//! Answers computed by Karpenter v1.15.0 and Kubernetes v1.36 libraries on random input, one per line.
//!
//! Kerf differs on purpose where the reference forgets what was asked (sheet 02 §29, 1): a contradiction is not
//! "the label must be absent", and a label that must exist still must when a value of it is excluded. The
//! differences are pinned down here too: Kerf refuses more, never less, and only in those two states.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_model::label::{LabelRules, check_qualified_name, check_value};
use kerf_model::requirement::{Expression, Incompatible, Operator, Requirement, Requirements, UndefinedKeys};
use kerf_model::selector::Selector;
use kerf_model::taint::{Effect, Taint, ToleratedValue, Toleration};

/// The columns of each line, trimmed.
fn rows<const N: usize>(file: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    file.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        columns.try_into().expect("the columns that the header names")
    })
}

/// `Operator value,value min=n`
fn expression(key: &str, text: &str) -> Expression {
    let mut words = text.split_whitespace();
    let operator = words.next().expect("an operator").parse().expect("a known operator");
    let (mut values, mut min_values) = (Vec::new(), None);
    for word in words {
        match word.strip_prefix("min=") {
            Some(min) => min_values = Some(min.parse().expect("a number")),
            None => values.extend(word.split(',')),
        }
    }
    Expression { min_values, ..Expression::new(key, operator, values) }
}

/// `key Operator values & key Operator values`
fn expressions(text: &str) -> Vec<Expression> {
    let parse = |part: &str| {
        let (key, rest) = part.trim().split_once(' ').expect("key and operator");
        expression(key, rest)
    };
    text.split('&').map(parse).collect()
}

fn requirement(text: &str) -> Requirement {
    text.split('&')
        .map(|part| Requirement::try_from(&expression("k", part)).expect("a requirement"))
        .reduce(|all, part| all.intersection(&part))
        .expect("at least one part")
}

/// States that the reference cannot tell from others.
fn is_told_apart_only_here(requirement: &Requirement) -> bool {
    requirement.is_contradiction() || (requirement.operator() == Operator::NotIn && !requirement.allows_absence())
}

/// As the reference shows it.
fn shown_without_difference(requirement: &Requirement) -> String {
    let shown = requirement.to_string();
    if requirement.is_contradiction() { shown.replace("In []", "DoesNotExist") } else { shown.replace("] Exists", "]") }
}

#[test]
fn intersections_are_those_of_the_reference() {
    const UNIVERSE: [&str; 8] = ["a", "b", "c", "1", "3", "5", "07", "9"];
    let mut seen = 0;
    for [left, right, result, overlap, allowed] in rows(include_str!("vectors/intersection.txt")) {
        let (a, b) = (requirement(left), requirement(right));
        let both = a.intersection(&b);
        assert_eq!(shown_without_difference(&both), result, "{left} | {right}");
        assert_eq!(a.has_intersection(&b).to_string(), overlap, "{left} | {right}");
        let has: Vec<&str> = UNIVERSE.into_iter().filter(|value| both.has(value)).collect();
        assert_eq!(has.join(","), allowed, "{left} | {right}");
        seen += 1;
    }
    assert_eq!(seen, 400);
}

fn class(result: &Result<(), Incompatible>) -> &'static str {
    match result {
        Ok(()) => "ok",
        Err(Incompatible::Undefined { .. }) => "undefined",
        Err(Incompatible::Disjoint { .. }) => "disjoint",
        Err(Incompatible::Contradiction { .. }) => "contradiction",
    }
}

#[test]
fn compatibility_is_that_of_the_reference_and_stricter_only_where_it_forgets() {
    let rules = LabelRules::core();
    let (mut same, mut stricter) = (0, 0);
    for [node, incoming, absent, open, shared] in rows(include_str!("vectors/compatible.txt")) {
        let a = Requirements::parse(&expressions(node), &rules).expect("requirements");
        let b = Requirements::parse(&expressions(incoming), &rules).expect("requirements");
        let answers = [
            (a.compatible(&b, UndefinedKeys::Absent), absent),
            (a.compatible(&b, UndefinedKeys::OpenIfWellKnown(&rules)), open),
            (a.intersects(&b), shared),
        ];
        let comparable = !a.iter().chain(b.iter()).any(is_told_apart_only_here);
        for (answer, reference) in answers {
            if comparable {
                assert_eq!(class(&answer), reference, "{node} | {incoming}");
                same += 1;
            } else if answer.is_ok() {
                assert_eq!(reference, "ok", "{node} | {incoming}");
            } else if reference == "ok" {
                stricter += 1;
            }
        }
    }
    assert!(same > 600, "only {same} answers were compared in full");
    assert!(stricter > 30, "the repair shows in only {stricter} answers");
}

#[test]
fn selectors_match_as_in_kubernetes() {
    let mut seen = 0;
    for [labels, conditions, matches] in rows(include_str!("vectors/selector.txt")) {
        let labels: BTreeMap<&str, &str> = labels.split(',').filter_map(|pair| pair.split_once('=')).collect();
        let selector = Selector::new([], &expressions(conditions)).expect("a selector");
        assert_eq!(selector.matches(&labels).to_string(), matches, "{labels:?} | {conditions}");
        seen += 1;
    }
    assert_eq!(seen, 400);
}

#[test]
fn tolerations_match_as_in_kubernetes() {
    let text = |word: &'static str| if word == "-" { "" } else { word };
    let mut seen = 0;
    for [toleration, taint, tolerated] in rows(include_str!("vectors/toleration.txt")) {
        let words: Vec<&str> = toleration.split_whitespace().map(text).collect();
        let [key, operator, value, effect] = words[..] else { panic!("{toleration}") };
        let toleration_value = match operator {
            "Exists" => ToleratedValue::Any,
            "Lt" => ToleratedValue::below(value),
            "Gt" => ToleratedValue::above(value),
            "" | "Equal" => ToleratedValue::Equal(Arc::from(value)),
            other => panic!("{other}"),
        };
        let parsed = Toleration {
            key: (!key.is_empty()).then(|| Arc::from(key)),
            effect: effect.parse::<Effect>().ok(),
            value: toleration_value,
        };
        let words: Vec<&str> = taint.split_whitespace().map(text).collect();
        let [key, value, effect] = words[..] else { panic!("{taint}") };
        let node = Taint::new(key, value, effect.parse().expect("an effect"));
        assert_eq!(parsed.covers(&node).to_string(), tolerated, "{toleration} | {taint}");
        seen += 1;
    }
    assert_eq!(seen, 500);
}

#[test]
fn names_and_values_are_spelled_as_in_kubernetes() {
    let rules = LabelRules::core();
    let mut seen = 0;
    for [text, name, value, restricted] in rows(include_str!("vectors/label_syntax.txt")) {
        assert_eq!(check_qualified_name(text).is_ok().to_string(), name, "{text}");
        assert_eq!(check_value(text).is_ok().to_string(), value, "{text}");
        assert_eq!(rules.check_unrestricted(text).is_err().to_string(), restricted, "{text}");
        seen += 1;
    }
    assert_eq!(seen, 364);
}
