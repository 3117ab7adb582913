//! Pods whose claim the cloud has no capacity for are told so (sheet 08 L5).

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_lifecycle::{Cause, Note};
use kerf_model::cluster::{ObjectName, Pod};
use kerf_model::effect::{Effect, Event, EventKind, EventSeverity, EventTarget, Target};
use kerf_model::snapshot::ClusterSnapshot;
use kerf_scheduling::Host;

use crate::provisioning::PodVerdict;

/// The reference's limiter: five a second, ten at once. What is over it is not told: the claim says it too.
const ONE_PER: SignedDuration = SignedDuration::from_millis(200);
const AT_ONCE: i32 = 10;
const INTERVAL: SignedDuration = SignedDuration::from_mins(2);

#[derive(Debug, Default)]
pub struct Shortages {
    /// Claims, by name and uid, whose pods were told: a claim is given up with every look until it is gone.
    told: BTreeMap<Arc<str>, Arc<str>>,
    /// When all that was told would have been, one after the other.
    paid_until: Option<Timestamp>,
}

impl Shortages {
    /// The events that the notes ask for.
    pub fn tell(
        &mut self,
        notes: &[Note],
        verdicts: &BTreeMap<ObjectName, PodVerdict>,
        snapshot: &ClusterSnapshot,
        now: Timestamp,
    ) -> Vec<Effect> {
        let mut effects = Vec::new();
        for note in notes {
            let Note::GivenUp { claim, cause: Cause::InsufficientCapacity { message } } = note else { continue };
            if self.told.get(&claim.name.name) == Some(&claim.uid) {
                continue;
            }
            self.told.retain(|name, uid| snapshot.claim(name).is_some_and(|known| known.meta.uid == *uid));
            self.told.insert(claim.name.name.clone(), claim.uid.clone());
            let expected = verdicts.iter().filter(|(_, verdict)| is_expected_on(verdict, &claim.name.name));
            let pods = expected.filter_map(|(name, _)| snapshot.pod(name));
            for pod in pods.filter(|pod| pod.is_active() && pod.node_name.is_none()) {
                if self.may_tell(now) {
                    effects.push(Effect::Publish(Box::new(event(pod, claim, message))));
                }
            }
        }
        effects
    }

    fn may_tell(&mut self, now: Timestamp) -> bool {
        let paid_until = self.paid_until.unwrap_or(now).max(now);
        let may = paid_until.duration_since(now) <= ONE_PER * (AT_ONCE - 1);
        if may {
            self.paid_until = paid_until.checked_add(ONE_PER).ok();
        }
        may
    }
}

fn is_expected_on(verdict: &PodVerdict, name: &str) -> bool {
    match verdict {
        PodVerdict::Planned { claim } | PodVerdict::Fits(Host::Claim(claim)) => **claim == *name,
        PodVerdict::Fits(Host::Node(_)) | PodVerdict::NoPlace(_) => false,
    }
}

fn event(pod: &Pod, claim: &Target, message: &str) -> Event {
    Event {
        about: EventTarget { kind: EventKind::Pod, target: Target::from(&pod.meta) },
        severity: EventSeverity::Warning,
        reason: "InsufficientCapacityError",
        message: format!("no capacity for nodeclaim/{claim}, which was to be its node: {message}"),
        dedupe: claim.uid.to_string(),
        interval: INTERVAL,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kerf_model::change::Change;
    use kerf_model::cluster::{ClaimStatus, DoNotDisrupt, NodeClaim, ObjectMeta, PodPhase, Texts};
    use kerf_model::duration::NillableDuration;
    use kerf_model::node_pool::{NodeClassRef, NodeSpec};
    use kerf_model::requirement::Requirements;
    use kerf_model::resources::ResourceList;

    use super::*;

    fn meta(name: ObjectName) -> ObjectMeta {
        ObjectMeta {
            uid: Arc::from(format!("uid-{}", name.name)),
            name,
            resource_version: Arc::from("1"),
            generation: 1,
            created: Timestamp::UNIX_EPOCH,
            deleting: None,
            labels: Texts::new(),
            annotations: Texts::new(),
            finalizers: Vec::new(),
            owners: Vec::new(),
        }
    }

    fn pod(name: &str, node: Option<&str>, deleting: bool) -> Change {
        let name = ObjectName::new("shop", name);
        let pod = Pod {
            meta: ObjectMeta { deleting: deleting.then_some(Timestamp::UNIX_EPOCH), ..meta(name.clone()) },
            node_name: node.map(Arc::from),
            phase: PodPhase::Pending,
            requests: ResourceList::new(),
            constraints: Arc::default(),
            volumes: Vec::new(),
            priority: 0,
            priority_class: None,
            unschedulable: true,
            nominated_node: None,
            do_not_disrupt: DoNotDisrupt::No,
            started: None,
            termination_grace: None,
            uses_resource_claims: false,
            is_unready: false,
        };
        Change::Pod(name, Some(Arc::new(pod)))
    }

    fn claim(name: &str) -> Change {
        let node = NodeSpec {
            class: NodeClassRef { group: Arc::from("g"), kind: Arc::from("K"), name: Arc::from("default") },
            requirements: Requirements::new(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            expire_after: NillableDuration::Never,
            termination_grace_period: None,
        };
        let name = ObjectName::of_cluster(name);
        let claim =
            NodeClaim { meta: meta(name.clone()), node, requests: ResourceList::new(), status: ClaimStatus::default() };
        Change::NodeClaim(name, Some(Arc::new(claim)))
    }

    fn given_up(claim: &str) -> Note {
        let target = Target { name: ObjectName::of_cluster(claim), uid: Arc::from(format!("uid-{claim}")) };
        Note::GivenUp { claim: target, cause: Cause::InsufficientCapacity { message: Arc::from("sold out") } }
    }

    fn planned(claim: &str) -> PodVerdict {
        PodVerdict::Planned { claim: Arc::from(claim) }
    }

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(millisecond).unwrap()
    }

    #[test]
    fn pods_that_were_to_run_on_a_claim_without_capacity_are_told_so_once() {
        let mut snapshot = ClusterSnapshot::default();
        let changes = [
            claim("a"),
            pod("waits", None, false),
            pod("joins", None, false),
            pod("bound", Some("n"), false),
            pod("goes", None, true),
            pod("other", None, false),
        ];
        changes.into_iter().for_each(|change| snapshot.apply(change));
        let verdicts: BTreeMap<_, _> = [
            ("waits", planned("a")),
            ("joins", PodVerdict::Fits(Host::Claim(Arc::from("a")))),
            ("bound", planned("a")),
            ("goes", planned("a")),
            ("other", planned("b")),
            ("gone", planned("a")),
        ]
        .map(|(name, verdict)| (ObjectName::new("shop", name), verdict))
        .into();
        let mut shortages = Shortages::default();
        let mut told = |notes: &[Note]| {
            let effects = shortages.tell(notes, &verdicts, &snapshot, at(0));
            let name = |effect: &Effect| match effect {
                Effect::Publish(event) => {
                    let target = event.about.target.to_string();
                    assert_eq!((event.reason, event.severity), ("InsufficientCapacityError", EventSeverity::Warning));
                    assert!(event.message.contains("sold out"), "{}", event.message);
                    target
                }
                other => panic!("{other:?}"),
            };
            effects.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(told(&[given_up("a")]), ["shop/joins", "shop/waits"]);
        assert!(told(&[given_up("a")]).is_empty(), "said with every look until the claim is gone");
        let expired = Note::GivenUp { claim: Target::from(&meta(ObjectName::of_cluster("b"))), cause: Cause::Expired };
        assert!(told(&[expired]).is_empty());
        assert_eq!(told(&[given_up("b")]), ["shop/other"]);
    }

    /// Sheet 08 L5.
    #[test]
    fn no_more_than_ten_are_told_at_once_and_five_a_second_after_that() {
        let mut snapshot = ClusterSnapshot::default();
        let mut verdicts = BTreeMap::new();
        for of in 0..4 {
            snapshot.apply(claim(&format!("c{of}")));
            for number in 0..20 {
                let name = format!("w{of}-{number}");
                snapshot.apply(pod(&name, None, false));
                verdicts.insert(ObjectName::new("shop", name), planned(&format!("c{of}")));
            }
        }
        let mut shortages = Shortages::default();
        let mut told = |claim: &str, now| shortages.tell(&[given_up(claim)], &verdicts, &snapshot, now).len();
        assert_eq!(told("c0", at(0)), 10);
        assert_eq!(told("c1", at(1_000)), 5);
        assert_eq!(told("c2", at(1_100)), 0);
        assert_eq!(told("c3", at(60_000)), 10);
    }
}
