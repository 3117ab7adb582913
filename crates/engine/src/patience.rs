//! After its start a process only looks, for a while.

use jiff::{SignedDuration, Timestamp};
use kerf_model::time::later;

/// The lists that a process begins with may be some seconds old, and so may not show what the process before it did last:
/// a node that it chose would be chosen on top of that. Lists and watches have caught up by then.
const AFTER_START: SignedDuration = SignedDuration::from_secs(15);
/// Time that passes in one leap is a clock that was set, and counts for no more than this.
const LONGEST_TICK: SignedDuration = SignedDuration::from_secs(5);

/// How long nothing is chosen yet.
#[derive(Debug, Default)]
pub struct Patience {
    left: SignedDuration,
    last: Option<Timestamp>,
}

impl Patience {
    /// From the first lists on.
    pub fn from_start() -> Self {
        Self { left: AFTER_START, last: None }
    }

    pub fn is_over(&self) -> bool {
        self.left <= SignedDuration::ZERO
    }

    /// Lets the time since the last look pass.
    pub fn pass(&mut self, now: Timestamp) {
        let tick = self.last.map_or(SignedDuration::ZERO, |last| now.duration_since(last).min(LONGEST_TICK));
        self.last = Some(now);
        if !self.is_over() {
            self.left -= tick;
        }
    }

    /// When to look next, if it is not over.
    pub fn next_due(&self) -> Option<Timestamp> {
        let tick = self.left.min(LONGEST_TICK);
        let last = self.last.filter(|_| !self.is_over())?;
        Some(later(last, tick))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that began with an old list chose a second node of a pool whose budget was one, because it did not see
    /// the deletion that the process before it had just asked for.
    #[test]
    fn nothing_is_chosen_right_after_a_start_and_a_clock_that_leaps_does_not_shorten_that() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut patience = Patience::from_start();
        assert!(!patience.is_over());
        patience.pass(at(0));
        assert_eq!(patience.next_due(), Some(at(5)));
        patience.pass(at(5));
        patience.pass(at(120));
        assert!(!patience.is_over(), "five seconds and a leap");
        assert_eq!(patience.next_due(), Some(at(125)));
        patience.pass(at(125));
        assert!(patience.is_over());
        assert_eq!(patience.next_due(), None);
        assert!(Patience::default().is_over(), "before the first lists nothing is looked at anyway");
    }
}
