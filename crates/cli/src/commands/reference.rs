//! `kerf generate-reference`, hidden: the reference pages of `docs/reference`, from the code that they describe.

mod api;
mod command_line;
#[cfg(feature = "controller")]
mod metrics;
mod reasons;
mod rules;

use std::fs;
use std::path::PathBuf;

use anyhow::Context;

use crate::output::Outcome;

/// Write the reference pages
#[derive(clap::Args)]
pub struct Args {
    /// Directory to write to
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

const NOTICE: &str = "<!-- Generated from the code by `cargo xtask generate`; do not edit. -->\n\n";

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    fs::create_dir_all(&args.dir).with_context(|| format!("cannot make the directory {}", args.dir.display()))?;
    let pages = [
        ("api.md", api::page()),
        ("cli.md", command_line::page()),
        #[cfg(feature = "controller")]
        ("metrics.md", metrics::page()),
        ("reasons.md", reasons::page()),
        ("rules.md", rules::page()),
    ];
    for (name, page) in pages {
        let path = args.dir.join(name);
        let text = format!("{NOTICE}{}\n", page.trim_end());
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(Outcome::Fine)
}

fn table_header(cells: &[&str]) -> String {
    format!("| {} |\n|{}\n", cells.join(" | "), "---|".repeat(cells.len()))
}

fn table_row(cells: &[&str]) -> String {
    let escaped: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", escaped.join(" | "))
}

fn code(text: &str) -> String {
    format!("`{text}`")
}
