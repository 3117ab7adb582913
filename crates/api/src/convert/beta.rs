//! v1beta1 NodePool and EC2NodeClass.

use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::kubelet::{self, PoolKubelet};
use super::metadata::{self, insert_unless_empty};
use super::note::{Finding, Recorder};
use super::{Options, new_object, node_class};

const CLASS_FIELDS_THAT_STAY: [&str; 8] = [
    "subnetSelectorTerms",
    "securityGroupSelectorTerms",
    "associatePublicIPAddress",
    "userData",
    "blockDeviceMappings",
    "instanceStorePolicy",
    "detailedMonitoring",
    "context",
];

/// `None` when a field that decides something has the wrong type.
pub(super) fn convert_pool(
    object: Map<String, Value>,
    recorder: &mut Recorder<'_>,
) -> Option<(Value, Option<PoolKubelet>)> {
    let mut top = Fields::new("", object);
    top.take("apiVersion");
    top.take("kind");
    top.take("status");
    let metadata = metadata::convert(&mut top, recorder);
    let mut old = Fields::of(&mut top, "spec", "spec", recorder);
    let mut spec = Map::new();
    old.move_to(&mut spec, &["limits", "weight"]);

    let mut old_template = Fields::of(&mut old, "template", "spec.template", recorder);
    let mut template = Map::new();
    insert_unless_empty(&mut template, "metadata", convert_template_metadata(&mut old_template, recorder));

    let mut old_spec = Fields::of(&mut old_template, "spec", "spec.template.spec", recorder);
    let mut template_spec = Map::new();
    old_spec.move_to(&mut template_spec, &["taints", "startupTaints", "terminationGracePeriod"]);
    let requirements = old_spec.list("requirements", recorder).unwrap_or_default();
    template_spec.insert("requirements".to_owned(), Value::Array(requirements));
    // The scheduler computes it.
    old_spec.take("resources");
    let kubelet = kubelet::take(&mut old_spec, "kubelet", recorder);
    let class = take_class_reference(
        &mut old_spec,
        "nodeClassRef",
        "spec.template.spec.nodeClassRef",
        &mut template_spec,
        recorder,
    );

    let disruption = convert_disruption(&mut old, &mut template_spec, recorder);
    spec.insert("disruption".to_owned(), Value::Object(disruption));
    let sound = old_spec.finish(recorder) & old_template.finish(recorder) & old.finish(recorder) & top.finish(recorder);

    template.insert("spec".to_owned(), Value::Object(template_spec));
    spec.insert("template".to_owned(), Value::Object(template));
    let pool = new_object("karpenter.sh/v1", "NodePool", metadata, spec);
    const KUBELET: &str = "spec.template.spec.kubelet";
    let pool_kubelet = match (class, kubelet) {
        (Some(class), kubelet) => Some(PoolKubelet { class, kubelet, field: KUBELET }),
        (None, Some(kubelet)) => {
            recorder.add(KUBELET, Finding::KubeletWithoutClass { kubelet: Value::Object(kubelet).to_string() });
            None
        }
        (None, None) => None,
    };
    sound.then_some((pool, pool_kubelet))
}

fn convert_template_metadata(old_template: &mut Fields, recorder: &mut Recorder<'_>) -> Map<String, Value> {
    let mut old = Fields::of(old_template, "metadata", "spec.template.metadata", recorder);
    let mut new = Map::new();
    old.move_to(&mut new, &["labels"]);
    if let Some(annotations) = old.object("annotations", recorder) {
        let annotations = metadata::convert_annotations(annotations, "spec.template.metadata.annotations", recorder);
        insert_unless_empty(&mut new, "annotations", annotations);
    }
    old_template.is_broken |= !old.finish(recorder);
    new
}

/// Writes the reference with all three fields. Returns the name when it is an EC2NodeClass.
pub(super) fn take_class_reference(
    old: &mut Fields,
    key: &str,
    path: &'static str,
    spec: &mut Map<String, Value>,
    recorder: &mut Recorder<'_>,
) -> Option<String> {
    let mut reference = Fields::of(old, key, path, recorder);
    let name = reference.text("name", recorder);
    let group = reference.text("apiVersion", recorder);
    let kind = reference.text("kind", recorder);
    old.is_broken |= !reference.finish(recorder);
    let group =
        group.as_deref().and_then(|version| version.split_once('/')).map_or("karpenter.k8s.aws", |(group, _)| group);
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| {
        recorder.add(path, Finding::NoNodeClass { assumed: "default" });
        "default".to_owned()
    });
    // Machines name the old kind.
    let kind = kind.filter(|kind| kind != "AWSNodeTemplate").unwrap_or_else(|| "EC2NodeClass".to_owned());
    spec.insert("nodeClassRef".to_owned(), json!({"group": group, "kind": kind, "name": name}));
    (kind == "EC2NodeClass").then_some(name)
}

fn convert_disruption(
    old: &mut Fields,
    template_spec: &mut Map<String, Value>,
    recorder: &mut Recorder<'_>,
) -> Map<String, Value> {
    let mut disruption = Fields::of(old, "disruption", "spec.disruption", recorder);
    let mut new = Map::new();
    disruption.move_to(&mut new, &["budgets"]);
    let policy = match disruption.text("consolidationPolicy", recorder).as_deref() {
        None | Some("WhenUnderutilized") => "WhenEmptyOrUnderutilized".to_owned(),
        Some(policy) => policy.to_owned(),
    };
    new.insert("consolidationPolicy".to_owned(), Value::from(policy));
    let after = disruption.text("consolidateAfter", recorder).unwrap_or_else(|| "0s".to_owned());
    new.insert("consolidateAfter".to_owned(), Value::from(after));

    // Both versions default to 720h.
    let expire_after = disruption.text("expireAfter", recorder);
    if expire_after.as_deref() != Some("Never") {
        recorder.add("spec.disruption.expireAfter", Finding::ExpiryIsForceful);
    }
    if let Some(expire_after) = expire_after {
        template_spec.insert("expireAfter".to_owned(), Value::from(expire_after));
    }
    old.is_broken |= !disruption.finish(recorder);
    new
}

/// `None` when v1 has no images for the class.
pub(super) fn convert_class(
    object: Map<String, Value>,
    options: &Options,
    recorder: &mut Recorder<'_>,
) -> Option<Value> {
    let mut top = Fields::new("", object);
    top.take("apiVersion");
    top.take("kind");
    top.take("status");
    let metadata = metadata::convert(&mut top, recorder);
    let mut old = Fields::of(&mut top, "spec", "spec", recorder);
    let mut spec = Map::new();
    old.move_to(&mut spec, &CLASS_FIELDS_THAT_STAY);

    let terms = old.list("amiSelectorTerms", recorder).unwrap_or_default();
    let family = old.text("amiFamily", recorder);
    let images_are_known = node_class::set_images(&mut spec, family, terms, "spec.amiFamily", recorder);
    let role = old.text("role", recorder);
    let profile = old.text("instanceProfile", recorder);
    node_class::set_identity(&mut spec, role, profile, options, "spec.role", recorder);
    node_class::convert_tags(&mut old, &mut spec, recorder);

    let mut metadata_options = old.object("metadataOptions", recorder).unwrap_or_default();
    if let Value::Object(defaults) = node_class::old_metadata_options() {
        for (key, value) in defaults {
            metadata_options.entry(key).or_insert(value);
        }
    }
    spec.insert("metadataOptions".to_owned(), Value::Object(metadata_options));
    let sound = old.finish(recorder) & top.finish(recorder);
    (sound && images_are_known).then(|| node_class::new(metadata, spec))
}
