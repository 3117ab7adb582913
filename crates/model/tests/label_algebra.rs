//! Requirements, selectors and taints against a model that knows nothing of their representation: a limit is
//! the list of answers it gives for every value of a small universe, and for an absent label.

use std::collections::{BTreeMap, BTreeSet};

use kerf_model::label::{LabelRules, ZONE, check_qualified_name, check_value};
use kerf_model::requirement::{Expression, ExpressionError, Operator, Requirement, Requirements, UndefinedKeys};
use kerf_model::selector::{NodeSelector, Selector};
use kerf_model::taint::{Effect, Taint};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

const WORDS: [&str; 8] = ["a", "b", "c", "1", "3", "5", "07", "9"];
const BOUNDS: std::ops::Range<i64> = -2..11;
const KEYS: [&str; 3] = ["team", "example.com/tier", ZONE];

/// What a label can be: absent, a word that expressions use, one that none uses, and the numbers around all
/// bounds in a spelling that none uses. So every overlap of two limits has a witness here.
fn universe() -> Vec<Option<String>> {
    let numbers = (-4..14).map(|number: i64| {
        let sign = if number < 0 { "-" } else { "" };
        format!("{sign}000{}", number.abs())
    });
    let words = WORDS.into_iter().chain(["unused"]).map(str::to_owned);
    std::iter::once(None).chain(words.chain(numbers).map(Some)).collect()
}

/// The definition of the operators, for one value.
fn admits(expression: &Expression, value: Option<&str>) -> bool {
    let listed = value.is_some_and(|value| expression.values.iter().any(|word| &**word == value));
    let compare = |holds: fn(i64, i64) -> bool| {
        let number = value.and_then(|value| value.parse::<i64>().ok());
        let bound = expression.values.first().and_then(|bound| bound.parse::<i64>().ok());
        number.zip(bound).is_some_and(|(number, bound)| holds(number, bound))
    };
    match expression.operator {
        Operator::In => listed,
        Operator::NotIn => !listed,
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
        Operator::Gt => compare(|number, bound| number > bound),
        Operator::Lt => compare(|number, bound| number < bound),
        Operator::Gte => compare(|number, bound| number >= bound),
        Operator::Lte => compare(|number, bound| number <= bound),
    }
}

type Meaning = BTreeSet<Option<String>>;

fn meaning(expressions: &[Expression]) -> Meaning {
    let meets = |value: &Option<String>| expressions.iter().all(|expression| admits(expression, value.as_deref()));
    universe().into_iter().filter(meets).collect()
}

fn meaning_of(requirement: &Requirement) -> Meaning {
    let meets = |value: &Option<String>| match value {
        Some(value) => requirement.has(value),
        None => requirement.allows_absence(),
    };
    universe().into_iter().filter(meets).collect()
}

fn expression(key: &'static str) -> impl Strategy<Value = Expression> {
    let with_values = (select(vec![Operator::In, Operator::NotIn]), subsequence(WORDS.to_vec(), 1..=4));
    let comparison = (select(vec![Operator::Gt, Operator::Lt, Operator::Gte, Operator::Lte]), BOUNDS);
    let plain = select(vec![Operator::Exists, Operator::DoesNotExist]);
    let expression = prop_oneof![
        3 => with_values.prop_map(move |(operator, values)| Expression::new(key, operator, values)),
        3 => comparison.prop_map(move |(operator, bound)| Expression::new(key, operator, [bound.to_string()])),
        1 => plain.prop_map(move |operator| Expression::new(key, operator, [""; 0])),
    ];
    (expression, proptest::option::weighted(0.2, 1..6_u32))
        .prop_map(|(expression, min_values)| Expression { min_values, ..expression })
}

/// Up to three expressions on one label.
fn limits() -> impl Strategy<Value = Vec<Expression>> {
    vec(expression("k"), 1..=3)
}

fn requirement(expressions: &[Expression]) -> Requirement {
    expressions
        .iter()
        .map(|expression| Requirement::try_from(expression).expect("a requirement"))
        .reduce(|all, next| all.intersection(&next))
        .expect("at least one expression")
}

fn any_expressions() -> impl Strategy<Value = Vec<Expression>> {
    vec(select(KEYS.to_vec()).prop_flat_map(expression), 0..=5)
}

fn requirements(expressions: &[Expression]) -> Requirements {
    Requirements::parse(expressions, &LabelRules::core()).expect("requirements")
}

fn on_key(expressions: &[Expression], key: &str) -> Vec<Expression> {
    expressions.iter().filter(|expression| &*expression.key == key).cloned().collect()
}

/// For each label of the incoming side, both sides must share a value or absence.
fn can_meet(node: &[Expression], incoming: &[Expression], undefined: impl Fn(&str) -> Meaning) -> bool {
    KEYS.into_iter().all(|key| {
        let (offered, asked) = (on_key(node, key), on_key(incoming, key));
        let offered = if offered.is_empty() { undefined(key) } else { meaning(&offered) };
        asked.is_empty() || !offered.is_disjoint(&meaning(&asked))
    })
}

fn anything(_: &str) -> Meaning {
    universe().into_iter().collect()
}

fn absent(_: &str) -> Meaning {
    Meaning::from([None])
}

fn label_map() -> impl Strategy<Value = BTreeMap<&'static str, &'static str>> {
    proptest::collection::btree_map(select(KEYS.to_vec()), select(WORDS.to_vec()), 0..=3)
}

fn matches(expressions: &[Expression], labels: &BTreeMap<&str, &str>) -> bool {
    expressions.iter().all(|expression| admits(expression, labels.get(&*expression.key).copied()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_requirement_allows_what_all_its_expressions_allow(limits in limits()) {
        let built = requirement(&limits);
        prop_assert_eq!(meaning_of(&built), meaning(&limits));
        prop_assert_eq!(built.is_contradiction(), meaning(&limits).is_empty());
        prop_assert_eq!(built.min_values(), limits.iter().filter_map(|limit| limit.min_values).max());
    }

    #[test]
    fn intersection_is_a_semilattice(a in limits(), b in limits(), c in limits()) {
        let (a, b, c) = (requirement(&a), requirement(&b), requirement(&c));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.intersection(&b).intersection(&c), a.intersection(&b.intersection(&c)));
        prop_assert_eq!(a.intersection(&a), a);
    }

    #[test]
    fn narrowing_changes_nothing_exactly_when_nothing_is_excluded(a in limits(), b in limits()) {
        let (a, b) = (requirement(&a).with_min_values(None), requirement(&b).with_min_values(None));
        prop_assert_eq!(a.intersection(&b) == a, meaning_of(&a).is_subset(&meaning_of(&b)), "{} and {}", a, b);
    }

    #[test]
    fn an_overlap_is_a_shared_value(a in limits(), b in limits()) {
        let shared: Meaning = meaning(&a).intersection(&meaning(&b)).cloned().collect();
        let (a, b) = (requirement(&a), requirement(&b));
        prop_assert_eq!(a.has_intersection(&b), shared.iter().any(Option::is_some));
        prop_assert_eq!(a.has_intersection(&b), a.intersection(&b).count() != Some(0));
        prop_assert_eq!(a.can_meet(&b), !shared.is_empty());
        prop_assert_eq!(a.can_meet(&b), !a.intersection(&b).is_contradiction());
    }

    #[test]
    fn the_value_for_a_new_node_is_allowed_and_is_a_label_value(limits in limits()) {
        let requirement = requirement(&limits);
        if let Some(value) = requirement.any() {
            prop_assert!(requirement.has(&value));
            prop_assert_eq!(check_value(&value), Ok(()));
        } else {
            let plain = (0..14).map(|number| number.to_string()).chain(WORDS.map(str::to_owned));
            let missed: Vec<String> = plain.filter(|value| requirement.has(value) && value != "07").collect();
            prop_assert!(missed.is_empty(), "{requirement} allows {missed:?}");
        }
    }

    #[test]
    fn what_is_written_reads_back(expressions in any_expressions()) {
        let rules = LabelRules::core();
        let original = requirements(&expressions);
        match Requirements::parse(&original.expressions(), &rules) {
            Ok(read) => prop_assert_eq!(read, original),
            Err(error) => {
                prop_assert!(matches!(error, ExpressionError::NoValues { .. }), "{error}");
                prop_assert!(original.iter().any(Requirement::is_contradiction));
            }
        }
    }

    #[test]
    fn compatible_means_that_every_label_asked_for_can_be_met(node in any_expressions(), incoming in any_expressions()) {
        let rules = LabelRules::core();
        let (a, b) = (requirements(&node), requirements(&incoming));
        let open = |key: &str| if key == ZONE { anything(key) } else { absent(key) };
        prop_assert_eq!(a.compatible(&b, UndefinedKeys::Absent).is_ok(), can_meet(&node, &incoming, absent));
        prop_assert_eq!(a.compatible(&b, UndefinedKeys::OpenIfWellKnown(&rules)).is_ok(), can_meet(&node, &incoming, open));
        prop_assert_eq!(a.intersects(&b).is_ok(), can_meet(&node, &incoming, anything));
    }

    #[test]
    fn the_order_of_adding_does_not_matter(expressions in any_expressions()) {
        let backwards: Vec<Expression> = expressions.iter().rev().cloned().collect();
        prop_assert_eq!(requirements(&expressions), requirements(&backwards));
    }

    #[test]
    fn selectors_agree_with_the_definition(
        terms in vec(any_expressions(), 0..=3),
        exact in label_map(),
        labels in label_map(),
    ) {
        let offered = |term: &Vec<Expression>| -> Vec<Expression> {
            term.iter().filter(|each| !matches!(each.operator, Operator::Gte | Operator::Lte)).cloned().collect()
        };
        let terms: Vec<Vec<Expression>> = terms.iter().map(offered).collect();
        let any_term = terms.iter().any(|term| !term.is_empty() && matches(term, &labels));
        let node_selector = NodeSelector::new(terms.iter().map(Vec::as_slice)).expect("a node selector");
        prop_assert_eq!(node_selector.matches(&labels), any_term);

        let expressions = terms.first().cloned().unwrap_or_default();
        let selector = Selector::new(exact.iter().map(|(key, value)| (*key, *value)), &expressions).expect("a selector");
        let has_all = exact.iter().all(|(key, value)| labels.get(key) == Some(value));
        prop_assert_eq!(selector.matches(&labels), has_all && matches(&expressions, &labels));
    }

    #[test]
    fn no_text_upsets_a_parser(key in ".{0,80}", values in vec("[-+0-9a]{0,21}|.{0,10}", 0..3)) {
        let _ = (check_qualified_name(&key), check_value(&key), LabelRules::core().check_unrestricted(&key));
        let _ = (key.parse::<Operator>(), key.parse::<Effect>());
        for operator in Operator::ALL {
            let expression = Expression::new(&key, operator, &values);
            if let Ok(requirement) = Requirement::try_from(&expression) {
                let _ = (requirement.to_string(), requirement.any(), requirement.expressions());
            }
            let _ = Selector::new([], [&expression]);
        }
        if let Ok(taint) = key.parse::<Taint>() {
            prop_assert_eq!(taint.to_string().parse::<Taint>(), Ok(taint));
        }
    }

    #[test]
    fn a_taint_is_shown_as_it_is_read(
        key in "([a-z]{1,5}\\.[a-z]{1,3}/)?[a-zA-Z0-9]{1,6}", value in "([a-z0-9]{1,5})?", effect in select(Effect::ALL.to_vec()),
    ) {
        let taint = Taint::new(&key, &value, effect);
        prop_assert_eq!(taint.to_string().parse::<Taint>(), Ok(taint));
    }
}
