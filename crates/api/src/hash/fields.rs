//! One hash per field, next to the hash of the whole: so that drift can name the field that changed, and tell an edit
//! that means something from one that only adds or drops an empty `{}` or `[]`.
//!
//! A field is what a person would name: `spec.template.metadata.labels[team]`, `spec.metadataOptions`. Labels and
//! annotations have one hash per key, so that what was added can be told from what was changed or taken away. Fields that
//! are absent or empty have no hash.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::Hash;
use super::go_hash::GoValue;
use super::layout::Leaf;

/// The field hashes of one object. Their text form goes into an annotation:
/// `v1 <hash of the whole> <field>=<16 hex digits>,…`, fields in alphabetical order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldHashes {
    /// The hash of the whole that these belong to. Another controller may overwrite that hash and know nothing of this
    /// map; it must then count as missing.
    pub of: Hash,
    fields: BTreeMap<String, u64>,
}

/// What an edit did to the fields that drift.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Same hash.
    None,
    /// Another hash, but only empties came or went (`labels: {}`, `taints: []`).
    Cosmetic,
    Real {
        changed: Vec<String>,
    },
}

/// A field that changed. Absent and empty are both `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldChange {
    pub field: String,
    pub old: Option<Value>,
    pub new: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseFieldHashesError {
    #[error("field hashes {0:?} are not of a known format")]
    UnknownFormat(String),
    #[error("field hashes have a malformed entry {0:?}")]
    MalformedEntry(String),
}

impl FieldHashes {
    pub(super) fn new(of: Hash, leaves: &[Leaf<'_>]) -> Self {
        Self { of, fields: meaningful(leaves).flat_map(entries).collect() }
    }

    /// Field paths with their hashes, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Hash)> {
        self.fields.iter().map(|(field, hash)| (field.as_str(), Hash(*hash)))
    }

    pub fn edit_to(&self, new: &Self) -> Edit {
        if self.of == new.of {
            return Edit::None;
        }
        let changed = changed_fields(self, new);
        if changed.is_empty() { Edit::Cosmetic } else { Edit::Real { changed } }
    }
}

/// A map whose keys can stand in the text form, key by key; anything else as a whole. (Tags of a cloud may have commas and
/// blanks in their keys.)
fn entries(leaf: &Leaf<'_>) -> Vec<(String, u64)> {
    let is_plain = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"./-_".contains(&byte));
    match &leaf.value {
        GoValue::Map(entries) if entries.iter().all(|(key, _)| is_plain(key)) => {
            entries.iter().map(|(key, value)| (format!("{}[{key}]", leaf.path), value.hash())).collect()
        }
        whole => vec![(leaf.path.clone(), whole.hash())],
    }
}

/// Fields that one has and the other has not, or that hash differently; in alphabetical order.
pub fn changed_fields(old: &FieldHashes, new: &FieldHashes) -> Vec<String> {
    let mut changed: Vec<_> = old.fields.keys().chain(new.fields.keys()).collect();
    changed.retain(|field| old.fields.get(*field) != new.fields.get(*field));
    changed.sort();
    changed.dedup();
    changed.into_iter().cloned().collect()
}

pub(super) fn changes_between(old: &[Leaf<'_>], new: &[Leaf<'_>]) -> Vec<FieldChange> {
    let mut pairs: BTreeMap<&str, [Option<&Leaf<'_>>; 2]> = BTreeMap::new();
    for leaf in meaningful(old) {
        pairs.entry(&leaf.path).or_default()[0] = Some(leaf);
    }
    for leaf in meaningful(new) {
        pairs.entry(&leaf.path).or_default()[1] = Some(leaf);
    }
    let json = |leaf: Option<&Leaf<'_>>| leaf.map(|leaf| leaf.json.clone().into_owned());
    pairs
        .into_iter()
        .filter(|(_, [old, new])| old.map(|leaf| leaf.value.hash()) != new.map(|leaf| leaf.value.hash()))
        .map(|(field, [old, new])| FieldChange { field: field.to_owned(), old: json(old), new: json(new) })
        .collect()
}

/// All but the empties. Only whole fields count: inside a kubelet configuration `evictionHard: {}` switches defaults
/// off, so it is not the same as no `evictionHard`.
fn meaningful<'a, 'b>(leaves: &'a [Leaf<'b>]) -> impl Iterator<Item = &'a Leaf<'b>> {
    leaves.iter().filter(|leaf| match leaf.json.as_ref() {
        Value::Object(entries) => !entries.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    })
}

const FORMAT: &str = "v1";

impl fmt::Display for FieldHashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FORMAT} {}", self.of)?;
        for (index, (field, hash)) in self.fields.iter().enumerate() {
            write!(f, "{}{field}={hash:016x}", if index == 0 { ' ' } else { ',' })?;
        }
        Ok(())
    }
}

impl FromStr for FieldHashes {
    type Err = ParseFieldHashesError;

    fn from_str(text: &str) -> Result<Self, ParseFieldHashesError> {
        let unknown_format = || ParseFieldHashesError::UnknownFormat(text.to_owned());
        let mut words = text.split(' ');
        if words.next() != Some(FORMAT) {
            return Err(unknown_format());
        }
        let of = words.next().and_then(|word| word.parse().ok()).ok_or_else(unknown_format)?;
        let entries = words.next();
        if words.next().is_some() {
            return Err(unknown_format());
        }
        let fields =
            entries.into_iter().flat_map(|entries| entries.split(',')).map(parse_entry).collect::<Result<_, _>>()?;
        Ok(Self { of, fields })
    }
}

fn parse_entry(entry: &str) -> Result<(String, u64), ParseFieldHashesError> {
    entry
        .split_once('=')
        .filter(|(_, hash)| hash.len() == 16)
        .and_then(|(field, hash)| Some((field.to_owned(), u64::from_str_radix(hash, 16).ok()?)))
        .ok_or_else(|| ParseFieldHashesError::MalformedEntry(entry.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::ec2_node_class::{ec2_node_class_changes, ec2_node_class_seal};
    use crate::hash::node_pool::{node_pool_changes, node_pool_seal};
    use serde_json::json;

    fn pool(metadata: Value, taints: Value) -> Value {
        json!({"spec": {"template": {"metadata": metadata, "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "expireAfter": "720h",
            "taints": taints,
        }}}})
    }

    fn pool_edit(old: &Value, new: &Value) -> Edit {
        node_pool_seal(old).unwrap().fields.edit_to(&node_pool_seal(new).unwrap().fields)
    }

    fn class_edit(old: &Value, new: &Value) -> Edit {
        let fields = |spec: &Value| ec2_node_class_seal(&json!({"spec": spec}), "").unwrap().fields;
        fields(old).edit_to(&fields(new))
    }

    fn real(fields: &[&str]) -> Edit {
        Edit::Real { changed: fields.iter().map(|field| (*field).to_owned()).collect() }
    }

    #[test]
    fn an_edit_is_named_after_the_fields_it_changed() {
        let old = pool(json!({"labels": {"team": "a"}}), json!(null));
        let new = pool(json!({"labels": {"team": "b"}}), json!([{"key": "gpu", "effect": "NoSchedule"}]));
        assert_eq!(pool_edit(&old, &new), real(&["spec.template.metadata.labels[team]", "spec.template.spec.taints"]));
        assert_eq!(
            class_edit(
                &json!({"role": "a", "kubelet": {"maxPods": 110}, "amiFamily": "AL2"}),
                &json!({"role": "a", "kubelet": {"maxPods": 111}, "amiSelectorTerms": [{"alias": "al2023@latest"}]}),
            ),
            real(&["spec.amiFamily", "spec.kubelet"])
        );
    }

    #[test]
    fn an_edit_of_empties_alone_is_cosmetic() {
        let bare = pool(json!(null), json!(null));
        for empties in [pool(json!({"labels": {}}), json!(null)), pool(json!({"annotations": {}}), json!([]))] {
            assert_eq!(pool_edit(&bare, &empties), Edit::Cosmetic);
            assert_eq!(pool_edit(&empties, &bare), Edit::Cosmetic);
        }
        assert_eq!(pool_edit(&bare, &pool(json!({}), json!(null))), Edit::None);
        assert_eq!(class_edit(&json!({}), &json!({"tags": {}, "cpuOptions": {}})), Edit::Cosmetic);
        assert_eq!(class_edit(&json!({}), &json!({"kubelet": {}})), Edit::None);
    }

    #[test]
    fn a_zero_that_is_written_out_is_no_empty() {
        assert_eq!(
            class_edit(&json!({}), &json!({"detailedMonitoring": false, "userData": ""})),
            real(&["spec.detailedMonitoring", "spec.userData"])
        );
        assert_eq!(
            class_edit(&json!({"kubelet": {"maxPods": 1}}), &json!({"kubelet": {"maxPods": 1, "evictionHard": {}}})),
            real(&["spec.kubelet"])
        );
    }

    /// To the hash, two equal elements are none; to a person they are not.
    #[test]
    fn dropping_a_list_of_equal_elements_is_real() {
        let taint = json!({"key": "gpu", "effect": "NoSchedule"});
        let twice = pool(json!(null), json!([taint, taint]));
        assert_eq!(pool_edit(&twice, &pool(json!(null), json!(null))), real(&["spec.template.spec.taints"]));
    }

    #[test]
    fn another_ca_bundle_is_named() {
        let class = json!({"spec": {"role": "a"}});
        let fields = |ca_bundle| ec2_node_class_seal(&class, ca_bundle).unwrap().fields;
        assert_eq!(fields("").edit_to(&fields("QUJD")), real(&["clusterCABundle"]));
    }

    #[test]
    fn with_both_objects_at_hand_a_change_shows_both_values() {
        let old = pool(json!({"labels": {"team": "a"}}), json!([]));
        let new = pool(json!({"labels": {"team": "b"}, "annotations": {"note": "x"}}), json!(null));
        assert_eq!(
            node_pool_changes(&old, &new).unwrap(),
            [
                FieldChange {
                    field: "spec.template.metadata.annotations".to_owned(),
                    old: None,
                    new: Some(json!({"note": "x"})),
                },
                FieldChange {
                    field: "spec.template.metadata.labels".to_owned(),
                    old: Some(json!({"team": "a"})),
                    new: Some(json!({"team": "b"})),
                },
            ]
        );
        let family = |family: &str| json!({"spec": {"amiFamily": family}});
        assert_eq!(
            ec2_node_class_changes(&family("AL2"), &json!({"spec": {}})).unwrap(),
            [FieldChange { field: "spec.amiFamily".to_owned(), old: Some(json!("AL2")), new: Some(json!("Custom")) }]
        );
    }

    #[test]
    fn the_text_form_reads_back() {
        let fields = node_pool_seal(&pool(json!({"labels": {"team": "a"}}), json!([]))).unwrap().fields;
        let text = fields.to_string();
        assert_eq!(text.parse(), Ok(fields));
        assert!(text.starts_with("v1 "), "{text}");
        assert!(text.contains(" spec.template.metadata.labels[team]="), "{text}");

        let none = FieldHashes { of: Hash(7), fields: BTreeMap::new() };
        assert_eq!(none.to_string(), "v1 7");
        assert_eq!("v1 7".parse(), Ok(none));
    }

    #[test]
    fn a_text_form_of_another_format_is_refused() {
        for text in ["", "v2 7 a=1", "v1", "v1 x a=1", "v1 7 a=1 b=2"] {
            let error = text.parse::<FieldHashes>().unwrap_err();
            assert_eq!(error, ParseFieldHashesError::UnknownFormat(text.to_owned()));
        }
        for entry in ["a", "a=", "a=g", "a=00000000000000000"] {
            let error = format!("v1 7 {entry}").parse::<FieldHashes>().unwrap_err();
            assert_eq!(error, ParseFieldHashesError::MalformedEntry(entry.to_owned()));
        }
    }
}
