//! Pods that wait for a claim are told when the cloud had no capacity for it (sheet 08 L5): who asks why a pod is pending
//! asks the pod.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kerf_lifecycle::{Cause, Note, events};
use kerf_model::cluster::ObjectName;
use kerf_model::effect::Effect;
use kerf_model::snapshot::ClusterSnapshot;
use kerf_model::time::later;
use kerf_scheduling::Host;

use crate::provisioning::PodVerdict;

/// Of the reference: five events a second, ten at once. A claim may have hundreds of pods, and a cloud that is sold out is
/// so for many claims.
const EACH: SignedDuration = SignedDuration::from_millis(200);
const AT_ONCE: SignedDuration = SignedDuration::from_millis(200 * 10);

#[derive(Debug, Default)]
pub struct SoldOut {
    /// When as many as ever may be told at once again.
    full_at: Option<Timestamp>,
}

impl SoldOut {
    /// What is told to pods that were to land on claims that are given up, as far as the rate allows.
    pub fn tell(
        &mut self,
        notes: &[Note],
        verdicts: &BTreeMap<ObjectName, PodVerdict>,
        snapshot: &ClusterSnapshot,
        now: Timestamp,
    ) -> Vec<Effect> {
        let mut told = Vec::new();
        for note in notes {
            let Note::GivenUp { claim, cause: Cause::InsufficientCapacity { message } } = note else { continue };
            let name = &claim.name.name;
            let waiting = verdicts.iter().filter(|(_, verdict)| is_for(verdict, name));
            let pods = waiting.filter_map(|(pod, _)| snapshot.pod(pod)).filter(|pod| pod.is_provisionable());
            told.extend(
                pods.take_while(|_| self.may_tell(now)).map(|pod| events::no_capacity_for_pod(pod, name, message)),
            );
        }
        told
    }

    fn may_tell(&mut self, now: Timestamp) -> bool {
        let next = later(self.full_at.map_or(now, |at| at.max(now)), EACH);
        let has_room = next.duration_since(now) <= AT_ONCE;
        if has_room {
            self.full_at = Some(next);
        }
        has_room
    }
}

fn is_for(verdict: &PodVerdict, name: &str) -> bool {
    match verdict {
        PodVerdict::Planned { claim } | PodVerdict::Fits(Host::Claim(claim)) => &**claim == name,
        PodVerdict::Fits(Host::Node(_)) | PodVerdict::NoPlace(_) => false,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    use std::sync::Arc;

    use kerf_model::change::Change;
    use kerf_model::cluster::Pod;
    use kerf_model::effect::{EventSeverity, Target};

    pub(crate) fn pod(name: &str, node: Option<&str>) -> Change {
        let pod = Pod { node_name: node.map(Arc::from), unschedulable: true, ..kerf_testkit::pod(name) };
        Change::Pod(pod.meta.name.clone(), Some(Arc::new(pod)))
    }

    pub(crate) fn sold_out(claim: &str) -> Note {
        let target = Target { name: ObjectName::of_cluster(claim), uid: Arc::from(claim) };
        Note::GivenUp { claim: target, cause: Cause::InsufficientCapacity { message: Arc::from("none left") } }
    }

    fn shown(effects: &[Effect]) -> Vec<&str> {
        let pods = effects.iter().map(|effect| match effect {
            Effect::Publish(event) => {
                assert_eq!((event.reason, event.severity), ("InsufficientCapacityError", EventSeverity::Warning));
                assert!(event.message.ends_with("none left"), "{}", event.message);
                &*event.about.target.name.name
            }
            other => panic!("{other:?}"),
        });
        pods.collect()
    }

    #[test]
    fn pods_are_told_that_there_was_no_capacity_for_the_claim_that_they_wait_for() {
        let mut snapshot = ClusterSnapshot::default();
        let planned = |claim: &str| PodVerdict::Planned { claim: Arc::from(claim) };
        let verdicts = BTreeMap::from([
            (ObjectName::new("default", "first"), planned("a")),
            (ObjectName::new("default", "later"), PodVerdict::Fits(Host::Claim(Arc::from("a")))),
            (ObjectName::new("default", "bound"), planned("a")),
            (ObjectName::new("default", "other"), planned("b")),
            (ObjectName::new("default", "lucky"), PodVerdict::Fits(Host::Node(Arc::from("a")))),
            (ObjectName::new("default", "gone"), planned("a")),
        ]);
        for name in ["first", "later", "other", "lucky"] {
            snapshot.apply(pod(name, None));
        }
        snapshot.apply(pod("bound", Some("n")));
        let tell = |notes: &[Note]| SoldOut::default().tell(notes, &verdicts, &snapshot, Timestamp::UNIX_EPOCH);
        assert_eq!(shown(&tell(&[sold_out("a")])), ["first", "later"]);
        assert_eq!(shown(&tell(&[sold_out("b")])), ["other"]);
        let target = Target { name: ObjectName::of_cluster("a"), uid: Arc::from("a") };
        assert!(tell(&[Note::GivenUp { claim: target, cause: Cause::LaunchTimeout }]).is_empty());
    }

    #[test]
    fn ten_pods_are_told_at_once_and_five_more_every_second() {
        let mut snapshot = ClusterSnapshot::default();
        let mut verdicts = BTreeMap::new();
        for at in 0..100 {
            let name = format!("p{at:02}");
            snapshot.apply(pod(&name, None));
            verdicts.insert(ObjectName::new("default", name), PodVerdict::Planned { claim: Arc::from("a") });
        }
        let mut sold_out_to = SoldOut::default();
        let mut count = |second| {
            let now = Timestamp::from_second(second).unwrap();
            sold_out_to.tell(&[sold_out("a")], &verdicts, &snapshot, now).len()
        };
        assert_eq!([0, 0, 1, 60, 60].map(&mut count), [10, 0, 5, 10, 0]);
    }
}
