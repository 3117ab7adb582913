//! What a new process knows of what was decided before it: what stands on the objects (ADR 8).

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_disruption::{Memory, Rollout};
use kerf_model::cluster::{NodeClaim, StoredPool};
use kerf_model::label::annotation;
use kerf_model::snapshot::ClusterSnapshot;

use crate::commands::Command;

pub fn remembered(snapshot: &ClusterSnapshot) -> Memory {
    Memory {
        running: Command::resume(snapshot).iter().map(Command::running).collect(),
        rollouts: rollouts(snapshot),
        reboots: reboots(snapshot),
        ..Memory::default()
    }
}

/// By claim uid: when its node was rebooted.
pub fn reboots(snapshot: &ClusterSnapshot) -> BTreeMap<Arc<str>, Vec<Timestamp>> {
    let times = |text: &str| text.split(',').filter_map(|time| time.parse().ok()).collect();
    let known = |claim: &NodeClaim| Some((claim.meta.uid.clone(), times(claim.meta.annotation(annotation::REBOOTS)?)));
    snapshot.claims().filter_map(|claim| known(claim)).collect()
}

/// As far as pools say.
fn rollouts(snapshot: &ClusterSnapshot) -> BTreeMap<Arc<str>, Rollout> {
    let known = |pool: &StoredPool| pool.meta.annotation(annotation::ROLLOUT)?.parse().ok();
    snapshot.pools().filter_map(|pool| Some((pool.meta.name.name.clone(), known(pool)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerf_model::change::Change;
    use kerf_testkit::texts;

    /// Sheet 08 D7, and §5: who takes over knows how often a node was rebooted.
    #[test]
    fn the_reboots_that_stand_on_a_claim_count_after_a_restart() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut claim = kerf_testkit::claim("a");
        claim.meta.annotations = texts([(annotation::REBOOTS, &*format!("{},{},soon", at(10), at(20)))]);
        let mut snapshot = ClusterSnapshot::default();
        snapshot.apply(Change::NodeClaim(claim.meta.name.clone(), Some(Arc::new(claim))));
        let reboots = BTreeMap::from([(Arc::from("uid-a"), vec![at(10), at(20)])]);
        assert_eq!(remembered(&snapshot).reboots, reboots);
    }
}
