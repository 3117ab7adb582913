//! Overlays: corrections to what a cloud says about its instance types.

use std::sync::Arc;

use super::{Conditions, ObjectMeta};
use crate::price::Price;
use crate::requirement::Requirements;
use crate::resources::ResourceList;

/// An overlay with its identity and status. One that cannot be used keeps both, so that its status can tell why.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeOverlay {
    pub meta: ObjectMeta,
    /// The text says why it cannot be used.
    pub spec: Result<OverlaySpec, Arc<str>>,
    pub conditions: Conditions,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OverlaySpec {
    /// Where overlays disagree, the higher weight wins; 0 when the user gave none.
    pub weight: u32,
    /// Which types and offerings it is about.
    pub requirements: Requirements,
    pub price: Option<PriceChange>,
    /// Extended resources that the types have besides.
    pub capacity: ResourceList,
}

/// What becomes of the price of an offering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceChange {
    /// Whatever the cloud says.
    Fixed(Price),
    /// So much more, or less.
    Add(Price),
    /// So many millionths of a percent more, or less.
    Percent { millionths: i64 },
}

impl PriceChange {
    /// The new price, never below zero. A price too large to count stays the largest.
    pub fn apply(self, price: Price) -> Price {
        let changed = match self {
            Self::Fixed(fixed) => i128::from(fixed.micros()),
            Self::Add(more) => i128::from(price.micros()) + i128::from(more.micros()),
            Self::Percent { millionths } => {
                const WHOLE: i128 = 100 * 1_000_000;
                // To the nearest micro-dollar; the sum is not negative, because nothing falls by more than all of it.
                (i128::from(price.micros()) * (WHOLE + i128::from(millionths)) + WHOLE / 2).div_euclid(WHOLE)
            }
        };
        Price::from_micros(i64::try_from(changed.max(0)).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sheet 02 case 92.
    #[test]
    fn a_price_is_fixed_moved_or_scaled_and_never_negative() {
        let price = |text: &str| text.parse::<Price>().unwrap();
        let percent = |percent: i64| PriceChange::Percent { millionths: percent * 1_000_000 };
        let check = |change: PriceChange, from: &str, to: &str| assert_eq!(change.apply(price(from)), price(to));
        check(percent(-10), "1", "0.9");
        check(percent(-100), "1.5", "0");
        check(percent(50), "0.000001", "0.000002");
        check(PriceChange::Add(price("5")), "1", "6");
        check(PriceChange::Add(price("-5")), "1", "0");
        check(PriceChange::Fixed(price("0.25")), "1", "0.25");
        assert_eq!(percent(100).apply(Price::from_micros(i64::MAX)), Price::from_micros(i64::MAX));
    }
}
