//! Which fields of a pool's template are other than in the claim that was made from it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use kerf_model::cluster::{NodeClaim, StoredPool, Texts};
use kerf_model::label::annotation;
use kerf_model::node_pool::NodeSpec;
use kerf_model::taint::Taint;

use crate::field_hashes::FieldHashes;

/// A field of the pool. Absent is `None`; both are `None` where only the field is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    pub field: String,
    pub old: Option<String>,
    pub new: Option<String>,
}

pub(super) const LABELS: &str = "spec.template.metadata.labels";
pub(super) const ANNOTATIONS: &str = "spec.template.metadata.annotations";

/// What the claim shows of the old template is compared with the new one. A label or annotation that the template lost
/// cannot be told from one that others put there: then the hash of the field tells that it changed.
pub fn changes(claim: &NodeClaim, pool: &StoredPool) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    if let Ok(spec) = &pool.spec {
        changes.extend(texts(LABELS, &claim.meta.labels, &spec.labels));
        changes.extend(texts(ANNOTATIONS, &claim.meta.annotations, &spec.annotations));
        let (old, new) = (&claim.node, &spec.node);
        let period = |node: &NodeSpec| node.termination_grace_period.map(|time| time.to_string());
        let values = [
            ("spec.template.spec.taints", list(&old.taints), list(&new.taints)),
            ("spec.template.spec.startupTaints", list(&old.startup_taints), list(&new.startup_taints)),
            ("spec.template.spec.nodeClassRef", Some(old.class.to_string()), Some(new.class.to_string())),
            ("spec.template.spec.expireAfter", Some(old.expire_after.to_string()), Some(new.expire_after.to_string())),
            ("spec.template.spec.terminationGracePeriod", period(old), period(new)),
        ];
        let differing = values.into_iter().filter(|(_, old, new)| old != new);
        changes.extend(differing.map(|(field, old, new)| FieldChange { field: field.to_owned(), old, new }));
    }
    let is_told = |changes: &[FieldChange], field: &str| changes.iter().any(|known| known.field.starts_with(field));
    for field in changed_by_hash(claim, pool) {
        if !is_told(&changes, &field) {
            // The claim still shows what the template had.
            let texts = [(LABELS, &claim.meta.labels), (ANNOTATIONS, &claim.meta.annotations)];
            let old = texts.into_iter().find_map(|(map, texts)| {
                texts.get(field.strip_prefix(map)?.strip_prefix('[')?.strip_suffix(']')?).map(ToString::to_string)
            });
            changes.push(FieldChange { field, old, new: None });
        }
    }
    changes
}

fn texts(field: &str, old: &Texts, new: &Texts) -> Vec<FieldChange> {
    let differing = new.iter().filter(|(key, value)| old.get(*key) != Some(*value));
    let change = |(key, value): (&Arc<str>, &Arc<str>)| FieldChange {
        field: format!("{field}[{key}]"),
        old: old.get(key).map(ToString::to_string),
        new: Some(value.to_string()),
    };
    differing.map(change).collect()
}

/// As a set: the order of taints means nothing.
fn list(taints: &[Taint]) -> Option<String> {
    let sorted: BTreeSet<String> = taints.iter().map(ToString::to_string).collect();
    (!sorted.is_empty()).then(|| sorted.into_iter().collect::<Vec<_>>().join(" "))
}

/// The fields whose hashes differ; none if the claim carries no such hashes, or somebody else's.
fn changed_by_hash(claim: &NodeClaim, pool: &StoredPool) -> Vec<String> {
    let of_claim = claim.meta.annotation(annotation::NODEPOOL_FIELD_HASHES).and_then(FieldHashes::read);
    let of_pool = pool.meta.annotation(annotation::NODEPOOL_FIELD_HASHES).and_then(FieldHashes::read);
    let (Some(old), Some(new)) = (of_claim, of_pool) else { return Vec::new() };
    if claim.meta.annotation(annotation::NODEPOOL_HASH) != Some(old.of) {
        return Vec::new();
    }
    old.changed_to(&new)
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
