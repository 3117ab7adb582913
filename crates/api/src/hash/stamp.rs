//! What objects carry in their annotations: a hash, its version, and the field hashes.

use std::collections::BTreeMap;

use super::Hash;
use super::fields::FieldHashes;

/// The annotations of one kind of owner. They stand on the owner and on every claim made from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampKeys {
    pub hash: &'static str,
    pub version: &'static str,
    /// Kerf's own; the reference neither writes nor reads it.
    pub fields: &'static str,
}

pub const NODE_POOL_KEYS: StampKeys = StampKeys {
    hash: "karpenter.sh/nodepool-hash",
    version: "karpenter.sh/nodepool-hash-version",
    fields: "kerf.sh/nodepool-field-hashes",
};

pub const EC2_NODE_CLASS_KEYS: StampKeys = StampKeys {
    hash: "karpenter.k8s.aws/ec2nodeclass-hash",
    version: "karpenter.k8s.aws/ec2nodeclass-hash-version",
    fields: "kerf.sh/ec2nodeclass-field-hashes",
};

/// What is found on an object, perhaps written by another controller: any text, or nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stamp {
    pub hash: Option<String>,
    pub version: Option<String>,
    /// Present only if they belong to `hash`.
    pub fields: Option<FieldHashes>,
}

/// What we write: the state of an owner as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    pub hash: Hash,
    pub version: &'static str,
    pub fields: FieldHashes,
}

impl Stamp {
    pub fn read(annotations: &BTreeMap<String, String>, keys: StampKeys) -> Self {
        Self::find(keys, |key| annotations.get(key).map(String::as_str))
    }

    /// The same from wherever annotations are kept.
    pub fn find<'a>(keys: StampKeys, annotation: impl Fn(&str) -> Option<&'a str>) -> Self {
        let hash = annotation(keys.hash);
        // An unreadable map is as good as none: the hash alone then decides.
        let fields = annotation(keys.fields)
            .and_then(|text| text.parse::<FieldHashes>().ok())
            .filter(|fields| hash == Some(fields.of.to_string().as_str()));
        Self { hash: hash.map(str::to_owned), version: annotation(keys.version).map(str::to_owned), fields }
    }
}

impl Seal {
    pub fn annotations(&self, keys: StampKeys) -> [(&'static str, String); 3] {
        [
            (keys.hash, self.hash.to_string()),
            (keys.version, self.version.to_owned()),
            (keys.fields, self.fields.to_string()),
        ]
    }
}

impl From<Seal> for Stamp {
    fn from(seal: Seal) -> Self {
        Self { hash: Some(seal.hash.to_string()), version: Some(seal.version.to_owned()), fields: Some(seal.fields) }
    }
}

/// Whether the claim was made from another state of its owner. Hashes of different versions, or missing ones, say
/// nothing. Upstream: `areStaticFieldsDrifted`, once in the core and once in the provider.
pub fn drifted(owner: &Stamp, claim: &Stamp) -> bool {
    match (owner, claim) {
        (
            Stamp { hash: Some(owner_hash), version: Some(owner_version), .. },
            Stamp { hash: Some(claim_hash), version: Some(claim_version), .. },
        ) => owner_version == claim_version && owner_hash != claim_hash,
        _ => false,
    }
}
