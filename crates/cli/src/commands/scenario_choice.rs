//! Which scenario is meant: one that comes with Kerf, or a file.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use jiff::SignedDuration;
use kerf_sim::scenario::{Scenario, Summary, parse_duration};
use kerf_sim::timeline::{clock_text, dollars};

use crate::output;

/// A name that comes with Kerf wins over a file of the same name; `./welcome` is always the file.
pub fn choose(name_or_file: &str) -> anyhow::Result<Scenario> {
    if let Some(scenario) = Scenario::built_in(name_or_file) {
        return Ok(scenario?);
    }
    let path = Path::new(name_or_file);
    if !path.exists() {
        let names: Vec<&str> = Scenario::built_in_names().collect();
        bail!("there is no scenario and no file {name_or_file:?}; the scenarios are {}", names.join(", "));
    }
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {name_or_file}"))?;
    Ok(Scenario::read(name_or_file, &text)?)
}

pub fn duration(text: &str) -> Result<SignedDuration, String> {
    let parsed = parse_duration(text).filter(|duration| *duration > SignedDuration::ZERO);
    parsed.ok_or_else(|| "expected a length of time such as 90s, 12h or 30d".to_owned())
}

/// The figures at the end of a run, for people.
pub fn summary_text(summary: &Summary) -> String {
    let Summary { elapsed, nodes, claims, claims_made, instances: _, pods_running, pods_pending, .. } = summary;
    let money = |price: kerf_model::price::Price, places| dollars(price.micros(), places);
    let mut text = format!(
        "After {}: {}; pods: {pods_running} running, {pods_pending} pending\n\
         Cost: ${} per hour now, ${} over the run\n\
         Done: {} made ({claims} left), {}\n",
        clock_text(*elapsed),
        output::count(*nodes, "node"),
        money(summary.hourly, 4),
        money(summary.spent, 4),
        output::count(*claims_made, "claim"),
        output::count(summary.evictions, "eviction"),
    );
    if !summary.disruptions.is_empty() {
        let parts: Vec<String> =
            summary.disruptions.iter().map(|(reason, count)| format!("{count} {}", reason.to_lowercase())).collect();
        text.push_str(&format!("Chosen to go: {}", parts.join(", ")));
        let saved = summary.saved_hourly;
        match saved.micros() > 0 {
            true => text.push_str(&format!("; consolidation saves ${} per hour\n", money(saved, 4))),
            false => text.push('\n'),
        }
    }
    text
}
