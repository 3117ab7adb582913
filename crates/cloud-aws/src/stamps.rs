//! The hashes of a class: what a claim gets at its launch, and who gets new ones when they change (sheet 05 §1, sheet 01
//! §9.3, upstream: the `nodeclass.hash` controller).
//!
//! It stands here and not beside the pool's hash in the lifecycle, because only the provider knows what of its class is
//! hashed.

use std::sync::Arc;

use kerf_api::hash::{Claim, ClaimWrite, EC2_NODE_CLASS_KEYS, HashError, Seal, Stamp, restamp_for_ec2_node_class};
use kerf_model::cluster::{NodeClaim, Texts, condition_kind as kind};

use crate::class::Ec2Class;

/// On claims: the instance profile that their instance was launched with.
pub const INSTANCE_PROFILE_NAME: &str = "karpenter.k8s.aws/instance-profile-name";

/// Annotations to be written, first those of claims.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writes {
    pub claims: Vec<(Arc<str>, Texts)>,
    /// `None` while claims are still to be written: between the two nothing compares as drifted.
    pub class: Option<Texts>,
}

/// What a claim gets at its launch.
///
/// # Errors
/// The class cannot be hashed.
pub fn of_launch(class: &Ec2Class, ca_bundle: &str) -> Result<Texts, HashError> {
    let mut annotations = of_update(class, ca_bundle)?;
    if let Some(profile) = &class.instance_profile {
        annotations.insert(INSTANCE_PROFILE_NAME.into(), Arc::clone(profile));
    }
    Ok(annotations)
}

/// What a claim gets once its running instance is as the class says.
///
/// # Errors
/// The class cannot be hashed.
pub fn of_update(class: &Ec2Class, ca_bundle: &str) -> Result<Texts, HashError> {
    Ok(texts(&class.seal(ca_bundle)?))
}

/// What is to be written now. Asked again when class or claims have changed.
///
/// # Errors
/// The class cannot be hashed.
pub fn next<'a>(
    class: &Ec2Class,
    ca_bundle: &str,
    claims: impl IntoIterator<Item = &'a NodeClaim>,
) -> Result<Writes, HashError> {
    let own = claims.into_iter().filter(|claim| claim.node.class == class.common.class && !claim.meta.is_deleting());
    let claims: Vec<Claim> = own.map(claim).collect();
    let wanted = restamp_for_ec2_node_class(class.object(), ca_bundle, &class.stamp, &claims)?;
    let claims: Vec<_> =
        wanted.claims.iter().map(|(name, write)| (Arc::from(name.as_str()), write_of(write))).collect();
    let class = wanted.owner.as_ref().filter(|_| claims.is_empty()).map(texts);
    Ok(Writes { claims, class })
}

fn claim(claim: &NodeClaim) -> Claim {
    Claim {
        name: claim.name().to_string(),
        stamp: Stamp::find(EC2_NODE_CLASS_KEYS, |key| claim.meta.annotation(key)),
        has_drifted_condition: claim.status.conditions.get(kind::DRIFTED).is_some(),
    }
}

fn write_of(write: &ClaimWrite) -> Texts {
    match write {
        ClaimWrite::Adopt(seal) => texts(seal),
        ClaimWrite::KeepHash { version } => Texts::from([(EC2_NODE_CLASS_KEYS.version.into(), (*version).into())]),
    }
}

fn texts(seal: &Seal) -> Texts {
    seal.annotations(EC2_NODE_CLASS_KEYS).into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}
