//! EC2NodeClass from v1alpha1 AWSNodeTemplate (or a Provisioner's inline provider), and what v1beta1 shares with it.

use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::metadata::{self, insert_unless_empty};
use super::note::{Finding, Recorder};
use super::{Options, ROLE_PLACEHOLDER, new_object};

const FIELDS_THAT_STAY: [&str; 4] = ["userData", "blockDeviceMappings", "detailedMonitoring", "context"];

pub(super) fn new(metadata: Map<String, Value>, spec: Map<String, Value>) -> Value {
    new_object("karpenter.k8s.aws/v1", "EC2NodeClass", metadata, spec)
}

pub(super) fn reference(name: &str) -> Value {
    json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name})
}

/// `None` when the template uses what v1 cannot express at all.
pub(super) fn convert_template(
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
    let spec = convert_template_spec(&mut old, options, recorder);
    let sound = old.finish(recorder) & top.finish(recorder);
    spec.filter(|_| sound).map(|spec| new(metadata, spec))
}

pub(super) fn convert_template_spec(
    old: &mut Fields,
    options: &Options,
    recorder: &mut Recorder<'_>,
) -> Option<Map<String, Value>> {
    let mut spec = Map::new();
    let has_launch_template = old.take("launchTemplate").is_some() | old.take("launchTemplateName").is_some();
    if has_launch_template {
        recorder.add(old.path_of("launchTemplate"), Finding::LaunchTemplate);
    }
    for (from, to) in
        [("subnetSelector", "subnetSelectorTerms"), ("securityGroupSelector", "securityGroupSelectorTerms")]
    {
        let selector = old.object(from, recorder).unwrap_or_default();
        if selector.is_empty() && !has_launch_template {
            recorder.add(old.path_of(from), Finding::SelectorMissing { field: to });
        }
        let terms = convert_selector(selector, &old.path_of(from), recorder);
        spec.insert(to.to_owned(), Value::Array(terms));
    }
    let images = old.object("amiSelector", recorder).unwrap_or_default();
    let image_terms = convert_image_selector(images, &old.path_of("amiSelector"), recorder);
    let family = old.text("amiFamily", recorder);
    old.move_to(&mut spec, &FIELDS_THAT_STAY);
    let images_are_known = set_images(&mut spec, family, image_terms, &old.path_of("amiFamily"), recorder);

    let profile = old.text("instanceProfile", recorder);
    set_identity(&mut spec, None, profile, options, &old.path_of("instanceProfile"), recorder);
    convert_tags(old, &mut spec, recorder);
    match old.object("metadataOptions", recorder) {
        None => {
            spec.insert("metadataOptions".to_owned(), old_metadata_options());
        }
        Some(given) => {
            if old_metadata_options().as_object().is_some_and(|all| all.keys().any(|key| !given.contains_key(key))) {
                recorder.add(old.path_of("metadataOptions"), Finding::MetadataOptionsIncomplete);
            }
            spec.insert("metadataOptions".to_owned(), Value::Object(given));
        }
    }
    (images_are_known && !has_launch_template).then_some(spec)
}

/// The defaults before v1, which lowered the hop limit to 1.
pub(super) fn old_metadata_options() -> Value {
    json!({
        "httpEndpoint": "enabled",
        "httpProtocolIPv6": "disabled",
        "httpPutResponseHopLimit": 2,
        "httpTokens": "required",
    })
}

/// Subnets and security groups: `aws-ids` is a list of ids, everything else is a tag.
fn convert_selector(selector: Map<String, Value>, path: &str, recorder: &mut Recorder<'_>) -> Vec<Value> {
    let Selector { ids, tags, .. } = Selector::parse(selector);
    if ids.is_empty() {
        return if tags.is_empty() { Vec::new() } else { vec![json!({ "tags": tags })] };
    }
    if !tags.is_empty() {
        recorder.add(path, Finding::IdsWithOtherKeys);
    }
    ids.into_iter().map(|id| json!({ "id": id })).collect()
}

/// Images: one term for every pair of owner and name.
fn convert_image_selector(selector: Map<String, Value>, path: &str, recorder: &mut Recorder<'_>) -> Vec<Value> {
    let Selector { ids, mut names, owners, tags } = Selector::parse(selector);
    if !ids.is_empty() {
        if !names.is_empty() || !owners.is_empty() || !tags.is_empty() {
            recorder.add(path, Finding::IdsWithOtherKeys);
        }
        return ids.into_iter().map(|id| json!({ "id": id })).collect();
    }
    if names.is_empty() && tags.is_empty() {
        if owners.is_empty() {
            return Vec::new();
        }
        // An owner alone is no term in v1.
        names.push("*".to_owned());
    }
    let or_none = |values: Vec<String>| -> Vec<Option<String>> {
        if values.is_empty() { vec![None] } else { values.into_iter().map(Some).collect() }
    };
    let names = or_none(names);
    let mut terms = Vec::new();
    for owner in or_none(owners) {
        for name in &names {
            let mut term = Map::new();
            if let Some(owner) = &owner {
                term.insert("owner".to_owned(), Value::from(owner.as_str()));
            }
            if let Some(name) = name {
                term.insert("name".to_owned(), Value::from(name.as_str()));
            }
            insert_unless_empty(&mut term, "tags", tags.clone());
            terms.push(Value::Object(term));
        }
    }
    terms
}

#[derive(Default)]
struct Selector {
    ids: Vec<String>,
    names: Vec<String>,
    owners: Vec<String>,
    tags: Map<String, Value>,
}

impl Selector {
    fn parse(selector: Map<String, Value>) -> Self {
        let mut parsed = Self::default();
        for (key, value) in selector {
            let text = match value {
                Value::String(text) => text,
                other => other.to_string(),
            };
            match key.as_str() {
                "aws-ids" | "aws::ids" => parsed.ids.extend(comma_list(&text)),
                "aws::name" => parsed.names.extend(comma_list(&text)),
                "aws::owners" => parsed.owners.extend(comma_list(&text)),
                // An empty value used to mean "has the tag".
                _ if text.is_empty() => {
                    parsed.tags.insert(key, Value::from("*"));
                }
                _ => {
                    parsed.tags.insert(key, Value::from(text));
                }
            }
        }
        parsed
    }
}

fn comma_list(text: &str) -> impl Iterator<Item = String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned)
}

/// Which images nodes boot. `false` when v1 has no answer.
pub(super) fn set_images(
    spec: &mut Map<String, Value>,
    family: Option<String>,
    terms: Vec<Value>,
    path: &str,
    recorder: &mut Recorder<'_>,
) -> bool {
    let family = family.unwrap_or_else(|| "AL2".to_owned());
    match (family.as_str(), terms.is_empty()) {
        ("AL2" | "AL2023" | "Bottlerocket" | "Windows2019" | "Windows2022", true) => {
            let alias = format!("{}@latest", family.to_lowercase());
            spec.insert("amiSelectorTerms".to_owned(), json!([{ "alias": alias }]));
        }
        ("Ubuntu" | "Custom", true) => {
            recorder.add(path, Finding::AmiFamilyNeedsTerms { family });
            return false;
        }
        ("AL2" | "AL2023" | "Bottlerocket" | "Windows2019" | "Windows2022" | "Custom", false) => {
            spec.insert("amiFamily".to_owned(), Value::from(family));
            spec.insert("amiSelectorTerms".to_owned(), Value::Array(terms));
        }
        // Ubuntu boots like AL2, from another root device.
        ("Ubuntu", false) => {
            spec.insert("amiFamily".to_owned(), Value::from("AL2"));
            spec.insert("amiSelectorTerms".to_owned(), Value::Array(terms));
            spec.entry("blockDeviceMappings").or_insert_with(|| {
                json!([{
                    "deviceName": "/dev/sda1",
                    "rootVolume": true,
                    "ebs": {"encrypted": true, "volumeSize": "20Gi", "volumeType": "gp3"},
                }])
            });
        }
        _ => {
            recorder.add(path, Finding::UnknownAmiFamily { family });
            return false;
        }
    }
    true
}

/// Exactly one of role and instance profile.
pub(super) fn set_identity(
    spec: &mut Map<String, Value>,
    role: Option<String>,
    profile: Option<String>,
    options: &Options,
    path: &str,
    recorder: &mut Recorder<'_>,
) {
    let given = |text: &String| !text.is_empty();
    if let Some(profile) = profile.filter(given) {
        spec.insert("instanceProfile".to_owned(), Value::from(profile));
    } else if let Some(role) = role.filter(given).or_else(|| options.role.clone()) {
        spec.insert("role".to_owned(), Value::from(role));
    } else {
        recorder.add(path, Finding::RoleMissing);
        spec.insert("role".to_owned(), Value::from(ROLE_PLACEHOLDER));
    }
}

pub(super) fn convert_tags(old: &mut Fields, spec: &mut Map<String, Value>, recorder: &mut Recorder<'_>) {
    let Some(mut tags) = old.object("tags", recorder) else { return };
    tags.retain(|key, _| {
        let forbidden = key.starts_with("kubernetes.io/cluster")
            || matches!(
                key.as_str(),
                "eks:eks-cluster-name"
                    | "karpenter.sh/managed-by"
                    | "karpenter.sh/nodepool"
                    | "karpenter.sh/nodeclaim"
                    | "karpenter.k8s.aws/ec2nodeclass"
            );
        if forbidden {
            recorder.add(old.path_of("tags"), Finding::ForbiddenTag { key: key.clone() });
        }
        !forbidden
    });
    insert_unless_empty(spec, "tags", tags);
}
