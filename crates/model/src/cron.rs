//! Cron schedules: five fields in the dialect of budgets (robfig's "standard" grammar), with an optional time zone.
//!
//! When clocks change, each minute that the wall clock shows is a minute: a time that is shown twice is hit twice.
//! A time that is never shown is hit at the end of the gap, because a maintenance window that starts at 02:30 must not
//! be missing on the one night without a 02:30. (The reference knows UTC only; its library would skip that night.)

mod parse;

use std::fmt;

use jiff::civil::{Date, DateTime};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

pub use parse::{CronError, Dialect, Field, FieldProblem};

/// 29 February can be eight years away (2096 to 2104); nothing that happens at all is rarer.
const SEARCH_YEARS: i16 = 9;

/// When something recurs, to the minute.
///
/// ```
/// use kerf_model::cron::Schedule;
///
/// let workdays = Schedule::parse("0 9 * * mon-fri")?.in_time_zone("Europe/Paris")?;
/// let saturday = "2026-07-04T12:00:00Z".parse()?;
/// assert_eq!(workdays.next_after(saturday), Some("2026-07-06T07:00:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    text: String,
    fields: Fields,
    zone: TimeZone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    minutes: Values,
    hours: Values,
    days: Values,
    months: Values,
    weekdays: Values,
}

/// The values of one field as bits, and whether an unstepped star was among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Values {
    bits: u64,
    star: bool,
}

impl Schedule {
    /// Reads the dialect of budgets, in UTC.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        Self::parse_as(text, Dialect::Budget)
    }

    pub fn parse_as(text: &str, dialect: Dialect) -> Result<Self, CronError> {
        let fields = parse::parse(text, dialect)?;
        Ok(Self { text: text.trim().to_owned(), fields, zone: TimeZone::UTC })
    }

    /// The same schedule on the wall clock of an IANA zone. The zones are those compiled in, not the machine's.
    pub fn in_time_zone(self, name: &str) -> Result<Self, CronError> {
        let zone =
            TimeZoneDatabase::bundled().get(name).map_err(|_| CronError::UnknownTimeZone { name: name.to_owned() })?;
        Ok(Self { zone, ..self })
    }

    /// Whether it ever happens. `0 0 31 2 *` does not.
    pub fn is_possible(&self) -> bool {
        let Fields { days, months, weekdays, .. } = self.fields;
        if days.star || !weekdays.star {
            // Some weekday will do, and every month has all of them.
            return true;
        }
        let first_day = days.bits.trailing_zeros();
        (1..=12).any(|month| months.contains(month) && first_day <= longest(month))
    }

    /// The first hit strictly after an instant. `None` if there is none (see [`is_possible`](Self::is_possible)), or
    /// none before the end of time in year 9999.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        if !self.is_possible() {
            return None;
        }
        // Between two clock changes the wall clock is a plain shift of UTC: search there, then step over the change.
        let mut offset = self.zone.to_offset(after);
        let mut wall = floor_to_minute(offset.to_datetime(after)).checked_add(ONE_MINUTE).ok()?;
        let last_year = wall.year().saturating_add(SEARCH_YEARS);
        for change in self.zone.following(after) {
            let hit = self.fields.first_from(wall, last_year)?;
            if let Ok(hit) = offset.to_timestamp(hit)
                && hit < change.timestamp()
            {
                return Some(hit);
            }
            offset = change.offset();
            wall = offset.to_datetime(change.timestamp());
            if hit < wall {
                return Some(change.timestamp());
            }
            wall = ceil_to_minute(wall)?;
        }
        offset.to_timestamp(self.fields.first_from(wall, last_year)?).ok()
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match self.zone.iana_name() {
            Some(name) if name != "UTC" => write!(f, " ({name})"),
            _ => Ok(()),
        }
    }
}

const ONE_MINUTE: SignedDuration = SignedDuration::from_mins(1);

fn floor_to_minute(wall: DateTime) -> DateTime {
    wall.date().at(wall.hour(), wall.minute(), 0, 0)
}

fn ceil_to_minute(wall: DateTime) -> Option<DateTime> {
    let floor = floor_to_minute(wall);
    if floor == wall { Some(wall) } else { floor.checked_add(ONE_MINUTE).ok() }
}

/// The days of a month in a leap year.
fn longest(month: u32) -> u32 {
    match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Fields {
    /// The first match at or after a wall clock minute, no later than `last_year`.
    fn first_from(&self, wall: DateTime, last_year: i16) -> Option<DateTime> {
        let mut day = self.first_day(wall.date(), last_year)?;
        if day == wall.date() {
            if let Some((hour, minute)) = self.first_time(wall.hour(), wall.minute()) {
                return Some(day.at(hour, minute, 0, 0));
            }
            day = self.first_day(day.tomorrow().ok()?, last_year)?;
        }
        let (hour, minute) = self.first_time(0, 0)?;
        Some(day.at(hour, minute, 0, 0))
    }

    fn first_time(&self, hour: i8, minute: i8) -> Option<(i8, i8)> {
        let hour = hour.unsigned_abs().into();
        if self.hours.contains(hour)
            && let Some(minute) = self.minutes.first_from(minute.unsigned_abs().into())
        {
            return Some((hour as i8, minute as i8));
        }
        let hour = self.hours.first_from(hour + 1)?;
        Some((hour as i8, self.minutes.first_from(0)? as i8))
    }

    fn first_day(&self, from: Date, last_year: i16) -> Option<Date> {
        let mut first = from.first_of_month();
        let mut days = Values { bits: self.matching_days(first), star: false };
        let mut day = from.day().unsigned_abs().into();
        while first.year() <= last_year {
            if let Some(day) = days.first_from(day) {
                return Date::new(first.year(), first.month(), day as i8).ok();
            }
            first = first.last_of_month().tomorrow().ok()?;
            days.bits = self.matching_days(first);
            day = 1;
        }
        None
    }

    /// The matching days of the month that begins with `first`, as bits.
    fn matching_days(&self, first: Date) -> u64 {
        if !self.months.contains(first.month().unsigned_abs().into()) {
            return 0;
        }
        let weekday_of_first = first.weekday().to_sunday_zero_offset().unsigned_abs();
        let mut by_weekday = 0;
        for day in 1..=first.days_in_month().unsigned_abs() {
            if self.weekdays.contains(u32::from((weekday_of_first + day - 1) % 7)) {
                by_weekday |= 1 << day;
            }
        }
        let length = u64::MAX >> (63 - first.days_in_month().unsigned_abs());
        let by_day = self.days.bits & length;
        // Cron's oldest trap: two restricted day fields mean "either", one restricted field means just that one.
        if self.days.star || self.weekdays.star { by_day & by_weekday } else { by_day | by_weekday }
    }
}

impl Values {
    fn contains(self, value: u32) -> bool {
        self.bits.checked_shr(value).unwrap_or(0) & 1 == 1
    }

    fn first_from(self, value: u32) -> Option<u32> {
        let rest = self.bits.checked_shr(value).unwrap_or(0);
        (rest != 0).then(|| value + rest.trailing_zeros())
    }
}
