//! The custom resource definitions, made from the types.
//!
//! What derive produces is brought to the published form by one walk over each schema (`publish`); what depends on the
//! provider is added by a second one (`add_domain_rules`).

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, ValidationRule,
};
use kube::CustomResourceExt;
use serde_json::Value;

use crate::capacity_buffer::CapacityBuffer;
use crate::ec2_node_class::Ec2NodeClass;
use crate::kwok_node_class::KwokNodeClass;
use crate::maintenance_window::MaintenanceWindow;
use crate::node_claim::NodeClaim;
use crate::node_overlay::NodeOverlay;
use crate::node_pool::NodePool;
use crate::provider::Provider;
use crate::schema::{KEY_DOMAIN, LABEL_DOMAIN};
use crate::yaml::to_yaml;

/// The definitions to install: those of one provider, or all kinds with the rules of both.
pub fn crds(provider: Option<Provider>) -> Vec<CustomResourceDefinition> {
    let providers = Provider::chosen(provider);
    let shared =
        [NodePool::crd(), NodeClaim::crd(), NodeOverlay::crd(), CapacityBuffer::crd(), MaintenanceWindow::crd()];
    let node_classes = providers.iter().map(|provider| match provider {
        Provider::Kwok => KwokNodeClass::crd(),
        Provider::Aws => Ec2NodeClass::crd(),
    });
    let mut crds: Vec<_> = shared.into_iter().chain(node_classes).collect();
    for crd in &mut crds {
        publish(crd);
        for &provider in &providers {
            add_domain_rules(crd, provider);
        }
    }
    crds
}

/// The text of one definition, for files that people read and `kubectl` applies.
pub fn crd_yaml(crd: &CustomResourceDefinition) -> String {
    let mut document = serde_json::to_value(crd).expect("a definition has string keys and finite numbers only");
    write_whole_numbers_as_such(&mut document);
    format!("---\n{}", to_yaml(&document))
}

/// The types keep limits as floating point; `minimum: 1.0` for an integer would puzzle readers.
fn write_whole_numbers_as_such(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64()
                && number.is_f64()
                && float.fract() == 0.0
                && float.abs() < 1e15
            {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_whole_numbers_as_such),
        Value::Object(entries) => entries.values_mut().for_each(write_whole_numbers_as_such),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Kinds whose published schema does not ask for a `spec`. Derive always does; their types read an absent one as empty.
const SPEC_IS_OPTIONAL: [&str; 2] = ["KWOKNodeClass", "EC2NodeClass"];

/// Brings a derived definition to the published form: no derive artefacts, and what derive cannot say added.
fn publish(crd: &mut CustomResourceDefinition) {
    let names = &mut crd.spec.names;
    names.list_kind = Some(format!("{}List", names.kind));
    let spec_is_optional = SPEC_IS_OPTIONAL.contains(&names.kind.as_str());
    for root in root_schemas(crd) {
        let properties = root.properties.get_or_insert_default();
        // The API server checks these three itself, but tools that read the schema expect to find them.
        properties.insert("apiVersion".into(), described("string", "The version of this object's schema."));
        properties.insert("kind".into(), described("string", "The kind of this object."));
        properties.insert("metadata".into(), JSONSchemaProps { type_: Some("object".into()), ..Default::default() });
        if spec_is_optional {
            root.required = None;
        }
        visit(root, &mut |schema| {
            // `Option` says nullable; the API means absent.
            schema.nullable = None;
            schema.title = None;
            // Formats of Rust's integer types mean nothing to the API server.
            if !matches!(schema.format.as_deref(), Some("int32" | "int64" | "date-time")) {
                schema.format = None;
            }
            if schema.x_kubernetes_int_or_string == Some(true) {
                schema.type_ = None;
                schema.any_of = Some(["integer", "string"].map(typed).into());
            }
        });
    }
}

fn typed(type_: &str) -> JSONSchemaProps {
    JSONSchemaProps { type_: Some(type_.into()), ..Default::default() }
}

fn described(type_: &str, description: &str) -> JSONSchemaProps {
    JSONSchemaProps { description: Some(description.into()), ..typed(type_) }
}

/// Adds the rule that reserves the provider's label domain next to each rule that reserves Karpenter's own.
fn add_domain_rules(crd: &mut CustomResourceDefinition, provider: Provider) {
    let kind = crd.spec.names.kind.clone();
    for root in root_schemas(crd) {
        visit(root, &mut |schema| {
            let Some(rules) = &mut schema.x_kubernetes_validations else { return };
            let has = |rules: &[ValidationRule], rule: &str| rules.iter().any(|known| known.rule == rule);
            let place = if has(rules, KEY_DOMAIN.0) {
                Place::RequirementKey
            } else if has(rules, LABEL_DOMAIN.0) {
                Place::Labels
            } else {
                return;
            };
            rules.extend(domain_rule(provider, &kind, place));
        });
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    RequirementKey,
    Labels,
}

/// The provider's domain rule at a place, where the provider's published definitions have one.
fn domain_rule(provider: Provider, kind: &str, place: Place) -> Option<ValidationRule> {
    let names = match (provider, kind, place) {
        (Provider::Kwok, "NodePool" | "NodeClaim", Place::RequirementKey) => provider.label_names(),
        (Provider::Kwok, ..) => return None,
        // An overlay changes prices and capacities of types; what only a launch decides cannot select them.
        (Provider::Aws, "NodeOverlay", _) => provider.instance_label_names().to_vec(),
        (Provider::Aws, ..) => provider.label_names(),
    };
    let (domain, class) = (provider.label_domain(), provider.class_label_name());
    let allowed = std::iter::once(class).chain(names);
    let list = allowed.map(|name| format!("\"{domain}/{name}\"")).collect::<Vec<_>>().join(", ");
    let rule = |key: &str| format!(r#"{key} in [{list}] || !{key}.find("^([^/]+)").endsWith("{domain}")"#);
    let (rule, what) = match place {
        Place::RequirementKey => (rule("self"), "keys"),
        Place::Labels => (format!("self.all(x, {})", rule("x")), "labels"),
    };
    let message = Some(format!("{what} of the domain {domain} are reserved"));
    Some(ValidationRule { rule, message, ..Default::default() })
}

fn root_schemas(crd: &mut CustomResourceDefinition) -> impl Iterator<Item = &mut JSONSchemaProps> {
    crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut())
}

/// Calls `edit` for the schema and everything below it, parents first.
fn visit(schema: &mut JSONSchemaProps, edit: &mut impl FnMut(&mut JSONSchemaProps)) {
    edit(schema);
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        visit(property, edit);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => visit(item, edit),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(|item| visit(item, edit)),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &mut schema.additional_properties {
        visit(value, edit);
    }
}

#[cfg(test)]
mod tests;
