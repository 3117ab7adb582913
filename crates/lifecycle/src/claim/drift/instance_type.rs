//! Instance types that the cloud has given up.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_model::cluster::NodeClaim;
use kerf_model::label::{self, capacity_type};
use kerf_model::requirement::{Requirement, Requirements};
use kerf_model::time::later;

use super::DriftReason;
use crate::view::View;

/// A catalogue may be behind what was just launched from it.
const GRACE: SignedDuration = SignedDuration::from_hours(1);

/// From when on the type is looked at.
pub(super) fn looked_at(claim: &NodeClaim) -> Option<Timestamp> {
    Some(later(claim.meta.created, GRACE))
}

pub(super) fn missing(claim: &NodeClaim, view: View<'_>) -> Option<DriftReason> {
    if looked_at(claim).is_some_and(|at| view.now < at) {
        return None;
    }
    // A pool without a catalogue is one that the provider has not answered for.
    let types = claim.pool().and_then(|pool| view.types.get(pool)).filter(|types| !types.is_empty())?;
    let name = claim.meta.labels.get(label::INSTANCE_TYPE).cloned();
    let missing = || Some(DriftReason::InstanceTypeNotFound { instance_type: name.clone() });
    let Some(found) = types.iter().find(|known| Some(&known.name) == name.as_ref()) else { return missing() };
    let offered = offering_of(claim, view);
    if found.offerings.iter().any(|offering| offered.intersects(&offering.requirements).is_ok()) {
        return None;
    }
    missing()
}

/// What an offering must agree with, available now or not. An instance of a reservation goes on as an ordinary one when
/// the reservation ends.
fn offering_of(claim: &NodeClaim, view: View<'_>) -> Requirements {
    let is_reserved = claim.meta.label(label::CAPACITY_TYPE) == Some(capacity_type::RESERVED);
    if !is_reserved {
        let labels = claim.meta.labels.iter().map(|(key, value)| (&**key, &**value));
        return Requirements::from_labels(labels, view.rules);
    }
    let zone: Option<&Arc<str>> = claim.meta.labels.get(label::ZONE);
    let mut offered = Requirements::from_labels(zone.map(|zone| (label::ZONE, &**zone)), view.rules);
    let either = [capacity_type::RESERVED, capacity_type::ON_DEMAND];
    offered.add(Requirement::one_of(label::CAPACITY_TYPE, either), view.rules);
    offered
}
