//! Waiting: when a wait is over, and how long the next one is.

use jiff::{SignedDuration, Timestamp, TimestampRound, Unit};

/// The end of time if the sum is beyond it: a wait that long is for ever.
pub fn later(start: Timestamp, wait: SignedDuration) -> Timestamp {
    start.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// The wait after so many failures: `first`, then twice as long each time, and never longer than `most`.
pub fn doubled(failures: u32, first: SignedDuration, most: SignedDuration) -> SignedDuration {
    let factor = 1_i32.checked_shl(failures.saturating_sub(1)).filter(|factor| *factor > 0).unwrap_or(i32::MAX);
    first.checked_mul(factor).unwrap_or(most).min(most)
}

/// The API stores times in seconds: anything finer would differ from what is read back.
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    time.round(TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor)).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A creation that was refused for the thirty-second time was tried again at once: the doubling had overflowed.
    #[test]
    fn waits_double_up_to_the_longest_and_stay_there() {
        let seconds = SignedDuration::from_secs;
        let waits = [0, 1, 2, 3, 4, 5, 31, 32, 33, u32::MAX].map(|failures| doubled(failures, seconds(1), seconds(10)));
        assert_eq!(waits.map(|wait| wait.as_secs()), [1, 1, 2, 4, 8, 10, 10, 10, 10, 10]);
    }

    #[test]
    fn a_wait_beyond_the_end_of_time_is_for_ever() {
        assert_eq!(later(Timestamp::UNIX_EPOCH, SignedDuration::from_secs(5)).as_second(), 5);
        assert_eq!(later(Timestamp::MAX, SignedDuration::from_secs(5)), Timestamp::MAX);
    }
}
