//! Provisioning: pending pods get a place, on nodes that exist, on nodes that are coming, or on new ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::{NodeClaim, ObjectName, Pod, condition_kind as kind};
use kerf_model::effect::{Effect, Event, EventKind, EventSeverity, EventTarget, NewClaim, Target};
use kerf_model::snapshot::ClusterSnapshot;
use kerf_scheduling::{
    Catalogues, Host, Overall, PlannedClaim, Schedule, Supply, Unplaced, Waiting, is_virtual, place, pods_to_place,
};

use crate::names::claim_name;
use crate::overlays::Overlays;
use crate::pool_stamp::pool_stamp;
use crate::settings::Settings;

/// Where a pod that needs a place will get it, or why nowhere. The current answer of `kerf why pod`.
#[derive(Debug, Clone)]
pub enum PodVerdict {
    /// There is room on a node or a claim that exists.
    Fits(Host),
    /// A new claim was asked for.
    Planned {
        claim: Arc<str>,
    },
    NoPlace(Arc<Unplaced>),
}

/// What a round decided.
#[derive(Debug, Default)]
pub struct Round {
    pub effects: Vec<Effect>,
    pub verdicts: BTreeMap<ObjectName, PodVerdict>,
    /// What it was decided from.
    pub schedule: Schedule,
    /// New claims, and the pods they are for, by uid.
    pub planned: BTreeMap<Arc<str>, Vec<Arc<str>>>,
}

/// Launching is quick; until it is done nobody knows how large the node will be. A round waits this long for it, and
/// no longer: one launch that hangs must not stop all provisioning.
const WAIT_FOR_LAUNCH: SignedDuration = SignedDuration::from_secs(10);

/// A claim that is not seen by then was not created.
const LOST_AFTER: SignedDuration = SignedDuration::from_secs(10);

const NOMINATED_INTERVAL: SignedDuration = SignedDuration::from_mins(2);
const FAILED_INTERVAL: SignedDuration = SignedDuration::from_mins(5);

/// Until when a round should wait for launches under way, if any.
pub fn hold(snapshot: &ClusterSnapshot, now: Timestamp) -> Option<Timestamp> {
    let unlaunched = snapshot.claims().filter(|claim| is_unlaunched(claim));
    let ends = unlaunched.filter_map(|claim| claim.meta.created.checked_add(WAIT_FOR_LAUNCH).ok());
    ends.filter(|end| now < *end).max()
}

fn is_unlaunched(claim: &NodeClaim) -> bool {
    !claim.meta.is_deleting() && claim.status.provider_id.is_none() && claim.status.conditions.is_open(kind::LAUNCHED)
}

/// Pods that need a place. Those that an unlaunched claim was made for have one: its size is not known yet, so they
/// cannot be placed on it again, and must not get another.
pub fn waiting_pods(snapshot: &ClusterSnapshot, expected: &Expected, now: Timestamp) -> Vec<Arc<Pod>> {
    expected.without_place(pods_to_place(snapshot, &BTreeSet::new(), now))
}

/// Claims that were asked for and are not launched yet. Only saves work: a claim that is forgotten here is found in the
/// snapshot, and one that was never made is planned again under the same name.
#[derive(Debug, Default)]
pub struct Expected {
    claims: BTreeMap<Arc<str>, ExpectedClaim>,
}

#[derive(Debug)]
struct ExpectedClaim {
    pods: Vec<Arc<str>>,
    asked: Timestamp,
}

impl Expected {
    pub fn add(&mut self, planned: BTreeMap<Arc<str>, Vec<Arc<str>>>, now: Timestamp) {
        let claims = planned.into_iter().map(|(name, pods)| (name, ExpectedClaim { pods, asked: now }));
        self.claims.extend(claims);
    }

    /// The pods that no claim under way was made for.
    pub fn without_place(&self, pods: impl IntoIterator<Item = Arc<Pod>>) -> Vec<Arc<Pod>> {
        let taken: BTreeSet<&Arc<str>> = self.claims.values().flat_map(|claim| &claim.pods).collect();
        pods.into_iter().filter(|pod| !taken.contains(&pod.meta.uid)).collect()
    }

    /// Whether it was expected at all.
    pub fn remove(&mut self, claim: &str) -> bool {
        self.claims.remove(claim).is_some()
    }

    /// Whether no pod has a place on a claim that is still to come.
    pub fn is_empty(&self) -> bool {
        self.claims.values().all(|claim| claim.pods.is_empty())
    }

    /// Until when a round should wait for claims that were asked for and are not seen: what they take of their pools'
    /// limits is not known before.
    pub fn hold(&self, snapshot: &ClusterSnapshot, now: Timestamp) -> Option<Timestamp> {
        let unseen = self.claims.iter().filter(|(name, _)| snapshot.claim(name).is_none());
        let ends = unseen.filter_map(|(_, claim)| claim.asked.checked_add(LOST_AFTER).ok());
        ends.filter(|end| now < *end).max()
    }

    /// Forgets claims that have been launched, are going, or have not come in time.
    pub fn refresh(&mut self, snapshot: &ClusterSnapshot, now: Timestamp) {
        self.claims.retain(|name, expected| match snapshot.claim(name) {
            Some(claim) => is_unlaunched(claim),
            None => now.duration_since(expected.asked) < LOST_AFTER,
        });
    }
}

/// What a round may launch.
#[derive(Debug, Clone, Copy)]
pub struct Offers<'a> {
    pub types: &'a Catalogues,
    pub(crate) overlays: &'a Overlays,
}

/// Decides about all waiting pods at once.
pub fn round(
    snapshot: &ClusterSnapshot,
    offers: Offers<'_>,
    waiting: Waiting,
    settings: &Settings,
    now: Timestamp,
) -> Round {
    let supply = Supply { types: offers.types, rules: &settings.labels, options: settings.scheduling };
    let schedule = place(snapshot, waiting, &settings.default_spread, supply);
    let mut round = Round::default();
    for on in &schedule.on_existing {
        for pod in on.pods.iter().filter(|pod| !is_virtual(pod)) {
            round.tell(nominated(pod, &on.host));
            round.verdicts.insert(pod.meta.name.clone(), PodVerdict::Fits(on.host.clone()));
        }
    }
    for planned in &schedule.new_claims {
        round.open(planned, snapshot, offers.overlays);
    }
    let is_settled = is_settled(snapshot, offers.types, now);
    for (pod, reason) in schedule.unplaced.iter().filter(|(pod, _)| !is_virtual(pod)) {
        round.tell(failed(pod, reason).filter(|_| is_settled));
        round.verdicts.insert(pod.meta.name.clone(), PodVerdict::NoPlace(reason.clone()));
    }
    round.schedule = schedule;
    round
}

/// A pool that was just made is not ready, and has no instance types, for a moment.
const SETTLES_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// Whether what is said of a pod now will still be true in a moment: no pool is just coming up. When it has, the pods
/// are looked at again.
fn is_settled(snapshot: &ClusterSnapshot, types: &Catalogues, now: Timestamp) -> bool {
    !snapshot.pools().any(|pool| {
        let is_young = now.duration_since(pool.meta.created) < SETTLES_WITHIN;
        let is_known = !pool.status.conditions.is_open(kind::READY) && types.contains_key(&pool.meta.name.name);
        is_young && pool.spec.is_ok() && !is_known
    })
}

impl Round {
    fn open(&mut self, planned: &PlannedClaim, snapshot: &ClusterSnapshot, overlays: &Overlays) {
        let claim = self.new_claim(planned, snapshot, overlays);
        let host = Host::Claim(claim.name.clone());
        for pod in planned.pods.iter().filter(|pod| !is_virtual(pod)) {
            self.tell(nominated(pod, &host));
            self.verdicts.insert(pod.meta.name.clone(), PodVerdict::Planned { claim: claim.name.clone() });
        }
        let uids = planned.pods.iter().map(|pod| pod.meta.uid.clone()).collect();
        self.planned.insert(claim.name.clone(), uids);
        self.effects.push(Effect::CreateClaim(Box::new(claim)));
    }

    fn new_claim(&self, planned: &PlannedClaim, snapshot: &ClusterSnapshot, overlays: &Overlays) -> NewClaim {
        let uids: Vec<Arc<str>> = planned.pods.iter().map(|pod| pod.meta.uid.clone()).collect();
        let is_taken = |name: &str| snapshot.claim(name).is_some() || self.planned.contains_key(name);
        let name = claim_name(&planned.pool, &planned.owner.uid, &uids, is_taken);
        let mut annotations = overlays.annotations(&planned.pool, &planned.options);
        annotations.extend(pool_stamp(&planned.pool, snapshot));
        planned.to_new_claim(name, annotations)
    }

    fn tell(&mut self, event: Option<Event>) {
        self.effects.extend(event.map(|event| Effect::Publish(Box::new(event))));
    }
}

fn nominated(pod: &Pod, host: &Host) -> Option<Event> {
    let place = match host {
        Host::Node(name) => format!("node/{name}"),
        Host::Claim(name) => format!("nodeclaim/{name}"),
    };
    Some(Event {
        about: about(pod),
        severity: EventSeverity::Normal,
        reason: "Nominated",
        message: format!("Pod should schedule on: {place}"),
        dedupe: String::new(),
        interval: NOMINATED_INTERVAL,
    })
}

/// A pod that waits for a reservation is tried again without a word, and one that wants no node of ours gets none.
fn failed(pod: &Pod, reason: &Unplaced) -> Option<Event> {
    match reason.overall {
        Overall::Deferred | Overall::OptedOut => None,
        Overall::NoPlace | Overall::NoPools | Overall::Invalid(_) | Overall::NotSupportedYet(_) => Some(Event {
            about: about(pod),
            severity: EventSeverity::Warning,
            reason: "FailedScheduling",
            message: format!("Failed to schedule pod, {reason}"),
            dedupe: String::new(),
            interval: FAILED_INTERVAL,
        }),
    }
}

fn about(pod: &Pod) -> EventTarget {
    EventTarget { kind: EventKind::Pod, target: Target::from(&pod.meta) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second round that did not count them launched over a pool's limits.
    #[test]
    fn a_round_waits_for_claims_that_were_asked_for_and_not_seen_but_not_for_ever() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let (mut expected, snapshot) = (Expected::default(), ClusterSnapshot::default());
        assert_eq!(expected.hold(&snapshot, at(0)), None);
        expected.add([(Arc::from("a"), vec![])].into(), at(0));
        assert_eq!(expected.hold(&snapshot, at(3)), Some(at(10)));
        assert_eq!(expected.hold(&snapshot, at(10)), None);
        expected.remove("a");
        assert_eq!(expected.hold(&snapshot, at(3)), None);
    }
}
