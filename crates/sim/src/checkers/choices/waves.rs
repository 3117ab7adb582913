//! Drift in waves: never more of a pool than the wave's share, nothing while its replacements prove themselves, nothing once
//! they have failed.
//!
//! How far a roll-out has come stands on the pool, but what a dying process knew last may not: this begins anew with another
//! process. That a pause and a halt outlive a restart is shown by the scenarios `disruption/waves` and `waves-halt`.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::choice::{Choice, Command, chosen_for, pool_named};
use crate::checkers::Broken;
use crate::store::{Kind, Object, Store};

/// Twice as wrong as the autoscaler's clock can be, and what it takes to hear that a wave is over.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_secs(2 * 2 * 120 + 30);

/// What becomes of a command is known to its own process by then.
const HEARD_WITHIN: SignedDuration = SignedDuration::from_secs(10);

#[derive(Default)]
pub(super) struct WaveWatch {
    process: u64,
    /// By pool.
    waves: BTreeMap<String, Wave>,
}

/// The wave that began last.
struct Wave {
    target: Target,
    /// By uid, with the id of the command that it was chosen for.
    claims: BTreeMap<String, String>,
    /// Commands of the wave that let a claim go again, and when that was seen first.
    failed: BTreeMap<String, Timestamp>,
    /// When one of its nodes was last seen waiting for a replacement.
    busy: Timestamp,
}

/// What the nodes are rolled to: uid and generation of the pool, and the generation of its class.
type Target = (String, i64, i64);

impl WaveWatch {
    pub fn look(&mut self, store: &Store, process: u64, now: Timestamp) {
        if process != self.process {
            self.process = process;
            self.waves.clear();
        }
        if self.waves.is_empty() {
            return;
        }
        let claims: BTreeMap<&str, &Object> = store.all(Kind::NodeClaim).map(|claim| (claim.uid(), claim)).collect();
        for wave in self.waves.values_mut() {
            for (uid, command) in &wave.claims {
                let Some(claim) = claims.get(&**uid).filter(|claim| !claim.is_deleting()) else { continue };
                match Command::of(claim).filter(|own| own.id == *command && chosen_for(claim).is_some()) {
                    Some(_) => wave.busy = now,
                    None => drop(wave.failed.entry(command.clone()).or_insert(now)),
                }
            }
        }
    }

    pub fn chosen(&mut self, choice: &Choice<'_>, now: Timestamp) -> Option<Broken> {
        let waves = choice.settings.disruption.waves?;
        let command = Command::of(choice.claim).filter(|it| matches!(it.method, "drift" | "static_drift"))?;
        let (pool, claim) = (choice.pool_name.to_owned(), choice.claim_name());
        let target = target(choice)?;
        let nodes = choice.store.all(Kind::NodeClaim).filter(|claim| choice.is_of_pool(claim)).count();
        let share = (nodes.max(choice.nodes_of_pool()) * usize::from(waves.percent)).div_ceil(100).max(1);
        let begin = || Wave { target: target.clone(), claims: BTreeMap::new(), failed: BTreeMap::new(), busy: now };
        let wave = self.waves.entry(pool.clone()).or_insert_with(begin);
        if wave.target != target {
            *wave = begin();
        }
        // A mark that the server refused at first was chosen before what has failed meanwhile.
        let started = now - choice.act.decided.duration_since(choice.chosen_at);
        let is_before = |(id, at): &(&String, &Timestamp)| **id != command.id && **at + HEARD_WITHIN <= started;
        let failures = wave.failed.iter().filter(is_before).count();
        let is_halted = failures >= usize::try_from(waves.failures.max(1)).unwrap_or(usize::MAX);
        if is_halted {
            return Some(Broken::HaltIgnored { pool, claim });
        }
        let has_baked = now + CLOCKS_DIFFER >= wave.busy + waves.bake;
        if has_baked && wave.claims.len() >= share {
            *wave = begin();
        }
        wave.claims.insert(choice.claim.uid().to_owned(), command.id.to_owned());
        let going = wave.claims.len();
        (going > share).then_some(Broken::WaveExceeded { pool, going, share })
    }
}

/// `None` if the pool is gone, and nobody knows any more what it wanted.
fn target(choice: &Choice<'_>) -> Option<Target> {
    let pool = choice.pool.clone().or_else(|| pool_named(choice.store, choice.pool_name))?;
    let class = pool.text(&["spec", "template", "spec", "nodeClassRef", "name"])?;
    let classes = choice.heard(Kind::KwokNodeClass);
    let class = classes.iter().find(|known| *known.name.name == *class).map_or(0, Object::generation);
    Some((pool.uid().to_owned(), pool.generation(), class))
}
