//! A CRD's schema, compiled once: patterns, rules and limits in the form that validation wants.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

use super::{
    field_path,
    go_regex::Pattern,
    rules::{RuleError, Rules},
};

/// One node of a schema. Only what structural schemas may use; anything else is refused by [`Schema::compile`],
/// so that an object is never accepted because a check was not understood.
#[derive(Debug, Default)]
pub(super) struct Schema {
    /// Empty: any type.
    pub types: Vec<Type>,
    pub nullable: bool,
    pub format: Option<Format>,
    pub default: Option<Value>,
    pub enum_values: Vec<Value>,
    pub pattern: Option<Pattern>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub minimum: Option<Bound>,
    pub maximum: Option<Bound>,
    pub items: Option<Box<Schema>>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub list: ListKind,
    pub properties: BTreeMap<String, Schema>,
    pub entries: Option<Box<Schema>>,
    pub required: Vec<String>,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    pub preserves_unknown: bool,
    pub any_of: Vec<Schema>,
    pub one_of: Vec<Schema>,
    pub all_of: Vec<Schema>,
    pub not: Option<Box<Schema>>,
    pub rules: Option<Rules>,
    /// Whether this node or one below it has rules.
    pub has_rules: bool,
    /// Whether one of those rules may refuse a value that did not change.
    pub watches_changes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::Object, Self::Array, Self::String, Self::Integer, Self::Number, Self::Boolean]
            .into_iter()
            .find(|candidate| candidate.name() == name)
    }
}

/// The formats that the API server checks and that we need. [`SERVER_FORMATS`] has the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    DateTime,
    Int32,
    Int64,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Self::DateTime => "date-time",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    pub value: f64,
    pub exclusive: bool,
}

#[derive(Debug, Default)]
pub(super) enum ListKind {
    #[default]
    Atomic,
    Set,
    Map {
        keys: Vec<String>,
    },
}

/// What a schema uses that this module does not know, or that no server would take.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("`{path}` uses `{feature}`, which offline admission does not check")]
    Unsupported { path: String, feature: String },
    #[error("the pattern of `{path}` does not compile")]
    Pattern {
        path: String,
        #[source]
        source: regex::Error,
    },
    #[error("a rule of `{path}` does not compile")]
    Rule {
        path: String,
        #[source]
        source: RuleError,
    },
}

/// String formats that kube-apiserver 1.36 checks (`supportedVersionedFormats`), without `-` as it compares them.
/// Every other format is ignored by the server, and here too.
const SERVER_FORMATS: &[&str] = &[
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "k8sshortname",
    "k8slongname",
];

impl Schema {
    pub fn compile(props: &JSONSchemaProps) -> Result<Self, SchemaError> {
        compile(props, "")
    }

    /// The schemas of what a value of this one is made of.
    fn children(&self) -> impl Iterator<Item = &Self> {
        self.properties.values().chain(self.items.as_deref()).chain(self.entries.as_deref())
    }
}

fn compile(props: &JSONSchemaProps, path: &str) -> Result<Schema, SchemaError> {
    refuse_unsupported(props, path)?;
    let types = types(props, path)?;
    let mut schema = Schema {
        format: format(props, &types, path)?,
        nullable: props.nullable == Some(true),
        default: props.default.as_ref().map(|json| json.0.clone()).filter(|default| !default.is_null()),
        enum_values: props.enum_.iter().flatten().map(|json| json.0.clone()).collect(),
        pattern: pattern(props, path)?,
        min_length: limit(props.min_length),
        max_length: limit(props.max_length),
        minimum: bound(props.minimum, props.exclusive_minimum),
        maximum: bound(props.maximum, props.exclusive_maximum),
        items: items(props, path)?,
        min_items: limit(props.min_items),
        max_items: limit(props.max_items),
        list: list_kind(props),
        properties: properties(props, path)?,
        entries: entries(props, path)?,
        required: props.required.clone().unwrap_or_default(),
        min_properties: limit(props.min_properties),
        max_properties: limit(props.max_properties),
        preserves_unknown: props.x_kubernetes_preserve_unknown_fields == Some(true),
        any_of: junctor(props.any_of.as_deref(), path)?,
        one_of: junctor(props.one_of.as_deref(), path)?,
        all_of: junctor(props.all_of.as_deref(), path)?,
        not: props.not.as_deref().map(|not| compile(not, path).map(Box::new)).transpose()?,
        rules: Rules::compile(props).map_err(|source| SchemaError::Rule { path: path.to_owned(), source })?,
        types,
        has_rules: false,
        watches_changes: false,
    };
    schema.has_rules = schema.rules.is_some() || schema.children().any(|child| child.has_rules);
    let watches = |rules: &Rules| rules.watches_changes();
    schema.watches_changes =
        schema.rules.as_ref().is_some_and(watches) || schema.children().any(|child| child.watches_changes);
    Ok(schema)
}

fn refuse_unsupported(props: &JSONSchemaProps, path: &str) -> Result<(), SchemaError> {
    let used = [
        ("$ref", props.ref_path.is_some()),
        ("patternProperties", props.pattern_properties.is_some()),
        ("dependencies", props.dependencies.is_some()),
        ("additionalItems", props.additional_items.is_some()),
        ("uniqueItems", props.unique_items == Some(true)),
        ("multipleOf", props.multiple_of.is_some()),
        ("x-kubernetes-embedded-resource", props.x_kubernetes_embedded_resource == Some(true)),
    ];
    match used.into_iter().find(|(_, is_used)| *is_used) {
        Some((feature, _)) => Err(unsupported(path, feature)),
        None => Ok(()),
    }
}

fn unsupported(path: &str, feature: &str) -> SchemaError {
    SchemaError::Unsupported { path: path.to_owned(), feature: feature.to_owned() }
}

fn types(props: &JSONSchemaProps, path: &str) -> Result<Vec<Type>, SchemaError> {
    if props.x_kubernetes_int_or_string == Some(true) {
        return Ok(vec![Type::Integer, Type::String]);
    }
    match props.type_.as_deref() {
        None | Some("") => Ok(Vec::new()),
        Some(name) => match Type::parse(name) {
            Some(found) => Ok(vec![found]),
            None => Err(unsupported(path, &format!("type: {name}"))),
        },
    }
}

fn format(props: &JSONSchemaProps, types: &[Type], path: &str) -> Result<Option<Format>, SchemaError> {
    let Some(name) = props.format.as_deref() else { return Ok(None) };
    match (types, name) {
        ([Type::Integer], "int32") => Ok(Some(Format::Int32)),
        ([Type::Integer], "int64") => Ok(Some(Format::Int64)),
        ([Type::Number], "float") => Err(unsupported(path, "format: float")),
        ([] | [Type::String], name) => match name.replace('-', "").as_str() {
            "datetime" => Ok(Some(Format::DateTime)),
            plain if SERVER_FORMATS.contains(&plain) => Err(unsupported(path, &format!("format: {name}"))),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

fn pattern(props: &JSONSchemaProps, path: &str) -> Result<Option<Pattern>, SchemaError> {
    match props.pattern.as_deref() {
        None | Some("") => Ok(None),
        Some(source) => {
            Pattern::compile(source).map(Some).map_err(|source| SchemaError::Pattern { path: path.to_owned(), source })
        }
    }
}

fn limit(raw: Option<i64>) -> Option<u64> {
    raw.and_then(|number| u64::try_from(number).ok())
}

fn bound(value: Option<f64>, exclusive: Option<bool>) -> Option<Bound> {
    value.map(|value| Bound { value, exclusive: exclusive == Some(true) })
}

fn items(props: &JSONSchemaProps, path: &str) -> Result<Option<Box<Schema>>, SchemaError> {
    match &props.items {
        None => Ok(None),
        Some(JSONSchemaPropsOrArray::Schema(items)) => {
            compile(items, &format!("{path}[]")).map(|schema| Some(Box::new(schema)))
        }
        Some(JSONSchemaPropsOrArray::Schemas(_)) => Err(unsupported(path, "items as a list of schemas")),
    }
}

fn properties(props: &JSONSchemaProps, path: &str) -> Result<BTreeMap<String, Schema>, SchemaError> {
    props
        .properties
        .iter()
        .flatten()
        .map(|(name, property)| Ok((name.clone(), compile(property, &field_path::child(path, name))?)))
        .collect()
}

fn entries(props: &JSONSchemaProps, path: &str) -> Result<Option<Box<Schema>>, SchemaError> {
    match &props.additional_properties {
        None => Ok(None),
        Some(JSONSchemaPropsOrBool::Schema(entries)) => {
            compile(entries, &format!("{path}[]")).map(|schema| Some(Box::new(schema)))
        }
        Some(JSONSchemaPropsOrBool::Bool(_)) => Err(unsupported(path, "additionalProperties: true or false")),
    }
}

fn junctor(branches: Option<&[JSONSchemaProps]>, path: &str) -> Result<Vec<Schema>, SchemaError> {
    branches
        .unwrap_or_default()
        .iter()
        .map(|branch| match branch.x_kubernetes_validations {
            Some(_) => Err(unsupported(path, "rules inside anyOf, oneOf or allOf")),
            None => compile(branch, path),
        })
        .collect()
}

fn list_kind(props: &JSONSchemaProps) -> ListKind {
    match props.x_kubernetes_list_type.as_deref() {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map { keys: props.x_kubernetes_list_map_keys.clone().unwrap_or_default() },
        _ => ListKind::Atomic,
    }
}
