//! Any text is an error or a schedule whose hits increase.
#![no_main]

use jiff::Timestamp;
use kerf_model::cron::{Dialect, Schedule};
use libfuzzer_sys::fuzz_target;

const ZONES: [&str; 4] = ["UTC", "Europe/Paris", "America/Sao_Paulo", "Australia/Lord_Howe"];

fuzz_target!(|input: (&str, i64, u8)| {
    let (text, second, zone) = input;
    let budget = Schedule::parse(text);
    let Ok(schedule) = Schedule::parse_as(text, Dialect::MaintenanceWindow) else {
        assert!(budget.is_err(), "windows read all that budgets read");
        return;
    };
    let schedule = schedule.in_time_zone(ZONES[usize::from(zone) % ZONES.len()]).expect("a known zone");
    // Years 1970 to 2969: away from both ends of time a possible schedule always has a next hit.
    let mut now = Timestamp::from_second(second.rem_euclid(31_556_952_000)).expect("within range");
    for _ in 0..4 {
        let hit = schedule.next_after(now);
        assert_eq!(hit.is_some(), schedule.is_possible());
        let Some(hit) = hit else { return };
        assert!(hit > now);
        now = hit;
    }
});
