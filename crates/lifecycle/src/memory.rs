//! What the API does not show: calls that are under way, and answers that are not written down yet.
//!
//! All of it may be lost at any time. Launches and terminations are then asked for again, and find what was done before;
//! evictions are decided from the pods as they are; the health of a pool is taken up from its condition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::change::{Change, Input};
use kerf_model::cloud::{InterruptionCause, RebootAnswer, UpdateAnswer};
use kerf_model::cluster::{NodeClaim, ObjectMeta, ObjectName, Pod, condition_kind as kind};
use kerf_model::effect::{ClaimPatch, Effect, MetaPatch, Target, WriteError};
use kerf_model::label::annotation;
use kerf_model::node_pool::PoolSize;
use kerf_model::snapshot::ClusterSnapshot;

mod eviction;
mod health;
mod instance;

pub(crate) use eviction::{PodMemory, Refusal, SEEN_WITHIN};
pub(crate) use health::{Health, Outcome, Ring};
pub(crate) use instance::{
    DriftCheck, HookCheck, InPlaceCall, LAUNCH_WITHIN, LOOKUP_VALID, Launch, Listing, Lookup, RebootCall, Termination,
};

use crate::steps::{Note, Steps};

#[derive(Debug, Clone, Default)]
pub struct Memory {
    claims: BTreeMap<Arc<str>, ClaimMemory>,
    pods: BTreeMap<ObjectName, PodMemory>,
    lookups: BTreeMap<Arc<str>, Lookup>,
    /// By node: when a pod came, ended or went before our eyes.
    pod_events: BTreeMap<Arc<str>, Timestamp>,
    health: BTreeMap<Arc<str>, Health>,
    /// Names of claims of static pools that have gone.
    used_names: BTreeSet<Arc<str>>,
    listing: Listing,
    /// By provider id: the worst that the cloud has announced.
    interruptions: BTreeMap<Arc<str>, InterruptionCause>,
}

/// By name, and forgotten with the object; another object of that name has another uid.
#[derive(Debug, Clone)]
struct ClaimMemory {
    uid: Arc<str>,
    launch: Option<Launch>,
    termination: Option<Termination>,
    drift: DriftCheck,
    hooks: HookCheck,
    in_place: InPlaceCall,
    reboot: Option<RebootCall>,
    /// The version of the claim for which the stamp of its pool was refused.
    refused_stamp: Option<Arc<str>>,
}

/// More names of claims than a static pool uses up in years.
const MANY_NAMES: usize = 10_000;

/// More than come between two claims that go. Then those of instances without a claim are forgotten: they may be of others.
const MANY_INTERRUPTIONS: usize = 1_000;

/// How long an answer may take before the question counts as lost.
pub(crate) const ANSWER_WITHIN: SignedDuration = SignedDuration::from_secs(60);

/// Instance lookups are forgotten after this: by then their node is long gone or asked about again.
const LOOKUP_KEPT: SignedDuration = SignedDuration::from_mins(10);

impl Memory {
    /// Takes in what the engine hears, before the snapshot does.
    pub fn hear(&mut self, input: &Input, before: &ClusterSnapshot, now: Timestamp) {
        // An answer about a claim that is gone has nobody to go to; its instance, if any, is found by the next comparison.
        let is_known = |claim: &Target| before.claim(&claim.name.name).is_some_and(|known| known.meta.uid == claim.uid);
        match input {
            Input::Launched { claim, .. }
            | Input::Terminated { claim, .. }
            | Input::DriftFound { claim, .. }
            | Input::HooksRan { claim, .. }
            | Input::InstanceUpdated { claim, .. }
            | Input::Rebooted { claim, .. }
                if !is_known(claim) => {}
            Input::Launched { claim, answer } => {
                let memory = self.claim_mut(claim);
                memory.launch = Some(Launch::answered(memory.launch.take(), answer.clone(), now));
            }
            Input::Terminated { claim, answer } => {
                let memory = self.claim_mut(claim);
                memory.termination = Some(Termination::answered(memory.termination.take(), answer, now));
            }
            Input::Rebooted { claim, answer } => {
                if let Some(call) = &mut self.claim_mut(claim).reboot {
                    match answer {
                        RebootAnswer::Accepted => call.accepted = Some(now),
                        // Asked again when the answer would have been overdue: the provider is not pressed.
                        RebootAnswer::Failed { .. } => {}
                    }
                }
            }
            Input::DriftFound { claim, drift } => {
                // What was changed in place is as it should be; should it not be, it is tried again.
                self.claim_mut(claim).in_place.done = None;
                self.claim_mut(claim).drift = DriftCheck { asked: None, answer: Some((now, drift.clone())) };
            }
            Input::HooksRan { claim, report } => {
                self.claim_mut(claim).hooks = HookCheck { asked: None, answer: Some((now, report.clone())) };
            }
            Input::InstanceUpdated { claim, answer } => {
                let memory = self.claim_mut(claim);
                memory.in_place.answered(answer);
                memory.drift.expire();
            }
            Input::InstanceFound { provider_id, exists } => {
                self.lookups.retain(|_, lookup| now.duration_since(lookup.at()) < LOOKUP_KEPT);
                self.lookups.insert(provider_id.clone(), Lookup::Answered { at: now, exists: *exists });
            }
            Input::Instances(_) => self.listing.heard = Some(now),
            Input::WriteFailed { effect, error } => {
                if let Effect::EvictPod(pod, _) = &**effect
                    && before.pod(&pod.name).is_some_and(|known| known.meta.uid == pod.uid)
                {
                    self.pod_mut(pod).evict_failed(error, now);
                }
                if let (Effect::PatchClaim(claim, patch), WriteError::Invalid { .. }) = (&**effect, error)
                    && is_stamp(patch)
                    && is_known(claim)
                {
                    self.claim_mut(claim).refused_stamp = patch.meta.resource_version.clone();
                }
                if let (Effect::PatchNode(node, patch), WriteError::Invalid { message }) = (&**effect, error)
                    && patch.taints.is_none()
                    && let Some(node) = before.node(&node.name.name)
                {
                    for claim in before.claims_of(node) {
                        let in_place = &mut self.claim_mut(&Target::from(&claim.meta)).in_place;
                        in_place.answered(&UpdateAnswer::Failed { message: message.as_str().into() });
                    }
                }
            }
            Input::Change(change) => self.see(change, before, now),
            Input::Interrupted(interruption) => {
                let is_new = !self.interruptions.contains_key(&interruption.provider_id);
                if is_new && self.interruptions.len() >= MANY_INTERRUPTIONS {
                    self.interruptions.retain(|id, _| before.claims_with_id(id).next().is_some());
                }
                let known = self.interruptions.entry(interruption.provider_id.clone()).or_insert(interruption.cause);
                // A recommendation after the order changes nothing.
                if interruption.cause != InterruptionCause::RebalanceRecommended {
                    *known = interruption.cause;
                }
            }
            Input::Synced | Input::Catalogue(_) => {}
        }
    }

    /// Whether a claim of this name has gone. Who waits for its end, by name, must not find its successor.
    pub(crate) fn is_used_name(&self, name: &str) -> bool {
        self.used_names.contains(name)
    }

    /// Takes note of steps that are being done.
    pub fn took(&mut self, steps: &Steps, snapshot: &ClusterSnapshot, now: Timestamp) {
        for effect in &steps.effects {
            match effect {
                Effect::Launch { claim } => {
                    let memory = self.claim_mut(claim);
                    memory.launch = Some(Launch::asked(memory.launch.take(), now));
                }
                Effect::Terminate { claim, .. } => {
                    let memory = self.claim_mut(claim);
                    memory.termination = Some(Termination::asked(memory.termination.take(), now));
                }
                Effect::EvictPod(pod, _) => self.pod_mut(pod).evicted(now),
                Effect::DeletePod(pod, ..) => self.pod_mut(pod).forced = Some(now),
                Effect::FindInstance { provider_id } => {
                    self.lookups.insert(provider_id.clone(), Lookup::Asked { at: now });
                }
                Effect::Reboot { claim, .. } => {
                    let memory = self.claim_mut(claim);
                    let first_asked = memory.reboot.as_ref().map_or(now, |call| call.first_asked);
                    memory.reboot = Some(RebootCall { first_asked, asked: Some(now), accepted: None });
                }
                Effect::CheckDrift { claim } => self.claim_mut(claim).drift.asked = Some(now),
                Effect::RunHooks { claim } => self.claim_mut(claim).hooks.asked = Some(now),
                Effect::UpdateInstance { claim } => self.claim_mut(claim).in_place.asked = Some(now),
                Effect::ListInstances => self.listing.ask(now),
                Effect::PatchPool(pool, patch) if patch.class_observed_generation.is_some() => {
                    self.health.insert(pool.name.name.clone(), Health::reset(pool.uid.clone()));
                }
                Effect::CreateClaim(_)
                | Effect::PatchClaim(..)
                | Effect::DeleteClaim(_)
                | Effect::PatchNode(..)
                | Effect::DeleteNode(_)
                | Effect::PatchPod(..)
                | Effect::PatchPool(..)
                | Effect::PatchOverlay(..)
                | Effect::PatchBuffer(..)
                | Effect::PatchWindow(..)
                | Effect::Publish(_)
                | Effect::TerminateOrphan { .. } => {}
            }
        }
        for note in &steps.notes {
            if let Some(outcome) = Outcome::of(note, snapshot) {
                self.record(note.claim(), outcome, snapshot);
            }
        }
    }

    pub(crate) fn launch(&self, claim: &NodeClaim) -> Option<&Launch> {
        self.claim(&claim.meta)?.launch.as_ref()
    }

    pub(crate) fn termination(&self, claim: &NodeClaim) -> Option<&Termination> {
        self.claim(&claim.meta)?.termination.as_ref()
    }

    pub(crate) fn drift(&self, claim: &NodeClaim) -> Option<&DriftCheck> {
        Some(&self.claim(&claim.meta)?.drift)
    }

    pub(crate) fn hooks(&self, claim: &NodeClaim) -> Option<&HookCheck> {
        Some(&self.claim(&claim.meta)?.hooks)
    }

    pub(crate) fn in_place(&self, claim: &NodeClaim) -> Option<&InPlaceCall> {
        Some(&self.claim(&claim.meta)?.in_place)
    }

    /// Whether the server has refused for good to stamp the claim as it is.
    pub(crate) fn refuses_stamp(&self, claim: &NodeClaim) -> bool {
        let refused = self.claim(&claim.meta).and_then(|memory| memory.refused_stamp.as_ref());
        refused == Some(&claim.meta.resource_version)
    }

    pub(crate) fn reboot(&self, claim: &NodeClaim) -> Option<&RebootCall> {
        self.claim(&claim.meta)?.reboot.as_ref()
    }

    pub(crate) fn interruption(&self, claim: &NodeClaim) -> Option<InterruptionCause> {
        self.interruptions.get(claim.status.provider_id.as_ref()?).copied()
    }

    pub(crate) fn pod(&self, pod: &Pod) -> Option<&PodMemory> {
        self.pods.get(&pod.meta.name).filter(|memory| memory.uid == pod.meta.uid)
    }

    pub(crate) fn lookup(&self, provider_id: &str) -> Option<&Lookup> {
        self.lookups.get(provider_id)
    }

    pub(crate) fn pod_event(&self, node: &str) -> Option<Timestamp> {
        self.pod_events.get(node).copied()
    }

    pub(crate) fn health(&self, pool: &ObjectMeta) -> Option<&Health> {
        self.health.get(&pool.name.name).filter(|health| health.pool_uid == pool.uid)
    }

    pub(crate) fn listing(&self) -> &Listing {
        &self.listing
    }

    fn claim(&self, meta: &ObjectMeta) -> Option<&ClaimMemory> {
        self.claims.get(&meta.name.name).filter(|memory| memory.uid == meta.uid)
    }

    fn claim_mut(&mut self, claim: &Target) -> &mut ClaimMemory {
        let fresh = || ClaimMemory {
            uid: claim.uid.clone(),
            launch: None,
            termination: None,
            drift: DriftCheck::default(),
            hooks: HookCheck::default(),
            in_place: InPlaceCall::default(),
            reboot: None,
            refused_stamp: None,
        };
        let memory = self.claims.entry(claim.name.name.clone()).or_insert_with(fresh);
        if memory.uid != claim.uid {
            *memory = fresh();
        }
        memory
    }

    fn pod_mut(&mut self, pod: &Target) -> &mut PodMemory {
        let memory = self.pods.entry(pod.name.clone()).or_insert_with(|| PodMemory::new(pod.uid.clone()));
        if memory.uid != pod.uid {
            *memory = PodMemory::new(pod.uid.clone());
        }
        memory
    }

    fn see(&mut self, change: &Change, before: &ClusterSnapshot, now: Timestamp) {
        match change {
            Change::Pod(name, pod) => {
                // What was left of its pods may go after the node.
                if let Some(node) = node_of_event(before.pod(name), pod.as_ref())
                    && before.node(&node).is_some()
                {
                    self.pod_events.insert(node, now);
                }
                if pod.as_ref().is_none_or(|pod| self.pods.get(name).is_some_and(|known| known.uid != pod.meta.uid)) {
                    self.pods.remove(name);
                }
            }
            Change::NodeClaim(name, None) => {
                self.claims.remove(&name.name);
                let pool = before.claim(&name.name).and_then(|claim| before.pool(claim.pool()?));
                if pool.and_then(|pool| pool.spec.as_ref().ok()).is_some_and(|spec| spec.size != PoolSize::Dynamic) {
                    if self.used_names.len() >= MANY_NAMES {
                        self.used_names.clear();
                    }
                    self.used_names.insert(Arc::clone(&name.name));
                }
                if let Some(id) = before.claim(&name.name).and_then(|claim| claim.status.provider_id.as_ref()) {
                    self.interruptions.remove(id);
                }
            }
            Change::NodeClaim(name, Some(claim)) => {
                // The next reboot is another.
                if !claim.status.conditions.is_true(kind::REBOOTING)
                    && let Some(memory) = self.claims.get_mut(&name.name)
                {
                    memory.reboot = None;
                }
                // From here on the API remembers the instance.
                if claim.status.conditions.is_true(kind::LAUNCHED)
                    && let Some(memory) = self.claims.get_mut(&name.name)
                {
                    memory.launch = None;
                }
            }
            Change::Node(name, None) => drop(self.pod_events.remove(&name.name)),
            Change::NodePool(name, None) => drop(self.health.remove(&name.name)),
            Change::NodePool(name, Some(pool)) => {
                let is_edited = before.pool(&name.name).is_some_and(|old| old.meta.generation != pool.meta.generation);
                if is_edited {
                    self.expire_drift(before, |claim| claim.pool() == Some(&*name.name));
                }
            }
            // What a class resolves to (images, subnets) stands in its status, so any change may matter.
            Change::NodeClass(class, _) => self.expire_drift(before, |claim| claim.node.class == *class),
            Change::Node(_, Some(_))
            | Change::DaemonSet(..)
            | Change::DisruptionBudget(..)
            | Change::MaintenanceWindow(..)
            | Change::VolumeAttachment(..)
            | Change::PersistentVolumeClaim(..)
            | Change::PersistentVolume(..)
            | Change::StorageClass(..)
            | Change::CsiNode(..)
            | Change::Namespace(..)
            | Change::NodeOverlay(..)
            | Change::CapacityBuffer(..)
            | Change::PodTemplate(..)
            | Change::Workload(..)
            | Change::Service(..) => {}
        }
    }

    fn expire_drift(&mut self, snapshot: &ClusterSnapshot, concerns: impl Fn(&NodeClaim) -> bool) {
        for (name, memory) in &mut self.claims {
            if snapshot.claim(name).is_some_and(|claim| concerns(claim)) {
                memory.drift.expire();
                // What is wanted now is something else, and may work.
                memory.in_place = InPlaceCall::default();
            }
        }
    }

    fn record(&mut self, claim: &Target, outcome: Outcome, snapshot: &ClusterSnapshot) {
        let Some(pool) = health::pool_of(claim, snapshot) else { return };
        let health = self.health.entry(pool.meta.name.name.clone()).or_insert_with(|| Health::resumed(pool));
        if health.pool_uid != pool.meta.uid {
            *health = Health::resumed(pool);
        }
        health.record(&claim.uid, outcome, snapshot);
    }
}

impl Note {
    fn claim(&self) -> &Target {
        match self {
            Self::Registered { claim }
            | Self::Initialized { claim }
            | Self::GivenUp { claim, .. }
            | Self::Postponed { claim, .. } => claim,
        }
    }
}

/// Whether nothing but the pool's hash was to be written.
fn is_stamp(patch: &ClaimPatch) -> bool {
    const STAMP: [&str; 3] =
        [annotation::NODEPOOL_HASH, annotation::NODEPOOL_HASH_VERSION, annotation::NODEPOOL_FIELD_HASHES];
    let MetaPatch { labels, annotations, finalizers, owners, .. } = &patch.meta;
    let is_only = labels.is_empty() && finalizers.is_none() && owners.is_none() && patch.status.is_empty();
    is_only && annotations.keys().all(|key| STAMP.contains(&&**key))
}

/// The node on which this change is an event: a pod was bound, ended, began to go, or vanished without a word.
///
/// A pod seen for the first time says nothing here, because it may be an old one in the first list after a restart: its
/// own times tell (see `claim::pod_events`).
fn node_of_event(old: Option<&Arc<Pod>>, new: Option<&Arc<Pod>>) -> Option<Arc<str>> {
    let old = old?;
    if old.is_of_daemon_set() {
        return None;
    }
    let Some(new) = new.filter(|new| new.meta.uid == old.meta.uid) else {
        return old.node_name.clone().filter(|_| old.is_active());
    };
    let bound = old.node_name.is_none() && new.node_name.is_some();
    let ended = !old.is_terminal() && new.is_terminal();
    let going = !old.meta.is_deleting() && new.meta.is_deleting();
    new.node_name.clone().filter(|_| bound || ended || going)
}

#[cfg(test)]
mod tests {
    use super::*;

    use kerf_model::cloud::Interruption;
    use kerf_model::cluster::Node;

    /// A provider that reads it from a queue tells of every instance of the account.
    #[test]
    fn what_was_announced_of_instances_without_a_claim_was_remembered_for_good() {
        let mut claim = kerf_testkit::claim("a");
        claim.status.provider_id = Some(Arc::from("i-a"));
        let mut snapshot = ClusterSnapshot::default();
        snapshot.apply(Change::NodeClaim(claim.meta.name.clone(), Some(Arc::new(claim.clone()))));
        let mut memory = Memory::default();
        let mut announce = |id: &str| {
            let (cause, notice) = (InterruptionCause::SpotReclaimed, SignedDuration::from_mins(2));
            let input = Input::Interrupted(Interruption { provider_id: Arc::from(id), cause, notice });
            memory.hear(&input, &snapshot, Timestamp::UNIX_EPOCH);
        };
        announce("i-a");
        (0..10 * MANY_INTERRUPTIONS).for_each(|other| announce(&other.to_string()));
        assert!(memory.interruptions.len() <= MANY_INTERRUPTIONS, "{}", memory.interruptions.len());
        assert!(memory.interruption(&claim).is_some(), "ours are not forgotten");
    }

    /// Some of its pods are taken away only when the node is gone.
    #[test]
    fn pods_that_went_after_their_node_left_its_name_behind_for_good() {
        let pod = Arc::new(Pod { node_name: Some(Arc::from("n")), ..kerf_testkit::pod("w") });
        let node = Arc::new(kerf_testkit::node("n"));
        let left_behind = |node: Option<Arc<Node>>| {
            let (mut memory, mut snapshot) = (Memory::default(), ClusterSnapshot::default());
            snapshot.apply(Change::Pod(pod.meta.name.clone(), Some(Arc::clone(&pod))));
            snapshot.apply(Change::Node(ObjectName::of_cluster("n"), node));
            memory.hear(&Input::Change(Change::Pod(pod.meta.name.clone(), None)), &snapshot, Timestamp::UNIX_EPOCH);
            memory.pod_events.len()
        };
        assert_eq!((left_behind(None), left_behind(Some(node))), (0, 1));
    }
}
