//! Kerf's look at a whole cluster for nodes that should go, and how long it takes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use kerf_disruption::{Memory, Round, Settings, Verdict, decide};
use kerf_model::node_pool::ClassKind;
use serde::Serialize;

use crate::file::Problem;
use crate::memory;
use crate::settle::view;

/// A day after everything in the problem was made.
pub(crate) const NOW: &str = "2026-01-02T00:00:00Z";

#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// The fastest whole round: every candidate, alone and together with others.
    pub round_ns: u64,
    /// The first, with nothing warm.
    pub first_ns: u64,
    /// Nodes with a verdict.
    pub nodes: usize,
    /// Nodes whose consolidation was considered.
    pub candidates: usize,
    pub what_ifs: usize,
    /// What-ifs that needed no simulation.
    pub pruned: usize,
    pub proposals: usize,
    /// Nodes that should go, and nodes that should come for them.
    pub removed: usize,
    pub launched: usize,
    pub peak_bytes: u64,
}

/// Looks `runs` times, each time from nothing.
///
/// # Errors
/// The round is not valid, or looked at nothing.
pub fn measure(problem: &Problem, runs: usize) -> Result<Measured> {
    let settings = Settings::for_classes(vec![class(problem)?]);
    let (memory, types) = (Memory::default(), problem.types_by_pool());
    let view = view(problem, &types, &settings, &memory, NOW.parse()?);
    let (mut first_ns, mut round_ns, mut peak_bytes, mut last) = (0, u64::MAX, 0, Round::default());
    for run in 0..runs.max(1) {
        drop(std::mem::take(&mut last));
        let start = Instant::now();
        last = decide(&view);
        let took = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        round_ns = round_ns.min(took);
        if run == 0 {
            first_ns = took;
            peak_bytes = memory::peak_bytes().unwrap_or_default();
        }
    }
    check(problem, &last)?;
    let proposals = &last.proposals;
    Ok(Measured {
        round_ns,
        first_ns,
        nodes: last.verdicts.len(),
        candidates: last.work.candidates as usize,
        what_ifs: last.work.what_ifs as usize,
        pruned: last.work.pruned as usize,
        proposals: proposals.len(),
        removed: proposals.iter().map(|proposal| proposal.candidates.len()).sum(),
        launched: proposals.iter().map(|proposal| proposal.replacements().len()).sum(),
        peak_bytes,
    })
}

/// The node class that the problem's pools use.
pub(crate) fn class(problem: &Problem) -> Result<ClassKind> {
    let Some(pool) = problem.cluster.pools().next() else { bail!("the problem has no pool") };
    Ok(ClassKind { group: pool.class.group.clone(), kind: pool.class.kind.clone() })
}

/// A round must have looked, answer for every node, take none twice, land on none that goes, and keep the budgets.
fn check(problem: &Problem, round: &Round) -> Result<()> {
    let claims = problem.cluster.claims().count();
    ensure!(round.verdicts.len() == claims, "{} verdicts for {claims} claims", round.verdicts.len());
    ensure!(round.work.what_ifs + round.work.pruned > 0, "the round considered no consolidation");
    let mut going = BTreeSet::new();
    let mut by_pool: BTreeMap<&str, usize> = BTreeMap::new();
    for candidate in round.proposals.iter().flat_map(|proposal| &proposal.candidates) {
        let name = &candidate.claim.name.name;
        ensure!(going.insert(name), "{name} is removed twice");
        let is_told = matches!(round.verdicts.get(name), Some(Verdict::Go { .. }));
        ensure!(is_told, "{name} goes, and its verdict does not say so");
        *by_pool.entry(&candidate.pool).or_default() += 1;
    }
    for landing in round.proposals.iter().flat_map(|proposal| &proposal.lands_on) {
        ensure!(!going.contains(landing.host.name()), "{:?} goes, and pods land on it", landing.host);
    }
    for (pool, count) in by_pool {
        let nodes = problem.cluster.claims().filter(|claim| claim.pool() == Some(pool)).count();
        // The pools' budget is ten percent, rounded up.
        ensure!(count <= nodes.div_ceil(10), "{count} of {nodes} nodes of {pool} go at once");
    }
    Ok(())
}
