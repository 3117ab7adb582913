//! Types, required fields, limits, patterns, enums: everything a schema says without CEL.
//!
//! Follows kube-openapi's `validate` package and the apiextensions server's ratcheting around it.

use serde_json::{Number, Value};

use super::{
    Rejection, Rule, correlation, date_time, field_path,
    schema::{Bound, Format, Schema, Type},
};

/// Checks one value. `old` is its counterpart on update: whatever is wrong with a value that did not change is
/// tolerated (ratcheting), so that tightening a CRD does not freeze the objects that exist.
pub(super) fn check(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, found: &mut Vec<Rejection>) {
    if old.is_some_and(|old| correlation::is_unchanged(schema, old, value)) {
        return;
    }
    check_here(schema, value, old, path, found);
}

fn check_here(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, found: &mut Vec<Rejection>) {
    check_type(schema, value, path, found);
    if !schema.enum_values.is_empty() && !schema.enum_values.contains(value) {
        let allowed: Vec<String> = schema.enum_values.iter().map(Value::to_string).collect();
        reject(found, path, Rule::Enum, format!("unsupported value {value}, use one of {}", allowed.join(", ")));
    }
    match value {
        Value::Null => return,
        Value::Bool(_) => {}
        Value::Number(number) => check_number(schema, number, path, found),
        Value::String(text) => check_text(schema, text, path, found),
        Value::Array(items) => check_items(schema, items, old, path, found),
        Value::Object(fields) => check_fields(schema, fields, old, path, found),
    }
    check_junctors(schema, value, old, path, found);
}

fn reject(found: &mut Vec<Rejection>, path: &str, rule: Rule, message: String) {
    found.push(Rejection { field: path.to_owned(), rule, message });
}

fn check_type(schema: &Schema, value: &Value, path: &str, found: &mut Vec<Rejection>) {
    let expects = |wanted: Type| schema.types.contains(&wanted);
    let fits = match value {
        _ if schema.types.is_empty() => true,
        Value::Null => schema.nullable,
        // A quirk of kube-openapi: with a string format, a list passes the type check.
        Value::Array(_) => expects(Type::Array) || (expects(Type::String) && schema.format.is_some()),
        Value::Object(_) => expects(Type::Object),
        Value::String(_) => expects(Type::String),
        Value::Bool(_) => expects(Type::Boolean),
        Value::Number(number) => expects(Type::Number) || (expects(Type::Integer) && is_whole(number)),
    };
    if !fits {
        let wanted: Vec<&str> = schema.types.iter().map(|wanted| wanted.name()).collect();
        reject(found, path, Rule::Type, format!("must be of type {}, not {}", wanted.join(" or "), kind_of(value)));
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether a number is written as an integer or is a whole float that JavaScript could hold (`5.0`).
fn is_whole(number: &Number) -> bool {
    const MAX_JSON_INTEGER: f64 = 9_007_199_254_740_991.0;
    /// How far from whole go-openapi's `IsFloat64AJSONInteger` lets a number be, relative to its size.
    const TOLERANCE: f64 = 1e-9;
    if number.is_i64() {
        return true;
    }
    let Some(float) = number.as_f64() else { return false };
    let whole = float.trunc();
    float.abs() <= MAX_JSON_INTEGER
        && (float == whole || (float - whole).abs() / (float.abs() + whole.abs()) < TOLERANCE)
}

fn check_number(schema: &Schema, number: &Number, path: &str, found: &mut Vec<Rejection>) {
    if schema.types == [Type::Integer] && !is_in_range(number, schema.format) {
        let format = schema.format.unwrap_or(Format::Int64).name();
        reject(found, path, Rule::Range, format!("{number} is not an {format}"));
    }
    if let Some(minimum) = schema.minimum
        && is_beyond(number, minimum, |value, bound| value < bound)
    {
        reject(found, path, Rule::Minimum, bound_message("at least", "greater than", minimum));
    }
    if let Some(maximum) = schema.maximum
        && is_beyond(number, maximum, |value, bound| value > bound)
    {
        reject(found, path, Rule::Maximum, bound_message("at most", "less than", maximum));
    }
}

/// A whole float counts as the integer it prints as; anything else does not convert.
fn is_in_range(number: &Number, format: Option<Format>) -> bool {
    let integer = match number.as_i64() {
        Some(integer) => Some(integer),
        None => number.as_f64().and_then(|float| format!("{float}").parse::<i64>().ok()),
    };
    match format {
        Some(Format::Int32) => integer.is_some_and(|integer| i32::try_from(integer).is_ok()),
        Some(Format::Int64 | Format::DateTime) | None => integer.is_some(),
    }
}

fn is_beyond(number: &Number, bound: Bound, beyond: fn(f64, f64) -> bool) -> bool {
    let Some(value) = number.as_f64() else { return true };
    beyond(value, bound.value) || (bound.exclusive && value == bound.value)
}

fn bound_message(inclusive: &str, exclusive: &str, bound: Bound) -> String {
    format!("must be {} {}", if bound.exclusive { exclusive } else { inclusive }, bound.value)
}

/// Stops at the first of length and pattern, as the server does; the format is a check of its own.
fn check_text(schema: &Schema, text: &str, path: &str, found: &mut Vec<Rejection>) {
    let length = text.chars().count() as u64;
    if let Some(max) = schema.max_length.filter(|max| length > *max) {
        reject(found, path, Rule::MaxLength, format!("has {length} characters, at most {max} are allowed"));
    } else if let Some(min) = schema.min_length.filter(|min| length < *min) {
        reject(found, path, Rule::MinLength, format!("has {length} characters, at least {min} are needed"));
    } else if let Some(pattern) = schema.pattern.as_ref().filter(|pattern| !pattern.finds(text)) {
        reject(found, path, Rule::Pattern, format!("`{text}` does not match `{}`", pattern.source));
    }
    if schema.format == Some(Format::DateTime) && !date_time::is_valid(text) {
        reject(found, path, Rule::Format, format!("`{text}` is not an RFC 3339 date and time"));
    }
}

fn check_items(schema: &Schema, items: &[Value], old: Option<&Value>, path: &str, found: &mut Vec<Rejection>) {
    if let Some(schema_of_items) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            let old = correlation::old_item(schema, old, item);
            check(schema_of_items, item, old, &field_path::item(path, index), found);
        }
    }
    let count = items.len() as u64;
    if let Some(min) = schema.min_items.filter(|min| count < *min) {
        reject(found, path, Rule::MinItems, format!("has {count} items, at least {min} are needed"));
    }
    if let Some(max) = schema.max_items.filter(|max| count > *max) {
        reject(found, path, Rule::MaxItems, format!("has {count} items, at most {max} are allowed"));
    }
}

fn check_fields(
    schema: &Schema,
    fields: &serde_json::Map<String, Value>,
    old: Option<&Value>,
    path: &str,
    found: &mut Vec<Rejection>,
) {
    let count = fields.len() as u64;
    if let Some(min) = schema.min_properties.filter(|min| count < *min) {
        reject(found, path, Rule::MinProperties, format!("has {count} entries, at least {min} are needed"));
    }
    if let Some(max) = schema.max_properties.filter(|max| count > *max) {
        reject(found, path, Rule::MaxProperties, format!("has {count} entries, at most {max} are allowed"));
    }
    for (name, value) in fields {
        if let Some(field) = schema.properties.get(name).or(schema.entries.as_deref()) {
            let old = old.and_then(|old| old.get(name));
            check(field, value, old, &field_path::child(path, name), found);
        }
    }
    for name in schema.required.iter().filter(|name| !fields.contains_key(*name)) {
        reject(found, &field_path::child(path, name), Rule::Required, "must be set".to_owned());
    }
}

fn check_junctors(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, found: &mut Vec<Rejection>) {
    let failures = |branch: &Schema| {
        let mut failures = Vec::new();
        check_here(branch, value, old, path, &mut failures);
        failures
    };
    let holds = |branch: &&Schema| failures(branch).is_empty();
    if !schema.any_of.is_empty() && !schema.any_of.iter().any(|branch| holds(&branch)) {
        reject(found, path, Rule::Alternatives, "fits none of the alternatives (anyOf)".to_owned());
    }
    if !schema.one_of.is_empty() && schema.one_of.iter().filter(holds).count() != 1 {
        reject(found, path, Rule::Alternatives, "must fit exactly one of the alternatives (oneOf)".to_owned());
    }
    for branch in &schema.all_of {
        found.extend(failures(branch));
    }
    if schema.not.as_deref().is_some_and(|not| holds(&not)) {
        reject(found, path, Rule::Alternatives, "fits what it must not be (not)".to_owned());
    }
}
