//! Kerf on a scheduling problem, and how long it takes.

use std::collections::BTreeSet;
use std::time::Instant;

use jiff::Timestamp;
use kerf_model::price::Price;
use kerf_scheduling::{
    Options, PlannedClaim, Policy, PreferencePolicy, Prepared, Question, Schedule, Supply, pods_to_place,
};
use serde::{Deserialize, Serialize};

use crate::file::Problem;
use crate::memory;

/// What came out, and what it took. The same figures are asked of the reference.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    /// Of the fastest run: compiling the cluster and what can be launched, finding the pods.
    pub setup_ns: u64,
    /// Of the same run.
    pub solve_ns: u64,
    /// Set-up and solve of the first run, with nothing warm.
    pub first_ns: u64,
    pub nodes: usize,
    pub cost_per_hour: f64,
    pub pods_on_existing: usize,
    pub unscheduled: usize,
    /// Of the process after its first run, with all that it has read.
    pub peak_bytes: u64,
}

/// Answers the question `runs` times, each time from nothing.
pub fn measure(problem: &Problem, policy: Policy, runs: usize) -> (Measured, Schedule) {
    let mut best: Option<(u64, u64)> = None;
    let (mut first_ns, mut peak_bytes, mut last) = (0, 0, Schedule::default());
    for run in 0..runs.max(1) {
        drop(std::mem::take(&mut last));
        let start = Instant::now();
        let types = problem.types_by_pool();
        let supply = Supply { types: &types, rules: &problem.rules, options: options(problem, policy) };
        let prepared = Prepared::new(&problem.cluster, supply);
        let pods = pods_to_place(&problem.cluster, &BTreeSet::new(), Timestamp::UNIX_EPOCH);
        let question = Question { pods, ..Question::default() };
        let asked = Instant::now();
        last = prepared.solve(&question);
        let (setup_ns, solve_ns) = (nanos(asked - start), nanos(asked.elapsed()));
        if run == 0 {
            first_ns = setup_ns + solve_ns;
            peak_bytes = memory::peak_bytes().unwrap_or_default();
        }
        if best.is_none_or(|(setup, solve)| setup_ns + solve_ns < setup + solve) {
            best = Some((setup_ns, solve_ns));
        }
    }
    let (setup_ns, solve_ns) = best.unwrap_or_default();
    let measured = Measured {
        setup_ns,
        solve_ns,
        first_ns,
        nodes: last.new_claims.len(),
        cost_per_hour: dollars(cost(&last)),
        pods_on_existing: last.on_existing.iter().map(|host| host.pods.len()).sum(),
        unscheduled: last.unplaced.len(),
        peak_bytes,
    };
    (measured, last)
}

fn options(problem: &Problem, policy: Policy) -> Options {
    let preferences = match &*problem.header.preferences {
        "Ignore" => PreferencePolicy::Ignore,
        _ => PreferencePolicy::Respect,
    };
    Options { preferences, policy, ..Options::default() }
}

/// Of the nodes to launch, each at its cheapest option.
pub fn cost(schedule: &Schedule) -> Price {
    let micros = schedule.new_claims.iter().filter_map(PlannedClaim::price).map(Price::micros).sum();
    Price::from_micros(micros)
}

pub fn dollars(price: Price) -> f64 {
    price.micros() as f64 / 1e6
}

fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
