//! One requirement per label, and whether two such sets can meet.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use super::{Expression, ExpressionError, Requirement};
use crate::label::{HOSTNAME, LabelRules};

/// Requirements by key, sorted. A look-up is a binary search; sets have ten to thirty keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirements(Vec<Requirement>);

/// What it means that the node side says nothing about a label.
#[derive(Debug, Clone, Copy)]
pub enum UndefinedKeys<'a> {
    /// The node will not have it. For nodes that exist.
    Absent,
    /// The same, but a well-known label may still get any value. For nodes to be launched.
    OpenIfWellKnown(&'a LabelRules),
}

/// Why two sets cannot meet: the first reason found, in order of keys.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Incompatible {
    /// The label is asked for and nothing defines it.
    #[error("nothing defines the label {key}{}", TypoHint(hint))]
    Undefined { key: Arc<str>, hint: Option<Arc<str>> },
    /// The incoming side alone can never be met.
    #[error("no value of {key} meets all that is asked of it")]
    Contradiction { key: Arc<str> },
    /// Each side can be met, both at once cannot. Boxed, because most answers are `Ok` and should stay small.
    #[error("{incoming} is asked for, {existing} is offered")]
    Disjoint { incoming: Box<Requirement>, existing: Box<Requirement> },
}

impl Requirements {
    pub fn new() -> Self {
        Self::default()
    }

    /// All expressions at once, under normalised keys.
    ///
    /// # Errors
    /// The first expression that means nothing.
    pub fn parse<'a>(
        expressions: impl IntoIterator<Item = &'a Expression>,
        rules: &LabelRules,
    ) -> Result<Self, ExpressionError> {
        let mut requirements = Self::new();
        for expression in expressions {
            requirements.add(Requirement::try_from(expression)?, rules);
        }
        Ok(requirements)
    }

    /// What labels say about a node: each has exactly its value.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>, rules: &LabelRules) -> Self {
        let mut requirements = Self::new();
        for (key, value) in labels {
            requirements.add(Requirement::one_of(key, [value]), rules);
        }
        requirements
    }

    /// Narrows the entry of the same label; an alias counts as the label that it stands for.
    pub fn add(&mut self, requirement: Requirement, rules: &LabelRules) {
        match rules.alias_of(requirement.key()) {
            None => self.narrow(requirement),
            Some(key) => self.narrow(requirement.with_key(Arc::clone(key))),
        }
    }

    /// Narrows this set by another.
    pub fn merge(&mut self, other: &Self) {
        for requirement in &other.0 {
            self.narrow(requirement.clone());
        }
    }

    pub fn get(&self, key: &str) -> Option<&Requirement> {
        self.position(key).ok().map(|at| &self.0[at])
    }

    /// In order of keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Requirement> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The entries that say the same; see [`Requirement::expressions`].
    pub fn expressions(&self) -> Vec<Expression> {
        self.0.iter().flat_map(Requirement::expressions).collect()
    }

    /// Whether what comes in (a pod, an offering) can be met by this side (a node, a claim).
    ///
    /// Take this side's labels as sets of values, with "absent" as one more value. A label that it does not
    /// define is {absent}, or open if `undefined` says so. The two are compatible when, for every label of
    /// `incoming`, both sets share an element.
    ///
    /// # Errors
    /// Undefined labels first, because they are most often typing errors.
    pub fn compatible(&self, incoming: &Self, undefined: UndefinedKeys<'_>) -> Result<(), Incompatible> {
        for requirement in &incoming.0 {
            let key = requirement.key();
            let settled = requirement.is_contradiction()
                || requirement.allows_absence()
                || undefined.is_open(key)
                || self.get(key).is_some();
            if !settled {
                return Err(Incompatible::Undefined { key: Arc::clone(key), hint: self.hint(key, undefined) });
            }
        }
        self.intersects(incoming)
    }

    /// Whether the labels that both sides define can be met together.
    ///
    /// # Errors
    /// The first label on which they cannot, or that `incoming` contradicts itself on.
    pub fn intersects(&self, incoming: &Self) -> Result<(), Incompatible> {
        let mut rest = self.0.as_slice();
        for requirement in &incoming.0 {
            if requirement.is_contradiction() {
                return Err(Incompatible::Contradiction { key: Arc::clone(requirement.key()) });
            }
            rest = &rest[rest.partition_point(|existing| existing.key() < requirement.key())..];
            match rest.first() {
                Some(existing) if existing.key() == requirement.key() && !existing.can_meet(requirement) => {
                    return Err(Incompatible::Disjoint {
                        incoming: Box::new(requirement.clone()),
                        existing: Box::new(existing.clone()),
                    });
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    /// Narrows the entry of exactly this label; [`add`](Self::add) knows aliases as well.
    pub fn narrow(&mut self, requirement: Requirement) {
        match self.position(requirement.key()) {
            Ok(at) => self.0[at] = self.0[at].intersection(&requirement),
            Err(at) => self.0.insert(at, requirement),
        }
    }

    fn position(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|requirement| (**requirement.key()).cmp(key))
    }

    /// A label that the unknown key may have been meant to be (`labelHint` upstream, but always the same one).
    fn hint(&self, key: &str, undefined: UndefinedKeys<'_>) -> Option<Arc<str>> {
        let name = key.split_once('/').map_or(key, |(_, name)| name);
        let resembles = |known: &&Arc<str>| !name.is_empty() && (known.contains(key) || known.ends_with(name));
        let well_known = match undefined {
            UndefinedKeys::Absent => None,
            UndefinedKeys::OpenIfWellKnown(rules) => rules.well_known().find(resembles),
        };
        well_known.or_else(|| self.0.iter().map(Requirement::key).find(resembles)).cloned()
    }
}

impl UndefinedKeys<'_> {
    /// Whether a label that the node side does not define may still get a value.
    pub fn is_open(self, key: &str) -> bool {
        match self {
            Self::Absent => false,
            Self::OpenIfWellKnown(rules) => rules.is_well_known(key),
        }
    }
}

/// Sorted and comma-separated; without the host name, which is different on every node and tells nothing.
impl fmt::Display for Requirements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.iter().filter(|requirement| &**requirement.key() != HOSTNAME);
        for (index, requirement) in shown.enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

struct TypoHint<'a>(&'a Option<Arc<str>>);

impl fmt::Display for TypoHint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(known) => write!(f, " (is {known} meant?)"),
            None => Ok(()),
        }
    }
}
