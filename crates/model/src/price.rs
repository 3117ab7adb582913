//! Money: what a node costs per hour.

use std::fmt;
use std::str::FromStr;

use crate::digits::split_digits;

const MICROS: i64 = 1_000_000;

/// Micro-dollars per hour. Differences of prices may be negative; an unknown price is an `Option`, never zero.
///
/// ```
/// use kerf_model::price::Price;
///
/// let price: Price = "0.0416".parse()?;
/// assert_eq!(price.micros(), 41_600);
/// assert_eq!(price.to_string(), "0.0416");
/// # Ok::<(), kerf_model::price::ParsePriceError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(i64);

/// Why a text is not a price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParsePriceError {
    #[error("price {text:?} is not a decimal number")]
    NotADecimal { text: String },
    #[error("price {text:?} is too large")]
    Overflow { text: String },
}

impl Price {
    pub const ZERO: Self = Self(0);

    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    pub fn checked_mul(self, factor: i64) -> Option<Self> {
        self.0.checked_mul(factor).map(Self)
    }
}

impl FromStr for Price {
    type Err = ParsePriceError;

    /// Reads dollars as a plain decimal number. Beyond the sixth decimal place it rounds to the nearest, halves up.
    fn from_str(text: &str) -> Result<Self, ParsePriceError> {
        let not_a_decimal = || ParsePriceError::NotADecimal { text: text.to_owned() };
        let overflow = || ParsePriceError::Overflow { text: text.to_owned() };

        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (whole, rest) = split_digits(unsigned);
        let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        if !rest.is_empty() || (whole.is_empty() && fraction.is_empty()) {
            return Err(not_a_decimal());
        }
        let mut micros = 0_i64;
        let zeros = std::iter::repeat(b'0');
        for byte in whole.bytes().chain(fraction.bytes().chain(zeros).take(6)) {
            let shifted = micros.checked_mul(10).ok_or_else(overflow)?;
            micros = shifted.checked_add(i64::from(byte - b'0')).ok_or_else(overflow)?;
        }
        if fraction.as_bytes().get(6).is_some_and(|digit| *digit >= b'5') {
            micros = micros.checked_add(1).ok_or_else(overflow)?;
        }
        Ok(Self(if unsigned.len() == text.len() { micros } else { -micros }))
    }
}

impl fmt::Display for Price {
    /// Dollars, with two to six decimal places.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let micros = self.0.unsigned_abs();
        let mut fraction = micros % MICROS.unsigned_abs();
        let mut places = 6;
        while places > 2 && fraction.is_multiple_of(10) {
            fraction /= 10;
            places -= 1;
        }
        write!(f, "{sign}{}.{fraction:0places$}", micros / MICROS.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_dollars_and_rounds_to_the_nearest_micro_dollar() {
        let micros = |text: &str| text.parse::<Price>().map(Price::micros);
        assert_eq!(micros("0.0104000000"), Ok(10_400));
        assert_eq!(micros("12"), Ok(12_000_000));
        assert_eq!(micros(".5"), Ok(500_000));
        assert_eq!(micros("-1.25"), Ok(-1_250_000));
        assert_eq!(micros("0.0000004"), Ok(0));
        assert_eq!(micros("0.0000005"), Ok(1));
        assert_eq!(micros("9223372036854.775807"), Ok(i64::MAX));
    }

    #[test]
    fn refuses_what_is_no_price() {
        for text in ["", ".", "-", "+1", "1e3", "$1", "1.2.3", "1,5", " 1", "NaN"] {
            assert_eq!(text.parse::<Price>(), Err(ParsePriceError::NotADecimal { text: text.to_owned() }));
        }
        for text in ["9223372036854.775808", "9223372036854.7758075", "99999999999999999999"] {
            assert_eq!(text.parse::<Price>(), Err(ParsePriceError::Overflow { text: text.to_owned() }));
        }
        assert_eq!(Price::from_micros(i64::MAX).checked_add(Price::from_micros(1)), None);
    }

    #[test]
    fn prints_at_least_cents() {
        assert_eq!(Price::from_micros(0).to_string(), "0.00");
        assert_eq!(Price::from_micros(-41_600).to_string(), "-0.0416");
        assert_eq!(Price::from_micros(3_100_000).to_string(), "3.10");
        assert_eq!(Price::from_micros(1).to_string(), "0.000001");
    }

    proptest! {
        #[test]
        fn printing_and_reading_gives_the_same_price(micros in -i64::MAX..i64::MAX) {
            let price = Price::from_micros(micros);
            prop_assert_eq!(price.to_string().parse(), Ok(price));
        }

        #[test]
        fn any_text_gives_a_price_or_an_error(text in "\\PC{0,12}", near in "-?[0-9]{0,24}\\.?[0-9]{0,24}") {
            for text in [text, near] {
                if let Ok(price) = text.parse::<Price>() {
                    prop_assert_eq!(price.to_string().parse(), Ok(price));
                }
            }
        }
    }
}
