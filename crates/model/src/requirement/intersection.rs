//! Two limits on one label at once.

use std::sync::Arc;

use super::range::Range;
use super::values::Values;
use super::{Allowed, Requirement};

impl Requirement {
    /// What meets both, under the key of `self`; the larger `min_values` counts.
    ///
    /// O(n + m) in the listed values. The storage is shared where one side changes nothing.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self {
            key: Arc::clone(&self.key),
            allowed: self.allowed.intersection(&other.allowed),
            min_values: self.min_values.max(other.min_values),
        }
    }

    /// Whether some value meets both. Absence is no value: see [`allows_absence`](Self::allows_absence).
    ///
    /// Allocates nothing. Two sides that only exclude values and agree on the bounds always meet, even when every
    /// number in between is excluded: there is no end to the spellings of a number (`8`, `08`, …).
    pub fn has_intersection(&self, other: &Self) -> bool {
        match (&self.allowed, &other.allowed) {
            (Allowed::Absent, _) | (_, Allowed::Absent) => false,
            (Allowed::Only(left), Allowed::Only(right)) => left.overlaps(right),
            (Allowed::Only(only), Allowed::Except { values, range, .. })
            | (Allowed::Except { values, range, .. }, Allowed::Only(only)) => {
                only.as_slice().iter().any(|value| !values.contains(value) && range.contains(value))
            }
            (Allowed::Except { range: left, .. }, Allowed::Except { range: right, .. }) => {
                left.intersection(*right).is_some()
            }
        }
    }

    /// Whether a node can meet both: with a value, or without the label.
    pub fn can_meet(&self, other: &Self) -> bool {
        self.has_intersection(other) || (self.allows_absence() && other.allows_absence())
    }
}

impl Allowed {
    fn intersection(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Absent, Self::Absent) => Self::Absent,
            (Self::Absent, Self::Only(_)) | (Self::Only(_), Self::Absent) => Self::nothing(),
            (Self::Absent, Self::Except { absent, .. }) | (Self::Except { absent, .. }, Self::Absent) => {
                if *absent {
                    Self::Absent
                } else {
                    Self::nothing()
                }
            }
            (Self::Only(left), Self::Only(right)) => Self::Only(left.retain(|value| right.contains(value))),
            (Self::Only(only), Self::Except { values, range, .. })
            | (Self::Except { values, range, .. }, Self::Only(only)) => {
                Self::Only(only.retain(|value| !values.contains(value) && range.contains(value)))
            }
            (
                Self::Except { values: left, range: left_range, absent: left_absent },
                Self::Except { values: right, range: right_range, absent: right_absent },
            ) => match left_range.intersection(*right_range) {
                Some(range) => Self::excluding(left, right, range, *left_absent && *right_absent),
                None => Self::nothing(),
            },
        }
    }

    // Excluded values outside the range say nothing, and would make equal sets look different.
    fn excluding(left: &Values, right: &Values, range: Range, absent: bool) -> Self {
        Self::Except { values: left.union(right).retain(|value| range.contains(value)), range, absent }
    }
}
