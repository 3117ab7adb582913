//! `kerf demo`.

use std::io::{self, IsTerminal};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use jiff::SignedDuration;
use kerf_sim::scenario::{Finding, Outlook, Run, Scenario};
use kerf_sim::timeline::{Entry, Tone, clock_text};

use super::scenario_choice::{self, summary_text};
use crate::output::{self, Outcome};

/// Watch Kerf run a simulated cluster, in this process
///
/// Plays a scenario with the engine that runs real clusters: pods wait, nodes are launched, join, drain and go. Prints
/// what happens as a timeline and ends with a summary. Nothing is installed, nothing outside this process is touched.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario by name (see --list), or a file
    #[arg(default_value = "welcome", value_name = "SCENARIO")]
    scenario: String,
    /// How fast time passes: a factor such as 60x, or max [default: 60x on a terminal, otherwise max]
    #[arg(long, value_name = "SPEED")]
    speed: Option<Speed>,
    /// List the scenarios that come with Kerf
    #[arg(long)]
    list: bool,
    /// Seed of names and chances; the same seed gives the same history [default: that of the scenario]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print without colours, also on a terminal; the variable NO_COLOR does the same
    #[arg(long)]
    no_color: bool,
}

const EXAMPLES: &str = "\
Examples:
  kerf demo
  kerf demo delete-node --speed 10x
  kerf demo expiry --speed max --seed 7
  kerf demo --list";

/// Longest line of a node's or claim's name that keeps the texts in one column.
const SUBJECT_WIDTH: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Speed {
    /// Virtual seconds per second.
    Factor(f64),
    Max,
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let factor = text.strip_suffix('x').unwrap_or(text).parse::<f64>().ok();
        let factor = factor.filter(|factor| factor.is_finite() && *factor > 0.0);
        factor.map(Self::Factor).ok_or_else(|| "expected a factor such as 60x, or max".to_owned())
    }
}

impl Speed {
    fn wait(self, virtual_time: SignedDuration) {
        match self {
            Self::Max => {}
            Self::Factor(factor) => {
                let wait = Duration::try_from_secs_f64(virtual_time.as_secs_f64() / factor);
                thread::sleep(wait.unwrap_or(Duration::ZERO));
            }
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    if args.list {
        return list();
    }
    let scenario = scenario_choice::choose(&args.scenario)?;
    let is_terminal = io::stdout().is_terminal();
    let speed = args.speed.unwrap_or(if is_terminal { Speed::Factor(60.0) } else { Speed::Max });
    let no_color = args.no_color || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let paint = Paint { is_on: is_terminal && !no_color };
    let mut run = Run::new(&scenario, args.seed.unwrap_or(scenario.seed), scenario.duration)?;
    output::print(&format!("{}: {}\n\n", paint.bold(&scenario.name), scenario.description))?;
    let mut before = run.now();
    while let Some(entries) = run.advance()? {
        if !entries.is_empty() {
            speed.wait(run.now().duration_since(before));
            before = run.now();
        }
        for entry in &entries {
            output::print(&line(entry, paint))?;
        }
    }
    output::print(&format!("\n{}", summary_text(&run.summary())))?;
    let failed: Vec<Finding> =
        run.findings().into_iter().filter(|finding| finding.outlook == Outlook::Failed).collect();
    for finding in &failed {
        output::complain(&super::simulate::failure(&scenario.file, finding));
    }
    Ok(if failed.is_empty() { Outcome::Fine } else { Outcome::Findings })
}

fn list() -> anyhow::Result<Outcome> {
    let mut rows = Vec::new();
    for scenario in Scenario::built_in_names().filter_map(Scenario::built_in) {
        let scenario = scenario?;
        rows.push(vec![scenario.name, clock_text(scenario.duration), scenario.description]);
    }
    output::print(&output::table(&["NAME", "DURATION", "WHAT IT SHOWS"], &rows))?;
    Ok(Outcome::Fine)
}

fn line(entry: &Entry, paint: Paint) -> String {
    let time = clock_text(entry.elapsed);
    let subject = format!("{:<SUBJECT_WIDTH$}", entry.subject);
    let text = format!("{} {subject}  {}", mark(entry.tone), entry.text);
    format!("{}  {}\n", paint.dim(&time), paint.tone(entry.tone, &text))
}

/// Readable without colours too.
fn mark(tone: Tone) -> char {
    match tone {
        Tone::Script => '>',
        Tone::Waiting => '?',
        Tone::Arriving => '+',
        Tone::Good => '=',
        Tone::Leaving => '-',
        Tone::Warning => '!',
    }
}

#[derive(Clone, Copy)]
struct Paint {
    is_on: bool,
}

impl Paint {
    fn tone(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Script => "1;35",
            Tone::Waiting => "33",
            Tone::Arriving => "36",
            Tone::Good => "32",
            Tone::Leaving => "34",
            Tone::Warning => "1;33",
        };
        self.with(code, text)
    }

    fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.is_on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_factors_or_max() {
        assert_eq!(
            ["60x", "0.5x", "10", "max"].map(|text| text.parse().ok()),
            [Some(Speed::Factor(60.0)), Some(Speed::Factor(0.5)), Some(Speed::Factor(10.0)), Some(Speed::Max)]
        );
        for bad in ["", "x", "0x", "-1x", "fast", "infx", "NaN"] {
            assert!(bad.parse::<Speed>().is_err(), "{bad}");
        }
    }

    #[test]
    fn colours_are_left_out_when_off() {
        let entry = Entry {
            at: "2026-01-05T09:00:10Z".parse().unwrap(),
            elapsed: SignedDuration::from_secs(10),
            subject: "pods".into(),
            text: "3 pods wait for a node".into(),
            tone: Tone::Waiting,
        };
        assert_eq!(
            line(&entry, Paint { is_on: false }),
            "00:00:10  ? pods                      3 pods wait for a node\n"
        );
        assert!(line(&entry, Paint { is_on: true }).contains("\u{1b}[33m"));
    }
}
