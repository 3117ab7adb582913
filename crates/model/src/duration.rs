//! Durations as Kubernetes writes them: Go's `time.Duration`, and the nillable form that can say `Never`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;

use crate::digits::split_digits;

const MICROSECOND: i64 = 1_000;
const MILLISECOND: i64 = 1_000 * MICROSECOND;
const SECOND: i64 = 1_000 * MILLISECOND;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// A signed number of nanoseconds that reads and prints exactly like Go's `time.Duration`.
///
/// ```
/// use kerf_model::duration::GoDuration;
///
/// let month: GoDuration = "720h".parse()?;
/// assert_eq!(month.to_string(), "720h0m0s");
/// # Ok::<(), kerf_model::duration::ParseDurationError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration(i64);

/// A duration that may be switched off (`expireAfter`, `consolidateAfter`). `Never` sorts after every duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NillableDuration {
    After(GoDuration),
    Never,
}

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseDurationError {
    #[error("duration is empty")]
    Empty,
    #[error("duration {text:?} needs a number at byte {at}")]
    NumberExpected { text: String, at: usize },
    #[error("duration {text:?} has no unit after the number at byte {at} (use h, m, s, ms, us or ns)")]
    MissingUnit { text: String, at: usize },
    #[error("duration {text:?} has an unknown unit {unit:?} at byte {at} (use h, m, s, ms, us or ns)")]
    UnknownUnit { text: String, unit: String, at: usize },
    #[error("duration {text:?} is longer than 292 years")]
    Overflow { text: String },
}

impl GoDuration {
    pub const ZERO: Self = Self(0);

    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// `None` beyond 292 years.
    pub fn from_secs(secs: i64) -> Option<Self> {
        secs.checked_mul(SECOND).map(Self)
    }

    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }
}

impl From<GoDuration> for SignedDuration {
    fn from(duration: GoDuration) -> Self {
        Self::from_nanos(duration.0)
    }
}

/// Fails for a negative duration, and gives it back.
impl TryFrom<GoDuration> for Duration {
    type Error = GoDuration;

    fn try_from(duration: GoDuration) -> Result<Self, GoDuration> {
        u64::try_from(duration.0).map(Self::from_nanos).map_err(|_| duration)
    }
}

/// Fails beyond 292 years, and gives the duration back.
impl TryFrom<SignedDuration> for GoDuration {
    type Error = SignedDuration;

    fn try_from(duration: SignedDuration) -> Result<Self, SignedDuration> {
        i64::try_from(duration.as_nanos()).map(Self).map_err(|_| duration)
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if self.is_negative() {
            f.write_str("-")?;
        }
        const NANOS_PER_SECOND: u64 = SECOND as u64;
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write!(f, "{}µs", Decimal { amount: nanos, digits: 3 }),
            1_000_000..NANOS_PER_SECOND => write!(f, "{}ms", Decimal { amount: nanos, digits: 6 }),
            NANOS_PER_SECOND.. => {
                let minutes = nanos / NANOS_PER_SECOND / 60;
                let seconds = Decimal { amount: nanos % (60 * NANOS_PER_SECOND), digits: 9 };
                match (minutes / 60, minutes % 60) {
                    (0, 0) => write!(f, "{seconds}s"),
                    (0, minutes) => write!(f, "{minutes}m{seconds}s"),
                    (hours, minutes) => write!(f, "{hours}h{minutes}m{seconds}s"),
                }
            }
        }
    }
}

/// `amount / 10^digits` without trailing zeros.
struct Decimal {
    amount: u64,
    digits: u32,
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = 10_u64.pow(self.digits);
        write!(f, "{}", self.amount / unit)?;
        let mut fraction = self.amount % unit;
        if fraction == 0 {
            return Ok(());
        }
        let mut digits = self.digits as usize;
        while fraction.is_multiple_of(10) {
            fraction /= 10;
            digits -= 1;
        }
        write!(f, ".{fraction:0digits$}")
    }
}

impl FromStr for GoDuration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, ParseDurationError> {
        if text.is_empty() {
            return Err(ParseDurationError::Empty);
        }
        let negative = text.starts_with('-');
        let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
        if rest == "0" {
            return Ok(Self::ZERO);
        }
        if rest.is_empty() {
            return Err(ParseDurationError::NumberExpected { text: text.to_owned(), at: text.len() });
        }
        let overflow = || ParseDurationError::Overflow { text: text.to_owned() };
        // One more than the largest positive duration: the magnitude of the most negative one.
        const MAX_MAGNITUDE: u64 = i64::MIN.unsigned_abs();
        let mut total = 0_u64;
        while !rest.is_empty() {
            let (nanos, after) = parse_term(rest, text)?;
            total = total.checked_add(nanos).filter(|total| *total <= MAX_MAGNITUDE).ok_or_else(overflow)?;
            rest = after;
        }
        match (negative, i64::try_from(total)) {
            (false, Ok(nanos)) => Ok(Self(nanos)),
            (true, Ok(nanos)) => Ok(Self(-nanos)),
            (true, Err(_)) => Ok(Self(i64::MIN)),
            (false, Err(_)) => Err(overflow()),
        }
    }
}

/// One `<number><unit>` at the start of `rest`: its nanoseconds, and what follows it. `text` is for the error only.
fn parse_term<'t>(rest: &'t str, text: &str) -> Result<(u64, &'t str), ParseDurationError> {
    let overflow = || ParseDurationError::Overflow { text: text.to_owned() };
    let at = text.len() - rest.len();

    let (whole, after) = split_digits(rest);
    let (fraction, after) = after.strip_prefix('.').map_or(("", after), split_digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err(ParseDurationError::NumberExpected { text: text.to_owned(), at });
    }
    let unit_end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
    let (unit, after) = after.split_at(unit_end);
    let unit_nanos = match unit {
        "ns" => 1,
        // The micro sign and the Greek letter.
        "us" | "µs" | "μs" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        "" => return Err(ParseDurationError::MissingUnit { text: text.to_owned(), at }),
        _ => {
            let at = text.len() - after.len() - unit.len();
            return Err(ParseDurationError::UnknownUnit { text: text.to_owned(), unit: unit.to_owned(), at });
        }
    }
    .unsigned_abs();

    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().map_err(|_| overflow())? };
    let whole = whole.checked_mul(unit_nanos).ok_or_else(overflow)?;
    let nanos = whole.checked_add(fraction_nanos(fraction, unit_nanos)).ok_or_else(overflow)?;
    Ok((nanos, after))
}

/// `0.fraction` of a unit, in Go's arithmetic: floating point, cut off, digits ignored once 63 bits are full.
/// Exact arithmetic would give another nanosecond here and there (`0.3333333333333333333h`).
fn fraction_nanos(fraction: &str, unit_nanos: u64) -> u64 {
    let mut amount = 0_u64;
    let mut scale = 1_f64;
    for byte in fraction.bytes() {
        if amount > i64::MAX.unsigned_abs() / 10 {
            break;
        }
        let next = amount * 10 + u64::from(byte - b'0');
        if next > i64::MIN.unsigned_abs() {
            break;
        }
        amount = next;
        scale *= 10.0;
    }
    (amount as f64 * (unit_nanos as f64 / scale)) as u64
}

impl FromStr for NillableDuration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, ParseDurationError> {
        if text == "Never" { Ok(Self::Never) } else { text.parse().map(Self::After) }
    }
}

impl fmt::Display for NillableDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("Never"),
            Self::After(duration) => duration.fmt(f),
        }
    }
}

impl NillableDuration {
    /// The duration, or `None` for `Never`.
    pub const fn duration(self) -> Option<GoDuration> {
        match self {
            Self::Never => None,
            Self::After(duration) => Some(duration),
        }
    }
}
