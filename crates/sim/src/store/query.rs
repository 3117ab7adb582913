//! What a list or watch asks for.

use std::sync::Arc;

use kerf_model::requirement::{Expression, Operator};
use kerf_model::selector::Selector;
use serde_json::Value;

use super::object::{at, list};
use super::{ApiError, Kind, Object};

/// Everything, unless narrowed.
#[derive(Debug, Clone, Default)]
pub struct Query {
    pub namespace: Option<Arc<str>>,
    pub labels: Selector,
    fields: Vec<FieldTest>,
}

#[derive(Debug, Clone)]
struct FieldTest {
    field: Field,
    value: String,
    equal: bool,
}

/// The fields that a field selector may name. Kubernetes has a few more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    NodeName,
    Phase,
    InvolvedName,
    InvolvedUid,
}

impl Query {
    pub fn in_namespace(namespace: impl Into<Arc<str>>) -> Self {
        Self { namespace: Some(namespace.into()), ..Self::default() }
    }

    /// From the `labelSelector` and `fieldSelector` of a request.
    pub fn parse(kind: Kind, label_selector: &str, field_selector: &str) -> Result<Self, ApiError> {
        let fields = split(field_selector).map(|term| FieldTest::parse(kind, term)).collect::<Result<_, _>>()?;
        Ok(Self { namespace: None, labels: label_query(label_selector)?, fields })
    }

    pub fn matches(&self, object: &Object) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == object.name.namespace)
            && self.labels.matches(&object.labels())
            && self.fields.iter().all(|test| test.holds(object))
    }
}

impl FieldTest {
    fn parse(kind: Kind, term: &str) -> Result<Self, ApiError> {
        let (name, value, equal) = term
            .split_once("!=")
            .map(|(name, value)| (name, value, false))
            .or_else(|| term.split_once("==").map(|(name, value)| (name, value, true)))
            .or_else(|| term.split_once('=').map(|(name, value)| (name, value, true)))
            .ok_or_else(|| refused(term))?;
        let field = match (name, kind) {
            ("metadata.name", _) => Field::Name,
            ("metadata.namespace", _) => Field::Namespace,
            ("spec.nodeName", Kind::Pod) => Field::NodeName,
            ("status.phase", Kind::Pod | Kind::Namespace) => Field::Phase,
            ("involvedObject.name", Kind::Event) => Field::InvolvedName,
            ("involvedObject.uid", Kind::Event) => Field::InvolvedUid,
            _ => {
                let message = format!("field label not supported: {name}");
                return Err(ApiError::BadRequest { message });
            }
        };
        Ok(Self { field, value: value.to_owned(), equal })
    }

    fn holds(&self, object: &Object) -> bool {
        let actual = match self.field {
            Field::Name => Some(&*object.name.name),
            Field::Namespace => Some(&*object.name.namespace),
            Field::NodeName => object.text(&["spec", "nodeName"]),
            Field::Phase => object.text(&["status", "phase"]),
            Field::InvolvedName => object.text(&["involvedObject", "name"]),
            Field::InvolvedUid => object.text(&["involvedObject", "uid"]),
        };
        (actual.unwrap_or_default() == self.value) == self.equal
    }
}

/// A `LabelSelector` as objects write it. `None` if it is absent or refused: both select nothing here.
pub fn selector(value: Option<&Value>) -> Option<Selector> {
    let value = value?;
    let labels = at(value, &["matchLabels"]).and_then(Value::as_object);
    let labels = labels.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    let expressions: Vec<_> = list(value, &["matchExpressions"]).iter().filter_map(expression).collect();
    Selector::new(labels, &expressions).ok()
}

/// An entry of `matchExpressions`.
pub fn expression(value: &Value) -> Option<Expression> {
    let texts = list(value, &["values"]).iter().filter_map(Value::as_str);
    Some(Expression {
        key: Arc::from(value.get("key")?.as_str()?),
        operator: value.get("operator")?.as_str()?.parse().ok()?,
        values: texts.map(Arc::from).collect(),
        min_values: None,
    })
}

/// The text form of label selectors: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
fn label_query(text: &str) -> Result<Selector, ApiError> {
    let expressions = split(text).map(label_term).collect::<Result<Vec<_>, _>>()?;
    Selector::new([], &expressions).map_err(|error| ApiError::BadRequest { message: error.to_string() })
}

fn label_term(term: &str) -> Result<Expression, ApiError> {
    let made = |key: &str, operator, values: Vec<&str>| {
        let values = values.into_iter().map(|value| Arc::from(value.trim())).collect();
        Ok(Expression { key: Arc::from(key.trim()), operator, values, min_values: None })
    };
    if let Some((key, values)) = term.split_once(" notin ") {
        return made(key, Operator::NotIn, in_brackets(values, term)?);
    }
    if let Some((key, values)) = term.split_once(" in ") {
        return made(key, Operator::In, in_brackets(values, term)?);
    }
    if let Some((key, value)) = term.split_once("!=") {
        return made(key, Operator::NotIn, vec![value]);
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return made(key, Operator::In, vec![value]);
    }
    match term.strip_prefix('!') {
        Some(key) => made(key, Operator::DoesNotExist, vec![]),
        None => made(term, Operator::Exists, vec![]),
    }
}

fn in_brackets<'a>(values: &'a str, term: &str) -> Result<Vec<&'a str>, ApiError> {
    let values = values.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    Ok(values.ok_or_else(|| refused(term))?.split(',').collect())
}

fn refused(term: &str) -> ApiError {
    ApiError::BadRequest { message: format!("unable to parse requirement: {term:?}") }
}

/// The terms between commas, except those inside brackets.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |character| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|term| !term.is_empty())
}
