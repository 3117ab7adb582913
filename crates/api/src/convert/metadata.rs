//! Names, labels and annotations: what stays, what is renamed, what the controllers write anew.

use serde_json::{Map, Value};

use super::fields::Fields;
use super::note::{Finding, Recorder};

pub(super) const NODE_POOL_LABEL: &str = "karpenter.sh/nodepool";
pub(super) const PROVISIONER_LABEL: &str = "karpenter.sh/provisioner-name";
pub(super) const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";

/// Written by controllers or by kubectl; a manifest has no business with them.
const MACHINE_WRITTEN: [&str; 12] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "karpenter.sh/provisioner-hash",
    "karpenter.sh/provisioner-hash-version",
    "karpenter.sh/nodepool-hash",
    "karpenter.sh/nodepool-hash-version",
    "karpenter.k8s.aws/nodetemplate-hash",
    "karpenter.k8s.aws/nodetemplate-hash-version",
    "karpenter.k8s.aws/ec2nodeclass-hash",
    "karpenter.k8s.aws/ec2nodeclass-hash-version",
    "karpenter.sh/emptiness-timestamp",
    "karpenter.sh/linked",
    "karpenter.sh/managed-by",
];

/// What of an object's metadata belongs into a manifest.
pub(super) fn convert(top: &mut Fields, recorder: &mut Recorder<'_>) -> Map<String, Value> {
    let mut old = Fields::of(top, "metadata", "metadata", recorder);
    let mut new = Map::new();
    old.move_to(&mut new, &["name", "generateName"]);
    if let Some(mut labels) = old.object("labels", recorder) {
        labels.remove("karpenter.sh/managed-by");
        rename_pool_label(&mut labels);
        insert_unless_empty(&mut new, "labels", labels);
    }
    if let Some(annotations) = old.object("annotations", recorder) {
        insert_unless_empty(
            &mut new,
            "annotations",
            convert_annotations(annotations, "metadata.annotations", recorder),
        );
    }
    // Karpenter's own finalizers are set again by the controller, on the kinds that still have one.
    if let Some(finalizers) = old.list("finalizers", recorder) {
        let foreign: Vec<_> = finalizers
            .into_iter()
            .filter(|finalizer| !finalizer.as_str().is_some_and(|name| name.starts_with("karpenter.")))
            .collect();
        if !foreign.is_empty() {
            new.insert("finalizers".to_owned(), Value::Array(foreign));
        }
    }
    top.is_broken |= old.is_broken;
    new
}

/// Annotations of an object, or of the nodes that a pool makes.
pub(super) fn convert_annotations(
    annotations: Map<String, Value>,
    path: &str,
    recorder: &mut Recorder<'_>,
) -> Map<String, Value> {
    let mut new = Map::new();
    for (key, value) in annotations {
        match key.as_str() {
            "karpenter.sh/do-not-consolidate" | "karpenter.sh/do-not-deprovision" | "karpenter.sh/do-not-evict" => {
                recorder.add(path, Finding::LegacyAnnotation { from: key, to: DO_NOT_DISRUPT });
                new.entry(DO_NOT_DISRUPT).or_insert(value);
            }
            "karpenter.sh/do-not-expire" | "karpenter.sh/do-not-drift" => {
                recorder.add(path, Finding::AnnotationWithoutEqual { key });
            }
            _ if MACHINE_WRITTEN.contains(&key.as_str()) || key.starts_with("compatibility.karpenter.") => {}
            _ => {
                new.insert(key, value);
            }
        }
    }
    new
}

fn rename_pool_label(labels: &mut Map<String, Value>) {
    if let Some(pool) = labels.remove(PROVISIONER_LABEL) {
        labels.entry(NODE_POOL_LABEL).or_insert(pool);
    }
}

pub(super) fn insert_unless_empty(target: &mut Map<String, Value>, key: &str, map: Map<String, Value>) {
    if !map.is_empty() {
        target.insert(key.to_owned(), Value::Object(map));
    }
}
