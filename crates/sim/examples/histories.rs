//! Random histories with faults, as many as asked for: `cargo run --release -p kerf-sim --example histories -- --seeds 100`.
//! `cargo xtask sim` is the short way to it.

use std::io::{IsTerminal, Write, stderr};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use jiff::SignedDuration;
use kerf_api::admission::Admission;
use kerf_cloud::Catalogue;
use kerf_sim::faults::Rates;
use kerf_sim::history::{Keep, Options, Report, run};
use serde_json::json;

type AnyError = Box<dyn std::error::Error>;

struct Arguments {
    seeds: u64,
    first_seed: u64,
    json: bool,
    calm: bool,
    trace: bool,
}

fn main() -> Result<ExitCode, AnyError> {
    let arguments = arguments()?;
    let admission = Arc::new(Admission::new(&kerf_api::crds(None))?);
    let catalogue = Catalogue::kwok();
    let journal = if arguments.trace { Keep::Lines } else { Keep::Nothing };
    let rates = if arguments.calm { Rates::default() } else { Rates::ROUGH };
    let options = Options { rates, journal, ..Options::default() };
    let started = Instant::now();
    let next = AtomicU64::new(arguments.first_seed);
    let end = arguments.first_seed.saturating_add(arguments.seeds);
    let reports: Mutex<Vec<Report>> = Mutex::new(Vec::new());
    let shows_progress = stderr().is_terminal();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let report = run(seed, &admission, catalogue.types(), &options);
                    for line in &report.lines {
                        println!("{line}");
                    }
                    for violation in &report.violations {
                        println!("seed {seed}  {violation}");
                    }
                    if !report.violations.is_empty() {
                        let flag = if arguments.calm { " --no-faults" } else { "" };
                        println!("replay with: cargo xtask sim --seeds 1 --first-seed {seed}{flag}");
                    }
                    let Ok(mut reports) = reports.lock() else { return };
                    reports.push(report);
                    if shows_progress {
                        eprint!("\r{} of {} histories", reports.len(), arguments.seeds);
                        let _ = stderr().flush();
                    }
                }
            });
        }
    });
    if shows_progress {
        eprintln!();
    }
    let reports = reports.into_inner()?;
    let violations: usize = reports.iter().map(|report| report.violations.len()).sum();
    let effects: u64 = reports.iter().map(|report| report.effects).sum();
    let crashes: u64 = reports.iter().map(|report| report.crashes).sum();
    let steps: u64 = reports.iter().map(|report| report.steps).sum();
    let hours = reports.iter().map(|report| report.virtual_time).sum::<SignedDuration>().as_secs_f64() / 3_600.0;
    let took = started.elapsed().as_secs_f64();
    if arguments.json {
        println!(
            "{}",
            json!({
                "histories": reports.len(), "violations": violations, "steps": steps, "effects": effects,
                "crashes": crashes, "virtual_hours": hours, "seconds": took,
            })
        );
    } else {
        println!(
            "{} histories, {violations} violations; {steps} steps, {effects} effects, {crashes} crashes; \
             {hours:.0} virtual hours in {took:.1} s ({:.1} histories and {:.0} virtual hours per second)",
            reports.len(),
            reports.len() as f64 / took,
            hours / took,
        );
    }
    Ok(if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn arguments() -> Result<Arguments, AnyError> {
    let mut arguments = Arguments { seeds: 100, first_seed: 1, json: false, calm: false, trace: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--seeds" => arguments.seeds = value.parse()?,
            "--first-seed" => arguments.first_seed = value.parse()?,
            "--no-faults" => arguments.calm = value.parse()?,
            "--trace" => arguments.trace = value.parse()?,
            "-o" if value == "json" => arguments.json = true,
            _ => return Err(format!("unknown argument {word} {value}").into()),
        }
    }
    Ok(arguments)
}
