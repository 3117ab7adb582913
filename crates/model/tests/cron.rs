//! Schedules against the reference's library and against croner, and across clock changes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use kerf_model::cron::{Dialect, Schedule};
use proptest::prelude::*;

/// Every line of the table was answered by robfig/cron; its head says how to read it.
#[test]
fn reads_and_counts_like_the_reference() {
    let table = include_str!("vectors/schedules.txt");
    let mut checked = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (start, rest) = line.split_once('\t').expect("start");
        let (text, expected) = rest.rsplit_once('\t').expect("schedule and answer");
        let actual = Schedule::parse(text).map_or_else(|_| "error".to_owned(), |schedule| hits(&schedule, start, 4));
        assert_eq!(actual, expected, "for {text:?} from {start}");
        checked += 1;
    }
    assert!(checked > 350, "only {checked} lines");
}

/// The next hits in UTC, separated by spaces.
fn hits(schedule: &Schedule, start: &str, count: usize) -> String {
    let mut now: Timestamp = start.parse().unwrap();
    let mut found = Vec::new();
    for _ in 0..count {
        let Some(hit) = schedule.next_after(now) else {
            found.push("none".to_owned());
            break;
        };
        found.push(hit.strftime("%Y-%m-%dT%H:%M").to_string());
        now = hit;
    }
    found.join(" ")
}

#[test]
fn finds_29_february_across_a_century_without_one() {
    let schedule = Schedule::parse("0 0 29 2 *").unwrap();
    assert_eq!(hits(&schedule, "2096-03-01T00:00:00Z", 1), "2104-02-29T00:00");
}

#[test]
fn a_day_that_no_month_has_is_impossible() {
    let possible = |text: &str| Schedule::parse(text).unwrap().is_possible();
    assert!(!possible("0 0 31 2 *"));
    assert!(!possible("0 0 31 4,6,9,11 *"));
    assert!(possible("0 0 29 2 *"));
    assert!(possible("0 0 31 2 mon"), "two restricted day fields mean either");
    assert_eq!(Schedule::parse("0 0 30 2 *").unwrap().next_after(Timestamp::UNIX_EPOCH), None);
}

#[test]
fn ends_quietly_at_the_end_of_time() {
    let schedule = Schedule::parse("* * * * *").unwrap();
    assert_eq!(schedule.next_after(Timestamp::MAX), None);
    assert!(schedule.next_after(Timestamp::MIN).is_some());
    assert_eq!(schedule.in_time_zone("Pacific/Auckland").unwrap().next_after(Timestamp::MAX), None);
}

#[test]
fn sunday_may_be_7_in_maintenance_windows_only() {
    let sundays = |text: &str| {
        let schedule = Schedule::parse_as(text, Dialect::MaintenanceWindow).unwrap();
        hits(&schedule, "2026-11-18T00:00:00Z", 3)
    };
    assert!(Schedule::parse("0 0 * * 7").is_err());
    assert_eq!(sundays("0 0 * * 7"), sundays("0 0 * * 0"));
    assert_eq!(sundays("0 0 * * 5-7"), "2026-11-20T00:00 2026-11-21T00:00 2026-11-22T00:00");
    assert_eq!(sundays("0 0 * * 1/3"), sundays("0 0 * * 1,4"));
    assert!(Schedule::parse_as("0 0 * * 8", Dialect::MaintenanceWindow).is_err());
}

#[test]
fn names_the_field_and_the_item_that_is_wrong() {
    let error = |text: &str| Schedule::parse(text).unwrap_err().to_string();
    assert_eq!(error("0 0 * * mon,tue-mon"), r#"day of week "tue-mon" of the schedule runs backwards"#);
    assert_eq!(error("0 24 * * *"), r#"hour "24" of the schedule is outside 0 to 23"#);
    assert_eq!(error("*/0 * * * *"), r#"minute "*/0" of the schedule has a step of zero"#);
    assert_eq!(error("* * L * *"), r#"day of month "L" of the schedule is neither a number nor a name"#);
    assert_eq!(error("*-5 * * * *"), r#"minute "*-5" of the schedule combines a star with a range"#);
    assert_eq!(error(", * * * *"), r#"minute "," of the schedule has no value"#);
    assert!(error("@every 1h").contains("no known macro"));
    assert!(error("CRON_TZ=Asia/Tokyo 0 0 * * *").contains("timeZone"));
    assert!(error("TZ=UTC 0 0 * * *").contains("timeZone"));
}

#[test]
fn knows_the_zones_of_the_world_and_no_others() {
    let daily = || Schedule::parse("0 0 * * *").unwrap();
    assert!(daily().in_time_zone("Mars/Olympus").unwrap_err().to_string().contains("Mars/Olympus"));
    let kathmandu = daily().in_time_zone("Asia/Kathmandu").unwrap();
    assert_eq!(hits(&kathmandu, "2026-11-18T00:00:00Z", 1), "2026-11-18T18:15");
    assert_eq!(kathmandu.to_string(), "0 0 * * * (Asia/Kathmandu)");
}

/// On 29 March 2026 clocks in Paris go from 02:00 to 03:00, which is 01:00 UTC.
#[test]
fn a_time_that_the_clock_skips_is_hit_when_the_gap_ends() {
    let paris = |text: &str| Schedule::parse(text).unwrap().in_time_zone("Europe/Paris").unwrap();
    let half_past_two = paris("30 2 * * *");
    assert_eq!(hits(&half_past_two, "2026-03-28T00:00:00Z", 3), "2026-03-28T01:30 2026-03-29T01:00 2026-03-30T00:30");
    // Also when asked from the last nanosecond before the gap, and not again at its end.
    let end: Timestamp = "2026-03-29T01:00:00Z".parse().unwrap();
    assert_eq!(half_past_two.next_after(end - SignedDuration::from_nanos(1)), Some(end));
    assert_eq!(hits(&half_past_two, "2026-03-29T01:00:00Z", 1), "2026-03-30T00:30");
    // Several skipped times, and one that follows at once, are one hit.
    assert_eq!(
        hits(&paris("*/30 2-3 * * *"), "2026-03-29T00:00:00Z", 3),
        "2026-03-29T01:00 2026-03-29T01:30 2026-03-30T00:00"
    );
}

/// On 25 October 2026 clocks in Paris go from 03:00 back to 02:00, which is 01:00 UTC.
#[test]
fn a_time_that_the_clock_shows_twice_is_hit_twice() {
    let schedule = Schedule::parse("30 2 * * *").unwrap().in_time_zone("Europe/Paris").unwrap();
    assert_eq!(hits(&schedule, "2026-10-24T12:00:00Z", 3), "2026-10-25T00:30 2026-10-25T01:30 2026-10-26T01:30");
}

#[test]
fn midnight_that_the_clock_skips_is_hit_when_the_gap_ends() {
    // Cairo springs forward at midnight: 24 April 2026 begins at 01:00, which is 22:00 UTC.
    let schedule = Schedule::parse("0 0 * * *").unwrap().in_time_zone("Africa/Cairo").unwrap();
    assert_eq!(hits(&schedule, "2026-04-23T00:00:00Z", 2), "2026-04-23T22:00 2026-04-24T21:00");
}

/// A field in the subset that croner and the reference read alike.
fn any_field(least: u8, most: u8) -> impl Strategy<Value = String> {
    let value = least..=most;
    prop_oneof![
        3 => Just("*".to_owned()),
        2 => value.clone().prop_map(|value| value.to_string()),
        2 => (value.clone(), value.clone()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (value.clone(), value.clone(), 1_u8..9).prop_map(|(a, b, step)| format!("{}-{}/{step}", a.min(b), a.max(b))),
        1 => prop::collection::vec(value, 1..4).prop_map(|values| {
            values.iter().map(u8::to_string).collect::<Vec<_>>().join(",")
        }),
    ]
}

fn any_schedule() -> impl Strategy<Value = String> {
    (any_field(0, 59), any_field(0, 23), any_field(1, 31), any_field(1, 12), any_field(0, 6))
        .prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"))
}

fn any_instant() -> impl Strategy<Value = Timestamp> {
    (1_600_000_000_i64..2_200_000_000, 0_i32..1_000_000_000)
        .prop_map(|(secs, nanos)| Timestamp::new(secs, nanos).unwrap())
}

proptest! {
    #[test]
    fn agrees_with_croner(text in any_schedule(), now in any_instant()) {
        let ours = Schedule::parse(&text).unwrap();
        let theirs: croner::Cron = text.parse().unwrap();
        let expected = theirs.find_next_occurrence(&now.to_zoned(TimeZone::UTC), false);
        // Where ours says "never", croner gives up with an error.
        prop_assert_eq!(ours.next_after(now), expected.ok().map(|hit| hit.timestamp()), "{}", text);
    }

    #[test]
    fn hits_increase_and_none_lies_between(
        text in any_schedule(), now in any_instant(),
        zone in prop::sample::select(vec!["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"]),
    ) {
        let schedule = Schedule::parse(&text).unwrap().in_time_zone(zone).unwrap();
        prop_assert_eq!(schedule.next_after(now).is_some(), schedule.is_possible());
        if let Some(hit) = schedule.next_after(now) {
            prop_assert!(hit > now);
            let just_before = hit - SignedDuration::from_nanos(1);
            prop_assert_eq!(schedule.next_after(just_before), Some(hit));
            let middle = now + hit.duration_since(now) / 2;
            if middle < hit {
                prop_assert_eq!(schedule.next_after(middle), Some(hit));
            }
        }
    }

    /// Walks two days around a clock change minute by minute, asking the same schedule in UTC about the wall clock.
    #[test]
    fn hits_follow_the_wall_clock_through_clock_changes(
        text in any_schedule(), minutes_before in 0_i64..2_880,
        (zone, change) in prop::sample::select(vec![
            ("Europe/Paris", "2026-03-29T01:00:00Z"),
            ("Europe/Paris", "2026-10-25T01:00:00Z"),
            ("Africa/Cairo", "2026-04-23T22:00:00Z"),
            ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
            ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
        ]),
    ) {
        let utc = Schedule::parse(&text).unwrap();
        let zoned = utc.clone().in_time_zone(zone).unwrap();
        let zone = TimeZoneDatabase::bundled().get(zone).unwrap();
        let wall = |instant| TimeZone::UTC.to_timestamp(zone.to_datetime(instant)).unwrap();

        let now = change.parse::<Timestamp>().unwrap() - SignedDuration::from_mins(minutes_before);
        let expected = (1..=2_880).map(|minutes| now + SignedDuration::from_mins(minutes)).find(|minute| {
            // What the clock went over in this minute: more than a minute in a gap, nothing new at a change back.
            let shown = wall(*minute);
            let before = wall(*minute - SignedDuration::from_mins(1)).min(shown - SignedDuration::from_mins(1));
            utc.next_after(before).is_some_and(|hit| hit <= shown)
        });
        let actual = zoned.next_after(now).filter(|hit| *hit <= now + SignedDuration::from_mins(2_880));
        prop_assert_eq!(actual, expected, "{}", text);
    }

    #[test]
    fn any_text_gives_a_schedule_or_an_error(text in "\\PC{0,24}", near in "([0-9a-z*?/,-]{1,6} ){4}[0-9a-z*?/,-]{1,6}", now in any_instant()) {
        for text in [text, near] {
            match Schedule::parse(&text) {
                Ok(schedule) => prop_assert_eq!(schedule.next_after(now).is_some(), schedule.is_possible()),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
