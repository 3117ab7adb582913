//! What is heard: whether it is news, for which a round is made, or something that a command waits for.

use jiff::Timestamp;
use kerf_model::change::{Change, Input};
use kerf_model::cloud::{Interruption, InterruptionCause};
use kerf_model::cluster::{Node, ObjectName, Pod};
use kerf_model::effect::{Effect, WriteError};
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::time::later;

use super::Disruption;
use crate::outstanding::retry_after;

impl Disruption {
    /// Takes in what the engine hears, before the snapshot does.
    pub fn hear(&mut self, input: &Input, before: &ClusterSnapshot, now: Timestamp) {
        match input {
            Input::Change(change) => self.see(change, before),
            Input::Interrupted(interruption) => self.announced(interruption, before),
            Input::WriteFailed { effect, error } => self.write_failed(effect, error, now),
            Input::Catalogue(_) => self.touch(),
            Input::Synced
            | Input::Launched { .. }
            | Input::Terminated { .. }
            | Input::Instances(_)
            | Input::InstanceFound { .. }
            | Input::DriftFound { .. }
            | Input::HooksRan { .. }
            | Input::InstanceUpdated { .. }
            | Input::Rebooted { .. } => {}
        }
    }

    fn see(&mut self, change: &Change, before: &ClusterSnapshot) {
        self.is_changed |= is_relevant(change, before);
        if let Change::NodeClaim(name, after) = change {
            self.are_commands_touched |= self.commands.iter().any(|command| command.concerns(&name.name));
            self.are_commands_touched |= self.reboots.concern(&name.name);
            if after.is_none() {
                self.forget_claim(name);
            }
        }
        if let Change::NodePool(name, after) = change
            && let Some(known) = before.pool(&name.name)
            && after.as_ref().is_none_or(|after| after.meta.uid != known.meta.uid)
        {
            self.memory.forget_pool(&name.name);
        }
        // Taints and pods are on nodes.
        if let Change::Node(..) = change {
            self.are_commands_touched |= !self.commands.is_empty();
        }
    }

    fn forget_claim(&mut self, claim: &ObjectName) {
        self.memory.rebalance.remove(&claim.name);
        self.memory.unmarked.remove(&claim.name);
        self.announced.remove(&claim.name);
    }

    /// A provider may announce again and again what it has announced: that is no news.
    fn announced(&mut self, interruption: &Interruption, before: &ClusterSnapshot) {
        for claim in before.claims_with_id(&interruption.provider_id) {
            if interruption.cause == InterruptionCause::RebalanceRecommended {
                self.memory.rebalance.insert(claim.name().clone());
            }
            let known = self.announced.insert(claim.name().clone(), interruption.cause);
            self.is_changed |= known != Some(interruption.cause);
        }
    }

    fn write_failed(&mut self, effect: &Effect, error: &WriteError, now: Timestamp) {
        if let Effect::CreateClaim(claim) = effect {
            self.are_commands_touched = true;
            for command in &mut self.commands {
                match error {
                    WriteError::Invalid { message } => command.refused(&claim.name, message),
                    WriteError::Conflict
                    | WriteError::NotFound
                    | WriteError::BudgetRefused { .. }
                    | WriteError::Unavailable { .. } => command.create_failed(&claim.name, now),
                }
            }
        }
        // Asked for again when it may be sent again.
        if let Effect::DeleteClaim(target) = effect
            && self.commands.iter().any(|command| command.concerns(&target.name.name))
        {
            self.wake_commands(later(now, retry_after(error)));
        }
    }
}

/// Whether decisions could come out otherwise. Heartbeats and what others write into a status are most of all changes.
fn is_relevant(change: &Change, before: &ClusterSnapshot) -> bool {
    match change {
        Change::Pod(name, Some(new)) => {
            before.pod(name).is_none_or(|old| is_other_pod(old, new) || is_let_go(old, new, before))
        }
        Change::Node(name, Some(new)) => before.node(&name.name).is_none_or(|old| is_other_node(old, new)),
        Change::MaintenanceWindow(name, new) => {
            new.as_ref().map(|new| &new.spec) != before.window(&name.name).map(|old| &old.spec)
        }
        Change::Pod(..)
        | Change::Node(..)
        | Change::NodeClaim(..)
        | Change::NodePool(..)
        | Change::NodeClass(..)
        | Change::DaemonSet(..)
        | Change::DisruptionBudget(..)
        | Change::PersistentVolumeClaim(..)
        | Change::PersistentVolume(..)
        | Change::StorageClass(..)
        | Change::CsiNode(..)
        | Change::Namespace(..)
        | Change::NodeOverlay(..)
        | Change::CapacityBuffer(..) => true,
        Change::VolumeAttachment(..) | Change::PodTemplate(..) | Change::Workload(..) | Change::Service(..) => false,
    }
}

fn is_other_pod(old: &Pod, new: &Pod) -> bool {
    let unversioned = |pod: &Pod| (pod.meta.uid.clone(), pod.meta.deleting, pod.node_name.clone(), pod.phase);
    unversioned(old) != unversioned(new)
        || old.unschedulable != new.unschedulable
        || old.meta.labels != new.meta.labels
        || old.meta.annotations != new.meta.annotations
        || old.do_not_disrupt != new.do_not_disrupt
        || old.started != new.started
        // It was resized as it runs, or tolerates what it did not.
        || old.requests != new.requests
        || old.constraints != new.constraints
        || old.nominated_node != new.nominated_node
}

/// Whether its readiness decides about its eviction. Of most pods it does not, and some change it all the time.
fn is_let_go(old: &Pod, new: &Pod, snapshot: &ClusterSnapshot) -> bool {
    old.is_unready != new.is_unready
        && snapshot.disruption_budgets().any(|budget| budget.always_allows_unhealthy && budget.selects(new))
}

fn is_other_node(old: &Node, new: &Node) -> bool {
    let health = |node: &Node| -> Vec<_> {
        node.conditions.iter().map(|it| (it.kind.clone(), it.status, it.reason.clone(), it.since)).collect()
    };
    old.meta.uid != new.meta.uid
        || old.meta.deleting != new.meta.deleting
        || old.meta.labels != new.meta.labels
        || old.meta.annotations != new.meta.annotations
        || old.taints != new.taints
        || old.unschedulable != new.unschedulable
        || old.allocatable != new.allocatable
        || health(old) != health(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::Arc;

    use jiff::SignedDuration;
    use kerf_disruption::{Memory, Reason};
    use kerf_lifecycle::{Mark, Order};
    use kerf_model::cluster::{ObjectMeta, PoolStatus, StoredPool, condition_kind};
    use kerf_testkit::{class, condition};

    /// The order stood for a minute, unless something else had disruption look before: the claim of a node that was back
    /// within it showed no reboot any more, and it was booted again.
    #[test]
    fn a_node_that_was_back_within_a_minute_was_booted_twice() {
        let mut disruption = Disruption::default();
        let mut claim = kerf_testkit::claim("a");
        let order = Order::Reboot { condition: Arc::from("GPU"), condition_reason: Arc::from("Xid79"), grace: None };
        let mark = Mark { claim_uid: claim.meta.uid.clone(), reason: Reason::Unhealthy, order };
        disruption.reboots.ask(claim.meta.name.name.clone(), mark, Timestamp::UNIX_EPOCH);
        claim.status.conditions.0.push(condition(condition_kind::REBOOTING, Timestamp::UNIX_EPOCH));
        let change = Change::NodeClaim(claim.meta.name.clone(), Some(Arc::new(claim)));
        let mut snapshot = ClusterSnapshot::default();
        disruption.hear(&Input::Change(change.clone()), &snapshot, Timestamp::UNIX_EPOCH);
        assert!(disruption.is_touched(), "the order is given, and need not stand any more");
        snapshot.apply(change);
        disruption.reboots.refresh(&snapshot, Timestamp::UNIX_EPOCH);
        assert_eq!(disruption.reboots.next_due(), None);
    }

    /// A roll-out that had halted halted the first one of a pool that was made anew, too.
    #[test]
    fn a_pool_under_an_old_name_had_the_failures_of_the_one_before() {
        let pool = |uid: &str| {
            let name = ObjectName::of_cluster("p");
            let meta = ObjectMeta { uid: Arc::from(uid), ..kerf_testkit::meta(name.clone()) };
            let spec = Err(Arc::from("not read here"));
            let pool = StoredPool { meta, spec, class: class(), hash: None, status: PoolStatus::default() };
            Change::NodePool(name, Some(Arc::new(pool)))
        };
        let forgotten = |after: Change| {
            let mut snapshot = ClusterSnapshot::default();
            snapshot.apply(pool("1"));
            let mut disruption = Disruption::default();
            let memory = &mut disruption.memory;
            memory.failed(&Arc::from("p"), Reason::Drifted, Timestamp::UNIX_EPOCH);
            memory.rollouts.insert(Arc::from("p"), "v1 0 3 2".parse().unwrap());
            memory.last_reason.insert(Arc::from("p"), Reason::Drifted);
            disruption.hear(&Input::Change(after), &snapshot, Timestamp::UNIX_EPOCH);
            let Memory { back_off, rollouts, last_reason, .. } = &disruption.memory;
            [back_off.is_empty(), rollouts.is_empty(), last_reason.is_empty()]
        };
        assert_eq!(forgotten(pool("1")), [false; 3], "an edit");
        assert_eq!(forgotten(pool("2")), [true; 3]);
        assert_eq!(forgotten(Change::NodePool(ObjectName::of_cluster("p"), None)), [true; 3]);
    }

    /// A label that announces an interruption is read every five seconds, and each time a whole round was made.
    #[test]
    fn what_the_cloud_announces_again_and_again_is_news_once() {
        let mut claim = kerf_testkit::claim("a");
        claim.status.provider_id = Some(Arc::from("i-1"));
        let name = claim.meta.name.clone();
        let mut snapshot = ClusterSnapshot::default();
        snapshot.apply(Change::NodeClaim(name.clone(), Some(Arc::new(claim))));
        let mut disruption = Disruption::default();
        let mut is_news = |input: Input| {
            disruption.is_changed = false;
            disruption.hear(&input, &snapshot, Timestamp::UNIX_EPOCH);
            disruption.is_changed
        };
        let announced = |provider_id: &str, cause: InterruptionCause| {
            let notice = SignedDuration::from_mins(2);
            Input::Interrupted(Interruption { provider_id: Arc::from(provider_id), cause, notice })
        };
        assert!(is_news(announced("i-1", InterruptionCause::RebalanceRecommended)));
        assert!(!is_news(announced("i-1", InterruptionCause::RebalanceRecommended)));
        assert!(is_news(announced("i-1", InterruptionCause::SpotReclaimed)));
        assert!(!is_news(announced("i-1", InterruptionCause::SpotReclaimed)));
        assert!(!is_news(announced("i-2", InterruptionCause::SpotReclaimed)), "nothing here is on it");
        is_news(Input::Change(Change::NodeClaim(name, None)));
        assert!(is_news(announced("i-1", InterruptionCause::SpotReclaimed)), "another claim of that name");
        assert!(disruption.memory().rebalance.is_empty());
    }
}
