//! NodeClaim.

use std::sync::Arc;

use jiff::Timestamp;
use kerf_model::cluster::{ClaimStatus, NodeClaim as Claim};
use kerf_model::duration::NillableDuration;
use kerf_model::label::{self, LabelRules};
use kerf_model::node_pool::{NodeClassRef, NodeSpec};
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::resources::ResourceList;
use kube::ResourceExt;

use crate::node_claim::{NodeClaim, NodeClaimStatus};

use super::metadata::{conditions, object_meta};
use super::node_spec::{WireNodeSpec, node_spec};
use super::{Collector, ParseError, Parsed};

pub fn node_claim(claim: &NodeClaim, rules: &LabelRules) -> Result<Parsed<Claim>, ParseError> {
    let mut problems = Collector::default();
    let spec = &claim.spec;
    let wire = WireNodeSpec {
        path: "spec",
        class: &spec.node_class_ref,
        requirements: &spec.requirements,
        taints: spec.taints.as_ref(),
        startup_taints: spec.startup_taints.as_ref(),
        expire_after: spec.expire_after.as_ref(),
        termination_grace_period: spec.termination_grace_period.as_ref(),
    };
    // The controller itself writes its own labels and the node class's into the requirements of the claims it makes.
    let class_label = format!("{}/{}", spec.node_class_ref.group, spec.node_class_ref.kind.to_lowercase());
    let rules = rules.clone().with_well_known([class_label.as_str()]);
    let node = node_spec(&wire, &rules, &mut problems);
    let requests = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let requests = problems.resources("spec.resources.requests", requests);
    let status = claim.status.as_ref().map(|wire| status(wire, &mut problems)).unwrap_or_default();
    let parsed = node.map(|node| Claim { meta: object_meta(&claim.metadata), node, requests, status });
    problems.finish("NodeClaim", &claim.name_any(), parsed)
}

/// What a claim that does not parse counts as: known with its node and instance, so that neither is taken for a leak, and
/// one that nothing can be launched for.
pub fn unlaunchable_claim(claim: &NodeClaim) -> Claim {
    // What cannot be read has been reported by the parse that led here.
    let mut reported = Collector::default();
    let class = &claim.spec.node_class_ref;
    let mut requirements = Requirements::new();
    requirements.add(Requirement::one_of::<&str>(label::INSTANCE_TYPE, []), &LabelRules::core());
    Claim {
        meta: object_meta(&claim.metadata),
        node: NodeSpec {
            class: NodeClassRef {
                group: class.group.as_str().into(),
                kind: class.kind.as_str().into(),
                name: class.name.as_str().into(),
            },
            requirements,
            taints: Vec::new(),
            startup_taints: Vec::new(),
            expire_after: NillableDuration::Never,
            termination_grace_period: None,
        },
        requests: ResourceList::new(),
        status: claim.status.as_ref().map(|wire| status(wire, &mut reported)).unwrap_or_default(),
    }
}

fn status(wire: &NodeClaimStatus, problems: &mut Collector) -> ClaimStatus {
    let text = |text: &Option<String>| text.as_deref().filter(|text| !text.is_empty()).map(Arc::from);
    ClaimStatus {
        provider_id: text(&wire.provider_id),
        node_name: text(&wire.node_name),
        image_id: text(&wire.image_id),
        capacity: problems.resources("status.capacity", wire.capacity.as_ref()),
        allocatable: problems.resources("status.allocatable", wire.allocatable.as_ref()),
        last_pod_event: wire.last_pod_event_time.as_ref().and_then(|time| time.as_str().parse::<Timestamp>().ok()),
        conditions: conditions(wire.conditions.as_deref()),
    }
}
