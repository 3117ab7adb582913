//! What is told of a proposal that did not stand up to the second look.

use jiff::SignedDuration;
use kerf_disruption::{Method, Withdrawn};
use kerf_model::effect::{Effect, Event, EventKind, EventSeverity, EventTarget};

/// On every node that was to go, and on its claim.
pub fn told(withdrawn: &Withdrawn) -> Vec<Effect> {
    let Withdrawn { proposal, objection } = withdrawn;
    let reason = match proposal.method {
        Method::MultiNode | Method::SingleNode => "ConsolidationRejected",
        // Nodes that are empty, or not any more: the next round says how it is.
        Method::Emptiness => return Vec::new(),
        Method::Repair | Method::StaticDrift | Method::Drift | Method::Rebalance => "DisruptionBlocked",
    };
    let why = objection.claim.as_ref().map(|(claim, reason)| format!(": {claim} {reason}")).unwrap_or_default();
    let objection = objection.kind.label();
    let nodes = proposal.candidates.iter();
    let objects = nodes.flat_map(|node| [(EventKind::NodeClaim, &node.claim), (EventKind::Node, &node.node)]);
    let event = |(kind, target): (EventKind, &_)| Event {
        about: EventTarget { kind, target: Clone::clone(target) },
        severity: EventSeverity::Normal,
        reason,
        message: format!("not disrupted after all, {objection}{why}"),
        dedupe: objection.to_owned(),
        interval: SignedDuration::from_mins(2),
    };
    objects.map(|object| Effect::Publish(Box::new(event(object)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::Arc;

    use kerf_disruption::{Action, Proposal, ProposalId};
    use kerf_model::cluster::ObjectName;
    use kerf_model::effect::Target;

    /// Sheet 03 §10: an emptiness that fails its second look was told as a consolidation that was rejected.
    #[test]
    fn what_does_not_stand_up_to_the_second_look_is_told_on_node_and_claim_unless_it_was_empty() {
        let told = |method: Method, nodes: usize| {
            let target =
                |name: String| Target { uid: Arc::from(format!("uid-{name}")), name: ObjectName::of_cluster(name) };
            let candidate = |at: usize| kerf_disruption::Candidate {
                claim: target(format!("claim-{at}")),
                node: target(format!("node-{at}")),
                pool: Arc::from("p"),
                instance_type: None,
                zone: None,
                capacity_type: None,
                price: None,
                pods: Vec::new(),
                repair: None,
                consolidation_policy: None,
            };
            let proposal = Proposal {
                id: ProposalId::from("c1"),
                method,
                reason: method.reason(),
                candidates: (0..nodes).map(candidate).collect(),
                action: Action::Delete,
                lands_on: Vec::new(),
                savings: None,
                hold: SignedDuration::ZERO,
            };
            let objection = kerf_disruption::Objection { kind: kerf_disruption::ObjectionKind::Churn, claim: None };
            let reason = |effect: &Effect| match effect {
                Effect::Publish(event) => format!("{:?} {}", event.about.kind, event.reason),
                other => panic!("{other:?}"),
            };
            told(&Withdrawn { proposal, objection }).iter().map(reason).collect::<Vec<_>>()
        };
        let both = |reason: &str| ["NodeClaim", "Node"].map(|kind| format!("{kind} {reason}")).to_vec();
        assert_eq!(told(Method::SingleNode, 1), both("ConsolidationRejected"));
        assert_eq!(told(Method::MultiNode, 2), [both("ConsolidationRejected"), both("ConsolidationRejected")].concat());
        assert_eq!(told(Method::Drift, 1), both("DisruptionBlocked"));
        assert!(told(Method::Emptiness, 1).is_empty());
    }
}
