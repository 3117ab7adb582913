//! Kubernetes quantities (`100m`, `1.5Gi`, `2e3`), exact to the nano unit.
//!
//! Parsing and printing follow `resource.Quantity` of k8s.io/apimachinery, except where that one hides a mistake:
//! - A binary quantity beyond 2^63-1 is capped there. Here it is an [`Overflow`](ParseQuantityError::Overflow): a pool
//!   limit that silently became another number helps nobody. Decimal quantities are uncapped there; here they end at
//!   1.7e29, the largest number of nano units in an `i128`.
//! - Text without a number (`-`, `.`, `Ki`, `e3`) is zero there. Here it is an error, as in the schema of our CRDs.
//! - A value of 1000E or more loses its suffix in print there (`1000E` becomes `1`). Here the suffix stops at `E` or `Ei`.
//! - Text that looks canonical is printed back unchanged there (`+5`, `1.500`). Here print is always canonical.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use crate::digits::split_digits;

const NANOS: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;
/// Where the reference starts to cap binary quantities.
const MAX_BINARY_NANOS: u128 = i64::MAX as u128 * NANOS as u128;

/// An exact amount of some resource, and the notation it prints in.
///
/// Comparison, equality and hash look at the amount only: `1000m == 1`.
///
/// ```
/// use kerf_model::quantity::Quantity;
///
/// let memory: Quantity = "1.5Gi".parse()?;
/// assert_eq!(memory.to_string(), "1536Mi");
/// assert_eq!(memory.value(), Some(1_610_612_736));
/// assert_eq!("1000m".parse::<Quantity>()?, "1".parse()?);
/// # Ok::<(), kerf_model::quantity::ParseQuantityError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    notation: Notation,
}

/// The family of suffixes that a quantity was written with, and prints with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// `n u m k M G T P E`, the powers of 1000.
    DecimalSi,
    /// `Ki Mi Gi Ti Pi Ei`, the powers of 1024. Amounts below 1024 and fractions print as [`Notation::DecimalSi`].
    BinarySi,
    /// `e3`, `E-6`: a power of ten, in print always a multiple of three.
    DecimalExponent,
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    #[error("quantity is empty")]
    Empty,
    #[error("quantity {text:?} has no digits")]
    NoDigits { text: String },
    #[error("quantity {text:?} has an unknown suffix {:?} at byte {at}", .text.get(*.at..).unwrap_or_default())]
    UnknownSuffix { text: String, at: usize },
    #[error("quantity {text:?} has an exponent out of range at byte {at}")]
    ExponentOutOfRange { text: String, at: usize },
    #[error("quantity {text:?} is too large")]
    Overflow { text: String },
}

impl Quantity {
    pub const ZERO: Self = Self { nanos: 0, notation: Notation::DecimalSi };

    /// A whole number of units: cores, bytes, pods.
    pub const fn from_value(value: i64, notation: Notation) -> Self {
        Self { nanos: value as i128 * NANOS, notation }
    }

    /// Thousandths of a unit, as CPU is usually counted.
    pub const fn from_milli(milli: i64, notation: Notation) -> Self {
        Self { nanos: milli as i128 * NANOS_PER_MILLI, notation }
    }

    /// The exact amount, in thousand-millionths of a unit; the inverse of [`nanos`](Self::nanos).
    pub const fn from_nanos(nanos: i128, notation: Notation) -> Self {
        Self { nanos, notation }
    }

    /// The exact amount, in thousand-millionths of a unit.
    pub const fn nanos(self) -> i128 {
        self.nanos
    }

    pub const fn notation(self) -> Notation {
        self.notation
    }

    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Thousandths of a unit, rounded away from zero; `None` if that does not fit.
    pub fn milli(self) -> Option<i64> {
        self.scaled(NANOS_PER_MILLI)
    }

    /// Whole units (bytes, for memory), rounded away from zero; `None` if that does not fit.
    pub fn value(self) -> Option<i64> {
        self.scaled(NANOS)
    }

    fn scaled(self, unit: i128) -> Option<i64> {
        let rest = (self.nanos % unit).signum();
        i64::try_from(self.nanos / unit + rest).ok()
    }

    /// The sum, in the notation of `self`, or of `other` if `self` is zero (as in the reference).
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self { nanos: self.nanos.checked_add(other.nanos)?, notation: self.notation_with(other) })
    }

    /// The difference, in the notation of `self`, or of `other` if `self` is zero (as in the reference).
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        Some(Self { nanos: self.nanos.checked_sub(other.nanos)?, notation: self.notation_with(other) })
    }

    pub fn checked_mul(self, factor: i64) -> Option<Self> {
        Some(Self { nanos: self.nanos.checked_mul(i128::from(factor))?, notation: self.notation })
    }

    /// How many times `each` goes into this, in whole numbers; `None` if `each` is not positive, or it goes too often.
    pub fn times(self, each: Self) -> Option<i64> {
        if each.nanos <= 0 {
            return None;
        }
        i64::try_from(self.nanos.div_euclid(each.nanos)).ok()
    }

    fn notation_with(self, other: Self) -> Notation {
        if self.is_zero() { other.notation } else { self.notation }
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl fmt::Display for Quantity {
    /// The canonical form: no fraction, and the largest suffix that loses nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative() { "-" } else { "" };
        let nanos = self.nanos.unsigned_abs();
        if nanos == 0 {
            return f.write_str("0");
        }
        const SMALLEST_BINARY: u128 = 1024 * NANOS as u128;
        match self.notation {
            Notation::BinarySi if nanos >= SMALLEST_BINARY && nanos.is_multiple_of(NANOS as u128) => {
                const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
                let (amount, power) = divide_out(nanos / NANOS as u128, 1024, SUFFIXES.len() - 1);
                write!(f, "{sign}{amount}{}", SUFFIXES[power])
            }
            Notation::BinarySi | Notation::DecimalSi => {
                const SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
                let (amount, power) = divide_out(nanos, 1000, SUFFIXES.len() - 1);
                write!(f, "{sign}{amount}{}", SUFFIXES[power])
            }
            Notation::DecimalExponent => match divide_out(nanos, 1000, usize::MAX) {
                (amount, 3) => write!(f, "{sign}{amount}"),
                (amount, power) if power < 3 => write!(f, "{sign}{amount}e-{}", 9 - 3 * power),
                (amount, power) => write!(f, "{sign}{amount}e{}", 3 * power - 9),
            },
        }
    }
}

/// `amount` without its factors `base`, and how many there were; it stops at `most`.
fn divide_out(mut amount: u128, base: u128, most: usize) -> (u128, usize) {
    let mut power = 0;
    while power < most && amount.is_multiple_of(base) {
        amount /= base;
        power += 1;
    }
    (amount, power)
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        if text.is_empty() {
            return Err(ParseQuantityError::Empty);
        }
        let (negative, unsigned) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(ParseQuantityError::NoDigits { text: text.to_owned() });
        }
        let (scale, notation) = parse_suffix(suffix, text)?;

        let overflow = || ParseQuantityError::Overflow { text: text.to_owned() };
        let magnitude = scale.nanos_of(whole, fraction).ok_or_else(overflow)?;
        if notation == Notation::BinarySi && magnitude > MAX_BINARY_NANOS {
            return Err(overflow());
        }
        let nanos = i128::try_from(magnitude).map_err(|_| overflow())?;
        // A binary suffix on less than one unit says nothing: the reference forgets it as well.
        let notation = match notation {
            Notation::BinarySi if (1..NANOS).contains(&nanos) => Notation::DecimalSi,
            kept => kept,
        };
        Ok(Self { nanos: if negative { -nanos } else { nanos }, notation })
    }
}

fn parse_suffix(suffix: &str, text: &str) -> Result<(Scale, Notation), ParseQuantityError> {
    let si = |exponent| Ok((Scale { exponent, shift: 0 }, Notation::DecimalSi));
    let binary = |shift| Ok((Scale { exponent: 0, shift }, Notation::BinarySi));
    let at = text.len() - suffix.len();
    match suffix {
        "n" => si(-9),
        "u" => si(-6),
        "m" => si(-3),
        "" => si(0),
        "k" => si(3),
        "M" => si(6),
        "G" => si(9),
        "T" => si(12),
        "P" => si(15),
        "E" => si(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let unknown = || ParseQuantityError::UnknownSuffix { text: text.to_owned(), at };
            let exponent = suffix.strip_prefix(['e', 'E']).ok_or_else(unknown)?;
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(unknown());
            }
            let exponent =
                exponent.parse().map_err(|_| ParseQuantityError::ExponentOutOfRange { text: text.to_owned(), at })?;
            Ok((Scale { exponent, shift: 0 }, Notation::DecimalExponent))
        }
    }
}

/// What a suffix multiplies with: `10^exponent * 2^shift`.
struct Scale {
    exponent: i32,
    shift: u32,
}

impl Scale {
    /// The nano units in `whole.fraction` times this scale, rounded up.
    ///
    /// The digits are read as one row in which the exponent has moved the point. Those left of it accumulate as usual.
    /// Those right of it are folded from the far end with a division by ten per digit; rounding each division up equals
    /// rounding up once at the end, so any number of digits gives the exact answer without big integers.
    fn nanos_of(&self, whole: &str, fraction: &str) -> Option<u128> {
        let unit = (NANOS as u128) << self.shift;
        let digits = || whole.bytes().chain(fraction.bytes()).map(|byte| u128::from(byte - b'0'));
        if digits().all(|digit| digit == 0) {
            return Some(0);
        }
        let count = i64::try_from(whole.len() + fraction.len()).ok()?;
        let point = i64::try_from(whole.len()).ok()? + i64::from(self.exponent);
        let left = usize::try_from(point.clamp(0, count)).ok()?;

        let mut integer = 0_u128;
        for digit in digits().take(left) {
            integer = integer.checked_mul(10)?.checked_add(digit)?;
        }
        // Stops early: a number that is not zero overflows after 38 steps, and zero stays zero.
        for _ in count..point {
            if integer == 0 {
                break;
            }
            integer = integer.checked_mul(10)?;
        }

        let right: Vec<u128> = digits().skip(left).collect();
        let mut remainder = 0_u128;
        for digit in right.into_iter().rev() {
            remainder = (digit * unit + remainder).div_ceil(10);
        }
        // Leading zeros between the point and the first digit. It stops early: nothing is smaller than one nano unit.
        for _ in point..0 {
            if remainder <= 1 {
                break;
            }
            remainder = remainder.div_ceil(10);
        }
        integer.checked_mul(unit)?.checked_add(remainder)
    }
}
