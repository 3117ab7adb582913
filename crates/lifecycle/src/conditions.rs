//! How conditions are set and add up (sheet 01 §8, sheet 04 §1.1).

use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::{
    CapacityBuffer, Condition, ConditionStatus, Conditions, NodeClaim, NodeOverlay, ObjectMeta, StoredPool,
    StoredWindow, condition_kind as kind,
};
use kerf_model::time::whole_seconds;

const CLAIM_DEPENDENTS: &[&str] = &[kind::LAUNCHED, kind::REGISTERED, kind::INITIALIZED];
const OVERLAY_DEPENDENTS: &[&str] = &[kind::VALIDATION_SUCCEEDED];
const POOL_DEPENDENTS: &[&str] = &[kind::VALIDATION_SUCCEEDED, kind::NODE_CLASS_READY];

/// The conditions of one object while they are being changed. Nothing is written if nothing came out different.
#[derive(Debug)]
pub struct ConditionEditor<'a> {
    before: &'a Conditions,
    meta: &'a ObjectMeta,
    /// What [`kind::READY`] depends on.
    dependents: &'static [&'static str],
    /// Whether there is a [`kind::READY`] at all.
    has_root: bool,
    list: Vec<Condition>,
    now: Timestamp,
}

impl<'a> ConditionEditor<'a> {
    pub fn of_claim(claim: &'a NodeClaim, now: Timestamp) -> Self {
        Self::new(&claim.meta, &claim.status.conditions, CLAIM_DEPENDENTS, now)
    }

    pub fn of_pool(pool: &'a StoredPool, now: Timestamp) -> Self {
        Self::new(&pool.meta, &pool.status.conditions, POOL_DEPENDENTS, now)
    }

    pub fn of_overlay(overlay: &'a NodeOverlay, now: Timestamp) -> Self {
        Self::new(&overlay.meta, &overlay.conditions, OVERLAY_DEPENDENTS, now)
    }

    /// Buffers have conditions that stand side by side.
    pub fn of_buffer(buffer: &'a CapacityBuffer, now: Timestamp) -> Self {
        Self { has_root: false, ..Self::new(&buffer.meta, &buffer.status.conditions, &[], now) }
    }

    /// A window is ready or not, and that is all.
    pub fn of_window(window: &'a StoredWindow, now: Timestamp) -> Self {
        Self { has_root: false, ..Self::new(&window.meta, &window.status.conditions, &[], now) }
    }

    fn new(meta: &'a ObjectMeta, before: &'a Conditions, dependents: &'static [&'static str], now: Timestamp) -> Self {
        Self { before, meta, dependents, has_root: true, list: before.0.clone(), now: whole_seconds(now) }
    }

    pub fn get(&self, kind: &str) -> Option<&Condition> {
        self.list.iter().find(|condition| &*condition.kind == kind)
    }

    /// The reason of a condition that is true is its own name.
    pub fn set_true(&mut self, kind: &str) {
        self.set(kind, ConditionStatus::True, kind, "");
    }

    /// True, for one of several reasons.
    pub fn set_true_because(&mut self, kind: &str, reason: &str, message: &str) {
        self.set(kind, ConditionStatus::True, reason, message);
    }

    /// Absent from now on, which is not the same as false.
    pub fn remove(&mut self, kind: &str) {
        self.list.retain(|condition| &*condition.kind != kind);
    }

    pub fn set_false(&mut self, kind: &str, reason: &str, message: &str) {
        self.set(kind, ConditionStatus::False, reason, message);
    }

    pub fn set_unknown(&mut self, kind: &str, reason: &str, message: &str) {
        self.set(kind, ConditionStatus::Unknown, reason, message);
    }

    /// Says that the condition still holds for the present generation, if it is there.
    pub fn refresh(&mut self, kind: &str) {
        if let Some(Condition { status, reason, message, .. }) = self.get(kind).cloned() {
            self.set(kind, status, &reason, &message);
        }
    }

    /// `None` if the object has this already.
    pub fn finish(self) -> Option<Conditions> {
        (self.list != self.before.0).then_some(Conditions(self.list))
    }

    fn set(&mut self, kind: &str, status: ConditionStatus, reason: &str, message: &str) {
        self.materialise();
        let since = match self.get(kind) {
            Some(known) if known.status == status => known.since,
            Some(_) | None => self.now,
        };
        self.put(Condition {
            kind: Arc::from(kind),
            status,
            reason: Arc::from(reason),
            message: Arc::from(message),
            since,
            observed_generation: self.meta.generation,
        });
        if self.meta.is_deleting() {
            // The generation grows with the deletion, and nobody will look at the old steps again.
            for condition in &mut self.list {
                condition.observed_generation = self.meta.generation;
            }
        }
        self.recompute_root();
        // The sort is stable: conditions of one second keep their order.
        self.list.sort_by_key(|condition| (&*condition.kind == kind::READY, condition.since));
    }

    /// The root and its dependents exist as soon as anything is written, as old as the object.
    fn materialise(&mut self) {
        if !self.has_root {
            return;
        }
        for kind in self.dependents.iter().copied().chain([kind::READY]) {
            if self.get(kind).is_none() {
                self.list.push(Condition {
                    kind: Arc::from(kind),
                    status: ConditionStatus::Unknown,
                    reason: Arc::from("AwaitingReconciliation"),
                    message: Arc::from("object is awaiting reconciliation"),
                    since: whole_seconds(self.meta.created),
                    observed_generation: self.meta.generation,
                });
            }
        }
    }

    fn put(&mut self, condition: Condition) {
        match self.list.iter_mut().find(|known| known.kind == condition.kind) {
            Some(known) => *known = condition,
            None => self.list.push(condition),
        }
    }

    fn recompute_root(&mut self) {
        if !self.has_root {
            return;
        }
        let generation = self.meta.generation;
        let is_current = |condition: &Condition| condition.observed_generation == generation;
        let mut unhealthy: Vec<&Condition> = self
            .dependents
            .iter()
            .filter_map(|kind| self.get(kind))
            .filter(|condition| condition.status != ConditionStatus::True || !is_current(condition))
            .collect();
        unhealthy.sort_by_key(|condition| std::cmp::Reverse(condition.since));
        let failed =
            unhealthy.iter().any(|condition| condition.status == ConditionStatus::False && is_current(condition));
        let (status, reason) = match (unhealthy.is_empty(), failed) {
            (true, _) => (ConditionStatus::True, kind::READY),
            (false, true) => (ConditionStatus::False, "UnhealthyDependents"),
            (false, false) => (ConditionStatus::Unknown, "ReconcilingDependents"),
        };
        let parts: Vec<_> =
            unhealthy.iter().map(|condition| format!("{}={}", condition.kind, condition.status)).collect();
        let since = match self.get(kind::READY) {
            Some(root) if root.status == status => root.since,
            Some(_) | None => self.now,
        };
        self.put(Condition {
            kind: Arc::from(kind::READY),
            status,
            reason: Arc::from(reason),
            message: Arc::from(parts.join(", ")),
            since,
            observed_generation: generation,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerf_model::cluster::ObjectName;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn meta(generation: i64) -> ObjectMeta {
        ObjectMeta { generation, created: at(10), ..kerf_testkit::meta(ObjectName::of_cluster("a")) }
    }

    fn edit(
        meta: &ObjectMeta,
        before: &Conditions,
        now: i64,
        act: impl FnOnce(&mut ConditionEditor<'_>),
    ) -> Conditions {
        let mut editor = ConditionEditor::new(meta, before, CLAIM_DEPENDENTS, at(now));
        act(&mut editor);
        editor.finish().unwrap_or_else(|| before.clone())
    }

    /// `Type=Status/Reason@since#generation`
    fn show(conditions: &Conditions) -> Vec<String> {
        let each = |condition: &Condition| {
            let Condition { kind, status, reason, since, observed_generation, .. } = condition;
            format!("{kind}={status}/{reason}@{}#{observed_generation}", since.as_second())
        };
        conditions.0.iter().map(each).collect()
    }

    #[test]
    fn the_first_touch_makes_the_root_and_its_dependents_as_old_as_the_object() {
        let conditions = edit(&meta(1), &Conditions::default(), 20, |editor| editor.set_true("Launched"));
        assert_eq!(
            show(&conditions),
            [
                "Registered=Unknown/AwaitingReconciliation@10#1",
                "Initialized=Unknown/AwaitingReconciliation@10#1",
                "Launched=True/Launched@20#1",
                "Ready=Unknown/ReconcilingDependents@10#1",
            ]
        );
        assert_eq!(&*conditions.get("Ready").unwrap().message, "Registered=Unknown, Initialized=Unknown");
    }

    #[test]
    fn an_untouched_or_unchanged_list_is_not_written() {
        let before = edit(&meta(1), &Conditions::default(), 20, |editor| editor.set_true("Launched"));
        let meta = meta(1);
        assert_eq!(ConditionEditor::new(&meta, &before, CLAIM_DEPENDENTS, at(30)).finish(), None);
        let mut editor = ConditionEditor::new(&meta, &before, CLAIM_DEPENDENTS, at(30));
        editor.set_true("Launched");
        assert_eq!(editor.finish(), None);
    }

    #[test]
    fn a_condition_that_is_taken_back_is_absent_and_not_false() {
        let before = edit(&meta(1), &Conditions::default(), 20, |editor| editor.set_true("Drifted"));
        let after = edit(&meta(1), &before, 30, |editor| editor.remove("Drifted"));
        assert_eq!((after.get("Drifted"), after.0.len()), (None, before.0.len() - 1));
    }

    #[test]
    fn a_new_reason_keeps_the_time_and_a_new_status_does_not() {
        let before = edit(&meta(1), &Conditions::default(), 20, |editor| editor.set_unknown("Launched", "A", "a"));
        let reason = edit(&meta(1), &before, 30, |editor| editor.set_unknown("Launched", "B", "b"));
        assert_eq!(reason.get("Launched").unwrap().since, at(10));
        let status = edit(&meta(1), &reason, 40, |editor| editor.set_false("Launched", "C", "c"));
        assert_eq!(status.get("Launched").unwrap().since, at(40));
        assert_eq!(status.0.last().unwrap().reason.as_ref(), "UnhealthyDependents");
    }

    /// Sheet 04, case 21.
    #[test]
    fn a_new_generation_makes_ready_unknown_until_every_dependent_is_seen_again() {
        let all = |editor: &mut ConditionEditor<'_>| CLAIM_DEPENDENTS.iter().for_each(|kind| editor.set_true(kind));
        let ready = edit(&meta(1), &Conditions::default(), 20, all);
        assert_eq!(show(&ready).last().unwrap(), "Ready=True/Ready@20#1");
        let one = edit(&meta(2), &ready, 30, |editor| editor.refresh("Launched"));
        assert_eq!(show(&one).last().unwrap(), "Ready=Unknown/ReconcilingDependents@30#2");
        let again = edit(&meta(2), &one, 40, |editor| CLAIM_DEPENDENTS.iter().for_each(|kind| editor.refresh(kind)));
        assert_eq!(show(&again).last().unwrap(), "Ready=True/Ready@40#2");
    }

    #[test]
    fn while_the_object_goes_one_write_brings_all_conditions_to_its_generation() {
        let ready = edit(&meta(1), &Conditions::default(), 20, |editor| editor.set_true("Launched"));
        let deleting = ObjectMeta { deleting: Some(at(25)), ..meta(2) };
        let drained = edit(&deleting, &ready, 30, |editor| editor.set_true("Drained"));
        assert!(drained.0.iter().all(|condition| condition.observed_generation == 2), "{:?}", show(&drained));
    }
}
