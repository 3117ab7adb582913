//! How long things took, for people.

use std::fmt::Write as _;
use std::time::Duration;

/// One line of the table: a step and what it cost.
pub struct Lap {
    pub name: &'static str,
    pub took: Duration,
    pub passed: bool,
}

/// Where the time went, longest bar for the longest step; the total stands last.
pub fn table(laps: &[Lap]) -> String {
    const BAR: f64 = 30.0;
    let width = laps.iter().map(|lap| lap.name.len()).max().unwrap_or(0).max("total".len());
    let longest = laps.iter().map(|lap| lap.took).max().unwrap_or_default().as_secs_f64();
    let mut text = String::new();
    for lap in laps {
        let share = if longest > 0.0 { lap.took.as_secs_f64() / longest } else { 0.0 };
        // The share is between 0 and 1, so the cast cannot leave the range.
        let bar = "#".repeat((share * BAR).round() as usize);
        let outcome = if lap.passed { "ok" } else { "FAILED" };
        let _ = writeln!(text, "  {:width$}  {:>12}  {outcome:6}  {bar}", lap.name, human(lap.took));
    }
    let total: Duration = laps.iter().map(|lap| lap.took).sum();
    let _ = writeln!(text, "  {:width$}  {:>12}", "total", human(total));
    text
}

/// `0.4 s`, `43 s`, `3 min 47 s`.
pub fn human(took: Duration) -> String {
    let seconds = took.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", took.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_like_a_person_would_say_them() {
        let cases =
            [(420, "0.4 s"), (9_900, "9.9 s"), (43_700, "43 s"), (60_000, "1 min 00 s"), (227_000, "3 min 47 s")];
        for (millis, expected) in cases {
            assert_eq!(human(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn the_table_shows_every_step_its_share_and_the_total() {
        let laps = [
            Lap { name: "format", took: Duration::from_secs(1), passed: true },
            Lap { name: "clippy", took: Duration::from_secs(60), passed: true },
            Lap { name: "test", took: Duration::from_secs(30), passed: false },
        ];
        let expected = "  format         1.0 s  ok      #
  clippy    1 min 00 s  ok      ##############################
  test            30 s  FAILED  ###############
  total     1 min 31 s
";
        let trimmed: Vec<_> = table(&laps).lines().map(|line| line.trim_end().to_owned()).collect();
        // One second of sixty is half a mark, which rounds to one.
        assert_eq!(trimmed, expected.lines().map(str::to_owned).collect::<Vec<_>>());
    }

    #[test]
    fn an_empty_table_is_only_a_total() {
        assert_eq!(table(&[]).trim(), "total         0.0 s");
    }
}
