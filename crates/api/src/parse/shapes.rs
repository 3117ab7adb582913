//! What many objects have in common, kept once.
//!
//! 100,000 pods of 500 workloads have 500 different sets of constraints and a few thousand different texts. A record
//! that points at them is a few hundred bytes instead of several thousand, and "same shape" is a pointer comparison.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::sync::Arc;

use kerf_model::cluster::PodConstraints;

/// Tables this small are never swept.
const SMALL: usize = 1024;

/// Lends out one copy of equal values.
#[derive(Debug, Default)]
pub struct Shapes {
    texts: Shared<str>,
    constraints: Shared<PodConstraints>,
}

#[derive(Debug)]
struct Shared<T: ?Sized> {
    known: BTreeSet<Arc<T>>,
    /// The size at which values that nobody uses any more are dropped.
    sweep_at: usize,
}

impl Shapes {
    pub fn text(&mut self, text: &str) -> Arc<str> {
        self.texts.share(text, Arc::from)
    }

    pub fn constraints(&mut self, constraints: PodConstraints) -> Arc<PodConstraints> {
        self.constraints.share(constraints, Arc::new)
    }

    /// How many different constraints are known.
    pub fn constraint_count(&self) -> usize {
        self.constraints.known.len()
    }
}

impl<T: ?Sized> Default for Shared<T> {
    fn default() -> Self {
        Self { known: BTreeSet::new(), sweep_at: SMALL }
    }
}

impl<T: ?Sized + Ord> Shared<T> {
    fn share<V: Borrow<T>>(&mut self, value: V, make: impl FnOnce(V) -> Arc<T>) -> Arc<T> {
        if let Some(known) = self.known.get(value.borrow()) {
            return Arc::clone(known);
        }
        if self.known.len() >= self.sweep_at {
            // Doubling keeps the cost of sweeps constant per new value, and the table within twice of what is in use.
            self.known.retain(|value| Arc::strong_count(value) > 1);
            self.sweep_at = (self.known.len() * 2).max(SMALL);
        }
        let value = make(value);
        self.known.insert(Arc::clone(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_value() {
        let mut shapes = Shapes::default();
        assert!(Arc::ptr_eq(&shapes.text("a"), &shapes.text("a")));
        let constraints = |key: &str| PodConstraints {
            node_selector: vec![(Arc::from(key), Arc::from("x"))],
            ..PodConstraints::default()
        };
        let first = shapes.constraints(constraints("a"));
        assert!(Arc::ptr_eq(&first, &shapes.constraints(constraints("a"))));
        assert!(!Arc::ptr_eq(&first, &shapes.constraints(constraints("b"))));
        assert_eq!(shapes.constraint_count(), 2);
    }

    #[test]
    fn what_nobody_uses_any_more_is_forgotten_in_time() {
        let mut shapes = Shapes::default();
        let kept = shapes.text("kept");
        for number in 0..10 * SMALL {
            shapes.text(&number.to_string());
        }
        assert!(shapes.texts.known.len() <= 2 * SMALL, "{}", shapes.texts.known.len());
        assert!(Arc::ptr_eq(&kept, &shapes.text("kept")));
    }
}
