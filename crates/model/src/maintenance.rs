//! Maintenance windows: times in which some actions may not start on some nodes.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;

use crate::selector::{Labels, Selector};
use crate::window::Window;

/// Denies; whatever no window denies is allowed.
#[derive(Debug, Clone, PartialEq)]
pub struct MaintenanceWindow {
    pub name: Arc<str>,
    /// None means always.
    pub schedules: Vec<Window>,
    /// Active while no schedule is: "only during these hours" in one object.
    pub outside_schedules: bool,
    pub actions: BTreeSet<Action>,
    /// Nodes by their labels; `None` means every managed node.
    pub selector: Option<Selector>,
    /// From then on it is never active again: schedules have no year.
    pub until: Option<Timestamp>,
}

/// How many schedules that take over from each other are followed: each of the fifty that a window may have, and again.
const MOST_TURNS: usize = 100;

/// What a window can hold back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    EmptyConsolidation,
    NonEmptyConsolidation,
    Drift,
    Expiration,
    Rebalance,
    Repair,
}

/// The text is none of the actions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown action {0:?}")]
pub struct UnknownAction(pub String);

impl MaintenanceWindow {
    pub fn is_active(&self, now: Timestamp) -> bool {
        if self.until.is_some_and(|until| until <= now) {
            return false;
        }
        let scheduled = self.schedules.is_empty() || self.schedules.iter().any(|window| window.is_active(now));
        scheduled != self.outside_schedules
    }

    /// When the answer of [`is_active`](Self::is_active) next changes: where schedules overlap, at the end of the last.
    ///
    /// Of schedules that take turns without end, it is a moment as far ahead as they are followed: there one asks again.
    pub fn next_transition(&self, now: Timestamp) -> Option<Timestamp> {
        let is_active = self.is_active(now);
        let mut moments = std::iter::successors(self.next_moment(now), |at| self.next_moment(*at)).take(MOST_TURNS);
        let mut last = None;
        moments
            .find(|at| {
                last = Some(*at);
                self.is_active(*at) != is_active
            })
            .or(last)
    }

    /// When one of the schedules opens or closes, or all of them are over.
    fn next_moment(&self, now: Timestamp) -> Option<Timestamp> {
        let end = self.until.filter(|until| now < *until);
        if self.until.is_some() && end.is_none() {
            return None;
        }
        self.schedules.iter().filter_map(|window| window.next_transition(now)).chain(end).min()
    }

    pub fn covers(&self, node: &impl Labels) -> bool {
        self.selector.as_ref().is_none_or(|selector| selector.matches(node))
    }

    pub fn denies(&self, action: Action, node: &impl Labels, now: Timestamp) -> bool {
        self.actions.contains(&action) && self.covers(node) && self.is_active(now)
    }
}

impl Action {
    pub const ALL: [Self; 6] = [
        Self::EmptyConsolidation,
        Self::NonEmptyConsolidation,
        Self::Drift,
        Self::Expiration,
        Self::Rebalance,
        Self::Repair,
    ];

    pub const fn label(self) -> &'static str {
        match self {
            Self::EmptyConsolidation => "EmptyConsolidation",
            Self::NonEmptyConsolidation => "NonEmptyConsolidation",
            Self::Drift => "Drift",
            Self::Expiration => "Expiration",
            Self::Rebalance => "Rebalance",
            Self::Repair => "Repair",
        }
    }

    /// The actions behind one word of the object: `Consolidation` stands for both of its halves.
    pub fn named(text: &str) -> Result<Vec<Self>, UnknownAction> {
        match text {
            "Consolidation" => Ok(vec![Self::EmptyConsolidation, Self::NonEmptyConsolidation]),
            one => one.parse().map(|action| vec![action]),
        }
    }
}

impl FromStr for Action {
    type Err = UnknownAction;

    fn from_str(text: &str) -> Result<Self, UnknownAction> {
        let known = Self::ALL.into_iter().find(|action| action.label() == text);
        known.ok_or_else(|| UnknownAction(text.to_owned()))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cron::{Dialect, Schedule};
    use std::collections::BTreeMap;

    fn office_hours(outside_schedules: bool) -> MaintenanceWindow {
        MaintenanceWindow {
            name: Arc::from("office"),
            schedules: vec![Window {
                schedule: Schedule::parse_as("0 9 * * 1-5", Dialect::MaintenanceWindow).unwrap(),
                duration: "8h".parse().unwrap(),
            }],
            outside_schedules,
            actions: Action::named("Consolidation").unwrap().into_iter().collect(),
            selector: None,
            until: None,
        }
    }

    /// A freeze of last year froze the cluster again on the same day of this one.
    #[test]
    fn a_window_with_an_end_does_not_come_again() {
        let end: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        let before: Timestamp = "2026-11-16T11:00:00Z".parse().unwrap();
        let window = MaintenanceWindow { until: Some(end), ..office_hours(false) };
        assert_eq!((window.is_active(before), window.next_transition(before)), (true, Some(end)));
        for later in [end, "2026-11-17T12:00:00Z".parse().unwrap()] {
            assert_eq!((window.is_active(later), window.next_transition(later)), (false, None));
            assert!(!MaintenanceWindow { outside_schedules: true, ..window.clone() }.is_active(later));
        }
    }

    /// The truth table of the mission document: act iff enabled and in no deny window (sheet 03 §15.1).
    #[test]
    fn a_window_denies_its_actions_while_active_and_nothing_else() {
        let labels = BTreeMap::<String, String>::new();
        let (monday_noon, monday_night) =
            ("2026-11-16T12:00:00Z".parse().unwrap(), "2026-11-16T20:00:00Z".parse().unwrap());
        for (outside, active_at_noon) in [(false, true), (true, false)] {
            let window = office_hours(outside);
            assert_eq!(window.is_active(monday_noon), active_at_noon);
            assert_eq!(window.is_active(monday_night), !active_at_noon);
            assert_eq!(window.denies(Action::EmptyConsolidation, &labels, monday_noon), active_at_noon);
            assert!(!window.denies(Action::Drift, &labels, monday_noon));
            assert_eq!(window.next_transition(monday_noon), Some("2026-11-16T17:00:00Z".parse().unwrap()));
        }
    }

    /// It was said to hold until the second began.
    #[test]
    fn schedules_that_overlap_are_one_stretch_of_time() {
        let schedule = |start: &str, duration: &str| Window {
            schedule: Schedule::parse_as(start, Dialect::MaintenanceWindow).unwrap(),
            duration: duration.parse().unwrap(),
        };
        let at = |hour: &str| -> Timestamp { format!("2026-11-16T{hour}:00:00Z").parse().unwrap() };
        for second in [schedule("0 12 * * *", "8h"), schedule("0 17 * * *", "3h")] {
            for outside_schedules in [false, true] {
                let schedules = vec![schedule("0 9 * * *", "8h"), second.clone()];
                let window = MaintenanceWindow { schedules, ..office_hours(outside_schedules) };
                for (now, next) in [("08", "09"), ("09", "20"), ("13", "20"), ("19", "20")] {
                    assert_eq!(window.next_transition(at(now)), Some(at(next)), "{now}");
                }
            }
        }
        let halves = vec![schedule("0 0 * * *", "12h"), schedule("0 12 * * *", "12h")];
        let always = MaintenanceWindow { schedules: halves, ..office_hours(false) };
        assert!(always.next_transition(at("08")).unwrap() > "2026-12-20T00:00:00Z".parse().unwrap());
    }

    #[test]
    fn without_schedules_a_window_is_always_active() {
        let window = MaintenanceWindow { schedules: Vec::new(), ..office_hours(false) };
        assert!(window.is_active(Timestamp::UNIX_EPOCH));
        assert_eq!(window.next_transition(Timestamp::UNIX_EPOCH), None);
    }

    #[test]
    fn a_selector_limits_the_window_to_its_nodes() {
        let selector = Selector::new([("team", "a")], []).unwrap();
        let window = MaintenanceWindow { selector: Some(selector), ..office_hours(false) };
        assert!(window.covers(&BTreeMap::from([("team".to_string(), "a".to_string())])));
        assert!(!window.covers(&BTreeMap::<String, String>::new()));
    }
}
