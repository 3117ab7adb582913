//! Drift: whether a claim would be made otherwise today (sheet 03 §12, §15.5).
//!
//! The condition says so, with the field and both values where they are known. Whether anything is done about it is
//! decided elsewhere.

use std::fmt;
use std::sync::Arc;

use jiff::SignedDuration;
use kerf_model::cloud::CloudDrift;
use kerf_model::cluster::{NodeClaim, StoredPool, condition_kind as kind};
use kerf_model::effect::{Effect, Target};
use kerf_model::label::annotation;
use kerf_model::requirement::{Incompatible, Requirements, UndefinedKeys};
use kerf_model::time::later;

use super::{ClaimDraft, Hold};
use crate::events;
use crate::memory::ANSWER_WITHIN;
use crate::pool::hash;
use crate::steps::Steps;
use crate::view::View;

mod fields;
pub mod in_place;
mod instance_type;

pub use fields::FieldChange;
use in_place::{InPlace, NotInPlace};

/// Why a claim has drifted. The first that holds, in this order, is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriftReason {
    /// The pool's template was edited. What changed, as far as can be told, and why it takes a new node if edits may be
    /// made in place.
    Pool(Vec<FieldChange>, Option<NotInPlace>),
    /// The node's labels do not meet the pool's requirements any more.
    Requirements(Incompatible),
    /// The cloud does not offer it any more, at no price.
    InstanceTypeNotFound { instance_type: Option<Arc<str>> },
    /// The provider's own.
    Cloud(CloudDrift),
}

/// Reasons that follow from the pool alone: of an edited template, and of labels that do not meet its requirements.
const POOLS_REASONS: [&str; 2] = ["NodePoolDrifted", "RequirementsDrifted"];

/// How often the provider is asked when nothing changes.
const ASK_EVERY: SignedDuration = SignedDuration::from_mins(5);

pub(super) fn step(draft: &mut ClaimDraft<'_>, view: View<'_>) -> Steps {
    let claim = draft.claim;
    let Some(pool) = claim.pool().and_then(|name| view.snapshot.pool(name)) else { return Steps::default() };
    if !view.settings.drift || !claim.status.conditions.is_true(kind::LAUNCHED) {
        draft.conditions.remove(kind::DRIFTED);
        return Steps::default();
    }
    let mut steps = Steps::default();
    let edited = is_edited(claim, pool).then(|| in_place::judge(claim, pool, view));
    let template = match &edited {
        Some(InPlace::Replace(NotInPlace::Off)) => Some(DriftReason::Pool(fields::changes(claim, pool), None)),
        Some(InPlace::Replace(why)) => Some(DriftReason::Pool(fields::changes(claim, pool), Some(why.clone()))),
        Some(InPlace::Update(_) | InPlace::Held(_)) | None => None,
    };
    if let Some(reason) = template.or_else(|| own_reason(claim, pool, view)) {
        mark(draft, &reason);
    } else {
        steps.merge(follow_provider(draft, pool, view));
        // Nothing else takes a new node, so that this is worth doing.
        match &edited {
            Some(InPlace::Update(update)) => steps.merge(in_place::carry_out(draft, pool, update, view)),
            Some(InPlace::Held(hold)) => steps.merge(wait_for(draft, hold)),
            Some(InPlace::Replace(_)) | None => {}
        }
    }
    if let Some(at) = instance_type::looked_at(claim).filter(|at| view.now < *at) {
        steps.look_again(at);
    }
    steps
}

/// The condition as far as it follows from pool and class as they are written now, of which nobody may have taken a hash
/// yet. What else makes a claim drift stays as it stands.
pub(super) fn foresee(draft: &mut ClaimDraft<'_>, cloud: Option<CloudDrift>, view: View<'_>) {
    let claim = draft.claim;
    let Some(pool) = claim.pool().and_then(|name| view.snapshot.pool(name)) else { return };
    if !claim.status.conditions.is_true(kind::LAUNCHED) {
        return;
    }
    let edited = pool.hash.as_ref().is_some_and(|hash| hash::is_other(claim, hash));
    let template = edited.then(|| DriftReason::Pool(fields::changes(claim, pool), None));
    let stands = draft.conditions.get(kind::DRIFTED).map(|condition| condition.reason.clone());
    let of_pool = template.or_else(|| unmet_requirements(claim, pool, view));
    match of_pool.or_else(|| cloud.map(DriftReason::Cloud)) {
        Some(reason) => mark(draft, &reason),
        None if stands.is_some_and(|reason| POOLS_REASONS.contains(&&*reason)) => {
            draft.conditions.remove(kind::DRIFTED);
        }
        None => {}
    }
}

/// What can be seen without the provider, but for edits of the template.
fn own_reason(claim: &NodeClaim, pool: &StoredPool, view: View<'_>) -> Option<DriftReason> {
    unmet_requirements(claim, pool, view).or_else(|| instance_type::missing(claim, view))
}

fn unmet_requirements(claim: &NodeClaim, pool: &StoredPool, view: View<'_>) -> Option<DriftReason> {
    // A pool that does not parse has no requirements that could be compared.
    let spec = pool.spec.as_ref().ok()?;
    let labels = claim.meta.labels.iter().map(|(key, value)| (&**key, &**value));
    let labels = Requirements::from_labels(labels, view.rules);
    labels.compatible(&spec.node.requirements, UndefinedKeys::Absent).err().map(DriftReason::Requirements)
}

/// Both sides carry a hash of one version, and the hashes differ. Anything less says nothing.
fn is_edited(claim: &NodeClaim, pool: &StoredPool) -> bool {
    let both = |key| Some((claim.meta.annotation(key)?, pool.meta.annotation(key)?));
    let versions = both(annotation::NODEPOOL_HASH_VERSION);
    let hashes = both(annotation::NODEPOOL_HASH);
    versions.is_some_and(|(of_claim, of_pool)| of_claim == of_pool)
        && hashes.is_some_and(|(of_claim, of_pool)| of_claim != of_pool)
}

/// The provider's answer, kept current. Before there is one, the condition stays as it is.
fn follow_provider(draft: &mut ClaimDraft<'_>, pool: &StoredPool, view: View<'_>) -> Steps {
    let claim = draft.claim;
    let is_asked = view.settings.provider_drift
        && claim.status.provider_id.is_some()
        // Without its class a claim has nothing to be compared with.
        && view.snapshot.class(&pool.class).is_some();
    if !is_asked {
        draft.conditions.remove(kind::DRIFTED);
        return Steps::default();
    }
    let known = view.memory.drift(claim);
    if let Some((_, found)) = known.and_then(|known| known.answer.as_ref()) {
        match found {
            Some(found) if found.in_place && view.settings.in_place_drift => {
                if let Some(steps) = update_instance(draft, found, view) {
                    return steps;
                }
            }
            Some(found) => mark(draft, &DriftReason::Cloud(found.clone())),
            None => draft.conditions.remove(kind::DRIFTED),
        }
    }
    let under_way = known.and_then(|known| known.asked).map(|at| later(at, ANSWER_WITHIN));
    let fresh = known.and_then(|known| known.answer.as_ref()).map(|(at, _)| later(*at, ASK_EVERY));
    match under_way.or(fresh) {
        Some(at) if view.now < at => Steps::waiting_until(at),
        Some(_) | None => {
            Steps::asking(Effect::CheckDrift { claim: Target::from(&claim.meta) }, later(view.now, ANSWER_WITHIN))
        }
    }
}

/// Has the instance changed as it runs. `None` while it is to be seen whether that has made it as it should be.
fn update_instance(draft: &mut ClaimDraft<'_>, found: &CloudDrift, view: View<'_>) -> Option<Steps> {
    let claim = draft.claim;
    let known = view.memory.in_place(claim);
    if let Some(message) = known.and_then(|known| known.given_up()) {
        let told = events::in_place_failed(claim, message);
        mark(draft, &DriftReason::Cloud(found.clone()));
        return Some(Steps::of(told));
    }
    draft.conditions.remove(kind::DRIFTED);
    if let Some(hold) = Hold::of_drift(claim, view) {
        return Some(wait_for(draft, &hold));
    }
    if let Some(annotations) = known.and_then(|known| known.done.as_ref()) {
        // Before it is asked again whether all is as it should be: the answer rests on what the claim says of itself.
        if annotations.iter().any(|(key, value)| claim.meta.annotation(key) != Some(value)) {
            annotations.iter().for_each(|(key, value)| draft.set_annotation(key, value));
            return Some(Steps::default());
        }
        in_place::tell(draft, &found.message);
        return None;
    }
    match known.and_then(|known| known.asked).map(|at| later(at, ANSWER_WITHIN)) {
        Some(at) if view.now < at => Some(Steps::waiting_until(at)),
        Some(_) | None => {
            let effect = Effect::UpdateInstance { claim: Target::from(&claim.meta) };
            Some(Steps::asking(effect, later(view.now, ANSWER_WITHIN)))
        }
    }
}

fn wait_for(draft: &mut ClaimDraft<'_>, hold: &Hold) -> Steps {
    in_place::tell_held(draft, hold);
    hold.wait()
}

fn mark(draft: &mut ClaimDraft<'_>, reason: &DriftReason) {
    draft.conditions.set_true_because(kind::DRIFTED, reason.label(), &reason.to_string());
}

impl DriftReason {
    /// The reason of the condition.
    pub fn label(&self) -> &str {
        match self {
            Self::Pool(..) => POOLS_REASONS[0],
            Self::Requirements(_) => POOLS_REASONS[1],
            Self::InstanceTypeNotFound { .. } => "InstanceTypeNotFound",
            Self::Cloud(drift) => &drift.reason,
        }
    }
}

impl fmt::Display for DriftReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(changes, why) => {
                let texts: Vec<_> = changes.iter().map(ToString::to_string).collect();
                match changes.is_empty() {
                    true => f.write_str("the pool's template was edited")?,
                    false => f.write_str(&texts.join("; "))?,
                }
                why.as_ref().map_or(Ok(()), |why| write!(f, " (not in place: {why})"))
            }
            Self::Requirements(reason) => write!(f, "the node does not meet the pool's requirements: {reason}"),
            Self::InstanceTypeNotFound { instance_type: Some(name) } => {
                write!(f, "the cloud does not offer {name} as this node has it any more")
            }
            Self::InstanceTypeNotFound { instance_type: None } => {
                f.write_str("the node does not say its instance type")
            }
            Self::Cloud(drift) => f.write_str(&drift.message),
        }
    }
}
