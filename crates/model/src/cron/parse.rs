//! The grammar of schedules, as `ParseStandard` of robfig/cron v3.0.1 reads it. Ours refuses what that one takes for
//! something else: a star with a range (`*-5` is `*` there), a field of commas only (never happens there), `@every`.

use std::fmt;

use super::{Fields, Values};

/// Which numbers a schedule may use for Sunday.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Budgets: Sunday is 0, and 7 is an error, as in the reference.
    Budget,
    /// Maintenance windows: Sunday is 0 or 7, as in most crontabs.
    MaintenanceWindow,
}

/// Why a text is not a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error("schedule is empty")]
    Empty,
    #[error("schedule {text:?} needs 5 fields (minute, hour, day of month, month, day of week) and has {found}")]
    FieldCount { text: String, found: usize },
    #[error(
        "schedule {text:?} is no known macro (use @yearly, @annually, @monthly, @weekly, @daily, @midnight or @hourly)"
    )]
    UnknownMacro { text: String },
    #[error("schedule {text:?} names a time zone: use the field timeZone")]
    TimeZoneInText { text: String },
    #[error("{field} {token:?} of the schedule {problem}")]
    Field { field: Field, token: String, problem: FieldProblem },
    #[error("no time zone is called {name:?}")]
    UnknownTimeZone { name: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
}

/// What is wrong with one item of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldProblem {
    #[error("has no value")]
    Empty,
    #[error("is neither a number nor a name")]
    NotANumber,
    #[error("has more than one hyphen")]
    TooManyHyphens,
    #[error("has more than one slash")]
    TooManySlashes,
    #[error("combines a star with a range")]
    StarInRange,
    #[error("is outside {least} to {most}")]
    OutOfRange { least: u8, most: u8 },
    #[error("runs backwards")]
    Descending,
    #[error("has a step of zero")]
    ZeroStep,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
        })
    }
}

impl Field {
    /// The smallest and the largest value.
    fn bounds(self) -> (u8, u8) {
        match self {
            Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (0, 6),
        }
    }

    /// The names of its values, from the smallest on.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Minute | Self::Hour | Self::DayOfMonth => &[],
            Self::Month => &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
            Self::DayOfWeek => &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
        }
    }
}

pub(super) fn parse(text: &str, dialect: Dialect) -> Result<Fields, CronError> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(CronError::Empty);
    }
    if trimmed.starts_with("TZ=") || trimmed.starts_with("CRON_TZ=") {
        return Err(CronError::TimeZoneInText { text: text.to_owned() });
    }
    let expanded = if trimmed.starts_with('@') { expand_macro(trimmed)? } else { trimmed };
    let fields: Vec<&str> = expanded.split_whitespace().collect();
    let [minutes, hours, days, months, weekdays] = fields[..] else {
        return Err(CronError::FieldCount { text: text.to_owned(), found: fields.len() });
    };
    Ok(Fields {
        minutes: parse_field(minutes, Field::Minute, dialect)?,
        hours: parse_field(hours, Field::Hour, dialect)?,
        days: parse_field(days, Field::DayOfMonth, dialect)?,
        months: parse_field(months, Field::Month, dialect)?,
        weekdays: parse_field(weekdays, Field::DayOfWeek, dialect)?,
    })
}

fn expand_macro(text: &str) -> Result<&'static str, CronError> {
    match text {
        "@yearly" | "@annually" => Ok("0 0 1 1 *"),
        "@monthly" => Ok("0 0 1 * *"),
        "@weekly" => Ok("0 0 * * 0"),
        "@daily" | "@midnight" => Ok("0 0 * * *"),
        "@hourly" => Ok("0 * * * *"),
        _ => Err(CronError::UnknownMacro { text: text.to_owned() }),
    }
}

fn parse_field(text: &str, field: Field, dialect: Dialect) -> Result<Values, CronError> {
    let mut values = Values::default();
    // Like the reference, `1,,2` is `1,2`.
    for item in text.split(',').filter(|item| !item.is_empty()) {
        let parsed = parse_item(item, field, dialect).map_err(|problem| CronError::Field {
            field,
            token: item.to_owned(),
            problem,
        })?;
        values.bits |= parsed.bits;
        values.star |= parsed.star;
    }
    if values.bits == 0 {
        return Err(CronError::Field { field, token: text.to_owned(), problem: FieldProblem::Empty });
    }
    if field == Field::DayOfWeek && values.contains(7) {
        values.bits = values.bits & !(1 << 7) | 1;
    }
    Ok(values)
}

/// `*`, `N`, `N-M`, each with an optional `/step`. `N/step` runs to the end of the field.
fn parse_item(item: &str, field: Field, dialect: Dialect) -> Result<Values, FieldProblem> {
    let (least, last) = field.bounds();
    let most = match (field, dialect) {
        (Field::DayOfWeek, Dialect::MaintenanceWindow) => 7,
        _ => last,
    };
    let (range, step) = match item.split_once('/') {
        None => (item, None),
        Some((_, step)) if step.contains('/') => return Err(FieldProblem::TooManySlashes),
        Some((range, step)) => (range, Some(parse_number(step)?)),
    };
    let (from, to) = match range.split_once('-') {
        None => (range, None),
        Some(("*" | "?", _)) => return Err(FieldProblem::StarInRange),
        Some((_, to)) if to.contains('-') => return Err(FieldProblem::TooManyHyphens),
        Some((from, to)) => (from, Some(to)),
    };
    let star = matches!(from, "*" | "?");
    let start = if star { i64::from(least) } else { parse_value(from, field)? };
    let end = match to {
        Some(to) => parse_value(to, field)?,
        None if star || step.is_some() => start.max(i64::from(last)),
        None => start,
    };
    if start < i64::from(least) || end > i64::from(most) {
        return Err(FieldProblem::OutOfRange { least, most });
    }
    if start > end {
        return Err(FieldProblem::Descending);
    }
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(FieldProblem::ZeroStep);
    }
    let bits = (start..=end).filter(|value| (value - start) % step == 0).fold(0, |bits, value| bits | 1 << value);
    Ok(Values { bits, star: star && step == 1 })
}

fn parse_value(text: &str, field: Field) -> Result<i64, FieldProblem> {
    let named = (i64::from(field.bounds().0)..).zip(field.names()).find(|(_, name)| text.eq_ignore_ascii_case(name));
    named.map_or_else(|| parse_number(text), |(value, _)| Ok(value))
}

fn parse_number(text: &str) -> Result<i64, FieldProblem> {
    text.parse().ok().filter(|number| *number >= 0).ok_or(FieldProblem::NotANumber)
}
