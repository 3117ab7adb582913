//! Replacements that nobody waits for any more.

use std::sync::Arc;

use kerf_model::cluster::{NodeClaim, condition_kind as kind};
use kerf_model::label::annotation;
use kerf_model::snapshot::ClusterSnapshot;

use super::{Command, Record, Replaces};

/// Claims that were made for a command which nobody knows any more, and whose nodes stay. They are found by what stands
/// on them: a create that was late arrives after its command was rolled back.
pub fn orphans<'a>(snapshot: &'a ClusterSnapshot, commands: &[Command]) -> Vec<&'a NodeClaim> {
    let is_orphan = |claim: &&Arc<NodeClaim>| {
        let Some(Ok(replaces)) = claim.meta.annotation(annotation::REPLACES).map(str::parse::<Replaces>) else {
            return false;
        };
        // One that is ready is a node like any other: it goes as empty, within the budgets, or is used.
        let is_coming = !claim.meta.is_deleting() && !claim.status.conditions.is_true(kind::INITIALIZED);
        if !is_coming || commands.iter().any(|command| command.id == replaces.id) {
            return false;
        }
        let stays = |candidate: &Arc<NodeClaim>| {
            let is_of = |record: Record| record.id == replaces.id;
            let record = candidate.meta.annotation(annotation::COMMAND).map(str::parse::<Record>);
            !candidate.meta.is_deleting() && !record.and_then(Result::ok).is_some_and(is_of)
        };
        let alive = snapshot.claims().filter(|known| replaces.candidates.contains(&known.meta.uid));
        let mut alive = alive.peekable();
        alive.peek().is_some() && alive.all(stays) && hosts_nothing(claim, snapshot)
    };
    snapshot.claims().filter(is_orphan).map(AsRef::as_ref).collect()
}

/// Its node is there, and not ready for pods yet.
pub fn is_joining(claim: &NodeClaim) -> bool {
    let conditions = &claim.status.conditions;
    conditions.is_true(kind::REGISTERED) && !conditions.is_true(kind::INITIALIZED)
}

/// Whether no pod runs there that would have to move.
pub fn hosts_nothing(claim: &NodeClaim, snapshot: &ClusterSnapshot) -> bool {
    !snapshot.nodes_of(claim).flat_map(|node| snapshot.pods_on(node.name())).any(|pod| pod.is_reschedulable())
}
