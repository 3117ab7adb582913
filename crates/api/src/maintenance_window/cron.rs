//! What the API server can check of a cron schedule: each field's grammar and bounds, ranges that run backwards, and the
//! common schedules that never happen. What slips through is for the controller to report.

use schemars::{Schema, SchemaGenerator, json_schema};

/// Schema of a schedule.
pub(super) fn schedule(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        // Bounds the cost of the rules; the longest schedule that people write is a third of it.
        "maxLength": 128,
        // A rule and not a pattern: the server would answer with the pattern itself, which helps nobody.
        "x-kubernetes-validations": [
            { "rule": format!("self.matches('{}')", grammar()), "message": GRAMMAR },
            {
                "rule": "self.findAll('[0-9]+-[0-9]+').all(r, int(r.split('-')[0]) <= int(r.split('-')[1]))",
                "message": "ranges must not run backwards",
            },
            {
                "rule": format!("self.lowerAscii().findAll('[a-z]+-[a-z]+').all(r, '{NAMES}'.indexOf(r.split('-')[0]) <= '{NAMES}'.indexOf(r.split('-')[1]))"),
                "message": "ranges must not run backwards",
            },
            { "rule": format!("!self.matches('{}')", never()), "message": "no month of the schedule has such a day" },
        ],
    })
}

const MONTHS: &str = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec";
const WEEKDAYS: &str = "sun|mon|tue|wed|thu|fri|sat";
/// Names in order: a range runs forwards if its ends stand here in the same order.
const NAMES: &str = "janfebmaraprmayjunjulaugsepoctnovdec sunmontuewedthufrisat";

const GRAMMAR: &str = "needs five fields: minute 0-59, hour 0-23, day of month 1-31, month 1-12 or jan-dec, day of week 0-7 or sun-sat; or one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly";

/// Five fields, or one of the names for a common schedule.
fn grammar() -> String {
    let field = |value: &str| {
        let item = format!(r"([*?]|({value})(-({value}))?)(/0*[1-9][0-9]{{0,2}})?");
        format!("{item}(,{item})*")
    };
    let fields = [
        field("[0-5]?[0-9]"),
        field("[01]?[0-9]|2[0-3]"),
        field("0?[1-9]|[12][0-9]|3[01]"),
        field(&format!("0?[1-9]|1[0-2]|{MONTHS}")),
        field(&format!("[0-7]|{WEEKDAYS}")),
    ];
    format!(r"^((?i:{})|@(annually|yearly|monthly|weekly|daily|midnight|hourly))$", fields.join("[ \\t]+"))
}

/// Days 30 and 31 in February, and day 31 in months of 30 days. Any restriction of the weekday makes the day of month
/// optional, so only schedules for every weekday can be impossible.
fn never() -> String {
    let list = |item: &str| format!("({item})(,({item}))*");
    let day = |day: &str| list(&format!("{day}(-3[01])?(/[0-9]+)?"));
    format!(
        r"^(?i:[^ \t]+[ \t]+[^ \t]+[ \t]+({}[ \t]+{}|{}[ \t]+{})[ \t]+[*?](/0*1)?)$",
        day("3[01]"),
        list("0?2|feb"),
        day("31"),
        list("0?[2469]|11|feb|apr|jun|sep|nov"),
    )
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    fn is_grammatical(schedule: &str) -> bool {
        Regex::new(&grammar()).unwrap().is_match(schedule)
    }

    fn never_happens(schedule: &str) -> bool {
        Regex::new(&never()).unwrap().is_match(schedule)
    }

    #[test]
    fn schedules_that_people_write_are_grammatical() {
        for schedule in [
            "* * * * *",
            "0 9 * * mon-fri",
            "0 9 * * MON-Fri",
            "*/15 0-6,22-23 1,15 jan-mar,DEC ?",
            "5/10 08 31 12 7",
            "30  6\t* * SUN",
            "0 0 29 2 *",
            "@daily",
            "@midnight",
        ] {
            assert!(is_grammatical(schedule), "{schedule}");
            assert!(!never_happens(schedule), "{schedule}");
        }
    }

    #[test]
    fn values_out_of_bounds_and_broken_forms_are_not_grammatical() {
        for schedule in [
            "",
            "*",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * 32 * *",
            "* * * 13 *",
            "* * * 0 *",
            "* * * * 8",
            "* * * mon *",
            "* * * * jan",
            "*/0 * * * *",
            "1- * * * *",
            "1,,2 * * * *",
            "-1 * * * *",
            "1-2-3 * * * *",
            "@every 1h",
            "@dailyX",
            "TZ=UTC * * * * *",
            "a b c d e",
            "* * L * *",
        ] {
            assert!(!is_grammatical(schedule), "{schedule}");
        }
    }

    #[test]
    fn days_that_no_month_of_the_schedule_has_never_happen() {
        for schedule in [
            "0 0 30 2 *",
            "0 0 31 2 *",
            "0 0 30,31 feb *",
            "0 0 30-31 2 ?",
            "* * 31 2,4,6,9,11 *",
            "0 0 31 Apr,nov *",
            "0 0 31 04 */1",
        ] {
            assert!(is_grammatical(schedule), "{schedule}");
            assert!(never_happens(schedule), "{schedule}");
        }
        for schedule in
            ["0 0 31 2,3 *", "0 0 29,30 2 *", "0 0 30 2 mon", "0 0 30 2 */2", "0 0 31 * *", "0 0 30 4 *", "0 0 31 12 *"]
        {
            assert!(!never_happens(schedule), "{schedule}");
        }
    }
}
