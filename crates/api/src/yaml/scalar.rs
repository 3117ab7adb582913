//! What an unquoted scalar means, by the rules of the Go parser behind kubectl (YAML 1.1 with Go's number syntax).
//! The table in the tests was computed with `sigs.k8s.io/yaml`.

use serde_json::{Number, Value};

/// A scalar that has no JSON value: `.inf`, `-.inf` or `.nan`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotFinite;

/// The value of a plain (unquoted, untagged) scalar.
pub(super) fn resolve(text: &str) -> Result<Value, NotFinite> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Ok(Value::Bool(true));
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Ok(Value::Bool(false));
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" | ".nan" | ".NaN"
        | ".NAN" => return Err(NotFinite),
        _ => {}
    }
    let number = match text.as_bytes().first() {
        Some(b'+' | b'-' | b'0'..=b'9') => {
            // The Go parser forgets underscores wherever they stand.
            let digits = text.replace('_', "");
            integer(&digits).or_else(|| float(&digits))
        }
        Some(b'.') => float(text),
        _ => None,
    };
    Ok(number.map_or_else(|| Value::String(text.to_owned()), Value::Number))
}

/// Whether a reader of YAML 1.1 takes this text for a string when it stands unquoted.
/// Says nothing about characters that are YAML syntax.
pub fn is_plain_string(text: &str) -> bool {
    matches!(resolve(text), Ok(Value::String(_)))
}

fn integer(text: &str) -> Option<Number> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', _, ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // `from_str_radix` would take a second sign.
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative { 0_i64.checked_sub_unsigned(magnitude).map(Number::from) } else { Some(Number::from(magnitude)) }
}

fn float(text: &str) -> Option<Number> {
    if !has_float_syntax(text) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    // Go prints an integral float without its point, so `1.0` reaches the API server as the integer 1.
    if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 && !(value == 0.0 && value.is_sign_negative()) {
        #[expect(clippy::cast_possible_truncation, reason = "checked above: integral and within 53 bits")]
        return Some(Number::from(value as i64));
    }
    // Too large for a float (`1e400`) stays a string, as with Go.
    Number::from_f64(value)
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn has_float_syntax(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mantissa_is_number = all_digits(whole) && all_digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let exponent_is_number = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    mantissa_is_number && exponent_is_number
}
