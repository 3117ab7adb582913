//! Durations against Go's answers, and their round trip.

use std::time::Duration;

use jiff::SignedDuration;
use kerf_model::duration::{GoDuration, NillableDuration};
use proptest::prelude::*;

/// Every line of the table was answered by Go; its head says how to read it.
#[test]
fn reads_and_prints_like_go() {
    let table = include_str!("vectors/durations.txt");
    let mut checked = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (input, expected) = line.split_once('\t').expect("input and answer");
        let actual = match input.parse::<GoDuration>() {
            Ok(duration) => format!("{}\t{duration}", duration.as_nanos()),
            Err(_) => "error".to_owned(),
        };
        assert_eq!(actual, expected, "for {input:?}");
        checked += 1;
    }
    assert!(checked > 400, "only {checked} lines");
}

#[test]
fn never_is_later_than_any_duration() {
    let never: NillableDuration = "Never".parse().unwrap();
    let month: NillableDuration = "720h".parse().unwrap();
    assert_eq!(never.to_string(), "Never");
    assert_eq!(never.duration(), None);
    assert_eq!(month.to_string(), "720h0m0s");
    assert!(month < never);
    assert!("never".parse::<NillableDuration>().is_err());
}

#[test]
fn says_what_is_wrong_and_where() {
    let error = |text: &str| text.parse::<GoDuration>().unwrap_err().to_string();
    assert_eq!(error("1h5"), r#"duration "1h5" has no unit after the number at byte 2 (use h, m, s, ms, us or ns)"#);
    assert_eq!(error("2d"), r#"duration "2d" has an unknown unit "d" at byte 1 (use h, m, s, ms, us or ns)"#);
    assert_eq!(error("h"), r#"duration "h" needs a number at byte 0"#);
    assert_eq!(error("9999999h"), r#"duration "9999999h" is longer than 292 years"#);
}

#[test]
fn a_negative_duration_is_no_std_duration() {
    let negative: GoDuration = "-5m".parse().unwrap();
    assert_eq!(Duration::try_from(negative), Err(negative));
    assert_eq!(SignedDuration::from(negative), SignedDuration::from_mins(-5));
    assert_eq!(GoDuration::try_from(SignedDuration::MAX), Err(SignedDuration::MAX));
}

proptest! {
    #[test]
    fn printing_and_reading_gives_the_same_duration(nanos in any::<i64>(), shift in 0_u32..63) {
        // The shift spreads the lengths evenly from nanoseconds to centuries.
        let duration = GoDuration::from_nanos(nanos >> shift);
        prop_assert_eq!(duration.to_string().parse(), Ok(duration));
    }

    #[test]
    fn any_text_gives_a_duration_or_an_error(text in "\\PC{0,24}", near in "[-+]?([0-9.]{0,24}(ns|us|µs|ms|s|m|h)){0,3}") {
        for text in [text, near] {
            if let Err(error) = text.parse::<GoDuration>() {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
