//! The clock of the machine that the autoscaler runs on. It may be wrong, and jumps when somebody sets it.

use jiff::{SignedDuration, Timestamp};

#[derive(Debug, Clone, Copy)]
pub struct SkewedClock {
    skew: SignedDuration,
    /// What it showed last: the shell never lets the engine's time go back.
    shown: Timestamp,
}

impl SkewedClock {
    pub fn new() -> Self {
        Self { skew: SignedDuration::ZERO, shown: Timestamp::MIN }
    }

    /// From now on it is wrong by this much.
    pub fn jump(&mut self, skew: SignedDuration) {
        self.skew = skew;
    }

    /// Another process reads the same clock, and remembers nothing.
    pub fn restart(&mut self) {
        self.shown = Timestamp::MIN;
    }

    /// Reads the clock at a true time.
    pub fn read(&mut self, now: Timestamp) -> Timestamp {
        self.shown = self.peek(now);
        self.shown
    }

    pub fn peek(&self, now: Timestamp) -> Timestamp {
        self.shown.max(now + self.skew)
    }

    /// When the clock will show this.
    pub fn true_time(&self, shown: Timestamp) -> Timestamp {
        shown - self.skew
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_put_back_stands_still_until_time_has_caught_up() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut clock = SkewedClock::new();
        clock.jump(SignedDuration::from_secs(60));
        assert_eq!((clock.read(at(0)), clock.true_time(at(70))), (at(60), at(10)));
        clock.jump(SignedDuration::ZERO);
        assert_eq!((clock.read(at(20)), clock.read(at(61))), (at(60), at(61)));
    }
}
