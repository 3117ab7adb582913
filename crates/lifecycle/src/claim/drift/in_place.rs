//! Drift that needs no new node: what was edited is changed on the node that runs (sheet 03 §15.6, gate `InPlaceDrift`).
//!
//! Labels may only be added, and only those that no pod asks for: where the pods are was decided without them.
//! Annotations may be added, changed and removed. Everything else of a template takes a new node. A claim whose field
//! hashes are not known is never changed in place: nobody can tell what its template was.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

use kerf_model::cluster::{Node, NodeClaim, PodConstraints, StoredPool, condition_kind as kind};
use kerf_model::effect::{Effect, MetaPatch, NodePatch, Target};
use kerf_model::label::annotation;
use kerf_model::snapshot::ClusterSnapshot;

use super::fields::{ANNOTATIONS, LABELS};
use crate::claim::{ClaimDraft, Hold};
use crate::field_hashes::FieldHashes;
use crate::pool::stamp;
use crate::steps::Steps;
use crate::view::View;

/// What is to become of a claim whose pool was edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InPlace {
    Update(Update),
    /// It could be done, and somebody wants it to wait. Until then the claim does not count as drifted.
    Held(Hold),
    /// It takes a new node.
    Replace(NotInPlace),
}

/// What the node and its claim should carry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Update {
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// `None` takes it away.
    pub annotations: BTreeMap<Arc<str>, Option<Arc<str>>>,
    pub fields: Vec<String>,
}

/// Why a node cannot be changed as it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotInPlace {
    /// The gate is off.
    Off,
    /// What the template was is not known.
    Unknown,
    /// A command already removes the node.
    UnderWay,
    Field {
        field: String,
    },
    LabelChanged {
        key: Arc<str>,
    },
    /// Pods choose nodes by it, and were placed without it.
    LabelUsed {
        key: Arc<str>,
    },
    /// The node has it already, with another value.
    LabelTaken {
        key: Arc<str>,
    },
    /// It was tried, and does not work.
    Failed {
        message: Arc<str>,
    },
}

/// The labels by which any pod chooses its node. Made once per look, when the first asks.
#[derive(Debug, Default)]
pub struct PodKeys(OnceLock<BTreeSet<Arc<str>>>);

pub fn judge(claim: &NodeClaim, pool: &StoredPool, view: View<'_>) -> InPlace {
    if !view.settings.in_place_drift {
        return InPlace::Replace(NotInPlace::Off);
    }
    if view.marks.of(&claim.meta).is_some() {
        return InPlace::Replace(NotInPlace::UnderWay);
    }
    if let Some(message) = view.memory.in_place(claim).and_then(|known| known.given_up()) {
        return InPlace::Replace(NotInPlace::Failed { message: message.clone() });
    }
    match update(claim, pool, view) {
        Err(why) => InPlace::Replace(why),
        // Windows and switches of drift hold back changes in place too.
        Ok(update) => match Hold::of_drift(claim, view) {
            Some(hold) => InPlace::Held(hold),
            None => InPlace::Update(update),
        },
    }
}

/// Brings the node up to date, then the claim: one that carries the pool's hash has a node that carries what it says.
pub(super) fn carry_out(draft: &mut ClaimDraft<'_>, pool: &StoredPool, update: &Update, view: View<'_>) -> Steps {
    let claim = draft.claim;
    let nodes = view.snapshot.nodes_of(claim).filter(|node| !node.meta.is_deleting());
    let behind: Vec<_> = nodes.filter_map(|node| patch(node, update)).collect();
    if !behind.is_empty() {
        return Steps { effects: behind, ..Steps::default() };
    }
    for (key, value) in &update.labels {
        draft.set_label(key, value);
    }
    for (key, value) in &update.annotations {
        match value {
            Some(value) => draft.set_annotation(key, value),
            None => draft.remove_annotation(key),
        }
    }
    if let Some(hash) = &pool.hash {
        stamp(hash).for_each(|(key, value)| draft.set_annotation(key, value));
    }
    if !update.fields.is_empty() {
        tell(draft, &update.fields.join(", "));
    }
    Steps::default()
}

/// Says what was changed, and when.
pub(super) fn tell(draft: &mut ClaimDraft<'_>, what: &str) {
    draft.conditions.remove(kind::IN_PLACE_UPDATED);
    draft.conditions.set_true_because(kind::IN_PLACE_UPDATED, kind::IN_PLACE_UPDATED, what);
}

/// Says why it waits.
pub(super) fn tell_held(draft: &mut ClaimDraft<'_>, hold: &Hold) {
    draft.conditions.set_false(kind::IN_PLACE_UPDATED, "Held", &format!("a change in place waits: {hold}"));
}

/// What would have to be changed, if all of it can be.
fn update(claim: &NodeClaim, pool: &StoredPool, view: View<'_>) -> Result<Update, NotInPlace> {
    let known = claim.meta.annotation(annotation::NODEPOOL_FIELD_HASHES).and_then(FieldHashes::read);
    let known = known.filter(|known| claim.meta.annotation(annotation::NODEPOOL_HASH) == Some(known.of));
    let wanted = pool.hash.as_ref().and_then(|hash| FieldHashes::read(hash.fields.as_deref()?));
    let (Some(old), Some(new), Ok(spec)) = (known, wanted, &pool.spec) else { return Err(NotInPlace::Unknown) };
    let mut update = Update { fields: old.changed_to(&new), ..Update::default() };
    for field in &update.fields {
        if let Some(key) = key_of(field, LABELS) {
            let key: Arc<str> = Arc::from(key);
            if old.has(field) {
                return Err(NotInPlace::LabelChanged { key });
            }
            let Some(value) = spec.labels.get(&key) else { return Err(NotInPlace::Unknown) };
            check_label(&key, value, claim, view)?;
            update.labels.insert(key, value.clone());
        } else if let Some(key) = key_of(field, ANNOTATIONS) {
            update.annotations.insert(Arc::from(key), spec.annotations.get(key).cloned());
        } else {
            return Err(NotInPlace::Field { field: field.clone() });
        }
    }
    Ok(update)
}

fn check_label(key: &Arc<str>, value: &Arc<str>, claim: &NodeClaim, view: View<'_>) -> Result<(), NotInPlace> {
    let on_nodes = view.snapshot.nodes_of(claim).map(|node| &node.meta.labels);
    let mut present = on_nodes.chain([&claim.meta.labels]).filter_map(|labels| labels.get(key));
    if present.any(|known| known != value) {
        return Err(NotInPlace::LabelTaken { key: key.clone() });
    }
    match view.pod_keys.has(key, view.snapshot) {
        true => Err(NotInPlace::LabelUsed { key: key.clone() }),
        false => Ok(()),
    }
}

/// `team` of `spec.template.metadata.labels[team]`.
fn key_of<'a>(field: &'a str, map: &str) -> Option<&'a str> {
    field.strip_prefix(map)?.strip_prefix('[')?.strip_suffix(']')
}

fn patch(node: &Node, update: &Update) -> Option<Effect> {
    let labels = update.labels.iter().filter(|(key, value)| node.meta.labels.get(*key) != Some(*value));
    let annotations =
        update.annotations.iter().filter(|(key, value)| node.meta.annotations.get(*key) != value.as_ref());
    let meta = MetaPatch {
        labels: labels.map(|(key, value)| (key.clone(), Some(value.clone()))).collect(),
        annotations: annotations.map(|(key, value)| (key.clone(), value.clone())).collect(),
        ..MetaPatch::default()
    };
    let patch = NodePatch { meta, ..NodePatch::default() };
    (patch != NodePatch::default()).then(|| Effect::PatchNode(Target::from(&node.meta), Box::new(patch)))
}

impl PodKeys {
    fn has(&self, key: &str, snapshot: &ClusterSnapshot) -> bool {
        let all = || {
            let active = snapshot.pods().filter(|pod| !pod.is_terminal());
            active.flat_map(|pod| keys(&pod.constraints)).cloned().collect()
        };
        self.0.get_or_init(all).contains(key)
    }
}

fn keys(rules: &PodConstraints) -> impl Iterator<Item = &Arc<str>> {
    let required = rules.required_node_terms.iter().flatten();
    let preferred = rules.preferred_node_terms.iter().flat_map(|term| &term.expressions);
    let terms = required.chain(preferred).map(|term| &term.key);
    let plain = [&rules.required_affinity, &rules.required_anti_affinity].into_iter().flatten();
    let weighted = [&rules.preferred_affinity, &rules.preferred_anti_affinity].into_iter().flatten();
    let near = plain.chain(weighted.map(|weighted| &weighted.term)).map(|term| &term.topology_key);
    let selected = rules.node_selector.iter().map(|(key, _)| key);
    selected.chain(terms).chain(rules.spread.iter().map(|spread| &spread.topology_key)).chain(near)
}

impl NotInPlace {
    /// Stable; for JSON and the CLI.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Unknown => "template_unknown",
            Self::UnderWay => "under_way",
            Self::Field { .. } => "field",
            Self::LabelChanged { .. } => "label_changed",
            Self::LabelUsed { .. } => "label_used",
            Self::LabelTaken { .. } => "label_taken",
            Self::Failed { .. } => "failed",
        }
    }
}

impl fmt::Display for NotInPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("the gate InPlaceDrift is off"),
            Self::Unknown => f.write_str("the template that it was made from is not known"),
            Self::UnderWay => f.write_str("the node is being replaced already"),
            Self::Field { field } => write!(f, "{field} takes a new node"),
            Self::LabelChanged { key } => {
                write!(f, "label {key} was changed or removed, and only new ones can be added")
            }
            Self::LabelUsed { key } => write!(f, "pods choose their nodes by label {key}"),
            Self::LabelTaken { key } => write!(f, "the node has another value of label {key}"),
            Self::Failed { message } => write!(f, "it was tried: {message}"),
        }
    }
}
