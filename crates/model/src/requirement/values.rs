//! A small sorted set of label values.

use std::cmp::Ordering;
use std::sync::Arc;

/// Sorted and without repeats. A clone shares the storage, look-up is a binary search, and an operation that
/// changes nothing gives the same storage back: most intersections narrow a few values or none.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Values(Arc<[Arc<str>]>);

impl<S: AsRef<str>> FromIterator<S> for Values {
    fn from_iter<I: IntoIterator<Item = S>>(values: I) -> Self {
        Self::shared(values.into_iter().map(|value| Arc::from(value.as_ref())).collect())
    }
}

impl Values {
    pub(super) fn shared(mut values: Vec<Arc<str>>) -> Self {
        values.sort_unstable();
        values.dedup();
        Self(values.into())
    }

    pub(super) fn as_slice(&self) -> &[Arc<str>] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, value: &str) -> bool {
        self.0.binary_search_by(|known| known.as_ref().cmp(value)).is_ok()
    }

    /// O(n log m), with n the smaller set.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let (few, many) = if self.0.len() <= other.0.len() { (self, other) } else { (other, self) };
        few.0.iter().any(|value| many.contains(value))
    }

    pub(super) fn retain(&self, keep: impl Fn(&str) -> bool) -> Self {
        if self.0.iter().all(|value| keep(value)) {
            return self.clone();
        }
        Self(self.0.iter().filter(|value| keep(value)).cloned().collect())
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        if other.is_empty() || self == other {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut merged = Vec::with_capacity(self.0.len() + other.0.len());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let order = a.cmp(b);
            if order != Ordering::Greater {
                merged.extend(left.next().cloned());
            }
            match order {
                Ordering::Less => {}
                Ordering::Equal => drop(right.next()),
                Ordering::Greater => merged.extend(right.next().cloned()),
            }
        }
        merged.extend(left.chain(right).cloned());
        Self(merged.into())
    }
}
