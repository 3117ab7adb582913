//! The kubelet configuration as text, which is how version 6 of the EC2NodeClass hash sees it: what Go's
//! `encoding/json` writes for the object that the API server holds.

use serde_json::{Map, Number, Value};

/// Without any setting the text is `null`, whether the field is absent or empty.
pub(super) fn kubelet_text(kubelet: Option<&Map<String, Value>>) -> String {
    match kubelet {
        Some(settings) if !settings.is_empty() => {
            let mut text = String::new();
            write_object(settings, &mut text);
            text
        }
        Some(_) | None => "null".to_owned(),
    }
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::String(text) => write_string(text, out),
        Value::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(element, out);
            }
            out.push(']');
        }
        Value::Object(entries) => write_object(entries, out),
    }
}

fn write_object(entries: &Map<String, Value>, out: &mut String) {
    // serde_json keeps keys sorted unless some other crate in the build asks it not to.
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_by_key(|(key, _)| key.as_str());
    out.push('{');
    for (index, (key, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(key, out);
        out.push(':');
        write(value, out);
    }
    out.push('}');
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // The last three groups are harmless in JSON; Go escapes them for text that ends up inside HTML or script.
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// The API server keeps what fits an `int64` as such, and everything else as a double. It stores the double's text, so
/// `1.0` comes back as `1`, and `-0.0` as the integer 0.
fn number_text(number: &Number) -> String {
    match (number.as_i64(), number.as_f64().and_then(Number::from_f64)) {
        (Some(integer), _) => integer.to_string(),
        // serde_json prints the shortest digits that read back the same, and the even one of two equally near, as Go
        // does. The standard library takes the other one of the two.
        (None, Some(double)) => as_go_lays_out(&double.to_string()),
        (None, None) => number.to_string(),
    }
}

/// The same number with an exponent only where Go has one: below 1e-6 and from 1e21 on.
fn as_go_lays_out(text: &str) -> String {
    let (sign, size) = text.strip_prefix('-').map_or(("", text), |size| ("-", size));
    let (mantissa, exponent) = size.split_once('e').unwrap_or((size, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = format!("{whole}{fraction}");
    let significant = all_digits.trim_start_matches('0');
    let digits = significant.trim_end_matches('0');
    if digits.is_empty() {
        return "0".to_owned();
    }
    // Where the decimal point stands, counted from the first significant digit: 1 in 1.5, 0 in 0.5, -1 in 0.05.
    let leading_zeros = all_digits.len() - significant.len();
    let point = whole.len() as i64 - leading_zeros as i64 + exponent.parse().unwrap_or(0);
    let count = digits.len() as i64;
    match point {
        -5..=0 => format!("{sign}0.{}{digits}", zeros(-point)),
        1..=21 if point >= count => format!("{sign}{digits}{}", zeros(point - count)),
        1..=21 => {
            let (whole, fraction) = digits.split_at(point as usize);
            format!("{sign}{whole}.{fraction}")
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            format!("{sign}{first}{dot}{rest}e{:+}", point - 1)
        }
    }
}

fn zeros(count: i64) -> String {
    "0".repeat(count as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(kubelet: &Value, expected: &str) {
        assert_eq!(kubelet_text(kubelet.as_object()), expected);
    }

    #[test]
    fn no_settings_are_null() {
        check(&Value::Null, "null");
        check(&json!({}), "null");
    }

    #[test]
    fn keys_are_sorted_at_every_depth_and_text_is_compact() {
        check(
            &json!({"maxPods": 110, "evictionHard": {"nodefs.available": "10%", "memory.available": "5%"}}),
            r#"{"evictionHard":{"memory.available":"5%","nodefs.available":"10%"},"maxPods":110}"#,
        );
    }

    #[test]
    fn text_is_escaped_as_go_does() {
        check(
            &json!({"a<b": "x > y && \"z\" \\ \n\t\r\u{8}\u{c}\u{1}\u{7f}\u{2028}\u{2029}é"}),
            "{\"a\\u003cb\":\"x \\u003e y \\u0026\\u0026 \\\"z\\\" \\\\ \\n\\t\\r\\b\\f\\u0001\u{7f}\\u2028\\u2029é\"}",
        );
    }

    #[test]
    fn numbers_are_written_as_the_api_server_returns_them() {
        for (input, expected) in [
            ("1", "1"),
            ("1.0", "1"),
            ("-0.0", "0"),
            ("0.9", "0.9"),
            ("-12.5", "-12.5"),
            ("1968074907138014.25", "1968074907138014.2"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("1e3", "1000"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("1.5e300", "1.5e+300"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("-2.5e-10", "-2.5e-10"),
            ("18446744073709551615", "18446744073709552000"),
            ("-9223372036854775808", "-9223372036854775808"),
        ] {
            let number: Value = serde_json::from_str(input).unwrap();
            check(&json!({"n": number}), &format!(r#"{{"n":{expected}}}"#));
        }
    }
}
