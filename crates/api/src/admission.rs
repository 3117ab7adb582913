//! What a kube-apiserver (1.36) would say to a custom resource, without one.
//!
//! [`Admission`] takes CRDs and answers for objects as the apiextensions API server does, in its order: drop unknown
//! fields and meaningless nulls, fill defaults, then metadata, schema, list types and, if nothing fundamental is
//! wrong, the CEL rules. On update it knows transition rules and ratcheting (what was wrong before and did not
//! change is tolerated). `cargo xtask e2e api` holds it against the real server on every case of `tests/e2e/cases`.
//!
//! Not modelled: admission plugins and webhooks, the CEL cost budget, embedded resources, conversion between versions,
//! and the server's refusal to let a rule read an integer that the JSON writes as `5.0` (`kubectl` sends `5`).
//! A CRD that uses something this module cannot check is refused by [`Admission::new`].

use std::{collections::BTreeMap, fmt};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use kube_cel::Validator;
use serde_json::{Map, Value};

mod correlation;
mod date_time;
mod defaults;
mod field_path;
mod go_regex;
mod lists;
mod metadata;
mod prune;
mod rules;
mod schema;
mod structure;
#[cfg(test)]
mod tests;

use metadata::{Metadata, Scope};
use schema::Schema;
pub use {rules::RuleError, schema::SchemaError};

use crate::rule_book::RuleId;

/// Admission for a set of CRDs.
pub struct Admission {
    resources: BTreeMap<TypeMeta, Resource>,
    cel: Validator,
}

/// The server's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Accepted(Accepted),
    Rejected(Vec<Rejection>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// The object as a reader would get it back: pruned and defaulted. The server's own metadata fields are not added.
    pub object: Value,
    /// Fields that the schema does not know and that were dropped; `kubectl` warns about them.
    pub pruned: Vec<String>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Like `spec.template.spec.requirements[0].key`; empty for the object as a whole.
    pub field: String,
    pub rule: Rule,
    pub message: String,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => write!(f, "{}", self.message),
            field => write!(f, "{field}: {}", self.message),
        }
    }
}

/// The kind of rule that an object breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The group, version and kind belong to no CRD.
    UnknownKind,
    /// Name, labels, annotations, owners, finalizers, or metadata that does not decode.
    Metadata,
    Required,
    Type,
    Enum,
    Pattern,
    MinLength,
    MaxLength,
    MinItems,
    MaxItems,
    MinProperties,
    MaxProperties,
    Minimum,
    Maximum,
    /// Does not fit the integer type (int32, int64), or the 32 bits of the scale subresource.
    Range,
    Format,
    /// anyOf, oneOf, not.
    Alternatives,
    /// Two equal items in a list of type set or map.
    Duplicate,
    Cel,
}

impl Rule {
    pub fn id(self) -> RuleId {
        match self {
            Self::UnknownKind => RuleId::UnknownKind,
            Self::Metadata => RuleId::Metadata,
            Self::Required => RuleId::Required,
            Self::Type => RuleId::Type,
            Self::Enum => RuleId::Enum,
            Self::Pattern => RuleId::Pattern,
            Self::MinLength => RuleId::MinLength,
            Self::MaxLength => RuleId::MaxLength,
            Self::MinItems => RuleId::MinItems,
            Self::MaxItems => RuleId::MaxItems,
            Self::MinProperties => RuleId::MinProperties,
            Self::MaxProperties => RuleId::MaxProperties,
            Self::Minimum => RuleId::Minimum,
            Self::Maximum => RuleId::Maximum,
            Self::Range => RuleId::Range,
            Self::Format => RuleId::Format,
            Self::Alternatives => RuleId::Alternatives,
            Self::Duplicate => RuleId::Duplicate,
            Self::Cel => RuleId::Cel,
        }
    }

    /// Whether the server gives up before CEL because a rule could meet a value it was not written for (`hasBlockingErr`).
    fn stops_cel(self) -> bool {
        match self {
            Self::Required
            | Self::Type
            | Self::Format
            | Self::Enum
            | Self::MaxLength
            | Self::MaxItems
            | Self::MaxProperties => true,
            Self::UnknownKind
            | Self::Metadata
            | Self::Pattern
            | Self::MinLength
            | Self::MinItems
            | Self::MinProperties
            | Self::Minimum
            | Self::Maximum
            | Self::Range
            | Self::Alternatives
            | Self::Duplicate
            | Self::Cel => false,
        }
    }
}

/// Why a CRD cannot be used for offline admission.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    #[error("cannot compile the schema of `{crd}`")]
    Schema {
        crd: String,
        #[source]
        source: Box<SchemaError>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TypeMeta {
    api_version: String,
    kind: String,
}

struct Resource {
    scope: Scope,
    schema: Schema,
    has_status: bool,
    scale: Option<ScalePaths>,
}

/// Where the scale subresource finds its two numbers, as names of nested fields.
struct ScalePaths {
    spec: Vec<String>,
    status: Vec<String>,
}

/// An object after decoding: pruned and defaulted.
struct Decoded {
    object: Value,
    metadata: Metadata,
    pruned: Vec<String>,
}

impl Admission {
    pub fn new(crds: &[CustomResourceDefinition]) -> Result<Self, AdmissionError> {
        let mut resources = BTreeMap::new();
        for crd in crds {
            let spec = &crd.spec;
            for version in spec.versions.iter().filter(|version| version.served) {
                let api_version = format!("{}/{}", spec.group, version.name);
                let resource = Resource::compile(&spec.scope, version).map_err(|source| AdmissionError::Schema {
                    crd: format!("{}.{}", spec.names.plural, spec.group),
                    source: Box::new(source),
                })?;
                resources.insert(TypeMeta { api_version, kind: spec.names.kind.clone() }, resource);
            }
        }
        Ok(Self { resources, cel: Validator::new() })
    }

    /// Whether some CRD describes this object's apiVersion and kind.
    pub fn knows(&self, object: &Value) -> bool {
        self.resource(object).is_ok()
    }

    /// The object as the server would store it, pruned and defaulted, without asking whether it would. `None` for an
    /// unknown kind, or metadata that does not decode.
    pub fn stored(&self, object: &Value) -> Option<Value> {
        Some(self.resource(object).ok()?.decode(object).ok()?.object)
    }

    pub fn create(&self, object: &Value) -> Outcome {
        self.try_create(object).map_or_else(Outcome::Rejected, Outcome::Accepted)
    }

    /// A full replacement of `old`, which must be an object that was once accepted.
    pub fn update(&self, old: &Value, new: &Value) -> Outcome {
        self.try_update(old, new).map_or_else(Outcome::Rejected, Outcome::Accepted)
    }

    /// A write to the status subresource: everything but `status` is taken from `old`.
    pub fn update_status(&self, old: &Value, new: &Value) -> Outcome {
        self.try_update_status(old, new).map_or_else(Outcome::Rejected, Outcome::Accepted)
    }

    fn try_create(&self, object: &Value) -> Result<Accepted, Vec<Rejection>> {
        let resource = self.resource(object)?;
        let mut decoded = resource.decode(object)?;
        if resource.has_status {
            remove(&mut decoded.object, "status");
        }
        let mut found = decoded.metadata.check_create(resource.scope);
        structure::check(&resource.schema, &decoded.object, None, "", &mut found);
        resource.check_scale(&decoded.object, &mut found);
        lists::check(&resource.schema, &decoded.object, "", &mut found);
        self.finish(resource, decoded, None, found)
    }

    fn try_update(&self, old: &Value, new: &Value) -> Result<Accepted, Vec<Rejection>> {
        let resource = self.resource(new)?;
        let old = resource.decode(old)?;
        let mut decoded = resource.decode(new)?;
        if resource.has_status {
            set(&mut decoded.object, "status", old.object.get("status").cloned());
        }
        let mut found = decoded.metadata.check_update(&old.metadata);
        structure::check(&resource.schema, &decoded.object, Some(&old.object), "", &mut found);
        resource.check_scale(&decoded.object, &mut found);
        resource.check_lists(&decoded.object, &old.object, &mut found);
        self.finish(resource, decoded, Some(&old.object), found)
    }

    fn try_update_status(&self, old: &Value, new: &Value) -> Result<Accepted, Vec<Rejection>> {
        let resource = self.resource(new)?;
        let old = resource.decode(old)?;
        let mut decoded = resource.decode(new)?;
        let status = decoded.object.get("status").cloned();
        decoded.object = old.object.clone();
        set(&mut decoded.object, "status", status);

        let mut found = Vec::new();
        if let (Some(schema), Some(status)) = (resource.schema.properties.get("status"), decoded.object.get("status")) {
            structure::check(schema, status, old.object.get("status"), "status", &mut found);
        }
        resource.check_scale(&decoded.object, &mut found);
        resource.check_lists(&decoded.object, &old.object, &mut found);
        self.finish(resource, decoded, Some(&old.object), found)
    }

    fn resource(&self, object: &Value) -> Result<&Resource, Vec<Rejection>> {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let type_meta = TypeMeta { api_version: text("apiVersion"), kind: text("kind") };
        self.resources.get(&type_meta).ok_or_else(|| {
            let TypeMeta { api_version, kind } = type_meta;
            let message = if api_version.is_empty() || kind.is_empty() {
                "every object needs apiVersion and kind".to_owned()
            } else {
                format!("no resource of kind `{kind}` in version `{api_version}`")
            };
            vec![Rejection { field: String::new(), rule: Rule::UnknownKind, message }]
        })
    }

    /// The last steps of every request: CEL, then the verdict.
    fn finish(
        &self,
        resource: &Resource,
        decoded: Decoded,
        old: Option<&Value>,
        mut found: Vec<Rejection>,
    ) -> Result<Accepted, Vec<Rejection>> {
        if !found.iter().any(|rejection| rejection.rule.stops_cel()) {
            found.extend(rules::check(&self.cel, &resource.schema, &decoded.object, old));
        }
        if !found.is_empty() {
            return Err(found);
        }
        let mut object = decoded.object;
        // Reading fills defaults again: this is how a default status comes back although creating dropped it.
        defaults::fill(&mut object, &resource.schema);
        Ok(Accepted { object, pruned: decoded.pruned })
    }
}

impl Resource {
    fn compile(scope: &str, version: &CustomResourceDefinitionVersion) -> Result<Self, SchemaError> {
        let schema = version.schema.as_ref().and_then(|validation| validation.open_api_v3_schema.as_ref());
        let subresources = version.subresources.as_ref();
        let names = |path: &str| path.trim_start_matches('.').split('.').map(str::to_owned).collect();
        Ok(Self {
            scope: if scope == "Namespaced" { Scope::Namespaced } else { Scope::Cluster },
            schema: schema.map(Schema::compile).transpose()?.unwrap_or_default(),
            has_status: subresources.is_some_and(|subresources| subresources.status.is_some()),
            scale: subresources.and_then(|subresources| subresources.scale.as_ref()).map(|scale| ScalePaths {
                spec: names(&scale.spec_replicas_path),
                status: names(&scale.status_replicas_path),
            }),
        })
    }

    fn decode(&self, object: &Value) -> Result<Decoded, Vec<Rejection>> {
        let mut fields: Map<String, Value> = object.as_object().cloned().unwrap_or_default();
        let mut pruned = Vec::new();
        let metadata = metadata::decode(&mut fields, &mut pruned).map_err(|rejection| vec![rejection])?;
        pruned.extend(prune::unknown_fields(&mut fields, &self.schema));
        let mut object = Value::Object(fields);
        prune::meaningless_nulls(&mut object, &self.schema);
        defaults::fill(&mut object, &self.schema);
        Ok(Decoded { object, metadata, pruned })
    }

    /// List types ratchet as a whole: an object that already had duplicates may keep or move them.
    fn check_lists(&self, new: &Value, old: &Value, found: &mut Vec<Rejection>) {
        let mut before = Vec::new();
        lists::check(&self.schema, old, "", &mut before);
        if before.is_empty() {
            lists::check(&self.schema, new, "", found);
        }
    }

    /// The scale subresource speaks int32, so its numbers must fit whatever the schema says.
    fn check_scale(&self, object: &Value, found: &mut Vec<Rejection>) {
        let Some(scale) = &self.scale else { return };
        for path in [&scale.spec, &scale.status] {
            let number = path.iter().try_fold(object, |value, name| value.get(name));
            let Some(number) = number else { continue };
            if number.as_i64().is_none_or(|number| !(0..=i64::from(i32::MAX)).contains(&number)) {
                let message = format!("{number} is not between 0 and {}", i32::MAX);
                found.push(Rejection { field: format!(".{}", path.join(".")), rule: Rule::Range, message });
            }
        }
    }
}

fn remove(object: &mut Value, name: &str) {
    if let Value::Object(fields) = object {
        fields.remove(name);
    }
}

fn set(object: &mut Value, name: &str, value: Option<Value>) {
    match (object, value) {
        (Value::Object(fields), Some(value)) => {
            fields.insert(name.to_owned(), value);
        }
        (object, None) => remove(object, name),
        (_, Some(_)) => {}
    }
}
