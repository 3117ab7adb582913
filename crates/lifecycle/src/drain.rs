//! Draining: which pods of a node are asked to leave now, which are made to, and which hold it up (sheet 04 §4.4-4.7).

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::{Node, Pod};
use kerf_model::effect::{Effect, Target, pod_events};
use kerf_model::time::later;

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
use crate::view::View;

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
    /// Pods are still there though there was time for them to go.
    pub is_slow: bool,
    pub wake: Option<Timestamp>,
}

/// Nobody is told of pods that are merely on their way out before this: the time of a deletion is a whole second, so it
/// is one second at least.
const QUIET: SignedDuration = SignedDuration::from_secs(2);

/// Derived from the pods each time: whatever was lost, refused or restarted in between, no pod is forgotten.
pub fn plan<'a>(node: &Node, deadline: Option<Timestamp>, began: Timestamp, view: View<'a>) -> Drain<'a> {
    let waiting: Vec<&Pod> = view
        .snapshot
        .pods_on(node.name())
        .map(AsRef::as_ref)
        .filter(|pod| pods::is_waited_for(pod, view.now))
        .collect();
    let told_from = later(began, QUIET);
    let is_slow = !waiting.is_empty() && view.now >= told_from;
    let mut drain = Drain { waiting: waiting.clone(), is_slow, ..Drain::default() };
    if !waiting.is_empty() {
        drain.look_again(told_from, view.now);
    }
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
    pub fn effects(&self, node: &Node, why: &str, now: Timestamp) -> Vec<Effect> {
        let why: Arc<str> = Arc::from(why);
        let forced = self.force.iter();
        let forced = forced.map(|(pod, grace)| Effect::DeletePod(Target::from(&pod.meta), *grace, Arc::clone(&why)));
        let mut effects: Vec<_> = forced.collect();
        effects.extend(self.evict.iter().map(|pod| Effect::EvictPod(Target::from(&pod.meta), Arc::clone(&why))));
        let protected = self.waiting.iter().filter(|pod| pod.is_active());
        let protected = protected.filter_map(|pod| pod_events::of_protection(pod, now));
        effects.extend(protected.map(|event| Effect::Publish(Box::new(event))));
        let budgets = self.blockers.iter().filter(|blocker| blocker.is_refusal());
        effects.extend(budgets.map(|blocker| events::drain_blocked(node, blocker)));
        if self.is_slow || !self.blockers.is_empty() {
            effects.push(events::draining(node, self.waiting.len()));
        }
        effects
    }
}
