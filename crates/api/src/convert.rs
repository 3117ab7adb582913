//! Manifests of Karpenter's older APIs, rewritten for v1.
//!
//! Read: v1alpha5 Provisioner and Machine, v1alpha1 AWSNodeTemplate, v1beta1 NodePool, NodeClaim and EC2NodeClass.
//! Everything else passes byte for byte. All documents are looked at together, because kubelet settings move from pools
//! into the node classes that the pools name.
//!
//! Nothing is lost silently: whatever has no place in v1 is named in a [`Note`]. A document that cannot be converted
//! stays as it was, with a note of severity error.

mod beta;
mod claim;
mod fields;
mod kubelet;
mod metadata;
mod node_class;
mod note;
mod provisioner;
mod workload;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::manifest::Document;
use crate::yaml::to_yaml;
use kubelet::PoolKubelet;
use note::Recorder;
pub use note::{Finding, Note, ObjectName, Severity};

/// What the person who converts can choose. The default keeps the old behaviour as far as v1 can express it.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Do not write out the requirements that the old API server added by itself (Linux, amd64, on-demand and the
    /// instance categories c, m and r above generation 2).
    pub skip_default_requirements: bool,
    /// Give every pool that comes from a Provisioner a budget that forbids drift, which used to be off by default.
    pub freeze_drift: bool,
    /// The IAM role for node classes that name no instance profile. Without it such a class gets [`ROLE_PLACEHOLDER`] and
    /// a note of severity error: the text is accepted by the API server, but launches nothing before someone fills it in.
    pub role: Option<String>,
    /// Also rename legacy labels and annotations in workloads and nodes, instead of only pointing at them.
    pub rewrite_workloads: bool,
}

/// Stands where a role must be filled in.
pub const ROLE_PLACEHOLDER: &str = "FILL-IN-THE-NODE-ROLE";

/// The documents in their order, and what there is to say about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    pub documents: Vec<OutputDocument>,
    pub notes: Vec<Note>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OutputDocument {
    pub file: Arc<str>,
    pub line: usize,
    pub content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// The original text.
    Unchanged(String),
    /// One or more objects in the place of the original.
    Converted(Vec<Value>),
}

impl Output {
    pub fn has_errors(&self) -> bool {
        self.notes.iter().any(|note| note.finding.severity() == Severity::Error)
    }

    /// The whole result as one YAML stream.
    pub fn to_yaml(&self) -> String {
        let mut out = String::new();
        let mut add = |text: &str| {
            if !out.is_empty() {
                if !out.ends_with('\n') {
                    out.push('\n');
                }
                if !begins_with_marker(text) {
                    out.push_str("---\n");
                }
            }
            out.push_str(text);
        };
        for document in &self.documents {
            match &document.content {
                Content::Unchanged(text) => add(text),
                Content::Converted(objects) => objects.iter().for_each(|object| add(&to_yaml(object))),
            }
        }
        out
    }
}

/// Whether a `---` line comes before the first content.
fn begins_with_marker(text: &str) -> bool {
    let is_content =
        |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#') && !line.starts_with('%');
    text.lines().find(is_content).is_some_and(|line| line.starts_with("---"))
}

/// Whether the document is of a kind that v1 does not serve any more, and that [`convert`] rewrites.
pub fn is_legacy(document: &Document) -> bool {
    LegacyKind::of(document).is_some()
}

/// Converts documents that belong together.
pub fn convert(documents: Vec<Document>, options: &Options) -> Output {
    let mut notes = Vec::new();
    let documents = flatten_lists_to_convert(documents, options);

    // Classes first: pools put their kubelet settings into them.
    let mut slots: Vec<Slot> = documents.into_iter().map(|document| Slot::new(document, options, &mut notes)).collect();
    rename_inline_classes(&mut slots);
    kubelet::place(&mut slots, &mut notes);

    let order: BTreeMap<(Arc<str>, usize), usize> = slots
        .iter()
        .enumerate()
        .map(|(index, slot)| ((slot.document.file.clone(), slot.document.line), index))
        .collect();
    notes.sort_by_key(|note| order.get(&(note.file.clone(), note.line)).copied());
    let documents = slots.into_iter().map(Slot::finish).collect();
    Output { documents, notes }
}

/// One input document with what it became so far.
struct Slot {
    document: Document,
    /// `None` while the original text stands.
    objects: Option<Vec<Value>>,
    /// A pool that refers to a class by name, and the kubelet settings it brings.
    pool_kubelet: Option<PoolKubelet>,
}

impl Slot {
    fn new(document: Document, options: &Options, notes: &mut Vec<Note>) -> Self {
        let first_note = notes.len();
        let kind = LegacyKind::of(&document);
        let mut recorder = Recorder::new(notes, &document);
        let object = document.object.clone();
        let (objects, pool_kubelet) = match kind {
            Some(LegacyKind::Provisioner) => match provisioner::convert(object, options, &mut recorder) {
                Some(converted) => (Some(converted.objects), converted.kubelet),
                None => (None, None),
            },
            Some(LegacyKind::AwsNodeTemplate) => {
                (node_class::convert_template(object, options, &mut recorder).map(|class| vec![class]), None)
            }
            Some(LegacyKind::Machine) => (claim::convert_machine(object, &mut recorder).map(|claim| vec![claim]), None),
            Some(LegacyKind::BetaNodePool) => match beta::convert_pool(object, &mut recorder) {
                Some((pool, kubelet)) => (Some(vec![pool]), kubelet),
                None => (None, None),
            },
            Some(LegacyKind::BetaNodeClaim) => {
                (claim::convert_beta(object, &mut recorder).map(|claim| vec![claim]), None)
            }
            Some(LegacyKind::BetaNodeClass) => {
                (beta::convert_class(object, options, &mut recorder).map(|class| vec![class]), None)
            }
            None => (workload::convert(&document, options, &mut recorder).map(|object| vec![object]), None),
        };
        if kind.is_some() && objects.is_none() {
            // What a conversion would have changed is of no interest when there was none.
            let about_this = notes.split_off(first_note);
            notes.extend(about_this.into_iter().filter(|note| note.finding.severity() == Severity::Error));
        }
        Self { document, objects, pool_kubelet }
    }

    fn finish(self) -> OutputDocument {
        let content = match self.objects {
            Some(objects) => Content::Converted(objects),
            None => Content::Unchanged(self.document.text),
        };
        OutputDocument { file: self.document.file, line: self.document.line, content }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LegacyKind {
    Provisioner,
    AwsNodeTemplate,
    Machine,
    BetaNodePool,
    BetaNodeClaim,
    BetaNodeClass,
}

impl LegacyKind {
    fn of(document: &Document) -> Option<Self> {
        Some(match (document.api_version(), document.kind()) {
            ("karpenter.sh/v1alpha5", "Provisioner") => Self::Provisioner,
            ("karpenter.sh/v1alpha5", "Machine") => Self::Machine,
            ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate") => Self::AwsNodeTemplate,
            ("karpenter.sh/v1beta1", "NodePool") => Self::BetaNodePool,
            ("karpenter.sh/v1beta1", "NodeClaim") => Self::BetaNodeClaim,
            ("karpenter.k8s.aws/v1beta1", "EC2NodeClass") => Self::BetaNodeClass,
            _ => return None,
        })
    }
}

/// A list is taken apart only when one of its items changes; otherwise its text stays.
fn flatten_lists_to_convert(documents: Vec<Document>, options: &Options) -> Vec<Document> {
    let mut flat = Vec::new();
    for document in documents {
        if !document.is_list() {
            flat.push(document);
            continue;
        }
        let items = document.clone().flatten();
        let changes = |item: &Document| {
            LegacyKind::of(item).is_some() || (options.rewrite_workloads && workload::has_legacy_names(item))
        };
        if items.iter().any(changes) { flat.extend(items) } else { flat.push(document) }
    }
    flat
}

/// The class of an inline provider is called like its pool; when a class of that name stands in the input, it steps aside.
fn rename_inline_classes(slots: &mut [Slot]) {
    for index in 0..slots.len() {
        if slots[index].document.kind() != "Provisioner" || slots[index].pool_kubelet.is_some() {
            continue;
        }
        let name = slots[index].document.name().to_owned();
        let is_taken = slots.iter().any(|slot| {
            matches!(slot.document.kind(), "EC2NodeClass" | "AWSNodeTemplate") && slot.document.name() == name
        });
        if !is_taken {
            continue;
        }
        let new_name = kubelet::unused_name(slots, &format!("{name}-inline"));
        for object in slots[index].objects.iter_mut().flatten() {
            if object["kind"] == "EC2NodeClass" {
                object["metadata"]["name"] = Value::from(new_name.as_str());
            } else if object["kind"] == "NodePool" {
                object["spec"]["template"]["spec"]["nodeClassRef"] = node_class::reference(&new_name);
            }
        }
    }
}

/// An object with the fields that every object has.
fn new_object(api_version: &str, kind: &str, metadata: Map<String, Value>, spec: Map<String, Value>) -> Value {
    Value::Object(Map::from_iter([
        ("apiVersion".to_owned(), Value::from(api_version)),
        ("kind".to_owned(), Value::from(kind)),
        ("metadata".to_owned(), Value::Object(metadata)),
        ("spec".to_owned(), Value::Object(spec)),
    ]))
}

#[cfg(test)]
mod tests;
