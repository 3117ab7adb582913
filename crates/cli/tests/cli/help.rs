//! Help that fits the terminal and describes everything.

use super::harness::kerf;

const COMMANDS: [&str; 15] = [
    "",
    "demo",
    "simulate",
    "plan",
    "why",
    "budget",
    "schedule",
    "freeze",
    "thaw",
    "crds",
    "convert",
    "validate",
    "hash",
    "completion",
    "version",
];

#[test]
fn help_fits_the_terminal() {
    for width in [80, 100] {
        for command in COMMANDS {
            for flag in ["-h", "--help"] {
                let help = kerf(&format!("{command} {flag}")).env("COLUMNS", &width.to_string()).exits(0).stdout;
                let long: Vec<&str> = help.lines().filter(|line| line.chars().count() > width).collect();
                assert!(long.is_empty(), "{command} {flag} at {width}: {long:?}");
            }
        }
    }
}

/// An option without description is followed by nothing, or at once by its default or values.
#[test]
fn every_option_is_described() {
    for command in COMMANDS {
        let help = kerf(&format!("{command} --help")).env("COLUMNS", "100").exits(0).stdout;
        let lines: Vec<&str> = help.lines().map(str::trim).collect();
        for pair in lines.windows(2).filter(|pair| pair[0].starts_with('-') && !pair[0].starts_with("- ")) {
            // Short ones stand on the same line.
            let text = pair[0].rsplit_once("  ").map_or(pair[1], |(_, text)| text);
            let described = text.chars().next().is_some_and(char::is_uppercase) && !text.starts_with("Possible");
            assert!(described, "{command}: {} is not described: {:?}", pair[0], pair[1]);
        }
    }
}

#[test]
fn commands_that_do_something_come_with_examples() {
    for command in COMMANDS.into_iter().filter(|command| !["", "version"].contains(command)) {
        for flag in ["-h", "--help"] {
            let help = kerf(&format!("{command} {flag}")).exits(0).stdout;
            let first = help.split("Examples:\n  kerf ").nth(1).and_then(|examples| examples.split_whitespace().next());
            assert_eq!(first, Some(command), "{command} {flag}: {help}");
        }
    }
}

#[test]
fn help_has_no_colour_when_it_is_not_for_a_terminal() {
    assert!(!kerf("--help").exits(0).stdout.contains('\u{1b}'));
    assert!(!kerf("fly").exits(2).stderr.contains('\u{1b}'));
}
