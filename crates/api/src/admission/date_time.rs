//! The format `date-time` as kube-openapi checks it: looser than RFC 3339 in case, stricter than jiff in nothing that matters.

use jiff::civil::Date;

/// Follows kube-openapi's `IsDateTime`: a real calendar date, `t`, two digits each for hour, minute and second,
/// an optional fraction, then `z` or an offset. Leap seconds are out.
pub(super) fn is_valid(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let Some((date, time)) = text.split_once('t') else { return false };
    is_date(date) && is_time(time.split('t').next().unwrap_or(time))
}

fn is_date(text: &str) -> bool {
    let fields: Vec<&str> = text.split('-').collect();
    let [year, month, day] = fields.as_slice() else { return false };
    let number = |field: &str, width: usize| {
        (field.len() == width && field.bytes().all(|byte| byte.is_ascii_digit())).then(|| field.parse::<i16>().ok())?
    };
    match (number(year, 4), number(month, 2), number(day, 2)) {
        (Some(year), Some(month), Some(day)) => {
            let (Ok(month), Ok(day)) = (i8::try_from(month), i8::try_from(day)) else { return false };
            Date::new(year, month, day).is_ok()
        }
        _ => false,
    }
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    is_clock(clock) && is_zone(after_fraction(rest))
}

/// `hh:mm:ss`, each part in its range.
fn is_clock(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().all(|(at, byte)| if at % 3 == 2 { *byte == b':' } else { byte.is_ascii_digit() })
        && &text[..2] <= "23"
        && &text[3..5] <= "59"
        && &text[6..] <= "59"
}

/// The fraction's separator may be any character: the server's pattern has an unescaped dot.
fn after_fraction(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next();
    let rest = chars.as_str();
    let zone = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    // `+01:00` also looks like a separator with digits, but then no zone would be left.
    if zone.len() < rest.len() && is_zone(zone) { zone } else { text }
}

fn is_zone(text: &str) -> bool {
    match text.as_bytes() {
        b"z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].into_iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_valid;

    #[test]
    fn takes_what_the_server_takes() {
        for text in [
            "2024-01-01T01:01:01Z",
            "2024-02-29t23:59:59z",
            "2024-01-01T01:01:01.123456Z",
            "2024-01-01T01:01:01+01:00",
            "2024-01-01T01:01:01,5-99:99",
        ] {
            assert!(is_valid(text), "{text}");
        }
    }

    #[test]
    fn refuses_what_the_server_refuses() {
        for text in [
            "",
            "2024-01-01",
            "2023-02-29T00:00:00Z",
            "2024-01-01 01:01:01Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T01:01:60Z",
            "2024-01-01T01:01:01",
            "2024-1-1T01:01:01Z",
            "2024-01-01T01:01:01.Z",
            "20é4-01-01T01:01:01Z",
            "2024-01-01T01:01:é1Z",
        ] {
            assert!(!is_valid(text), "{text}");
        }
    }
}
