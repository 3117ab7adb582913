//! The clock of the machine that the autoscaler runs on. It may be wrong, and jumps when somebody sets it.

use jiff::{SignedDuration, Timestamp};

/// How much slower the engine's time passes while the clock is behind it, as in the shell (`kerf-controller`'s `pace`).
const SLOWER: i32 = 2;

#[derive(Debug, Clone, Copy)]
pub struct SkewedClock {
    skew: SignedDuration,
    /// What it showed last and when that was: the shell never lets the engine's time go back, nor stand still.
    last: Option<(Timestamp, Timestamp)>,
}

impl SkewedClock {
    pub fn new() -> Self {
        Self { skew: SignedDuration::ZERO, last: None }
    }

    /// From now on it is wrong by this much.
    pub fn jump(&mut self, skew: SignedDuration) {
        self.skew = skew;
    }

    /// Another process reads the same clock, and remembers nothing.
    pub fn restart(&mut self) {
        self.last = None;
    }

    /// Reads the clock at a true time.
    pub fn read(&mut self, now: Timestamp) -> Timestamp {
        let shown = self.peek(now);
        self.last = Some((shown, now));
        shown
    }

    pub fn peek(&self, now: Timestamp) -> Timestamp {
        let clock = now + self.skew;
        self.last.map_or(clock, |(shown, read)| clock.max(shown + now.duration_since(read) / SLOWER))
    }

    /// When the clock will show this.
    pub fn true_time(&self, shown: Timestamp) -> Timestamp {
        let clock = shown - self.skew;
        self.last.map_or(clock, |(last, read)| clock.min(read + shown.duration_since(last) * SLOWER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_put_back_goes_at_half_the_speed_until_time_has_caught_up() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut clock = SkewedClock::new();
        clock.jump(SignedDuration::from_secs(60));
        assert_eq!((clock.read(at(0)), clock.true_time(at(70))), (at(60), at(10)));
        clock.jump(SignedDuration::ZERO);
        assert_eq!((clock.true_time(at(70)), clock.true_time(at(130))), (at(20), at(130)));
        assert_eq!((clock.read(at(20)), clock.read(at(60)), clock.read(at(121))), (at(70), at(90), at(121)));
    }
}
