//! Everything a command prints.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::ValueEnum;
use jiff::Timestamp;
use kerf_api::manifest::Document;
use serde::Serialize;

/// How a command ended. Ordered by weight: the worst of several is what the process reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Fine,
    Findings,
    Unreadable,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Fine => Self::SUCCESS,
            Outcome::Findings => Self::from(1),
            Outcome::Unreadable => Self::from(2),
        }
    }
}

/// For commands that print something for people, or the same as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Lines and tables for people
    #[value(alias = "table")]
    Text,
    /// One JSON document
    Json,
}

/// For commands that print objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ObjectFormat {
    /// A YAML stream
    Yaml,
    /// One JSON list
    Json,
}

/// Prints to standard output. A reader that has gone away (`kerf crds | head`) is no error.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(print(&text)?)
}

/// A line on standard error. Nothing can be done when even that fails.
pub fn complain(line: &str) {
    let _ = writeln!(io::stderr().lock(), "kerf: {line}");
}

/// Columns padded to their widest cell, two blanks apart, no trailing blanks.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let header: Vec<String> = header.iter().map(ToString::to_string).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&header).chain(rows).collect();
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let padded: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}", width = *width)).collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Where an object stands and what it is: `pools.yaml:12: NodePool/default`.
pub fn place(document: &Document) -> String {
    format!("{}:{}: {}", document.file, document.line, object_name(document.kind(), document.name()))
}

/// `NodePool/default`, or as much of it as there is.
pub fn object_name(kind: &str, name: &str) -> String {
    match (kind, name) {
        ("", "") => "object".into(),
        (kind, "") => kind.into(),
        ("", name) => name.into(),
        (kind, name) => format!("{kind}/{name}"),
    }
}

/// A moment for people, to the second.
pub fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// `1 object`, `2 objects`.
pub fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_clean() {
        let rows = [vec!["NodePool".to_string(), "a".to_string()], vec!["X".to_string(), String::new()]];
        assert_eq!(table(&["KIND", "NAME"], &rows), "KIND      NAME\nNodePool  a\nX\n");
    }

    #[test]
    fn the_worst_outcome_wins() {
        assert!(Outcome::Unreadable > Outcome::Findings && Outcome::Findings > Outcome::Fine);
    }
}
