//! Whether a node may be chosen. Each rule looks for itself.

mod budget;
mod protection;
mod repair;
mod switches;
mod windows;

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::choice::Choice;
use crate::checkers::Broken;

pub(in crate::checkers) use repair::is_sick;
pub(in crate::checkers) use windows::denies;

pub(super) type Chosen = BTreeMap<String, Option<Timestamp>>;

/// All rules that a choice must keep; `chosen` are all that were, and when.
pub(super) fn judge(choice: &Choice<'_>, chosen: &Chosen) -> Vec<Broken> {
    let mut broken: Vec<Broken> = budget::check(choice, chosen).into_iter().collect();
    broken.extend(switches::check(choice));
    broken.extend(protection::check(choice));
    broken.extend(windows::check(choice));
    broken.extend(repair::check(choice));
    broken
}
