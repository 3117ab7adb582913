//! Selectors: a choice of objects by their labels, with Kubernetes' own meaning.
//!
//! Not to be mixed up with [`requirement`](crate::requirement): a selector looks at labels that are there,
//! a requirement at labels that a node may get.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::requirement::{Expression, ExpressionError, Operator};

/// Something that has labels.
pub trait Labels {
    fn label(&self, key: &str) -> Option<&str>;
}

impl<K: Borrow<str> + Ord, V: AsRef<str>> Labels for BTreeMap<K, V> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(AsRef::as_ref)
    }
}

/// All conditions must hold; without conditions everything is selected.
///
/// In the API an absent selector often means "nothing", and sometimes "everything": that is for the caller to
/// know, as `Option<Selector>`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector(Vec<Condition>);

/// The node selector of an affinity: one of its terms must hold. Without terms nothing is selected.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeSelector(Vec<Selector>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Condition {
    key: Arc<str>,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Test {
    In(Vec<Arc<str>>),
    NotIn(Vec<Arc<str>>),
    Exists,
    DoesNotExist,
    Gt(i64),
    Lt(i64),
}

impl Selector {
    /// From `matchLabels` and `matchExpressions`. `Gt` and `Lt` are taken too, for node affinities and
    /// maintenance windows; where a kind does not offer them, its schema refuses them before.
    ///
    /// # Errors
    /// The first expression that Kubernetes would refuse.
    pub fn new<'a>(
        match_labels: impl IntoIterator<Item = (&'a str, &'a str)>,
        match_expressions: impl IntoIterator<Item = &'a Expression>,
    ) -> Result<Self, ExpressionError> {
        let labels = match_labels
            .into_iter()
            .map(|(key, value)| Ok(Condition { key: Arc::from(key), test: Test::In(vec![Arc::from(value)]) }));
        labels.chain(match_expressions.into_iter().map(Condition::parse)).collect::<Result<_, _>>().map(Self)
    }

    /// A label that everything selected has, with its value, if the selector asks for one.
    pub fn required_label(&self) -> Option<(&Arc<str>, &Arc<str>)> {
        self.required_labels().next()
    }

    /// All such labels.
    pub fn required_labels(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.0.iter().filter_map(|condition| match &condition.test {
            Test::In(values) => values.first().filter(|_| values.len() == 1).map(|value| (&condition.key, value)),
            Test::NotIn(_) | Test::Exists | Test::DoesNotExist | Test::Gt(_) | Test::Lt(_) => None,
        })
    }

    pub fn matches(&self, labels: &impl Labels) -> bool {
        self.0.iter().all(|condition| condition.holds(labels.label(&condition.key)))
    }
}

impl NodeSelector {
    /// From the `matchExpressions` of each term. An empty term selects nothing, as in kube-scheduler.
    ///
    /// # Errors
    /// The first expression that Kubernetes would refuse.
    pub fn new<'a>(terms: impl IntoIterator<Item = &'a [Expression]>) -> Result<Self, ExpressionError> {
        let terms = terms.into_iter().filter(|term| !term.is_empty());
        terms.map(|term| Selector::new([], term)).collect::<Result<_, _>>().map(Self)
    }

    pub fn matches(&self, labels: &impl Labels) -> bool {
        self.0.iter().any(|term| term.matches(labels))
    }
}

impl Condition {
    fn parse(expression: &Expression) -> Result<Self, ExpressionError> {
        let (key, operator) = (&expression.key, expression.operator);
        let some_values = || match expression.values.is_empty() {
            true => Err(ExpressionError::NoValues { key: Arc::clone(key), operator }),
            false => Ok(expression.values.clone()),
        };
        let no_values = || match expression.values.is_empty() {
            true => Ok(()),
            false => Err(ExpressionError::UnexpectedValues { key: Arc::clone(key), operator }),
        };
        let test = match operator {
            Operator::In => Test::In(some_values()?),
            Operator::NotIn => Test::NotIn(some_values()?),
            Operator::Exists => no_values().map(|()| Test::Exists)?,
            Operator::DoesNotExist => no_values().map(|()| Test::DoesNotExist)?,
            Operator::Gt => Test::Gt(expression.integer()?),
            Operator::Lt => Test::Lt(expression.integer()?),
            Operator::Gte | Operator::Lte => {
                return Err(ExpressionError::UnsupportedOperator { key: Arc::clone(key), operator });
            }
        };
        Ok(Self { key: Arc::clone(key), test })
    }

    fn holds(&self, value: Option<&str>) -> bool {
        let listed = |values: &[Arc<str>]| value.is_some_and(|value| values.iter().any(|known| &**known == value));
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::In(values) => listed(values),
            // An absent label is in no list.
            Test::NotIn(values) => !listed(values),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::Gt(bound) => number().is_some_and(|number| number > *bound),
            Test::Lt(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> BTreeMap<String, String> {
        text.split_whitespace()
            .map(|pair| pair.split_once('=').expect("key=value"))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    fn expression(key: &str, operator: Operator, values: &[&str]) -> Expression {
        Expression::new(key, operator, values)
    }

    #[test]
    fn a_selector_without_conditions_selects_everything_and_a_node_selector_without_terms_nothing() {
        assert!(Selector::default().matches(&labels("")));
        assert!(!NodeSelector::default().matches(&labels("")));
        let empty_term: &[Expression] = &[];
        assert!(!NodeSelector::new([empty_term]).expect("valid").matches(&labels("a=1")));
    }

    #[test]
    fn match_labels_and_expressions_must_all_hold() {
        let not_b = expression("tier", Operator::NotIn, &["b"]);
        let selector = Selector::new([("team", "x")], [&not_b]).expect("valid");
        assert!(selector.matches(&labels("team=x")));
        assert!(selector.matches(&labels("team=x tier=a")));
        assert!(!selector.matches(&labels("team=x tier=b")));
        assert!(!selector.matches(&labels("tier=a")));
    }

    #[test]
    fn one_term_of_a_node_selector_is_enough() {
        let first = [expression("zone", Operator::In, &["a"]), expression("cpu", Operator::Gt, &["4"])];
        let second = [expression("zone", Operator::In, &["b"])];
        let selector = NodeSelector::new([first.as_slice(), second.as_slice()]).expect("valid");
        assert!(selector.matches(&labels("zone=a cpu=5")));
        assert!(selector.matches(&labels("zone=b")));
        assert!(!selector.matches(&labels("zone=a cpu=4")));
        assert!(!selector.matches(&labels("zone=c cpu=9")));
    }

    #[test]
    fn refuses_what_kubernetes_refuses() {
        let refused = |operator, values: &[&str]| {
            Selector::new([], [&expression("k", operator, values)]).expect_err("must be refused").to_string()
        };
        assert_eq!(refused(Operator::In, &[]), "k: operator In needs at least one value");
        assert_eq!(refused(Operator::NotIn, &[]), "k: operator NotIn needs at least one value");
        assert_eq!(refused(Operator::Exists, &["a"]), "k: operator Exists takes no values");
        assert_eq!(refused(Operator::DoesNotExist, &["a"]), "k: operator DoesNotExist takes no values");
        assert_eq!(refused(Operator::Gt, &["1", "2"]), "k: operator Gt needs exactly one value, not 2");
        assert_eq!(refused(Operator::Lt, &["x"]), "k: operator Lt needs an integer, not \"x\"");
        assert_eq!(refused(Operator::Gte, &["1"]), "k: operator Gte cannot be used in a selector");
    }
}
