//! v1alpha5 Provisioner: a NodePool, sometimes with an EC2NodeClass and a MaintenanceWindow beside it.

use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::kubelet::{self, PoolKubelet};
use super::metadata::{self, NODE_POOL_LABEL, insert_unless_empty};
use super::note::{Finding, Recorder};
use super::{Options, new_object, node_class};

/// What one Provisioner became. The NodePool comes first.
pub(super) struct Converted {
    pub objects: Vec<Value>,
    pub kubelet: Option<PoolKubelet>,
}

/// `None` when the input contradicts itself.
pub(super) fn convert(object: Map<String, Value>, options: &Options, recorder: &mut Recorder<'_>) -> Option<Converted> {
    let mut top = Fields::new("", object);
    top.take("apiVersion");
    top.take("kind");
    top.take("status");
    let metadata = metadata::convert(&mut top, recorder);
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut old = Fields::of(&mut top, "spec", "spec", recorder);

    let mut spec = Map::new();
    old.move_to(&mut spec, &["weight", "disabled", "disableDeprovisioning"]);
    convert_limits(&mut old, &mut spec, recorder);
    let mut template_spec = convert_template_spec(&mut old, options, recorder);
    let disruption = convert_disruption(&mut old, &mut template_spec, options, recorder);
    let window = convert_maintenance(&mut old, &name, recorder);
    let class = convert_class(&mut old, &name, options, recorder);
    let kubelet_settings = kubelet::take(&mut old, "kubeletConfiguration", recorder);
    let template_metadata = convert_template_metadata(&mut old, recorder);

    let contradicts = disruption.is_none() || class.is_none();
    let sound = old.finish(recorder) & top.finish(recorder);
    let (Some(disruption), Some(class), true, false) = (disruption, class, sound, contradicts) else { return None };

    let (class_name, inline_class) = match class {
        Class::Named(class) => (class, None),
        Class::Inline(mut class) => {
            if let Some(kubelet) = &kubelet_settings {
                class["spec"]["kubelet"] = Value::Object(kubelet.clone());
            }
            (name, Some(class))
        }
    };
    template_spec.insert("nodeClassRef".to_owned(), node_class::reference(&class_name));
    let mut template = Map::new();
    insert_unless_empty(&mut template, "metadata", template_metadata);
    template.insert("spec".to_owned(), Value::Object(template_spec));
    spec.insert("template".to_owned(), Value::Object(template));
    spec.insert("disruption".to_owned(), Value::Object(disruption));

    let kubelet = match &inline_class {
        Some(_) => None,
        None => Some(PoolKubelet { class: class_name, kubelet: kubelet_settings, field: "spec.kubeletConfiguration" }),
    };
    let pool = new_object("karpenter.sh/v1", "NodePool", metadata, spec);
    let objects = [Some(pool), inline_class, window].into_iter().flatten().collect();
    Some(Converted { objects, kubelet })
}

fn convert_limits(old: &mut Fields, spec: &mut Map<String, Value>, recorder: &mut Recorder<'_>) {
    let mut limits = Fields::of(old, "limits", "spec.limits", recorder);
    if let Some(resources) = limits.object("resources", recorder) {
        insert_unless_empty(spec, "limits", resources);
    }
    old.is_broken |= !limits.finish(recorder);
}

fn convert_template_metadata(old: &mut Fields, recorder: &mut Recorder<'_>) -> Map<String, Value> {
    let mut new = Map::new();
    if let Some(labels) = old.object("labels", recorder) {
        insert_unless_empty(&mut new, "labels", labels);
    }
    if let Some(annotations) = old.object("annotations", recorder) {
        let annotations = metadata::convert_annotations(annotations, "spec.annotations", recorder);
        insert_unless_empty(&mut new, "annotations", annotations);
    }
    new
}

fn convert_template_spec(old: &mut Fields, options: &Options, recorder: &mut Recorder<'_>) -> Map<String, Value> {
    let mut new = Map::new();
    old.move_to(&mut new, &["taints", "startupTaints"]);
    let mut requirements = old.list("requirements", recorder).unwrap_or_default();
    if !options.skip_default_requirements {
        add_default_requirements(&mut requirements);
    }
    new.insert("requirements".to_owned(), Value::Array(requirements));
    new
}

/// What the admission webhook of old added to every Provisioner.
fn add_default_requirements(requirements: &mut Vec<Value>) {
    let constrains =
        |requirements: &[Value], key: &str| requirements.iter().any(|requirement| requirement["key"] == key);
    for (key, value) in
        [("kubernetes.io/os", "linux"), ("kubernetes.io/arch", "amd64"), ("karpenter.sh/capacity-type", "on-demand")]
    {
        if !constrains(requirements, key) {
            requirements.push(json!({"key": key, "operator": "In", "values": [value]}));
        }
    }
    let instance_keys = [
        "node.kubernetes.io/instance-type",
        "karpenter.k8s.aws/instance-family",
        "karpenter.k8s.aws/instance-category",
        "karpenter.k8s.aws/instance-generation",
    ];
    if !instance_keys.into_iter().any(|key| constrains(requirements, key)) {
        requirements
            .push(json!({"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]}));
        requirements.push(json!({"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["2"]}));
    }
}

/// The disruption block, with the expiry that moved to the template. `None` when two settings contradict each other.
fn convert_disruption(
    old: &mut Fields,
    template_spec: &mut Map<String, Value>,
    options: &Options,
    recorder: &mut Recorder<'_>,
) -> Option<Map<String, Value>> {
    let mut consolidation = Fields::of(old, "consolidation", "spec.consolidation", recorder);
    let consolidates = consolidation.bool("enabled", recorder);
    old.is_broken |= !consolidation.finish(recorder);
    let after_empty = old.seconds("ttlSecondsAfterEmpty", recorder);

    let (policy, after) = match (after_empty, consolidates) {
        (Some(_), Some(true)) => {
            recorder.add("spec.ttlSecondsAfterEmpty", Finding::EmptinessAndConsolidation);
            return None;
        }
        (Some(seconds), _) => ("WhenEmpty", format!("{seconds}s")),
        (None, Some(true)) => ("WhenEmptyOrUnderutilized", "0s".to_owned()),
        // Consolidation had to be asked for; v1 does it unless told not to.
        (None, _) => ("WhenEmptyOrUnderutilized", "Never".to_owned()),
    };
    let mut new = Map::from_iter([
        ("consolidationPolicy".to_owned(), Value::from(policy)),
        ("consolidateAfter".to_owned(), Value::from(after)),
    ]);
    convert_expiry(old, &mut new, template_spec, recorder);

    // The toggles of the deprovisioning proposals keep their names, one level down.
    if let Some(drift) = old.object("drift", recorder) {
        insert_unless_empty(&mut new, "drift", drift);
    }
    if options.freeze_drift {
        // A list of budgets replaces the default one, so that has to be said again.
        new.insert("budgets".to_owned(), json!([{"nodes": "10%"}, {"nodes": "0", "reasons": ["Drifted"]}]));
    } else if !new.contains_key("drift") {
        recorder.add("spec", Finding::DriftIsOn);
    }
    Some(new)
}

fn convert_expiry(
    old: &mut Fields,
    disruption: &mut Map<String, Value>,
    template_spec: &mut Map<String, Value>,
    recorder: &mut Recorder<'_>,
) {
    let mut expiration = Fields::of(old, "expiration", "spec.expiration", recorder);
    let enabled = expiration.bool("enabled", recorder);
    let nested = expiration.seconds("ttlSecondsUntilExpired", recorder);
    old.is_broken |= !expiration.finish(recorder);
    let seconds = old.seconds("ttlSecondsUntilExpired", recorder);

    if let Some(enabled) = enabled {
        disruption.insert("expiration".to_owned(), json!({ "enabled": enabled }));
    }
    const NESTED: &str = "spec.expiration.ttlSecondsUntilExpired";
    let expiry = match (seconds, nested) {
        (Some(seconds), Some(_)) => {
            recorder.add(NESTED, Finding::UnknownField);
            Some((seconds, "spec.ttlSecondsUntilExpired"))
        }
        (Some(seconds), None) => Some((seconds, "spec.ttlSecondsUntilExpired")),
        (None, Some(seconds)) => Some((seconds, NESTED)),
        (None, None) => None,
    };
    // Absent meant never; in v1 it means 30 days.
    let expire_after = expiry.map_or_else(|| "Never".to_owned(), |(seconds, _)| format!("{seconds}s"));
    if let Some((_, field)) = expiry {
        recorder.add(field, Finding::ExpiryIsForceful);
    }
    template_spec.insert("expireAfter".to_owned(), Value::from(expire_after));
}

/// `maintenanceCron` and `maintenanceDurationSeconds`: a window in which the pool's nodes are left alone.
fn convert_maintenance(old: &mut Fields, pool: &str, recorder: &mut Recorder<'_>) -> Option<Value> {
    let cron = old.text("maintenanceCron", recorder);
    let duration = old.seconds("maintenanceDurationSeconds", recorder);
    let (cron, seconds) = match (cron, duration) {
        (None, None) => return None,
        (Some(cron), Some(seconds)) if seconds > 0 => (cron, seconds),
        _ => {
            recorder.add("spec.maintenanceCron", Finding::MaintenanceIncomplete);
            return None;
        }
    };
    let name = format!("{pool}-maintenance");
    recorder.add("spec.maintenanceCron", Finding::MaintenanceWindowMade { name: name.clone() });
    let metadata = Map::from_iter([("name".to_owned(), Value::from(name))]);
    let mut spec = Map::new();
    spec.insert("schedules".to_owned(), json!([{"schedule": cron, "duration": hours_and_minutes(seconds)}]));
    spec.insert("actions".to_owned(), json!(["Consolidation", "Drift", "Expiration", "Rebalance"]));
    spec.insert("selector".to_owned(), json!({"matchLabels": {NODE_POOL_LABEL: pool}}));
    Some(new_object("karpenter.sh/v1alpha1", "MaintenanceWindow", metadata, spec))
}

/// Windows count in minutes; a started minute counts, because the window protects.
fn hours_and_minutes(seconds: u64) -> String {
    let minutes = seconds.div_ceil(60);
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes}m"),
        (hours, 0) => format!("{hours}h"),
        (hours, minutes) => format!("{hours}h{minutes}m"),
    }
}

enum Class {
    Named(String),
    Inline(Value),
}

/// `None` when the input names its class in two ways or the inline provider cannot be converted.
fn convert_class(old: &mut Fields, pool: &str, options: &Options, recorder: &mut Recorder<'_>) -> Option<Class> {
    let provider = old.object("provider", recorder);
    let mut reference = Fields::of(old, "providerRef", "spec.providerRef", recorder);
    let name = reference.text("name", recorder);
    reference.take("apiVersion");
    reference.take("kind");
    old.is_broken |= !reference.finish(recorder);
    match (provider, name) {
        (Some(_), Some(_)) => {
            recorder.add("spec.provider", Finding::ProviderAndProviderRef);
            None
        }
        (Some(mut provider), None) => {
            provider.remove("apiVersion");
            provider.remove("kind");
            let mut fields = Fields::new("spec.provider", provider);
            let spec = node_class::convert_template_spec(&mut fields, options, recorder);
            let sound = fields.finish(recorder);
            let metadata = Map::from_iter([("name".to_owned(), Value::from(pool))]);
            spec.filter(|_| sound).map(|spec| Class::Inline(node_class::new(metadata, spec)))
        }
        (None, Some(name)) => Some(Class::Named(name)),
        (None, None) => {
            recorder.add("spec.providerRef", Finding::NoNodeClass { assumed: "default" });
            Some(Class::Named("default".to_owned()))
        }
    }
}
