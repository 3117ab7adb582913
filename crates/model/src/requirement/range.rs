//! The integers between two inclusive bounds, either of which may be missing.

/// A range with a bound holds integers only: text that is no integer lies outside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Range {
    pub(super) gte: Option<i64>,
    pub(super) lte: Option<i64>,
}

impl Range {
    pub(super) fn at_least(gte: i64) -> Self {
        Self { gte: Some(gte), lte: None }
    }

    pub(super) fn at_most(lte: i64) -> Self {
        Self { gte: None, lte: Some(lte) }
    }

    pub(super) fn is_unbounded(self) -> bool {
        self.gte.is_none() && self.lte.is_none()
    }

    /// Integers are written as Go's `Atoi` and Rust's `parse` both read them: an optional sign, then digits.
    pub(super) fn contains(self, value: &str) -> bool {
        if self.is_unbounded() {
            return true;
        }
        value
            .parse::<i64>()
            .is_ok_and(|number| self.gte.is_none_or(|gte| gte <= number) && self.lte.is_none_or(|lte| number <= lte))
    }

    /// `None` when no integer lies in both.
    pub(super) fn intersection(self, other: Self) -> Option<Self> {
        let gte = self.gte.max(other.gte);
        let lte = match (self.lte, other.lte) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        match (gte, lte) {
            (Some(gte), Some(lte)) if gte > lte => None,
            _ => Some(Self { gte, lte }),
        }
    }
}
