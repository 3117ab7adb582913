//! Who gets which hash when the version of the hash changes, or when a cluster is taken over from another controller.
//!
//! The reference adopts every claim that has no Drifted condition yet, and so forgets an edit made while no controller
//! ran. Here an old hash is computed again from the present object: a claim that matches is adopted, one that does not
//! stays different, and only a version that nobody can compute falls back to the reference's rule.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Hash;
use super::ec2_node_class::{Ec2HashVersion, ec2_node_class_hash, ec2_node_class_seal};
use super::error::HashError;
use super::fields::Edit;
use super::node_pool::{NodeClassKind, node_pool_seal};
use super::stamp::{Seal, Stamp};

/// A claim of the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub name: String,
    pub stamp: Stamp,
    /// It has a Drifted condition, for whatever reason.
    pub has_drifted_condition: bool,
}

/// The writes, in this order: claims, then the owner. Between the two their versions differ, which is never drift;
/// the other way round, a crash would leave every claim drifted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restamp {
    pub claims: Vec<(String, ClaimWrite)>,
    /// `None` when the owner already carries it.
    pub owner: Option<Seal>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimWrite {
    /// The claim is as its owner says: it gets the owner's hash.
    Adopt(Seal),
    /// The claim differs from its owner: it gets the version and keeps its hash, so that drift is seen.
    KeepHash { version: &'static str },
}

/// Per version, every hash that a claim may carry if its owner is as it was when the claim was made.
type Recomputed = BTreeMap<&'static str, Vec<Hash>>;

/// Upstream: the `nodepool.hash` controller. A pool whose node class is of a kind that nobody here serves belongs to
/// another controller, and is left alone.
pub fn restamp_for_node_pool(
    pool: &Value,
    served: &[NodeClassKind],
    owner: &Stamp,
    claims: &[Claim],
) -> Result<Restamp, HashError> {
    if !served.iter().any(|kind| kind.is_used_by(pool)) {
        return Ok(Restamp::default());
    }
    let seal = node_pool_seal(pool)?;
    // Versions before v3 hashed fields that no longer exist.
    let recomputed = BTreeMap::from([(seal.version, vec![seal.hash])]);
    Ok(restamp(&seal, owner, claims, &recomputed))
}

/// Upstream: the `nodeclass.hash` controller.
pub fn restamp_for_ec2_node_class(
    class: &Value,
    ca_bundle: &str,
    owner: &Stamp,
    claims: &[Claim],
) -> Result<Restamp, HashError> {
    let seal = ec2_node_class_seal(class, ca_bundle)?;
    Ok(restamp(&seal, owner, claims, &recompute_class(class, ca_bundle)))
}

/// A version admits the hashes of earlier ones too: a claim that had drifted when the version changed got the new one
/// with its old hash. And those with an empty CA bundle: the other controller need not have known the bundle.
fn recompute_class(class: &Value, ca_bundle: &str) -> Recomputed {
    let mut hashes = Vec::new();
    let mut recomputed = Recomputed::new();
    for version in Ec2HashVersion::ALL {
        // A class without a hash of an earlier version uses what only later ones know, so it has changed since.
        hashes.extend([ca_bundle, ""].iter().filter_map(|bundle| ec2_node_class_hash(class, version, bundle).ok()));
        recomputed.insert(version.as_str(), hashes.clone());
    }
    recomputed
}

fn restamp(seal: &Seal, owner: &Stamp, claims: &[Claim], recomputed: &Recomputed) -> Restamp {
    let owner_migrates = owner.version.as_deref() != Some(seal.version);
    let write = |claim: &Claim| {
        let known = claim.stamp.version.as_deref().and_then(|version| recomputed.get(version));
        match (&claim.stamp.hash, known) {
            (Some(hash), Some(hashes)) => judge(claim, hash, hashes, seal),
            // Nobody can tell. The reference leaves such claims alone once the owner has its version.
            (None, _) | (_, None) => owner_migrates.then(|| adopt_unless_drifted(claim, seal)),
        }
    };
    Restamp {
        claims: claims.iter().filter_map(|claim| Some((claim.name.clone(), write(claim)?))).collect(),
        owner: (*owner != Stamp::from(seal.clone())).then(|| seal.clone()),
    }
}

/// The reference's rule.
fn adopt_unless_drifted(claim: &Claim, seal: &Seal) -> ClaimWrite {
    if claim.has_drifted_condition {
        ClaimWrite::KeepHash { version: seal.version }
    } else {
        ClaimWrite::Adopt(seal.clone())
    }
}

/// A claim with a hash of a version that we can compute.
fn judge(claim: &Claim, hash: &str, hashes: &[Hash], seal: &Seal) -> Option<ClaimWrite> {
    let has_our_version = claim.stamp.version.as_deref() == Some(seal.version);
    if has_our_version && hash == seal.hash.to_string() {
        return None;
    }
    let matches = hashes.iter().any(|known| hash == known.to_string());
    // The hash changed, and no field did: somebody added or dropped an empty `{}` or `[]`.
    let cosmetic = claim.stamp.fields.as_ref().is_some_and(|fields| fields.edit_to(&seal.fields) == Edit::Cosmetic);
    if matches || cosmetic {
        Some(ClaimWrite::Adopt(seal.clone()))
    } else {
        (!has_our_version).then_some(ClaimWrite::KeepHash { version: seal.version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::stamp::{EC2_NODE_CLASS_KEYS, NODE_POOL_KEYS, StampKeys, drifted};
    use serde_json::json;

    const CA: &str = "QUJD";
    const SERVED: [NodeClassKind; 1] = [NodeClassKind { group: "karpenter.k8s.aws", kind: "EC2NodeClass" }];

    fn pool(team: &str) -> Value {
        json!({"spec": {"template": {
            "metadata": {"labels": {"team": team}},
            "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}},
        }}})
    }

    fn class(role: &str) -> Value {
        json!({"spec": {"role": role, "kubelet": {"maxPods": 110}}})
    }

    fn stamp(version: &str, hash: impl ToString) -> Stamp {
        Stamp { hash: Some(hash.to_string()), version: Some(version.to_owned()), fields: None }
    }

    fn class_stamp(version: Ec2HashVersion, class: &Value, ca_bundle: &str) -> Stamp {
        stamp(version.as_str(), ec2_node_class_hash(class, version, ca_bundle).unwrap())
    }

    fn claim(stamp: Stamp) -> Claim {
        Claim { name: "claim".to_owned(), stamp, has_drifted_condition: false }
    }

    fn drifted_claim(stamp: Stamp) -> Claim {
        Claim { has_drifted_condition: true, ..claim(stamp) }
    }

    fn keep_hash(version: &'static str) -> Option<ClaimWrite> {
        Some(ClaimWrite::KeepHash { version })
    }

    /// What happens to a single claim of the pool.
    fn pool_write(pool: &Value, owner: &Stamp, claim: Claim) -> Option<ClaimWrite> {
        let restamp = restamp_for_node_pool(pool, &SERVED, owner, &[claim]).unwrap();
        restamp.claims.into_iter().next().map(|(_, write)| write)
    }

    /// What happens to a single claim of the class.
    fn class_write(class: &Value, owner: &Stamp, claim: Claim) -> Option<ClaimWrite> {
        let restamp = restamp_for_ec2_node_class(class, CA, owner, &[claim]).unwrap();
        restamp.claims.into_iter().next().map(|(_, write)| write)
    }

    fn adopt(class: &Value) -> Option<ClaimWrite> {
        Some(ClaimWrite::Adopt(ec2_node_class_seal(class, CA).unwrap()))
    }

    /// Sheet 01, case 8.
    #[test]
    fn claims_of_an_unknown_version_are_adopted_with_their_pool() {
        let seal = node_pool_seal(&pool("a")).unwrap();
        let claims = ["one", "two"].map(|name| Claim { name: name.to_owned(), ..claim(stamp("test", "1")) });
        assert_eq!(
            restamp_for_node_pool(&pool("a"), &SERVED, &stamp("test", "1"), &claims).unwrap(),
            Restamp {
                claims: ["one", "two"].map(|name| (name.to_owned(), ClaimWrite::Adopt(seal.clone()))).into(),
                owner: Some(seal),
            }
        );
    }

    /// Sheet 01, case 9.
    #[test]
    fn a_claim_that_has_our_version_keeps_its_hash_and_drifts() {
        assert_eq!(pool_write(&pool("a"), &stamp("test", "1"), claim(stamp("v3", "2"))), None);
        let owner = Stamp::from(node_pool_seal(&pool("a")).unwrap());
        assert!(drifted(&owner, &stamp("v3", "2")));
    }

    /// Sheet 01, case 10.
    #[test]
    fn a_drifted_claim_of_an_unknown_version_keeps_its_hash() {
        let write = pool_write(&pool("a"), &stamp("test", "1"), drifted_claim(stamp("test", "1")));
        assert_eq!(write, keep_hash("v3"));
    }

    /// Sheet 01, case 11.
    #[test]
    fn missing_or_differing_annotations_are_never_drift() {
        let complete = stamp("v3", "1");
        assert!(drifted(&complete, &stamp("v3", "2")));
        assert!(!drifted(&complete, &complete));
        assert!(!drifted(&complete, &stamp("v2", "2")));
        for incomplete in
            [Stamp { hash: None, ..stamp("v3", "2") }, Stamp { version: None, ..stamp("v3", "2") }, Stamp::default()]
        {
            assert!(!drifted(&complete, &incomplete));
            assert!(!drifted(&incomplete, &complete));
        }
    }

    /// Sheet 01, case 12.
    #[test]
    fn a_pool_of_another_provider_is_left_alone() {
        let foreign = [NodeClassKind { group: "karpenter.kwok.sh", kind: "KWOKNodeClass" }];
        let claims = [claim(stamp("test", "1"))];
        let restamp = restamp_for_node_pool(&pool("a"), &foreign, &stamp("test", "1"), &claims).unwrap();
        assert_eq!(restamp, Restamp { claims: vec![], owner: None });
    }

    /// Sheet 01, case 13.
    #[test]
    fn a_claim_carries_the_hash_of_the_pool_it_was_scheduled_from() {
        let [before, after] = ["a", "b"].map(|team| Stamp::from(node_pool_seal(&pool(team)).unwrap()));
        assert!(drifted(&after, &before));
        assert_eq!(pool_write(&pool("b"), &after, claim(before)), None);
    }

    #[test]
    fn an_owner_that_is_up_to_date_needs_no_write() {
        let owner = Stamp::from(node_pool_seal(&pool("a")).unwrap());
        let restamp =
            restamp_for_node_pool(&pool("a"), &SERVED, &owner, &[claim(owner.clone()), claim(Stamp::default())])
                .unwrap();
        assert_eq!(restamp, Restamp { claims: vec![], owner: None });
    }

    #[test]
    fn a_claim_of_each_old_version_is_adopted_if_its_class_did_not_change() {
        for version in Ec2HashVersion::ALL {
            let old = class_stamp(version, &class("a"), CA);
            let write = class_write(&class("a"), &old, claim(old.clone()));
            assert_eq!(write, if version == Ec2HashVersion::CURRENT { None } else { adopt(&class("a")) });
        }
    }

    /// Sheet 01, section 13.8: the reference would adopt it and forget the edit.
    #[test]
    fn an_edit_made_while_no_controller_ran_is_still_drift() {
        let old = class_stamp(Ec2HashVersion::V5, &class("a"), CA);
        assert_eq!(class_write(&class("b"), &old, claim(old.clone())), keep_hash("v6"));
    }

    /// Sheet 01, section 13.8: the reference would leave it drifted for ever.
    #[test]
    fn a_drifted_claim_that_matches_again_is_adopted() {
        let old = class_stamp(Ec2HashVersion::V5, &class("a"), CA);
        assert_eq!(class_write(&class("a"), &old, drifted_claim(old.clone())), adopt(&class("a")));
        // Also when an earlier migration gave it a later version with its old hash.
        let kept = Stamp { version: Some("v6".to_owned()), ..old };
        let owner = Stamp::from(ec2_node_class_seal(&class("b"), CA).unwrap());
        assert_eq!(class_write(&class("a"), &owner, drifted_claim(kept)), adopt(&class("a")));
    }

    /// Sheet 01, section 9.4.
    #[test]
    fn a_controller_that_did_not_know_the_ca_bundle_causes_no_drift() {
        for version in Ec2HashVersion::ALL {
            let old = class_stamp(version, &class("a"), "");
            assert_eq!(class_write(&class("a"), &old, claim(old.clone())), adopt(&class("a")));
        }
        let other = class_stamp(Ec2HashVersion::V5, &class("a"), "another bundle");
        assert_eq!(class_write(&class("a"), &other, claim(other.clone())), keep_hash("v6"));
    }

    #[test]
    fn a_class_with_settings_that_its_old_version_did_not_know_has_changed() {
        let old = class_stamp(Ec2HashVersion::V5, &class("a"), CA);
        let mut extended = class("a");
        extended["spec"]["kubelet"]["cpuManagerPolicy"] = json!("static");
        assert_eq!(class_write(&extended, &old, claim(old.clone())), keep_hash("v6"));
    }

    /// Sheet 01, section 13.9.
    #[test]
    fn a_cosmetic_edit_restamps_the_claims() {
        let old = Stamp::from(node_pool_seal(&pool("a")).unwrap());
        let mut cosmetic = pool("a");
        cosmetic["spec"]["template"]["metadata"]["annotations"] = json!({});
        let seal = node_pool_seal(&cosmetic).unwrap();
        assert_eq!(pool_write(&cosmetic, &old, claim(old.clone())), Some(ClaimWrite::Adopt(seal)));
        // Without field hashes nobody can tell, and the reference's rule holds.
        let bare = Stamp { fields: None, ..old.clone() };
        assert_eq!(pool_write(&cosmetic, &old, claim(bare)), None);
    }

    #[test]
    fn field_hashes_count_only_for_the_hash_they_were_made_with() {
        let seal = node_pool_seal(&pool("a")).unwrap();
        let read = |annotations: &[(&'static str, String)], keys: StampKeys| {
            let annotations: BTreeMap<_, _> =
                annotations.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
            Stamp::read(&annotations, keys)
        };
        let mut annotations = seal.annotations(NODE_POOL_KEYS);
        assert_eq!(read(&annotations, NODE_POOL_KEYS), Stamp::from(seal.clone()));
        assert_eq!(read(&annotations, EC2_NODE_CLASS_KEYS), Stamp::default());
        annotations[0].1 = "7".to_owned();
        assert_eq!(read(&annotations, NODE_POOL_KEYS), stamp(seal.version, "7"));
    }
}
