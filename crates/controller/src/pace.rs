//! The engine's time, made of a clock that somebody may set.
//!
//! It never goes back, and never stands still: everything that waits would wait with it. While the clock is behind, the
//! engine's time goes on at half the speed, until the clock has caught up: a clock that was wrong by a minute is right
//! again after two.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// How much slower time passes while the clock is behind.
const SLOWER: i32 = 2;

#[derive(Debug)]
pub struct Pace {
    now: Timestamp,
    read: Instant,
}

impl Pace {
    pub fn new(clock: Timestamp, instant: Instant) -> Self {
        Self { now: clock, read: instant }
    }

    /// `clock` shows the time of day, `instant` how much has passed.
    pub fn read(&mut self, clock: Timestamp, instant: Instant) -> Timestamp {
        let passed = instant.saturating_duration_since(self.read);
        let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX) / SLOWER;
        let least = self.now.checked_add(passed).unwrap_or(Timestamp::MAX);
        self.now = clock.max(least);
        self.read = instant;
        self.now
    }

    /// How long it takes until then, from the last look.
    pub fn until(&self, at: Timestamp, clock: Timestamp) -> Duration {
        let slowly = at.duration_since(self.now).saturating_mul(SLOWER);
        Duration::try_from(slowly.min(at.duration_since(clock))).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// The engine stood still for as long as the clock had been set back, with its lease kept.
    #[test]
    fn a_clock_that_is_set_back_slows_the_engine_down_until_it_has_caught_up() {
        let start = Instant::now();
        let passed = |seconds| start + Duration::from_secs(seconds);
        let mut pace = Pace::new(at(HOUR), start);
        let back = [(0, HOUR), (10, HOUR + 5), (3_600, HOUR + 1_800), (7_190, HOUR + 3_595), (7_200, 2 * HOUR)];
        for (seconds, expected) in back {
            assert_eq!(pace.read(at(seconds), passed(seconds.unsigned_abs())), at(expected), "{seconds} s after");
        }
        assert_eq!(pace.read(at(2 * HOUR + 10), passed(7_210)), at(2 * HOUR + 10), "it has caught up");
        assert_eq!(pace.read(at(9 * HOUR), passed(7_211)), at(9 * HOUR), "set forward");
    }

    #[test]
    fn waits_are_as_long_as_the_engines_time_takes() {
        let start = Instant::now();
        let wait = |clock: i64, until: i64| {
            let mut pace = Pace::new(at(1_000), start);
            pace.read(at(clock), start);
            pace.until(at(until), at(clock)).as_secs()
        };
        assert_eq!((wait(1_000, 1_030), wait(1_000, 900)), (30, 0));
        assert_eq!(wait(900, 1_030), 60, "at half the speed");
        assert_eq!(wait(990, 1_030), 40, "it has caught up before");
    }
}
