//! The hash by which drift is seen, on the pool and on claims from before its version (sheet 04 §6.5, sheet 01 §9.3).

use std::sync::Arc;

use kerf_model::cluster::{NodeClaim, PoolHash, condition_kind as kind};
use kerf_model::effect::Effect;
use kerf_model::label::annotation;

use super::{PoolDraft, stamp};
use crate::claim::ClaimDraft;
use crate::field_hashes::FieldHashes;
use crate::steps::Steps;
use crate::view::View;

/// Claims first, and the pool once they are seen with theirs: between the two nothing compares as drifted. The other way
/// round, a crash would leave every claim drifted.
///
/// A claim whose stamp is refused for good is not waited for. It never compares as drifted then: its hash is of another
/// version, or differs only by what means nothing. The others of the pool do.
pub(super) fn step(draft: &mut PoolDraft<'_>, view: View<'_>) -> Steps {
    let pool = draft.pool;
    let Some(hash) = &pool.hash else { return Steps::default() };
    let behind: Vec<_> = stamp(hash).filter(|(key, value)| pool.meta.annotation(key) != Some(value)).collect();
    if behind.is_empty() {
        return Steps::default();
    }
    let migrates = pool.meta.annotation(annotation::NODEPOOL_HASH_VERSION) != Some(&hash.version);
    let name = &*pool.meta.name.name;
    let claims = view.snapshot.claims().filter(|claim| claim.pool() == Some(name) && !claim.meta.is_deleting());
    let patches: Vec<_> = claims
        .filter(|claim| !view.memory.refuses_stamp(claim))
        .filter_map(|claim| restamp(claim, hash, migrates, view))
        .collect();
    if !patches.is_empty() {
        return Steps { effects: patches, ..Steps::default() };
    }
    let stamps = behind.into_iter().map(|(key, value)| (Arc::from(key), Some(value.clone())));
    draft.patch.meta.annotations.extend(stamps);
    Steps::default()
}

/// A claim of our version is compared with the pool by its hash, and keeps it, unless the edit meant nothing. Hashes of
/// different versions cannot be compared: a claim known to have drifted keeps its own, so that it still differs; the
/// others are taken to be as the pool is.
fn restamp(claim: &NodeClaim, hash: &PoolHash, migrates: bool, view: View<'_>) -> Option<Effect> {
    let has_our_version = claim.meta.annotation(annotation::NODEPOOL_HASH_VERSION) == Some(&hash.version);
    let mut draft = ClaimDraft::new(claim, view.now);
    match (has_our_version, claim.status.conditions.get(kind::DRIFTED)) {
        (true, _) if is_cosmetic(claim, hash) => stamp(hash).for_each(|(key, value)| draft.set_annotation(key, value)),
        (true, _) => {}
        (false, _) if !migrates => {}
        (false, Some(_)) => draft.set_annotation(annotation::NODEPOOL_HASH_VERSION, &hash.version),
        (false, None) => stamp(hash).for_each(|(key, value)| draft.set_annotation(key, value)),
    }
    draft.finish()
}

/// Whether the claim was made from another template than the one with this hash. Of other versions nothing is known.
pub(crate) fn is_other(claim: &NodeClaim, hash: &PoolHash) -> bool {
    claim.meta.annotation(annotation::NODEPOOL_HASH_VERSION) == Some(&hash.version)
        && claim.meta.annotation(annotation::NODEPOOL_HASH).is_some_and(|of_claim| *of_claim != *hash.hash)
        && !is_cosmetic(claim, hash)
}

/// Whether only empties came or went (`labels: {}`): the hash is another, and every field's is the same.
fn is_cosmetic(claim: &NodeClaim, hash: &PoolHash) -> bool {
    let of_claim = claim.meta.annotation(annotation::NODEPOOL_FIELD_HASHES).and_then(FieldHashes::read);
    let of_pool = hash.fields.as_deref().and_then(FieldHashes::read);
    let (Some(of_claim), Some(of_pool)) = (of_claim, of_pool) else { return false };
    claim.meta.annotation(annotation::NODEPOOL_HASH) == Some(of_claim.of) && of_claim.fields == of_pool.fields
}
