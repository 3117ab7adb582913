//! Draining: which pods of a node are asked to leave now, which are made to, and which hold it up (sheet 04 §4.4-4.7).

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::{DoNotDisrupt, Node, Pod};
use kerf_model::effect::{Effect, Target};

mod blocker;
pub mod deadline;
mod groups;
mod pods;

pub use blocker::DrainBlocker;
pub(crate) use blocker::message;
pub use groups::Group;
pub(crate) use pods::is_drainable;

use crate::events;
use crate::memory::{PodMemory, Refusal, SEEN_WITHIN};
use crate::view::{View, later};

/// One look at a node that is to be empty.
#[derive(Debug, Default)]
pub struct Drain<'a> {
    /// Pods that the drain waits for; none means drained.
    pub waiting: Vec<&'a Pod>,
    /// To be evicted now.
    pub evict: Vec<&'a Pod>,
    /// To be deleted now, with this much grace.
    pub force: Vec<(&'a Pod, SignedDuration)>,
    /// What the drain cannot get past by itself.
    pub blockers: Vec<DrainBlocker>,
    /// Pods that have begun to go because we evicted them, and were not told yet.
    pub evicted: Vec<&'a Pod>,
    pub wake: Option<Timestamp>,
}

/// Derived from the pods each time: whatever was lost, refused or restarted in between, no pod is forgotten.
pub fn plan<'a>(node: &Node, deadline: Option<Timestamp>, view: View<'a>) -> Drain<'a> {
    let waiting: Vec<&Pod> = view
        .snapshot
        .pods_on(node.name())
        .map(AsRef::as_ref)
        .filter(|pod| pods::is_waited_for(pod, view.now))
        .collect();
    let mut drain = Drain { waiting: waiting.clone(), ..Drain::default() };
    let mut graceful = Vec::new();
    for pod in waiting {
        match deadline.filter(|deadline| deadline::has_come_for(pod, *deadline, view.now)) {
            // Whatever its group: another's delay does not give it more time.
            Some(deadline) => drain.force(pod, deadline, view),
            None => graceful.push(pod),
        }
        if let Some(deadline) = deadline {
            drain.look_again(deadline::comes_for(pod, deadline), view.now);
        }
        if let Some(end) = pod.meta.deleting {
            drain.look_again(later(end, pods::STUCK_AFTER), view.now);
        }
        if pod.meta.is_deleting()
            && view.memory.pod(pod).is_some_and(|memory| memory.was_evicted() && !memory.announced)
        {
            drain.evicted.push(pod);
        }
    }
    // Only the first group that is not empty: the pods of the next serve it until it is gone.
    let first = graceful.iter().map(|pod| Group::of(pod)).min();
    for pod in graceful.into_iter().filter(|pod| Some(Group::of(pod)) == first && !pod.meta.is_deleting()) {
        drain.evict(pod, view);
    }
    drain
}

impl<'a> Drain<'a> {
    fn force(&mut self, pod: &'a Pod, deadline: Timestamp, view: View<'_>) {
        match view.memory.pod(pod).and_then(PodMemory::force_at) {
            Some(at) if view.now < at => self.look_again(at, view.now),
            Some(_) | None => {
                self.force.push((pod, deadline::grace(deadline, view.now)));
                self.look_again(later(view.now, SEEN_WITHIN), view.now);
            }
        }
    }

    fn evict(&mut self, pod: &'a Pod, view: View<'_>) {
        if let Some(until) = pod.protected_until(view.now) {
            let until = (until != Timestamp::MAX).then_some(until);
            if let Some(until) = until {
                self.look_again(until, view.now);
            }
            self.blockers.push(DrainBlocker::Protected { pod: pod.meta.name.clone(), until });
            return;
        }
        let memory = view.memory.pod(pod);
        match memory.and_then(PodMemory::refusal) {
            None => {}
            Some(Refusal::Budget(message)) => {
                self.blockers.push(DrainBlocker::Budget { pod: pod.meta.name.clone(), message: message.clone() });
            }
            Some(Refusal::Api(message)) => {
                self.blockers.push(DrainBlocker::Refused { pod: pod.meta.name.clone(), message: message.clone() });
            }
        }
        match memory.and_then(PodMemory::evict_at) {
            Some(at) if view.now < at => self.look_again(at, view.now),
            Some(_) | None => {
                self.evict.push(pod);
                self.look_again(later(view.now, SEEN_WITHIN), view.now);
            }
        }
    }

    fn look_again(&mut self, at: Timestamp, now: Timestamp) {
        if now < at {
            self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
        }
    }

    /// What is to be done, and what people are told of it. `why` the node goes.
    pub fn effects(&self, node: &Node, deadline: Option<Timestamp>, why: &str) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (pod, grace) in &self.force {
            effects.extend(deadline.map(|deadline| events::force_deleted(pod, *grace, deadline)));
            effects.push(Effect::DeletePod(Target::from(&pod.meta), *grace));
        }
        effects.extend(self.evict.iter().map(|pod| Effect::EvictPod(Target::from(&pod.meta))));
        effects.extend(self.evicted.iter().map(|pod| events::evicted(pod, why)));
        effects.extend(self.waiting.iter().filter(|pod| pod.is_active()).filter_map(|pod| self.annotation_event(pod)));
        let budgets = self.blockers.iter().filter(|blocker| blocker.is_refusal());
        effects.extend(budgets.map(|blocker| events::drain_blocked(node, blocker)));
        // Pods that are simply on their way out are no failure.
        if !self.blockers.is_empty() {
            effects.push(events::draining(node, self.waiting.len()));
        }
        effects
    }

    /// What the pod's do-not-disrupt means now.
    fn annotation_event(&self, pod: &Pod) -> Option<Effect> {
        match &pod.do_not_disrupt {
            DoNotDisrupt::No | DoNotDisrupt::Always => None,
            DoNotDisrupt::Invalid(_) => {
                pod.do_not_disrupt.problem().map(|text| events::invalid_do_not_disrupt(pod, text))
            }
            DoNotDisrupt::For(_) => {
                let protected = self.blockers.iter().find_map(|blocker| blocker.protects(&pod.meta.name));
                match protected {
                    Some(until) => until.map(|until| events::protected_until(pod, until)),
                    None => {
                        let leaves = self.evict.iter().any(|evicted| evicted.meta.name == pod.meta.name);
                        leaves.then(|| events::protection_elapsed(pod))
                    }
                }
            }
        }
    }
}
