//! The life of a claim.

use kerf_model::cloud::CloudDrift;
use kerf_model::cluster::NodeClaim;
use kerf_model::effect::{Effect, Target};
use kerf_model::label::TERMINATION_FINALIZER;

use crate::steps::{Cause, Note, Steps};
use crate::view::View;

mod consistency;
mod consolidatable;
pub mod disruption;
mod draft;
pub mod drift;
pub mod expiration;
mod finalize;
pub mod health;
mod hold;
mod hooks;
mod hydration;
mod initialization;
mod interruption;
mod launch;
mod limit;
mod liveness;
mod pod_events;
pub mod reboot;
mod registration;
pub mod reparenting;

pub(crate) use draft::ClaimDraft;
pub(crate) use finalize::{Ending, end_instance};
pub use hold::Hold;
pub use limit::PoolRoom;

/// What a claim wants next (upstream: `nodeclaim.lifecycle` and the controllers around it).
///
/// All that is written about the claim goes out as one patch on the version that was looked at, so that nobody's
/// conditions are lost and no write contradicts another.
pub fn next(claim: &NodeClaim, view: View<'_>) -> Steps {
    if !view.settings.manages(&claim.node.class) {
        return Steps::default();
    }
    if claim.meta.is_deleting() {
        return finalize::next(claim, view);
    }
    let mut draft = ClaimDraft::new(claim, view.now);
    if !claim.meta.has_finalizer(TERMINATION_FINALIZER) {
        // Nothing else before it is seen: an instance whose claim can vanish at any time is a leak.
        draft.add_finalizer(TERMINATION_FINALIZER);
        return draft.finish().map(Steps::of).unwrap_or_default();
    }
    let verdict = launch::refusal(claim, view).or_else(|| liveness::overdue(claim, view));
    let interrupted = || interruption::cause(claim, view);
    let sick = || health::cause(claim, view);
    if let Some(cause) = verdict.or_else(interrupted).or_else(sick).or_else(|| expiration::cause(claim, view)) {
        let mut steps = interruption::step(&mut ClaimDraft::new(claim, view.now), view);
        steps.merge(give_up(claim, cause));
        return steps;
    }
    // Launch before registration before initialisation: each looks at what the one before has written.
    // A reboot takes the initialisation back, and so goes before it.
    let steps = [launch::step, registration::step, reboot::step, initialization::step, consistency::step];
    // The pods' times before what is counted from them.
    let aside = [
        hydration::step,
        pod_events::step,
        consolidatable::step,
        drift::step,
        disruption::step,
        reparenting::step,
        interruption::step,
        health::step,
    ];
    let mut wanted = Steps::default();
    for step in steps.into_iter().chain(aside) {
        wanted.merge(step(&mut draft, view));
    }
    wanted.act(draft.finish());
    wanted.merge(liveness::wake(claim, view));
    wanted.merge(expiration::wait(claim, view));
    wanted
}

/// The claim as the next look at it would leave what decides whether it may be disrupted: settled or not, drifted or not.
/// `None` if that is how it is. For plans, which are made of clusters that nobody has looked at yet, and of moments to
/// come. `cloud` is what the provider would say of drift as far as that is known without it; else what it has said stays as
/// it stands.
pub fn foresee(claim: &NodeClaim, cloud: Option<CloudDrift>, view: View<'_>) -> Option<NodeClaim> {
    if !view.settings.manages(&claim.node.class) || claim.meta.is_deleting() {
        return None;
    }
    let mut draft = ClaimDraft::new(claim, view.now);
    // It tells when to look again, which whoever plans asks for itself.
    let _ = consolidatable::step(&mut draft, view);
    drift::foresee(&mut draft, cloud, view);
    let conditions = draft.conditions.finish()?;
    let mut marked = claim.clone();
    marked.status.conditions = conditions;
    Some(marked)
}

/// Deletes the claim, and says why.
pub(crate) fn give_up(claim: &NodeClaim, cause: Cause) -> Steps {
    let target = Target::from(&claim.meta);
    let told = match &cause {
        Cause::InsufficientCapacity { message } => Some(crate::events::insufficient_capacity(claim, message)),
        Cause::ClassNotReady { message } => Some(crate::events::class_not_ready(claim, message)),
        Cause::LaunchTimeout
        | Cause::RegistrationTimeout
        | Cause::Expired
        | Cause::InstanceGone
        | Cause::NodeDeleted
        | Cause::ScaledDown
        | Cause::Disrupted { .. }
        | Cause::ReplacementUnneeded
        | Cause::Interrupted { .. }
        | Cause::Unhealthy { .. }
        | Cause::RebootFailed
        | Cause::OverLimit => None,
    };
    let effects = told.into_iter().chain([Effect::DeleteClaim(target.clone())]).collect();
    Steps { effects, notes: vec![Note::GivenUp { claim: target, cause }], wake: None }
}
