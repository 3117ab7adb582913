//! CEL rules (`x-kubernetes-validations`).
//!
//! kube-cel compiles and evaluates the rules of one schema node; walking the object is done here, because kube-cel 0.8
//! pairs old and new list items by position. The server pairs only items of lists of type map, by key: elsewhere
//! a transition rule on an item would compare strangers.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube_cel::{CompilationError, CompiledSchema, ErrorKind, ValidationError, Validator, compile_schema};
use serde_json::Value;

use super::{Rejection, Rule, correlation, field_path, schema::Schema};

/// The rules of one schema node.
#[derive(Debug)]
pub(super) struct Rules {
    compiled: CompiledSchema,
    /// Texts of the rules that read `oldSelf`.
    transitions: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    #[error("{0}")]
    Compile(String),
    #[error("the schema around the rule cannot be written as JSON")]
    Schema(#[source] serde_json::Error),
    #[error("`optionalOldSelf` is not supported: kube-cel binds null instead of an optional value")]
    OptionalOldSelf,
}

impl Rules {
    /// `None` when the node itself has no rules.
    pub fn compile(props: &JSONSchemaProps) -> Result<Option<Self>, RuleError> {
        let Some(rules) = props.x_kubernetes_validations.as_ref().filter(|rules| !rules.is_empty()) else {
            return Ok(None);
        };
        if rules.iter().any(|rule| rule.optional_old_self == Some(true)) {
            return Err(RuleError::OptionalOldSelf);
        }
        let mut node = props.clone();
        node.x_kubernetes_validations = None;
        strip(&mut node);
        node.x_kubernetes_validations = Some(rules.clone());
        let compiled = compile_schema(&serde_json::to_value(&node).map_err(RuleError::Schema)?);
        let mut transitions = Vec::new();
        for rule in &compiled.validations {
            match rule {
                Ok(rule) if rule.is_transition_rule => transitions.push(rule.rule.rule.clone()),
                Ok(_) => {}
                Err(error) => return Err(RuleError::Compile(compile_error_text(error))),
            }
        }
        Ok(Some(Self { compiled, transitions }))
    }

    fn is_transition(&self, error: &ValidationError) -> bool {
        self.transitions.contains(&error.rule)
    }

    /// Whether a rule could say something new about a value that is the same as before. `self == oldSelf` cannot.
    pub fn watches_changes(&self) -> bool {
        self.transitions.iter().any(|rule| rule != "self == oldSelf")
    }
}

fn compile_error_text(error: &CompilationError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

/// Leaves the shape only, so that kube-cel neither evaluates rules of nested nodes (the walk does) nor fills defaults.
fn strip(props: &mut JSONSchemaProps) {
    props.x_kubernetes_validations = None;
    props.default = None;
    props.properties.iter_mut().flat_map(|properties| properties.values_mut()).for_each(strip);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut props.items {
        strip(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(entries)) = &mut props.additional_properties {
        strip(entries);
    }
}

/// Evaluates every rule of an object against `new`, and its transition rules where `old` has a counterpart.
pub(super) fn check(cel: &Validator, schema: &Schema, new: &Value, old: Option<&Value>) -> Vec<Rejection> {
    let mut found = Vec::new();
    let history = match old {
        Some(old) => History::Pair(old),
        None => History::New,
    };
    walk(cel, Node { schema, value: new, history, path: "" }, &mut found);
    found
}

#[derive(Clone, Copy)]
struct Node<'a> {
    schema: &'a Schema,
    value: &'a Value,
    history: History<'a>,
    path: &'a str,
}

/// What an update did to a node.
#[derive(Clone, Copy)]
enum History<'a> {
    /// No counterpart in the old object, and not inside anything that stayed the same.
    New,
    Pair(&'a Value),
    /// No counterpart of its own, but inside a list or map that did not change at all.
    InsideUnchanged,
}

impl<'a> Node<'a> {
    fn is_unchanged(&self) -> bool {
        match self.history {
            History::New => false,
            History::Pair(old) => correlation::is_unchanged(self.schema, old, self.value),
            History::InsideUnchanged => true,
        }
    }

    fn old(&self) -> Option<&'a Value> {
        match self.history {
            History::Pair(old) => Some(old),
            History::New | History::InsideUnchanged => None,
        }
    }

    /// The history of a child, given its own counterpart.
    fn child_history(&self, counterpart: Option<&'a Value>) -> History<'a> {
        match counterpart {
            Some(old) => History::Pair(old),
            None if self.is_unchanged() => History::InsideUnchanged,
            None => History::New,
        }
    }
}

fn walk(cel: &Validator, node: Node<'_>, found: &mut Vec<Rejection>) {
    if node.value.is_null() || !node.schema.has_rules {
        return;
    }
    // What was accepted before and did not change is accepted again. Most writes change little of an object, and a
    // rule costs more than everything else in an admission.
    if !node.schema.watches_changes && node.is_unchanged() {
        return;
    }
    evaluate(cel, node, found);
    match node.value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let (schema, path) = match (node.schema.properties.get(name), node.schema.entries.as_deref()) {
                    (Some(property), _) => (property, field_path::child(node.path, name)),
                    (None, Some(entries)) => (entries, field_path::entry(node.path, name)),
                    (None, None) => continue,
                };
                let history = node.child_history(node.old().and_then(|old| old.get(name)));
                walk(cel, Node { schema, value, history, path: &path }, found);
            }
        }
        Value::Array(items) => {
            let Some(schema) = node.schema.items.as_deref() else { return };
            for (index, value) in items.iter().enumerate() {
                let history = node.child_history(correlation::old_item(node.schema, node.old(), value));
                let path = field_path::item(node.path, index);
                walk(cel, Node { schema, value, history, path: &path }, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn evaluate(cel: &Validator, node: Node<'_>, found: &mut Vec<Rejection>) {
    let Some(rules) = &node.schema.rules else { return };
    let Err(errors) = cel.validate_compiled(&rules.compiled, node.value, node.old()) else { return };
    for error in errors {
        // Ratcheting: a value that was already wrong and did not change is tolerated, unless the rule is about the
        // change itself or could not be evaluated.
        let is_verdict = error.kind == ErrorKind::ValidationFailure;
        if is_verdict && !rules.is_transition(&error) && node.is_unchanged() {
            continue;
        }
        found.push(Rejection {
            field: format!("{}{}", node.path, error.field_path),
            rule: Rule::Cel,
            message: error.message.trim().to_owned(),
        });
    }
}
