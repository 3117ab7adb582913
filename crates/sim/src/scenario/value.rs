//! The small values of a scenario file: lengths of time, and amounts that something must have.

use std::fmt;

use jiff::SignedDuration;
use kerf_model::duration::GoDuration;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

const SECONDS_PER_DAY: i64 = 24 * 3600;

/// Longest time that is simulated. Ten years is more than anyone waits for, and far from what a timestamp can hold.
const MAX_DAYS: i64 = 3660;

/// `90s`, `1h30m`, `30d`, `1d12h`.
pub fn parse_duration(text: &str) -> Option<SignedDuration> {
    let (days, rest) = match text.split_once('d') {
        Some((days, rest)) => (days.parse::<u32>().ok()?, rest),
        None => (0, text),
    };
    let rest = match rest {
        "" if text.ends_with('d') => SignedDuration::ZERO,
        rest => rest.parse::<GoDuration>().ok()?.into(),
    };
    let whole = SignedDuration::from_secs(i64::from(days) * SECONDS_PER_DAY).checked_add(rest)?;
    let longest = SignedDuration::from_secs(MAX_DAYS * SECONDS_PER_DAY);
    (SignedDuration::ZERO..=longest).contains(&whole).then_some(whole)
}

/// A time since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Elapsed(pub SignedDuration);

impl<'de> Deserialize<'de> for Elapsed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bad = || Error::invalid_value(Unexpected::Str(&text), &"a duration such as 90s, 10m or 30d");
        parse_duration(&text).map(Self).ok_or_else(bad)
    }
}

/// Dollars per hour: `0.5`, `">= 0.5"`, `"<= 0.5"`. In millionths, as an [`Amount`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dollars(pub Amount);

impl Dollars {
    fn parse(text: &str) -> Option<Self> {
        let number = text.trim_start_matches(['<', '>', '=', ' ']);
        let micros = number.parse::<kerf_model::quantity::Quantity>().ok()?.nanos() / 1000;
        Amount::parse(&text.replace(number, &micros.to_string())).map(Self)
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bad = || Error::invalid_value(Unexpected::Str(&text), &"dollars per hour such as \"<= 0.5\"");
        Self::parse(&text).ok_or_else(bad)
    }
}

/// How many of something there must be: `3`, `">= 3"`, `"<= 3"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    Exactly(u64),
    AtLeast(u64),
    AtMost(u64),
}

impl Amount {
    pub fn holds(self, seen: u64) -> bool {
        match self {
            Self::Exactly(wanted) => seen == wanted,
            Self::AtLeast(wanted) => seen >= wanted,
            Self::AtMost(wanted) => seen <= wanted,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.trim().parse().ok();
        let text = text.trim();
        if let Some(rest) = text.strip_prefix(">=") {
            return number(rest).map(Self::AtLeast);
        }
        if let Some(rest) = text.strip_prefix("<=") {
            return number(rest).map(Self::AtMost);
        }
        number(text).map(Self::Exactly)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(wanted) => write!(f, "{wanted}"),
            Self::AtLeast(wanted) => write!(f, "at least {wanted}"),
            Self::AtMost(wanted) => write!(f, "at most {wanted}"),
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountVisitor)
    }
}

struct AmountVisitor;

impl Visitor<'_> for AmountVisitor {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a bound such as \">= 3\"")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Amount, E> {
        Ok(Amount::Exactly(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Amount, E> {
        u64::try_from(number).map(Amount::Exactly).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Amount, E> {
        Amount::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// Whether all that is wanted is there: every field of an object, and every element of a list, among others. `null` is
/// wanted of what is not there.
pub(super) fn says(known: Option<&Value>, wanted: &Value) -> bool {
    match wanted {
        Value::Null => known.is_none_or(Value::is_null),
        Value::Object(fields) => {
            known.is_some_and(Value::is_object)
                && fields.iter().all(|(name, wanted)| says(known.and_then(|known| known.get(name)), wanted))
        }
        Value::Array(elements) => {
            let known = known.and_then(Value::as_array);
            let has = |wanted| known.is_some_and(|known| known.iter().any(|known| says(Some(known), wanted)));
            elements.iter().all(has)
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => known == Some(wanted),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_know_days() {
        let hours = |text| parse_duration(text).map(|duration| duration.as_hours());
        assert_eq!(["30d", "1d12h", "90m", "0s"].map(hours), [Some(720), Some(36), Some(1), Some(0)]);
        for bad in ["", "d", "-1h", "5", "1d2", "1 day", "9999d", "99999999999d"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_object_says_what_is_among_its_fields_and_elements() {
        let node = json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b"}]}});
        let asked = |wanted: Value| says(Some(&node), &wanted);
        assert!(asked(json!({"spec": {"taints": [{"key": "a"}]}})));
        assert!(asked(json!({"metadata": null, "spec": {"unschedulable": null}})));
        assert!(!asked(json!({"spec": {"taints": [{"key": "c"}]}})));
        assert!(!asked(json!({"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}})));
        assert!(!asked(json!({"spec": null})) && !asked(json!({"metadata": {}})));
    }

    #[test]
    fn amounts_are_exact_or_bounds() {
        assert_eq!(Amount::parse(">= 3"), Some(Amount::AtLeast(3)));
        assert_eq!(Amount::parse("<=3"), Some(Amount::AtMost(3)));
        assert_eq!(Amount::parse("3"), Some(Amount::Exactly(3)));
        assert_eq!(Amount::parse("> 3"), None);
        assert!(Amount::AtLeast(3).holds(3) && !Amount::AtLeast(3).holds(2) && !Amount::Exactly(3).holds(4));
    }
}
