//! Windows of time: a recurring start and a length.

use jiff::{SignedDuration, Timestamp};

use crate::cron::Schedule;
use crate::duration::GoDuration;

/// Active from each hit of the schedule for the duration; hits that come before the end extend it.
///
/// A window whose schedule never happens (31 February) is never active. In the reference such a budget is always active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    pub schedule: Schedule,
    pub duration: GoDuration,
}

/// How many hits that extend each other [`Window::next_transition`] follows: a day of minutes and some.
const LOOK_AHEAD_HITS: usize = 1_500;

impl Window {
    /// Whether some hit `h` has `h <= now < h + duration`.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.first_hit_in_reach(now).is_some_and(|hit| hit <= now)
    }

    /// When [`is_active`](Self::is_active) next changes; `None` if it never does.
    ///
    /// Where more than 1,500 hits extend each other (a window that is always open, most likely), it is the end as far as
    /// followed: nothing changes before it, and there one asks again.
    pub fn next_transition(&self, now: Timestamp) -> Option<Timestamp> {
        let mut hit = self.first_hit_in_reach(now)?;
        if hit > now {
            return Some(hit);
        }
        for _ in 0..LOOK_AHEAD_HITS {
            let end = hit.checked_add(SignedDuration::from(self.duration)).ok()?;
            match self.schedule.next_after(hit) {
                Some(next) if next <= end => hit = next,
                Some(_) | None => return Some(end),
            }
        }
        hit.checked_add(SignedDuration::from(self.duration)).ok()
    }

    /// The first hit after `now - duration`: at or before `now` if the window is active, otherwise its next start.
    fn first_hit_in_reach(&self, now: Timestamp) -> Option<Timestamp> {
        if self.duration <= GoDuration::ZERO {
            return None;
        }
        let reach = now.checked_sub(SignedDuration::from(self.duration)).unwrap_or(Timestamp::MIN);
        self.schedule.next_after(reach)
    }
}
