//! What an edit of a class changed of the fields that a claim's hash was made from.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kerf_api::hash::{EC2_NODE_CLASS_KEYS, FieldHashes, Hash, Stamp, drifted};
use kerf_model::cluster::NodeClaim;
use serde_json::Value;

use super::InstanceFacts;
use crate::class::Ec2Class;
use crate::stamps::INSTANCE_PROFILE_NAME;

const CA_BUNDLE: &str = "clusterCABundle";
const TAGS: &str = "spec.tags";
const DETAILED_MONITORING: &str = "spec.detailedMonitoring";
const INSTANCE_PROFILE: &str = "spec.instanceProfile";

/// Scripts often hold secrets, and conditions are read by many.
const NOT_SHOWN: [&str; 1] = ["spec.userData"];

/// How much of a value is shown, in bytes: a condition is read by people.
const SHOWN: usize = 200;

/// The class is not as it was when the claim's instance was launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edited {
    Fields(Vec<FieldChange>),
    /// The claim was launched by a controller that leaves no hashes of fields.
    Somewhere {
        old: String,
        new: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    pub field: String,
    /// Absent is `None`.
    pub old: Option<Known>,
    pub new: Option<Known>,
}

/// As much as is known of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    Value(String),
    Hash(Hash),
}

/// By the hashes on both: they must be of one version and differ. Upstream: `areStaticFieldsDrifted`.
///
/// Edits that mean nothing are none: a field that became empty, and monitoring that is switched off and was not on.
pub fn edited(class: &Ec2Class, claim: &NodeClaim, instance: Option<&InstanceFacts>) -> Option<Edited> {
    let of_claim = Stamp::find(EC2_NODE_CLASS_KEYS, |key| claim.meta.annotation(key));
    if !drifted(&class.stamp, &of_claim) {
        return None;
    }
    let (Some(old), Some(new)) = (&of_claim.fields, &class.stamp.fields) else {
        let hash = |stamp: &Stamp| stamp.hash.clone().unwrap_or_default();
        return Some(Edited::Somewhere { old: hash(&of_claim), new: hash(&class.stamp) });
    };
    let changes = changes(old, new, (class, claim, instance));
    (!changes.is_empty()).then_some(Edited::Fields(changes))
}

/// The same of the class as it is written, of which nobody may have taken a hash yet. The CA bundle of the cluster is not
/// known here, and counts as unchanged.
pub fn edited_as_written(class: &Ec2Class, claim: &NodeClaim) -> Option<Edited> {
    let of_claim = Stamp::find(EC2_NODE_CLASS_KEYS, |key| claim.meta.annotation(key));
    let (Some(old), Ok(new)) = (&of_claim.fields, class.seal("")) else { return edited(class, claim, None) };
    let mut changes = changes(old, &new.fields, (class, claim, None));
    changes.retain(|change| change.field != CA_BUNDLE);
    (!changes.is_empty()).then_some(Edited::Fields(changes))
}

fn changes(
    old: &FieldHashes,
    new: &FieldHashes,
    (class, claim, instance): (&Ec2Class, &NodeClaim, Option<&InstanceFacts>),
) -> Vec<FieldChange> {
    let values = class.fields();
    let hashes = |fields: &FieldHashes| -> BTreeMap<String, Hash> {
        fields.iter().map(|(field, hash)| (field.to_owned(), hash)).collect()
    };
    let (old, new) = (hashes(old), hashes(new));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let changes = names.into_iter().filter(|name| old.get(*name) != new.get(*name)).map(|name| FieldChange {
        field: name.clone(),
        old: old.get(name).map(|hash| value_before(name, claim, instance).map_or(Known::Hash(*hash), Known::Value)),
        new: new.get(name).map(|hash| value_now(name, &values).map_or(Known::Hash(*hash), Known::Value)),
    });
    changes.filter(|change| !change.is_monitoring_still_off()).collect()
}

/// What claim and instance still show of it.
fn value_before(field: &str, claim: &NodeClaim, instance: Option<&InstanceFacts>) -> Option<String> {
    if let Some(key) = tag(field) {
        return instance?.tags.as_ref()?.get(key).map(ToString::to_string);
    }
    match field {
        DETAILED_MONITORING => instance?.detailed_monitoring.map(|on| on.to_string()),
        INSTANCE_PROFILE => claim.meta.annotation(INSTANCE_PROFILE_NAME).map(str::to_owned),
        _ => None,
    }
}

fn value_now(field: &str, values: &BTreeMap<String, Value>) -> Option<String> {
    if NOT_SHOWN.contains(&field) {
        return None;
    }
    let value = match tag(field) {
        Some(key) => values.get(TAGS)?.get(key)?,
        None => values.get(field)?,
    };
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match text.len() <= SHOWN {
        true => Some(text),
        false => Some(format!("{}...", &text[..text.floor_char_boundary(SHOWN)])),
    }
}

/// `team` of `spec.tags[team]`.
fn tag(field: &str) -> Option<&str> {
    field.strip_prefix(TAGS)?.strip_prefix('[')?.strip_suffix(']')
}

impl Edited {
    /// Tags and monitoring can be changed on an instance that runs (sheet 03 §15.6).
    pub fn can_be_made_in_place(&self) -> bool {
        match self {
            Self::Fields(changes) => changes.iter().all(|change| {
                let field = change.field.as_str();
                field == TAGS || tag(field).is_some() || field == DETAILED_MONITORING
            }),
            Self::Somewhere { .. } => false,
        }
    }
}

impl FieldChange {
    /// `false` was written where nothing was, or the other way round.
    fn is_monitoring_still_off(&self) -> bool {
        let sides = [&self.old, &self.new];
        self.field == DETAILED_MONITORING
            && sides.iter().all(|side| side.as_ref().is_none_or(|known| *known == Known::Value("false".to_owned())))
    }
}

impl fmt::Display for Edited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fields(changes) => {
                let texts: Vec<_> = changes.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join("; "))
            }
            Self::Somewhere { old, new } => {
                write!(f, "the node class was edited; of what only the hash is known, which was {old} and is {new}")
            }
        }
    }
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = &self.field;
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => write!(f, "{field} was {old} and is {new}"),
            (None, Some(new)) => write!(f, "{field} is new: {new}"),
            (Some(old), None) => write!(f, "{field} is gone: {old}"),
            (None, None) => write!(f, "{field} has changed"),
        }
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => f.write_str(value),
            Self::Hash(hash) => write!(f, "a value with hash {hash}"),
        }
    }
}
